/*
 * tag.h - call sites and path nodes: names to numbers, each once.
 *
 * Async-signal-safe and lock-free; ids stay valid for the life of the process and in its forked children.
 */
#ifndef TLY_TAG_H
#define TLY_TAG_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

#define TLY_NONE UINT32_MAX

void tly_tags_init(uint64_t node_index_bytes);

/* The site of a tag (TLY_SITE_TAG) or thread name (TLY_SITE_THREAD). TLY_NONE if there is no memory for it. */
uint32_t tly_site_of_name(enum tly_site_kind kind, const char *name, uint32_t bytes);
/* Is `site` the tag of this name? */
bool tly_site_is_tag(uint32_t site, const char *name, uint32_t bytes);
/* The site of a module or a caller in it. */
uint32_t tly_site_of_code(enum tly_site_kind kind, uint32_t module, uint64_t offset);

/* The node of `site` below `parent`. When there is no memory for one more node: the parent itself, so that bytes stay
 * in the right subtree (counted in index_overflow). */
uint32_t tly_node_child(uint32_t parent, uint32_t site);

/* Filled share of the node index, 0..1. */
double tly_node_index_load(void);
uint32_t tly_site_count(void);
uint32_t tly_node_count(void);

#endif
