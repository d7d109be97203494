/*
 * elf_check.h - can the library get into this program? Read from its file, without running it.
 */
#ifndef TLY_ELF_CHECK_H
#define TLY_ELF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tly_elf_verdict {
    TLY_ELF_FINE,
    TLY_ELF_NOT_ELF,       /* not an ELF file, or a damaged one */
    TLY_ELF_OTHER_MACHINE, /* 32-bit, or another processor's */
    TLY_ELF_STATIC,        /* no loader, so nothing can be preloaded */
    TLY_ELF_OTHER_LIBC,    /* musl */
    TLY_ELF_SANITIZED,     /* ASan, TSan, MSan ...: brings its own malloc */
    TLY_ELF_ALLOCATOR,     /* an allocator is linked in: its malloc stands before every preloaded one */
    TLY_ELF_PRIVILEGED,    /* setuid, setgid or file capabilities: the loader ignores LD_PRELOAD */
};

enum { TLY_ELF_LIST = 32 };

struct tly_elf_facts {
    enum tly_elf_verdict verdict;
    char reason[256];      /* "it is ..." of a verdict that is not FINE */
    char advice[256];      /* what to do instead */
    char interpreter[256]; /* the loader it asks for; "": none */
    bool position_independent;
    bool debug_info, symbol_table;
    bool go;                    /* a Go program */
    bool malloc_wrapper;        /* exports a malloc of its own that passes calls on (it imports dlsym) */
    char private_allocator[64]; /* an allocator under names of its own: memory it hands out is not seen; "": none */
    enum { TLY_ELF_TAGS_NONE, TLY_ELF_TAGS_READY, TLY_ELF_TAGS_FIXED_MISSING } tags; /* uses tally.h? */
    uint32_t needed_count;
    char needed[TLY_ELF_LIST][64]; /* DT_NEEDED */
};

/* Looks at the ELF file `path`. 0, and the verdict; or -errno if it cannot be read. */
int tly_elf_check(const char *path, struct tly_elf_facts *out);

#endif
