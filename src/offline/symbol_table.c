/* symbol_table.c - see symbol_table.h. */
#include "offline/symbol_table.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Global names before weak before local ones, then those with fewer underscores in front. */
static uint32_t rank_of(unsigned char binding, const char *name) {
    uint32_t rank = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 16 : 32;
    for (int i = 0; i < 15 && name[i] == '_'; i++)
        rank++;
    return rank;
}

static bool is_function(const GElf_Sym *symbol) {
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_size == 0) return false;
    return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* Adds the functions of one table. False: no memory. */
static bool add_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct tly_symbol_table *table) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    if (!data || count == 0) return true;
    struct tly_symbol *grown = realloc(table->symbols, (table->count + count) * sizeof *grown);
    if (!grown) return false;
    table->symbols = grown;
    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || !is_function(&symbol)) continue;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!name || !*name || name[0] == '$') continue; /* $x, $d: marks of ARM's assembler */
        table->symbols[table->count++] =
            (struct tly_symbol){symbol.st_value, symbol.st_size, name, rank_of(GELF_ST_BIND(symbol.st_info), name)};
    }
    return true;
}

static bool add_file(Elf *elf, struct tly_symbol_table *table) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
        if (!add_section(elf, section, &header, table)) return false;
    }
    return true;
}

static int compare_symbols(const void *a, const void *b) {
    const struct tly_symbol *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int tly_symbol_table_make(Elf *binary, Elf *separate, struct tly_symbol_table *out) {
    *out = (struct tly_symbol_table){NULL, 0};
    bool whole = (!separate || add_file(separate, out)) && add_file(binary, out);
    if (!whole) {
        tly_symbol_table_free(out);
        return -ENOMEM;
    }
    if (out->count) qsort(out->symbols, out->count, sizeof *out->symbols, compare_symbols);
    return 0;
}

void tly_symbol_table_free(struct tly_symbol_table *table) {
    free(table->symbols);
    *table = (struct tly_symbol_table){NULL, 0};
}

const char *tly_symbol_table_find(const struct tly_symbol_table *table, uint64_t address) {
    size_t low = 0, high = table->count; /* the first symbol that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* functions may nest (local labels with sizes), so look back a little for one that reaches the address */
    const struct tly_symbol *best = NULL;
    for (size_t i = low; i-- > 0 && low - i <= 32;) {
        const struct tly_symbol *symbol = &table->symbols[i];
        if (best && symbol->start != best->start) break;
        if (address - symbol->start >= symbol->bytes) continue;
        best = symbol; /* the lowest rank of one start comes first: go on to it */
    }
    return best ? best->name : NULL;
}
