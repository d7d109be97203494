/*
 * threads.c - eight threads that allocate, free each other's blocks, push tags and exit, generation after generation,
 * while a reader takes snapshots: no negative figure, no parent below its children, and exact at the end against the
 * books that the threads keep themselves. Linked with the library, so that nothing else allocates.
 *
 * Usage: threads SNAPSHOTS [clear|stop|pause] - also does that in the midst, and starts the books anew after it
 *        threads SNAPSHOTS outside REGION_READER - and has the snapshots taken outside, from the region file
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "../preload/tree_of.h"

enum { THREADS = 8, SLOTS = 4096, TAGS = 12, OPERATIONS = 6000 };

/* Blocks on their way from one thread to another. */
static _Atomic(uintptr_t) slot[SLOTS];
/* What a thread owes to each tag path: [outer][inner], inner TAGS: none. Summed up at the end. */
struct books {
    int64_t bytes[TAGS][TAGS + 1], blocks[TAGS][TAGS + 1];
    uint64_t allocated_blocks;
};
static struct books total;
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop_all, generation_over;

/* Every block begins with what it was billed as. */
struct label {
    uint32_t size;
    uint8_t outer, inner;
    uint16_t magic;
};
static const char *const names[TAGS] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"};

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void give_back(struct books *books, void *block) {
    const struct label *label = block;
    CHECK_EQUAL(label->magic, 0x7a11);
    books->bytes[label->outer][label->inner] -= label->size;
    books->blocks[label->outer][label->inner]--;
    free(block);
}

static size_t draw_size(uint64_t word) {
    if (word % 64 == 0) return 5000 + word / 64 % 200000; /* too big for a narrow entry; some are mappings */
    return sizeof(struct label) + word / 64 % 700;
}

static void work(struct books *books, uint64_t *seed) {
    unsigned outer = (unsigned)(draw(seed) % TAGS), inner = (unsigned)(draw(seed) % (TAGS + 1));
    char copy[16];
    strcpy(copy, names[outer]);
    tally_push_copy(copy);
    if (inner < TAGS) tally_push(names[inner]);
    memset(copy, '?', sizeof copy - 1);
    for (int i = 0; i < 20; i++) {
        size_t size = draw_size(draw(seed));
        unsigned how = (unsigned)(draw(seed) % 8);
        struct label *label = how == 0 ? calloc(1, size) : how == 1 ? aligned_alloc(64, size) : malloc(size);
        CHECK(label != NULL);
        if (how == 2) {
            label = realloc(label, size + 50);
            size += 50;
            books->allocated_blocks++;
        }
        *label = (struct label){(uint32_t)size, (uint8_t)outer, (uint8_t)inner, 0x7a11};
        books->bytes[outer][inner] += (int64_t)size;
        books->blocks[outer][inner]++;
        books->allocated_blocks++;
        uintptr_t other = atomic_exchange(&slot[draw(seed) % SLOTS], (uintptr_t)label);
        if (other) give_back(books, (void *)other);
    }
    if (inner < TAGS) tally_pop();
    tally_pop();
}

static void *thread_main(void *argument) {
    static __thread struct books books;
    uint64_t seed = 0x9e3779b97f4a7c15u * (uintptr_t)argument;
    memset(&books, 0, sizeof books);
    for (int i = 0; i < OPERATIONS / 20 && !atomic_load(&generation_over); i++)
        work(&books, &seed);
    pthread_mutex_lock(&total_lock);
    for (int i = 0; i < TAGS; i++)
        for (int j = 0; j <= TAGS; j++) {
            total.bytes[i][j] += books.bytes[i][j];
            total.blocks[i][j] += books.blocks[i][j];
        }
    total.allocated_blocks += books.allocated_blocks;
    pthread_mutex_unlock(&total_lock);
    return NULL; /* may leave with tags pushed, or not: these pop all theirs */
}

/* Threads come and go until told otherwise; eight at a time. */
static void *spawner(void *argument) {
    uintptr_t serial = (uintptr_t)argument;
    do {
        pthread_t thread[THREADS];
        {
            TALLY_PAUSE_THREAD(); /* libc's memory for a thread, part of which it keeps */
            for (int i = 0; i < THREADS; i++)
                CHECK(pthread_create(&thread[i], NULL, thread_main, (void *)++serial) == 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
    } while (!atomic_load(&stop_all));
    return NULL;
}

static int64_t sum(const tally_tree *tree, int i, int j, bool blocks) {
    struct tally_node_info info = j < TAGS ? tree_at(tree, names[i], names[j], NULL) : tree_at(tree, names[i], NULL);
    return (int64_t)(blocks ? info.blocks_direct : info.bytes_direct);
}

static void check_books(void) {
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    tree_check(tally_tree_root(tree));
    uint64_t live = 0;
    for (int i = 0; i < TAGS; i++)
        for (int j = 0; j <= TAGS; j++) {
            CHECK_EQUAL(sum(tree, i, j, false), total.bytes[i][j]);
            CHECK_EQUAL(sum(tree, i, j, true), total.blocks[i][j]);
            live += (uint64_t)total.bytes[i][j];
        }
    struct tally_node_info root = tree_at(tree, NULL);
    CHECK_EQUAL(root.bytes - root.bytes_direct, live);
    CHECK_EQUAL(root.bytes, tally_bytes());
    CHECK_EQUAL(root.allocated_blocks - root.allocated_blocks_direct, total.allocated_blocks);
    tally_tree_free(tree);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    CHECK_EQUAL(tally_perf_stats(&stats), 0);
    CHECK_EQUAL(stats.missed_frees, 0);
    CHECK_EQUAL(stats.dropped_events, 0);
    CHECK_EQUAL(stats.pop_errors, 0);
}

static void empty_slots(void) {
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t block = atomic_exchange(&slot[i], 0);
        if (block) give_back(&total, (void *)block);
    }
}

static pthread_t start(void) {
    pthread_t thread;
    TALLY_PAUSE_THREAD();
    atomic_store(&stop_all, 0);
    CHECK(pthread_create(&thread, NULL, spawner, NULL) == 0);
    return thread;
}
static void finish(pthread_t thread) {
    atomic_store(&stop_all, 1);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    int snapshots = argc > 1 ? atoi(argv[1]) : 1000;
    const char *also = argc > 2 ? argv[2] : "";
    uint64_t allocated_before = 0;
    CHECK_EQUAL(tally_start(), 0);
    pthread_t thread = start();
    if (strcmp(also, "outside") == 0) {
        pid_t child;
        char *arguments[] = {argv[3], argv[1], getenv("TALLY_RUN_DIR"), NULL}, *no_environment[] = {NULL};
        int status;
        CHECK(posix_spawn(&child, argv[3], NULL, NULL, arguments, no_environment) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_EQUAL(status, 0);
        snapshots = 1;
    }
    for (int i = 0; i < snapshots; i++) {
        nanosleep(&(struct timespec){0, 500000}, NULL);
        tally_tree *tree = tree_now(i % 2 ? TALLY_TREE_SKIP_REPEATED : TALLY_TREE_FULL);
        tree_check(tally_tree_root(tree));
        struct tally_node_info root = tree_at(tree, NULL);
        CHECK(root.bytes < (uint64_t)1 << 40 && root.blocks < 1u << 30); /* a negative one would be huge */
        if (also[0] == 0 || strcmp(also, "outside") == 0) {
            CHECK(root.allocated_blocks >= allocated_before); /* cumulative figures only grow */
            allocated_before = root.allocated_blocks;
        }
        tally_tree_free(tree);
        if (i % 10 == 5 && strcmp(also, "clear") == 0) CHECK_EQUAL(tally_clear(), 0);
        if (i % 10 == 5 && strcmp(also, "stop") == 0) CHECK_EQUAL(tally_stop(), 0);
        if (i % 10 == 8 && strcmp(also, "stop") == 0) CHECK_EQUAL(tally_start(), 0);
        if (i % 10 == 5 && strcmp(also, "pause") == 0) tally_pause_all_begin();
        if (i % 10 == 8 && strcmp(also, "pause") == 0) tally_pause_all_end();
    }
    finish(thread);
    if (also[0] != 0 && strcmp(also, "outside") != 0) {
        /* The books know nothing of what was not billed. All blocks go: what was billed must be gone, too, exactly. */
        CHECK_EQUAL(tally_start(), 0);
        empty_slots();
        tally_tree *tree = tree_now(TALLY_TREE_FULL);
        tree_check(tally_tree_root(tree));
        struct tally_node_info root = tree_at(tree, NULL);
        CHECK_EQUAL(root.bytes, root.bytes_direct);
        CHECK_EQUAL(root.blocks, root.blocks_direct);
        tally_tree_free(tree);
        CHECK_EQUAL(tally_clear(), 0);
        memset(&total, 0, sizeof total);
        finish(start());
    }
    CHECK(total.allocated_blocks > 40000);
    check_books();
    empty_slots();
    check_books();
    return 0;
}
