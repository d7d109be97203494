/*
 * symbolise.h - turns callers (module, address) into functions, files and lines.
 *
 * Works on the files at the modules' paths, on separate debug files (/usr/lib/debug/.build-id and .gnu_debuglink), and
 * on symbol tables where there is no debug information. A file whose build-id is not the recorded one is not used: no
 * name is better than a wrong one. Nothing is fetched from the network. The same files give the same result.
 */
#ifndef TLY_SYMBOLISE_H
#define TLY_SYMBOLISE_H

#include "offline/snapshot.h"

/* Fills the frames of all callers and the symbol state of all modules. What cannot be found is left out (reports then
 * show module+0xoffset). Does nothing to a snapshot that is symbolised. 0 or -ENOMEM. What was opened for it stays open for
 * the next snapshot: see symbol_source.h. One thread at a time. */
int tly_snapshot_symbolise(struct tly_snapshot *snapshot);

/* The demangled form of `name` in fresh memory (free it), or NULL if it is not a mangled C++ name. */
char *tly_demangle(const char *name);

#endif
