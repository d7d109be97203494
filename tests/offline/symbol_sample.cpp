// symbol_sample.cpp - a program whose calls and inlined functions are known, for test_symbolise.c.
//
// Prints one line per recorded call: name, return address as in the file's headers, and the source lines of the frames
// that are expected, innermost first. The first line is the build-id, in hex, or "-".
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t bias;

#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

extern "C" NOINLINE void record(const char *name, int first, int second, int third) {
    uintptr_t address = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - bias;
    printf("%s %lx %d %d %d\n", name, static_cast<unsigned long>(address), first, second, third);
}

extern "C" __attribute__((noinline, noreturn)) void record_and_leave(const char *name, int line) {
    uintptr_t address = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - bias;
    printf("%s %lx %d 0 0\n", name, static_cast<unsigned long>(address), line);
    fflush(stdout);
    _Exit(0);
}

#define KEEP_FRAME asm volatile("" ::: "memory")

namespace scene {
template <class T> struct Box {
    INLINE static void fill(const char *name, int outer, int middle) { record(name, __LINE__, middle, outer); }
};
INLINE void middle(const char *name, int outer) { Box<long>::fill(name, outer, __LINE__); }
NOINLINE void outer(const char *name) {
    middle(name, __LINE__);
    KEEP_FRAME;
}
} // namespace scene

extern "C" NOINLINE void plain(const char *name) {
    record(name, __LINE__, 0, 0);
    KEEP_FRAME;
}

// The call is the last instruction: its return address belongs to whatever comes next.
extern "C" NOINLINE void leave(const char *name) { record_and_leave(name, __LINE__); }

extern "C" NOINLINE void after_leave() { KEEP_FRAME; }

static int print_build_id(struct dl_phdr_info *info, size_t, void *) {
    bias = info->dlpi_addr; // the program itself comes first
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
        const char *at = reinterpret_cast<const char *>(bias + info->dlpi_phdr[i].p_vaddr);
        const char *end = at + info->dlpi_phdr[i].p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
            const unsigned char *id =
                reinterpret_cast<const unsigned char *>(at + sizeof *note + (note->n_namesz + 3) / 4 * 4);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {
                for (unsigned k = 0; k < note->n_descsz; k++)
                    printf("%02x", id[k]);
                printf("\n");
                return 1;
            }
            at = reinterpret_cast<const char *>(id) + (note->n_descsz + 3) / 4 * 4;
        }
    }
    printf("-\n");
    return 1;
}

int main() {
    dl_iterate_phdr(print_build_id, nullptr);
    scene::outer("outer");
    plain("plain");
    after_leave();
    leave("leave");
}
