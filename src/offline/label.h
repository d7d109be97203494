/*
 * label.h - what a person reads for a call site or a byte string.
 *
 * Names are arbitrary bytes, so whatever goes to a terminal passes through here: control characters and bytes that are
 * not UTF-8 become \n, \t, \\ or \xNN. Where names are joined to paths, a '/' inside a name becomes \/.
 */
#ifndef TLY_LABEL_H
#define TLY_LABEL_H

#include <stdbool.h>
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

/* The path of `count` sites, the outermost first; none: `__root`. */
size_t tly_label_path(char *out, size_t bytes, const struct tly_snapshot *snapshot, const uint32_t *sites,
                      size_t count);

/* Base name of a module, more if that would leave two modules with one name; "?" for code outside every module (TLY_NONE). */
size_t tly_label_module(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t module);

/* One function of a call site: "load  scene.c:12". C++ names are shortened: std::string for what it stands for, and no
 * std::allocator among template arguments. */
size_t tly_label_frame(char *out, size_t bytes, const struct tly_snapshot_frame *frame);

/* What follows the last '/'. */
struct tly_bytes tly_label_base_name(struct tly_bytes path);

/* Length of the well-formed UTF-8 character that `bytes` begins with; 0: there is none. */
size_t tly_utf8_length(const char *bytes, size_t count);

/* Which frame of a caller stands for it in a label: the innermost one that is no malloc and whose source is not the
 * tool chain's own (/usr/include, /usr/lib/gcc), else the outermost. An offset from the site's first frame. */
uint32_t tly_label_frame_choice(const struct tly_snapshot *snapshot, const struct tly_snapshot_site *site);

#endif
