/* inherit.h - what a forked child takes over from its parent's region. */
#ifndef TLY_INHERIT_H
#define TLY_INHERIT_H

#include <stdint.h>

/* Copies names, sites, nodes, modules and their indices from the parent's region, shielded by the writer, into the new
 * one. The parent may be appending meanwhile: indices are copied before the records they point to. */
void tly_inherit_tables(void);
uint32_t tly_inherit_parent_pid(void);

#endif
