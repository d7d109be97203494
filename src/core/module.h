/* module.h - which loaded file an address belongs to. No loader lock, no malloc; async-signal-safe. */
#ifndef TLY_MODULE_H
#define TLY_MODULE_H

#include <stdint.h>

#include "region/region.h"

/* At the start of the process. */
void tly_module_init(void);

/* Index into the region's MODULES of the file loaded at `address`, registered if it is new, and its load bias.
 * TLY_MODULE_UNKNOWN (bias 0) for generated code and the like. A file that was unloaded and another one, loaded in its
 * place, are two modules. */
uint32_t tly_module_of(uintptr_t address, uint64_t *bias);

#endif
