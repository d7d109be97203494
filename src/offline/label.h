/*
 * label.h - what a person reads for a call site or a byte string.
 *
 * Names are arbitrary bytes, so whatever goes to a terminal passes through here: control characters and bytes that are
 * not UTF-8 become \n, \t, \\ or \xNN. Where names are joined to paths, a '/' inside a name becomes \/.
 */
#ifndef TLY_LABEL_H
#define TLY_LABEL_H

#include <stddef.h>

#include "offline/snapshot.h"

/* All write at most `bytes` bytes with the terminator (whole characters only) and return the length of the whole text,
 * as snprintf does. */

/* Printable form of arbitrary bytes. `in_path`: also escapes '/'. */
size_t tly_label_escape(char *out, size_t bytes, const char *name, size_t length, bool in_path);

/* A call site: the tag's or thread's name, the module's base name, or for a caller its function and `file:line`
 * ("load  scene.c:12"), else module+0xoffset. */
size_t tly_label_site(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t site);

/* A node's whole path, "Top/A/B"; the root is `__root`. */
size_t tly_label_node(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t node);

/* Base name of a module, "?" for code outside every module (TLY_NONE). */
size_t tly_label_module(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t module);

#endif
