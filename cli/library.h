/*
 * library.h - where libtally.so is: $TALLY_LIBRARY, or beside the command as it was installed or built.
 */
#ifndef TLY_LIBRARY_H
#define TLY_LIBRARY_H

#include <stddef.h>

/* The absolute path of the library. 0; or -ENOENT, -EINVAL with the reason in `error`. */
int tly_library_find(char *out, size_t bytes, char *error, size_t error_bytes);

#endif
