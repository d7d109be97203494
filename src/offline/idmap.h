/*
 * idmap.h - a hash table from keys that live elsewhere to their 32-bit ids. Sized once, never grows.
 */
#ifndef TLY_IDMAP_H
#define TLY_IDMAP_H

#include <stdbool.h>
#include <stdint.h>

struct tly_idmap_slot {
    uint32_t id_plus_1; /* 0: free */
    uint32_t tag;       /* upper half of the hash, to save comparisons */
};

struct tly_idmap {
    struct tly_idmap_slot *slots;
    uint32_t mask;
};

/* Room for `keys` keys. 0 or -ENOMEM. */
int tly_idmap_make(struct tly_idmap *map, uint32_t keys);
void tly_idmap_free(struct tly_idmap *map);

/* The id stored for a key with this hash for which same(context, id) holds; if there is none, `id` is stored and
 * returned. No more than `keys` different ids may be stored. Hashes come from base/hash.h. */
uint32_t tly_idmap_put(struct tly_idmap *map, uint64_t hash, uint32_t id,
                       bool (*same)(const void *context, uint32_t id), const void *context);

#endif
