/*
 * every_entry.cpp - every entry point by which a block is made or ends, in every form, with the books kept beside.
 *
 * Prints what a program can see of the allocator (results, errno, alignment, contents), which must be the same without
 * the library. With it (tally_active), compares the account with the books after every step. The header alone is used,
 * so the program runs bare, too; the linked variants need an allocator in front of or behind the library.
 */
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <unistd.h>

extern "C" {
#include "check.h"
}
#include "tally/tally.h"

extern "C" void free_sized(void *, size_t) __attribute__((weak));
extern "C" void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static bool tracked;
static const char *step = "start";
static uint64_t live_bytes, live_blocks, allocated_bytes, allocated_blocks;

static void made(size_t size) {
    live_bytes += size;
    allocated_bytes += size;
    live_blocks++;
    allocated_blocks++;
}
static void gone(size_t size) {
    live_bytes -= size;
    live_blocks--;
}

static void compare() {
    if (!tracked) return;
    tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
    CHECK(tree != nullptr);
    struct tally_node_info info = {};
    info.struct_bytes = sizeof info;
    CHECK(tally_node_get_info(tally_tree_root(tree), &info) == 0);
    tally_tree_free(tree);
    if (info.bytes != live_bytes || info.blocks != live_blocks || info.allocated_bytes != allocated_bytes ||
        info.allocated_blocks != allocated_blocks) {
        say(2,
            "%s: account %" PRIu64 " bytes in %" PRIu64 " blocks of %" PRIu64 " in %" PRIu64 "\n  books %" PRIu64
            " bytes in %" PRIu64 " blocks of %" PRIu64 " in %" PRIu64 "\n",
            step, info.bytes, info.blocks, info.allocated_bytes, info.allocated_blocks, live_bytes, live_blocks,
            allocated_bytes, allocated_blocks);
        _exit(1);
    }
}

static const size_t sizes[] = {0,    1,    7,    8,    16,     24,     25,      100,     1000,
                               1024, 4000, 4096, 5000, 100000, 135000, 3000000, 70000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Uses a block the way a program does, and says what it sees. */
static void use(const char *what, void *pointer, size_t size, size_t alignment) {
    unsigned char *block = static_cast<unsigned char *>(pointer);
    size_t usable = malloc_usable_size(block);
    say(1, "%s %zu: %s, aligned %s, usable %s\n", what, size, block ? "block" : "null",
        reinterpret_cast<uintptr_t>(block) % alignment == 0 ? "well" : "badly",
        usable >= size ? "enough" : "too little");
    for (size_t i = 0; i < size; i += 997)
        block[i] = static_cast<unsigned char>(i);
    if (size) block[size - 1] = 1;
}

static size_t natural(size_t size) { return size >= 16 ? 16 : size >= 8 ? 8 : 1; }

static void end_block(int how, void *block, size_t size, size_t alignment) {
    gone(size);
    if (how % 3 == 1 && free_sized && alignment <= 16)
        free_sized(block, size);
    else if (how % 3 == 1 && free_aligned_sized && alignment > 16)
        free_aligned_sized(block, alignment, size);
    else
        free(block);
}

static void c_entries() {
    for (int i = 0; i < SIZES; i++) {
        size_t size = sizes[i];
        void *block = keep(malloc(size));
        made(size);
        use("malloc", block, size, natural(size));
        compare();
        end_block(i, block, size, 1);
        block = keep(calloc(3, size));
        made(3 * size);
        for (size_t at = 0; at < 3 * size; at += 511)
            CHECK(static_cast<char *>(block)[at] == 0);
        use("calloc", block, 3 * size, natural(size));
        compare();
        end_block(i + 1, block, 3 * size, 1);
        if (size == 0) continue; /* what realloc(block, 0) does is told below */
        block = keep(realloc(nullptr, 10));
        made(10);
        memcpy(block, "123456789", 10);
        size_t before = 10;
        for (size_t grown = size; grown > 10; grown /= 3) {
            block = keep(realloc(block, grown));
            gone(before);
            made(grown);
            before = grown;
        }
        CHECK(before < 10 || strcmp(static_cast<char *>(block), "123456789") == 0);
        block = keep(reallocarray(block, 11, 2));
        gone(before);
        made(22);
        CHECK(strcmp(static_cast<char *>(block), "123456789") == 0);
        use("realloc", block, 22, 16);
        compare();
        free(block);
        gone(22);
        block = keep(reallocarray(nullptr, 4, size));
        made(4 * size);
        use("reallocarray", block, 4 * size, natural(size));
        end_block(i, block, 4 * size, 1);
    }
    compare();
}

static void aligned_entries() {
    for (size_t alignment = sizeof(void *); alignment <= 65536; alignment *= 2)
        for (int i = 1; i < SIZES - 2; i++) {
            size_t size = sizes[i];
            void *block = nullptr;
            errno = 5;
            int result = posix_memalign(&block, alignment, size);
            CHECK_EQUAL(result, 0);
            CHECK_EQUAL(errno, 5);
            made(size);
            use("posix_memalign", block, size, alignment);
            end_block(i, block, size, alignment);
            size_t rounded = (size + alignment - 1) / alignment * alignment;
            block = keep(aligned_alloc(alignment, rounded));
            made(rounded);
            use("aligned_alloc", block, rounded, alignment);
            end_block(i + 1, block, rounded, alignment);
            block = keep(memalign(alignment, size));
            made(size);
            use("memalign", block, size, alignment);
            compare();
            block = keep(realloc(block, size + 1));
            gone(size);
            made(size + 1);
            end_block(0, block, size + 1, 1);
        }
    for (int i = 1; i < SIZES - 2; i++) {
        void *block = keep(valloc(sizes[i]));
        made(sizes[i]);
        use("valloc", block, sizes[i], 4096);
        end_block(0, block, sizes[i], 1);
        made(sizes[i]);
        if (!tracked) { /* jemalloc has none: its bare program gets libc's, and breaks */
            gone(sizes[i]);
            continue;
        }
        block = keep(pvalloc(sizes[i]));
        CHECK(reinterpret_cast<uintptr_t>(block) % 4096 == 0 && malloc_usable_size(block) >= sizes[i]);
        memset(block, 1, sizes[i]);
        end_block(0, block, sizes[i], 1);
    }
    compare();
}

static void says(const char *what, const void *block) {
    int error = errno;
    say(1, "%s: %s, errno %d\n", what, block ? "block" : "null", error);
    errno = 0;
}

static volatile size_t huge = SIZE_MAX / 2 + 1, nearly = SIZE_MAX - 100, half = (size_t)1 << 33;

static void failures() {
    void *block = keep(malloc(50)), *out = &out;
    made(50);
    strcpy(static_cast<char *>(block), "unharmed");
    errno = 0;
    says("malloc huge", keep(malloc(huge)));
    says("malloc nearly", keep(malloc(nearly)));
    says("calloc overflow", keep(calloc(half, half)));
    says("calloc huge", keep(calloc(huge, 1)));
    says("realloc huge", keep(realloc(keep(block), huge)));
    CHECK(strcmp(static_cast<char *>(block), "unharmed") == 0);
    compare();
    says("reallocarray overflow", keep(reallocarray(keep(block), half, half)));
    says("reallocarray huge", keep(reallocarray(keep(block), huge, 1)));
    CHECK(strcmp(static_cast<char *>(block), "unharmed") == 0);
    compare();
    says("memalign huge", keep(memalign(64, nearly)));
    says("aligned_alloc huge", keep(aligned_alloc(64, nearly & ~(size_t)63)));
    say(1, "posix_memalign: %d %d %d\n", posix_memalign(&out, 3, 10), posix_memalign(&out, 24, 10),
        posix_memalign(&out, 64, nearly));
    CHECK(out == &out);
    compare();
    errno = 77;
    free(nullptr);
    CHECK_EQUAL(errno, 77);
    CHECK_EQUAL(malloc_usable_size(nullptr), 0);
    errno = 0;
    void *result = keep(realloc(block, 0)); /* frees, or makes a block of no bytes: as the allocator has it */
    gone(50);
    says("realloc(p, 0)", result);
    if (result) {
        made(0);
        compare();
        free(result);
        gone(0);
    }
    compare();
    result = keep(realloc(nullptr, 0));
    says("realloc(NULL, 0)", result);
    made(0);
    free(result);
    gone(0);
    /* libc's own that allocate */
    char *copy = strdup("thirteen byte");
    made(14);
    compare();
    free(copy);
    gone(14);
    compare();
}

static int handler_calls;
static void handler() {
    if (++handler_calls < 3) return; /* nothing gained: tried again */
    std::set_new_handler(nullptr);
}

static void cxx_entries() {
    const std::nothrow_t &no = std::nothrow;
    for (int i = 0; i < SIZES; i++) {
        size_t size = sizes[i];
        void *block[] = {keep(operator new(size)), keep(operator new[](size)), keep(operator new(size, no)),
                         keep(operator new[](size, no))};
        for (int j = 0; j < 4; j++)
            made(size);
        for (void *one : block)
            use("new", one, size, natural(size));
        compare();
        operator delete(block[0]);
        operator delete[](block[1]);
        operator delete(block[2], no);
        operator delete[](block[3], no);
        for (int j = 0; j < 4; j++)
            gone(size);
        compare();
        block[0] = keep(operator new(size));
        block[1] = keep(operator new[](size));
        operator delete(block[0], size);
        operator delete[](block[1], size);
        for (int j = 0; j < 2; j++)
            made(size), gone(size);
        compare();
        std::align_val_t alignment{64u << (i % 4)};
        block[0] = keep(operator new(size, alignment));
        block[1] = keep(operator new[](size, alignment));
        block[2] = keep(operator new(size, alignment, no));
        block[3] = keep(operator new[](size, alignment, no));
        for (int j = 0; j < 4; j++)
            made(size);
        for (void *one : block)
            use("aligned new", one, size, static_cast<size_t>(alignment));
        compare();
        operator delete(block[0], alignment);
        operator delete[](block[1], size, alignment);
        operator delete(block[2], alignment, no);
        operator delete[](block[3], alignment, no);
        for (int j = 0; j < 4; j++)
            gone(size);
        block[0] = keep(operator new(size, alignment));
        operator delete(block[0], size, alignment);
        block[0] = keep(operator new[](size, alignment));
        operator delete[](block[0], alignment);
        for (int j = 0; j < 2; j++)
            made(size), gone(size);
        compare();
    }
    /* no memory: the handler is called, then bad_alloc or NULL. The exception's own memory is nobody's business here. */
    tally_pause_thread_begin();
    for (int form = 0; form < 4; form++) {
        if (getenv("ABORTS_WITHOUT_MEMORY") && form != 2) continue;
        handler_calls = 0;
        std::set_new_handler(handler);
        const char *how = "returned";
        try {
            switch (form) {
            case 0: keep(operator new(huge)); break;
            case 1: keep(operator new[](huge)); break;
            case 2: how = keep(operator new(huge, no)) ? "block" : "null"; break;
            case 3: keep(operator new (huge, std::align_val_t{64})); break;
            }
        } catch (const std::bad_alloc &) {
            how = "bad_alloc";
        }
        say(1, "new %d without memory: %s, handler called %d times\n", form, how, handler_calls);
        std::set_new_handler(nullptr);
    }
    tally_pause_thread_end();
    compare();
}

int main(int argc, char **argv) {
    (void)argv;
    int started = tally_start();
    if (argc > 1) CHECK_EQUAL(started, 0); /* "must": the library has to be there and to see the calls */
    tracked = tally_active() != 0;
    if (argc > 1) CHECK(tracked);
    tally_clear();
    const struct {
        const char *name;
        void (*run)();
    } steps[] = {{"C", c_entries}, {"aligned", aligned_entries}, {"failures", failures}, {"C++", cxx_entries}};
    for (const auto &one : steps) {
        step = one.name;
        one.run();
        compare();
    }
    say(1, "%" PRIu64 " blocks of %" PRIu64 " bytes; %" PRIu64 " are left\n", allocated_blocks, allocated_bytes,
        live_blocks);
    if (tracked) {
        struct tally_perf_stats stats = {};
        stats.struct_bytes = sizeof stats;
        CHECK_EQUAL(tally_perf_stats(&stats), 0);
        CHECK_EQUAL(stats.missed_frees, 0);
        CHECK_EQUAL(stats.dropped_events, 0);
    }
    return 0;
}
