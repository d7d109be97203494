/*
 * debug_file.h - the ELF file of a module, made sure of by its build-id, and the file with its debug information.
 */
#ifndef TLY_DEBUG_FILE_H
#define TLY_DEBUG_FILE_H

#include <elfutils/libdw.h>

#include "offline/snapshot.h"

struct tly_elf_file {
    int fd; /* -1: none */
    Elf *elf;
};

struct tly_debug_file {
    struct tly_elf_file binary;
    struct tly_elf_file separate; /* fd -1 if the debug information is in the binary, or nowhere */
    Dwarf *dwarf;                 /* NULL: no debug information */
};

/* Where distributions put separate debug files: /usr/lib/debug. A seam for tests. */
extern const char *tly_debug_directory;

/* Opens what belongs to the module. 0; -ENOENT: the file is gone or is no ELF file; -ESTALE: it is another build than
 * the one that ran. Only then is there something to close. */
int tly_debug_file_open(const struct tly_snapshot_module *module, struct tly_debug_file *out);
void tly_debug_file_close(struct tly_debug_file *file);

#endif
