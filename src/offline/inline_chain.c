/*
 * inline_chain.c - see inline_chain.h.
 *
 * Units are found by their own address ranges and not by .debug_aranges, which clang does not write. The functions of a
 * unit are listed once, when it is first asked for; inside a function the way leads down from block to block.
 */
#include "offline/inline_chain.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint64_t start, end;
    uint32_t number; /* of a unit, or of a function in `dies` */
};

struct ranges {
    struct range *list; /* by start */
    size_t count, room;
};

struct unit {
    Dwarf_Die die;     /* has the lines and the ranges */
    Dwarf_Die content; /* has the functions: the same, but for split DWARF */
    bool listed;
    struct ranges functions;
    Dwarf_Die *dies;
    size_t die_count, die_room;
};

struct tly_chain_index {
    struct unit *units;
    size_t unit_count, unit_room;
    struct ranges ranges; /* of units */
};

static bool add_range(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t number) {
    if (start >= end) return true;
    if (ranges->count == ranges->room) {
        size_t room = ranges->room ? 2 * ranges->room : 64;
        struct range *grown = realloc(ranges->list, room * sizeof *grown);
        if (!grown) return false;
        ranges->list = grown;
        ranges->room = room;
    }
    ranges->list[ranges->count++] = (struct range){start, end, number};
    return true;
}

static bool add_die_ranges(struct ranges *ranges, Dwarf_Die *die, uint32_t number) {
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        /* the linker leaves functions that it dropped at address 0 */
        if (start != 0 && !add_range(ranges, start, end, number)) return false;
    }
    return true;
}

static int compare_ranges(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void sort_ranges(struct ranges *ranges) {
    if (ranges->count) qsort(ranges->list, ranges->count, sizeof *ranges->list, compare_ranges);
}

/* The range nearest before the address that holds it. Ranges of one kind do not nest in sound files. */
static const struct range *find_range(const struct ranges *ranges, uint64_t address) {
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i-- > 0 && low - i <= 8;) {
        if (address < ranges->list[i].end) return &ranges->list[i];
    }
    return NULL;
}

static bool add_unit(struct tly_chain_index *index, const Dwarf_Die *die, const Dwarf_Die *content) {
    if (index->unit_count == index->unit_room) {
        size_t room = index->unit_room ? 2 * index->unit_room : 64;
        struct unit *grown = realloc(index->units, room * sizeof *grown);
        if (!grown) return false;
        index->units = grown;
        index->unit_room = room;
    }
    struct unit *unit = &index->units[index->unit_count];
    memset(unit, 0, sizeof *unit);
    unit->die = *die;
    unit->content = *content;
    return add_die_ranges(&index->ranges, &unit->die, (uint32_t)index->unit_count++);
}

struct tly_chain_index *tly_chain_index_new(Dwarf *dwarf) {
    struct tly_chain_index *index = calloc(1, sizeof *index);
    if (!index) return NULL;
    Dwarf_Die die, split;
    Dwarf_Half version;
    uint8_t type;
    for (Dwarf_CU *cu = NULL; dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, &split) == 0;) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        bool has_split = type == DW_UT_skeleton && split.addr != NULL;
        if (!add_unit(index, &die, has_split ? &split : &die)) {
            tly_chain_index_free(index);
            return NULL;
        }
    }
    sort_ranges(&index->ranges);
    return index;
}

void tly_chain_index_free(struct tly_chain_index *index) {
    if (!index) return;
    for (size_t i = 0; i < index->unit_count; i++) {
        free(index->units[i].functions.list);
        free(index->units[i].dies);
    }
    free(index->units);
    free(index->ranges.list);
    free(index);
}

static bool add_function(struct unit *unit, Dwarf_Die *die) {
    if (unit->die_count == unit->die_room) {
        size_t room = unit->die_room ? 2 * unit->die_room : 64;
        Dwarf_Die *grown = realloc(unit->dies, room * sizeof *grown);
        if (!grown) return false;
        unit->dies = grown;
        unit->die_room = room;
    }
    unit->dies[unit->die_count] = *die;
    return add_die_ranges(&unit->functions, die, (uint32_t)unit->die_count++);
}

/* Functions stand at the top of a unit, or in namespaces and types. */
static bool list_functions(struct unit *unit, Dwarf_Die *parent, int depth) {
    Dwarf_Die child;
    if (depth > 32 || dwarf_child(parent, &child) != 0) return true;
    do {
        switch (dwarf_tag(&child)) {
        case DW_TAG_subprogram:
            if (!add_function(unit, &child)) return false;
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            if (!list_functions(unit, &child, depth + 1)) return false;
            break;
        default: break;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    return true;
}

/* The innermost block below `die` one step down that holds the address. */
static bool step_down(Dwarf_Die *die, uint64_t address, Dwarf_Die *out) {
    Dwarf_Die child;
    if (dwarf_child(die, &child) != 0) return false;
    do {
        switch (dwarf_tag(&child)) {
        case DW_TAG_inlined_subroutine:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            if (dwarf_haspc(&child, address) > 0) {
                *out = child;
                return true;
            }
            break;
        default: break;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

static const char *text_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static void name_link(struct tly_chain_link *link, Dwarf_Die *die) {
    link->linkage_name = text_attribute(die, DW_AT_linkage_name);
    if (!link->linkage_name) link->linkage_name = text_attribute(die, DW_AT_MIPS_linkage_name);
    link->name = text_attribute(die, DW_AT_name);
}

static Dwarf_Word number_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

/* Where an inlined function was called: the line of the function around it. */
static void place_call(struct tly_chain_link *link, Dwarf_Die *unit, Dwarf_Die *inlined) {
    Dwarf_Files *files;
    size_t count;
    link->line = (int)number_attribute(inlined, DW_AT_call_line);
    Dwarf_Word file = number_attribute(inlined, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
        link->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void place_address(struct tly_chain_link *link, Dwarf_Die *unit, uint64_t address) {
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    if (!line) return;
    link->file = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &link->line) != 0) link->line = 0;
}

size_t tly_chain_find(struct tly_chain_index *index, uint64_t address, struct tly_chain_link *out) {
    const struct range *range = find_range(&index->ranges, address);
    if (!range) return 0;
    struct unit *unit = &index->units[range->number];
    if (!unit->listed) {
        unit->listed = true;
        list_functions(unit, &unit->content, 0); /* without memory: some functions stay unknown */
        sort_ranges(&unit->functions);
    }
    memset(out, 0, TLY_CHAIN_MOST * sizeof *out);
    place_address(&out[0], &unit->die, address);
    const struct range *function = find_range(&unit->functions, address);
    if (!function) return out[0].file ? 1 : 0;
    /* from the outermost inwards: each inlined function moves those outside of it one place on */
    Dwarf_Die block = unit->dies[function->number];
    struct tly_chain_link inner = out[0];
    size_t count = 1;
    name_link(&out[0], &block);
    while (step_down(&block, address, &block)) {
        if (dwarf_tag(&block) != DW_TAG_inlined_subroutine) continue;
        place_call(&out[0], &unit->die, &block);
        size_t moved = count < TLY_CHAIN_MOST ? count : TLY_CHAIN_MOST - 1;
        memmove(&out[1], &out[0], moved * sizeof *out);
        count = moved + 1;
        out[0] = (struct tly_chain_link){.file = inner.file, .line = inner.line};
        name_link(&out[0], &block);
    }
    return count;
}
