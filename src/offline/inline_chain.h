/*
 * inline_chain.h - the functions, inlined ones included, that an address lies in, with file and line, out of DWARF.
 */
#ifndef TLY_INLINE_CHAIN_H
#define TLY_INLINE_CHAIN_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

enum { TLY_CHAIN_MOST = 64 }; /* frames of one address; deeper ones lose their outermost */

/* One link. Texts belong to the Dwarf handle; NULL or 0 where the debug information does not say. */
struct tly_chain_link {
    const char *linkage_name; /* mangled */
    const char *name;
    const char *file;
    int line;
};

struct tly_chain_index; /* of one Dwarf handle; made step by step as addresses are asked for */

struct tly_chain_index *tly_chain_index_new(Dwarf *dwarf); /* NULL: no memory */
void tly_chain_index_free(struct tly_chain_index *index);

/* Fills `out` (TLY_CHAIN_MOST entries), innermost first, and returns how many; 0: nothing known of the address. */
size_t tly_chain_find(struct tly_chain_index *index, uint64_t address, struct tly_chain_link *out);

#endif
