/* inherit.c - see inherit.h. */
#include "runtime/inherit.h"

#include <string.h>

#include "region/writer.h"

uint32_t tly_inherit_parent_pid(void) { return tly_writer_parent()->pid; }

/* The texts of the header were already written into NAMES; the parent's names keep their offsets, so the new texts are
 * moved behind them. */
static void move_texts(uint64_t parent_names_bytes) {
    struct tly_text *texts[] = {&tly_region->program, &tly_region->command_line, &tly_region->directory,
                                &tly_region->host,    &tly_region->output,       &tly_region->options};
    char *names = tly_writer_base(TLY_SEC_NAMES);
    struct tly_section *section = &tly_region->section[TLY_SEC_NAMES];
    uint64_t own_bytes = section->used_bytes;
    if (!tly_writer_commit(TLY_SEC_NAMES, parent_names_bytes + own_bytes)) return;
    memmove(names + parent_names_bytes, names, own_bytes);
    section->used_bytes = parent_names_bytes + own_bytes;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        texts[i]->offset += parent_names_bytes;
}

void tly_inherit_tables(void) {
    static const enum tly_section_id order[] = {TLY_SEC_NODEIDX, TLY_SEC_SITEIDX, TLY_SEC_NODES,
                                                TLY_SEC_SITES,   TLY_SEC_MODULES, TLY_SEC_NAMES};
    const struct tly_region *parent = tly_writer_parent();
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum tly_section_id id = order[i];
        const struct tly_section *from = &parent->section[id];
        bool index = id == TLY_SEC_NODEIDX || id == TLY_SEC_SITEIDX;
        uint64_t bytes = atomic_load_explicit(index ? &from->committed_bytes : &from->used_bytes, memory_order_acquire);
        if (bytes > tly_writer_parent_bytes(id)) bytes = tly_writer_parent_bytes(id);
        bytes -= bytes % from->record_bytes; /* whole records */
        if (id == TLY_SEC_NAMES) move_texts(bytes);
        if (!tly_writer_commit(id, bytes)) return;
        memcpy(tly_writer_base(id), (const char *)parent + from->offset, bytes);
        if (id != TLY_SEC_NAMES) tly_region->section[id].used_bytes = index ? atomic_load(&from->used_bytes) : bytes;
    }
}
