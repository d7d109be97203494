/*
 * symbol_source.h - everything names are looked up in for one module, kept open from snapshot to snapshot.
 *
 * Opening a library's debug information costs tens of milliseconds (it is often compressed); a collector with hundreds
 * of short-lived processes meets the same libraries again and again. So the last few sources stay open. They are told
 * apart by path and build-id; modules without a build-id are opened anew each time. Not locked: one thread at a time.
 */
#ifndef TLY_SYMBOL_SOURCE_H
#define TLY_SYMBOL_SOURCE_H

#include "offline/debug_file.h"
#include "offline/inline_chain.h"
#include "offline/symbol_table.h"

struct tly_symbol_source {
    struct tly_debug_file file;
    struct tly_chain_index *chains; /* NULL: no debug information */
    struct tly_symbol_table symbols;
};

/* The module's source, to be handed back to tly_symbol_source_release(). 0; -ENOENT, -ESTALE: see
 * tly_debug_file_open(); -ENOMEM. */
int tly_symbol_source_get(const struct tly_snapshot_module *module, struct tly_symbol_source **out);
void tly_symbol_source_release(struct tly_symbol_source *source);

/* Closes all that are kept open. */
void tly_symbol_source_forget(void);

#endif
