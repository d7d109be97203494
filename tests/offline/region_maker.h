/*
 * region_maker.h - makes regions by hand, without a program that allocates: the input of the offline tests.
 *
 * Fails by aborting: a test that cannot make its input has no result.
 */
#ifndef TLY_REGION_MAKER_H
#define TLY_REGION_MAKER_H

#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

struct region_maker;

struct region_maker *region_maker_new(void); /* with the root, the paused node, and the shared ledger */
void region_maker_free(struct region_maker *maker);

/* The header, to be set at will. Sections are filled in by the image. */
struct tly_region *region_maker_head(struct region_maker *maker);
void region_maker_text(struct region_maker *maker, struct tly_text *text, const char *bytes, size_t length);

uint32_t region_maker_site(struct region_maker *maker, uint32_t kind, const char *name, size_t length, uint64_t value,
                           uint32_t module);
uint32_t region_maker_tag(struct region_maker *maker, const char *name);
uint32_t region_maker_module(struct region_maker *maker, const char *path, const void *build_id, uint32_t length);
uint32_t region_maker_caller(struct region_maker *maker, uint32_t module, uint64_t address);
uint32_t region_maker_node(struct region_maker *maker, uint32_t parent, uint32_t site);
/* Adds to a node's counters in ledger `ledger` (made if it is not there). */
void region_maker_bill(struct region_maker *maker, uint32_t ledger, uint32_t node, uint64_t alloc_bytes,
                       uint64_t alloc_blocks, uint64_t free_bytes, uint64_t free_blocks);
struct tly_ledger *region_maker_ledger(struct region_maker *maker, uint32_t index);

/* The finished region in fresh memory (free it). */
void *region_maker_image(struct region_maker *maker, size_t *bytes);
void region_maker_write(struct region_maker *maker, const char *path);

/* The example of tests and documentation: Top 400, Top/A 200, Top/A/B 100, Top/B 100, direct of Top 100. */
struct region_maker *region_maker_reference(void);

#endif
