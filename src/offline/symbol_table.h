/*
 * symbol_table.h - function names by address out of .symtab or .dynsym, for files without debug information.
 */
#ifndef TLY_SYMBOL_TABLE_H
#define TLY_SYMBOL_TABLE_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct tly_symbol {
    uint64_t start, bytes;
    const char *name; /* in the ELF file */
    uint32_t rank;    /* of several names for one address, the lowest is taken */
};

struct tly_symbol_table {
    struct tly_symbol *symbols; /* by start */
    size_t count;
};

/* Reads `separate` (may be NULL) and `binary`; their names must outlive the table. 0 or -ENOMEM. */
int tly_symbol_table_make(Elf *binary, Elf *separate, struct tly_symbol_table *out);
void tly_symbol_table_free(struct tly_symbol_table *table);

/* The name of the function that `address` lies in, or NULL: being near is not enough. */
const char *tly_symbol_table_find(const struct tly_symbol_table *table, uint64_t address);

#endif
