/* index.c - see index.h. */
#include "region/index.h"

#include "region/writer.h"

enum { LINE_SLOTS = 16, LINE_BYTES = 128, FIRST_LEVEL_BYTES = 16384, GROWTH = 4 };

/* Bytes of level n; 0 after the last. The last is the option's size even if that is no multiple of the growth. */
static uint64_t level_bytes(const struct tly_index *index, int level) {
    uint64_t bytes = FIRST_LEVEL_BYTES, largest = index->largest_level_bytes;
    for (int i = 0; i < level; i++) {
        if (bytes >= largest) return 0;
        bytes *= GROWTH;
    }
    return bytes < largest || level == 0 ? bytes : largest;
}

uint32_t tly_index_get(const struct tly_index *index, const void *key, uint64_t hash, bool *overflow) {
    const uint64_t mark = hash & 0xffffffff00000000u;
    uint32_t made = UINT32_MAX;
    uint64_t start = 0, bytes;
    *overflow = false;
    for (int level = 0; (bytes = level_bytes(index, level)) != 0; level++, start += bytes) {
        if (!tly_writer_commit(index->section, start + bytes)) break;
        uint64_t line = (hash >> (level * 2) & 0xffffffffu) % (bytes / LINE_BYTES);
        _Atomic uint64_t *slot =
            (_Atomic uint64_t *)((char *)tly_writer_base(index->section) + start) + line * LINE_SLOTS;
        for (int i = 0; i < LINE_SLOTS; i++) {
            uint64_t word = atomic_load_explicit(&slot[i], memory_order_acquire);
            if (word == 0) {
                if (made == UINT32_MAX) made = index->make(key, hash);
                if (made == UINT32_MAX) return UINT32_MAX;
                if (atomic_compare_exchange_strong_explicit(&slot[i], &word, mark | (made + 1), memory_order_acq_rel,
                                                            memory_order_acquire)) {
                    atomic_fetch_add_explicit(&tly_region->section[index->section].used_bytes, 8, memory_order_relaxed);
                    return made;
                }
            }
            if ((word & 0xffffffff00000000u) == mark && index->same((uint32_t)word - 1, key)) {
                if (made != UINT32_MAX) index->drop(made);
                return (uint32_t)word - 1;
            }
        }
    }
    /* Outside the index: found by walking all records. Slow, not lost. Two threads may make the same record here. */
    *overflow = true;
    uint32_t record_bytes =
        tly_region->section[index->section == TLY_SEC_SITEIDX ? TLY_SEC_SITES : TLY_SEC_NODES].record_bytes;
    uint64_t used = tly_region->section[index->section == TLY_SEC_SITEIDX ? TLY_SEC_SITES : TLY_SEC_NODES].used_bytes;
    for (uint64_t id = used / record_bytes; id-- > 0;)
        if ((uint32_t)id != made && index->same((uint32_t)id, key)) {
            if (made != UINT32_MAX) index->drop(made);
            return (uint32_t)id;
        }
    return made != UINT32_MAX ? made : index->make(key, hash);
}

void tly_index_load(const struct tly_index *index, uint64_t *filled, uint64_t *slots) {
    struct tly_section *section = &tly_region->section[index->section];
    *filled = section->used_bytes / 8;
    *slots = section->committed_bytes / 8;
}
