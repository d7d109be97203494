/* idmap.c - see idmap.h. Linear probing at no more than half load. */
#include "offline/idmap.h"

#include <errno.h>
#include <stdlib.h>

int tly_idmap_make(struct tly_idmap *map, uint32_t keys) {
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)keys)
        slots *= 2;
    map->slots = slots <= (uint64_t)1 << 31 ? calloc(slots, sizeof *map->slots) : NULL;
    map->mask = (uint32_t)(slots - 1);
    return map->slots ? 0 : -ENOMEM;
}

void tly_idmap_free(struct tly_idmap *map) {
    free(map->slots);
    map->slots = NULL;
}

uint32_t tly_idmap_put(struct tly_idmap *map, uint64_t hash, uint32_t id,
                       bool (*same)(const void *context, uint32_t id), const void *context) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint32_t at = (uint32_t)hash & map->mask;; at = (at + 1) & map->mask) {
        struct tly_idmap_slot *slot = &map->slots[at];
        if (slot->id_plus_1 == 0) {
            slot->id_plus_1 = id + 1;
            slot->tag = tag;
            return id;
        }
        if (slot->tag == tag && same(context, slot->id_plus_1 - 1)) return slot->id_plus_1 - 1;
    }
}
