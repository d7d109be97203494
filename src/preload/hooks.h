/* hooks.h - the hooks under names of their own: what is exported as malloc, free, operator new and so on. */
#ifndef TLY_HOOKS_H
#define TLY_HOOKS_H

#include "preload/hook_table.h"

#define DECLARE_C(NAME, RET, PARAMS) RET tly_hook_##NAME PARAMS __attribute__((visibility("hidden")));
TLY_C_HOOKS(DECLARE_C)
#undef DECLARE_C
#define DECLARE_CXX(NAME, SYMBOL, RET, PARAMS) RET tly_hook_##SYMBOL PARAMS __attribute__((visibility("hidden")));
TLY_CXX_HOOKS(DECLARE_CXX)
#undef DECLARE_CXX

#endif
