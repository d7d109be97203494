/* elf_check.c - see elf_check.h. */
#define _GNU_SOURCE
#include "offline/elf_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
static const unsigned our_machine = EM_X86_64;
static const char our_machine_name[] = "x86-64";
#elif defined(__aarch64__)
static const unsigned our_machine = EM_AARCH64;
static const char our_machine_name[] = "AArch64";
#else
#error "add this machine's ELF number"
#endif

/* What a symbol says about the program. */
static const struct mark {
    const char *symbol, *name;
    enum { SANITIZER, ALLOCATOR, PRIVATE_ALLOCATOR } kind;
} marks[] = {
    {"__asan_init", "AddressSanitizer", SANITIZER},
    {"__hwasan_init", "HWAddressSanitizer", SANITIZER},
    {"__tsan_init", "ThreadSanitizer", SANITIZER},
    {"__msan_init", "MemorySanitizer", SANITIZER},
    {"__lsan_init", "LeakSanitizer", SANITIZER},
    {"mallctl", "jemalloc", ALLOCATOR},
    {"je_mallctl", "jemalloc", ALLOCATOR},
    {"malloc_conf_init", "jemalloc", ALLOCATOR},
    {"tc_malloc", "tcmalloc", ALLOCATOR},
    {"MallocExtension_Internal_GetStatsAsString", "tcmalloc", ALLOCATOR},
    {"mi_malloc", "mimalloc", ALLOCATOR},
    {"scalable_malloc", "TBB malloc", ALLOCATOR},
    {"_rjem_mallocx", "jemalloc (of Rust's tikv-jemalloc-sys)", PRIVATE_ALLOCATOR},
    {"_rjem_malloc", "jemalloc (of Rust's tikv-jemalloc-sys)", PRIVATE_ALLOCATOR},
};
enum { MARKS = sizeof marks / sizeof *marks };

/* What is gathered from the two symbol tables. */
struct findings {
    bool seen[MARKS];
    bool defines_malloc;  /* one that others are bound to: exported */
    bool contains_malloc; /* one that only the program itself calls */
    bool imports_dlsym, imports_private_malloc;
    bool names_malloc; /* holds the text "malloc", as dlsym(RTLD_NEXT, "malloc") needs it */
    size_t gate;       /* tally_gate's index in .dynsym; 0: not there */
    bool asks_gate;    /* the loader will put its address somewhere */
    bool has_tag_code; /* .symtab has traces of tally.h */
};

static int verdict(struct tly_elf_facts *out, enum tly_elf_verdict kind, const char *advice) {
    out->verdict = kind;
    snprintf(out->advice, sizeof out->advice, "%s", advice);
    return 0;
}

/* ---- what is read ------------------------------------------------------------------------------------------------- */

static void read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, bool dynamic, struct findings *findings) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 1; i < count && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) return;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!name || !name[0]) continue;
        bool defined = symbol.st_shndx != SHN_UNDEF;
        if (strcmp(name, "tally_gate") == 0 && !defined) {
            if (dynamic) findings->gate = i;
            findings->has_tag_code = true;
        }
        /* Inline functions of tally.h; of a weak reference that the linker resolved to nothing, no trace is left. */
        findings->has_tag_code |= !dynamic && strncmp(name, "tally_inline_", 13) == 0;
        if (!defined && dynamic) {
            findings->imports_dlsym |= strcmp(name, "dlsym") == 0;
            findings->imports_private_malloc |= strcmp(name, "__libc_malloc") == 0;
        }
        if (!defined) continue;
        if (strcmp(name, "malloc") == 0 && GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0) {
            findings->defines_malloc |= dynamic;
            findings->contains_malloc |= !dynamic;
        }
        for (size_t k = 0; k < MARKS; k++)
            findings->seen[k] |= strcmp(name, marks[k].symbol) == 0;
    }
}

/* Without a relocation the address is fixed, as that of something missing. */
static void read_relocations(Elf_Scn *section, struct findings *findings) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Rela entry;
    for (int i = 0; findings->gate && data && gelf_getrela(data, i, &entry); i++)
        findings->asks_gate |= GELF_R_SYM(entry.r_info) == findings->gate;
}

static void read_dynamic(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct tly_elf_facts *out) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;
    for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        const char *name = entry.d_tag == DT_NEEDED ? elf_strptr(elf, header->sh_link, entry.d_un.d_val) : NULL;
        if (name && out->needed_count < TLY_ELF_LIST)
            snprintf(out->needed[out->needed_count++], sizeof out->needed[0], "%.63s", name);
    }
}

static void read_texts(Elf_Scn *section, struct findings *findings) {
    static const char text[] = "\0malloc"; /* with the terminators of both sides */
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !data->d_buf) return;
    findings->names_malloc |= memmem(data->d_buf, data->d_size, text, sizeof text) != NULL ||
                              (data->d_size >= sizeof text - 1 && memcmp(data->d_buf, text + 1, sizeof text - 1) == 0);
}

static void read_sections(Elf *elf, struct tly_elf_facts *out, struct findings *findings) {
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)) continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (header.sh_type == SHT_DYNAMIC) read_dynamic(elf, section, &header, out);
        if (header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC)) read_relocations(section, findings);
        if (header.sh_type == SHT_DYNSYM) read_symbols(elf, section, &header, true, findings);
        if (header.sh_type == SHT_SYMTAB) {
            out->symbol_table = true;
            read_symbols(elf, section, &header, false, findings);
        }
        if (name && strncmp(name, ".rodata", 7) == 0) read_texts(section, findings);
        if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)) out->debug_info = true;
        if (name && strcmp(name, ".go.buildinfo") == 0) out->go = true;
    }
}

static void read_interpreter(Elf *elf, int fd, struct tly_elf_facts *out) {
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_INTERP) continue;
        size_t bytes = header.p_filesz < sizeof out->interpreter ? header.p_filesz : sizeof out->interpreter - 1;
        ssize_t got = pread(fd, out->interpreter, bytes, (off_t)header.p_offset);
        out->interpreter[got > 0 ? got : 0] = 0;
        if (!out->interpreter[0]) snprintf(out->interpreter, sizeof out->interpreter, "?");
    }
}

/* ---- what follows from it ----------------------------------------------------------------------------------------- */

/* Will the kernel start it with raised privileges, and the loader then ignore LD_PRELOAD? */
static bool is_privileged(const char *path, int fd, char *reason, size_t bytes) {
    struct stat status;
    struct statvfs volume;
    if (fstat(fd, &status) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
    if (fstatvfs(fd, &volume) == 0 && (volume.f_flag & ST_NOSUID)) return false;
    const char *what = NULL;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        what = "setuid";
    else if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
        what = "setgid";
    else if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        what = "given file capabilities";
    if (what) snprintf(reason, bytes, "it is %s, and the loader preloads nothing into such programs", what);
    return what != NULL;
}

static const char *needed_sanitizer(const struct tly_elf_facts *facts) {
    static const char *const libraries[][2] = {
        {"libasan.so", "AddressSanitizer"},
        {"libtsan.so", "ThreadSanitizer"},
        {"liblsan.so", "LeakSanitizer"},
        {"libhwasan.so", "HWAddressSanitizer"},
        {"libclang_rt.asan", "AddressSanitizer"},
        {"libclang_rt.tsan", "ThreadSanitizer"},
        {"libclang_rt.hwasan", "HWAddressSanitizer"},
    };
    for (uint32_t i = 0; i < facts->needed_count; i++)
        for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++)
            if (strncmp(facts->needed[i], libraries[k][0], strlen(libraries[k][0])) == 0) return libraries[k][1];
    return NULL;
}

static bool uses_musl(const struct tly_elf_facts *facts) {
    if (strstr(facts->interpreter, "/ld-musl-")) return true;
    for (uint32_t i = 0; i < facts->needed_count; i++)
        if (strncmp(facts->needed[i], "libc.musl", 9) == 0) return true;
    return false;
}

static const char *found(const struct findings *findings, int kind) {
    for (size_t k = 0; k < MARKS; k++)
        if (findings->seen[k] && (int)marks[k].kind == kind) return marks[k].name;
    return NULL;
}

static int judge(struct tly_elf_facts *out, const struct findings *findings) {
    const char *sanitizer = found(findings, SANITIZER) ? found(findings, SANITIZER) : needed_sanitizer(out);
    if (sanitizer) {
        snprintf(out->reason, sizeof out->reason,
                 "it is built with %s, which brings its own malloc and must come first", sanitizer);
        return verdict(out, TLY_ELF_SANITIZED, "run a build of it without -fsanitize");
    }
    if (!out->interpreter[0]) {
        snprintf(out->reason, sizeof out->reason, "it is linked statically%s, so no library can be loaded into it",
                 out->go ? " (a Go program, which manages its memory itself)" : "");
        return verdict(out, TLY_ELF_STATIC,
                       out->go ? "use Go's own heap profiler (runtime/pprof)"
                               : "link it dynamically (without -static)");
    }
    if (uses_musl(out)) {
        snprintf(out->reason, sizeof out->reason, "it is made for musl's C library, and libtally.so for glibc");
        return verdict(out, TLY_ELF_OTHER_LIBC, "run a build of it for glibc");
    }
    const char *allocator = found(findings, ALLOCATOR);
    bool wrapper = findings->defines_malloc && findings->imports_dlsym && findings->names_malloc &&
                   !findings->imports_private_malloc && !allocator;
    if (wrapper) {
        out->malloc_wrapper = true;
    } else if (findings->defines_malloc || findings->contains_malloc) {
        snprintf(out->reason, sizeof out->reason,
                 "it has an allocator linked in (%s), so its calls of malloc never leave it",
                 allocator ? allocator : "it defines malloc itself");
        return verdict(out, TLY_ELF_ALLOCATOR,
                       "link the allocator as a shared library, or preload it: Tally accounts over any shared one");
    }
    if (allocator && !out->private_allocator[0])
        snprintf(out->private_allocator, sizeof out->private_allocator, "%s", allocator);
    return verdict(out, TLY_ELF_FINE, "");
}

static int check(Elf *elf, int fd, const char *path, struct tly_elf_facts *out) {
    struct findings findings = {0};
    GElf_Ehdr header;
    if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header)) {
        snprintf(out->reason, sizeof out->reason, "it is neither an ELF program nor a script");
        return verdict(out, TLY_ELF_NOT_ELF, "name the program that it is run by");
    }
    if (header.e_machine != our_machine || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB) {
        snprintf(
            out->reason, sizeof out->reason, "it is a %s program (machine %u), and libtally.so is made for 64-bit %s",
            header.e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit", (unsigned)header.e_machine, our_machine_name);
        return verdict(out, TLY_ELF_OTHER_MACHINE, "run a build of it for this machine");
    }
    out->position_independent = header.e_type == ET_DYN;
    read_interpreter(elf, fd, out);
    read_sections(elf, out, &findings);
    out->tags = findings.asks_gate      ? TLY_ELF_TAGS_READY
                : findings.has_tag_code ? TLY_ELF_TAGS_FIXED_MISSING
                                        : TLY_ELF_TAGS_NONE;
    const char *private_allocator = found(&findings, PRIVATE_ALLOCATOR);
    if (private_allocator) snprintf(out->private_allocator, sizeof out->private_allocator, "%s", private_allocator);
    if (is_privileged(path, fd, out->reason, sizeof out->reason))
        return verdict(out, TLY_ELF_PRIVILEGED,
                       "run an ordinary copy of it (cp drops the bits), or as the user it becomes");
    return judge(out, &findings);
}

int tly_elf_check(const char *path, struct tly_elf_facts *out) {
    memset(out, 0, sizeof *out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    int result = elf ? check(elf, fd, path, out) : -EIO;
    if (elf) elf_end(elf);
    close(fd);
    return result;
}
