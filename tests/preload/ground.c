/*
 * ground.c - hostile ground, seen from inside: forks of every kind, signals, small stacks, thread ends, odd plugins. Each
 * test keeps its own books and asks the account. The header alone is used: to be run under preload.
 * Usage: ground TEST [file...]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tree_of.h"

static char **arguments;

static struct tally_node_info total(void) {
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    tree_check(tally_tree_root(tree));
    struct tally_node_info info = tree_at(tree, NULL);
    info.name = NULL;
    tally_tree_free(tree);
    return info;
}
static uint64_t bytes_at(const char *name) {
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    uint64_t bytes = tree_at(tree, name, NULL).bytes;
    tally_tree_free(tree);
    return bytes;
}
static void no_losses(void) {
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    CHECK_EQUAL(tally_perf_stats(&stats), 0);
    CHECK_EQUAL(stats.missed_frees, 0);
    CHECK_EQUAL(stats.dropped_events, 0);
    CHECK_EQUAL(stats.pop_errors, 0);
}
static void wait_for(pid_t child, int wanted) {
    int status = -1;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, wanted);
}

/* ---- forks -------------------------------------------------------------------------------------------------------- */

static pid_t by_fork(void) { return fork(); }
static pid_t by_syscall(void) { return (pid_t)syscall(SYS_fork); }
static pid_t by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static pid_t by_clone3(void) {
    struct clone_args args = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* The child begins with the parent's live set, exactly, and goes on from there; the parent sees nothing of it. */
static void forks(pid_t (*fork_by)(void)) {
    static void *block[300];
    {
        TALLY_TAG("Before");
        for (int i = 0; i < 300; i++)
            block[i] = keep(malloc((size_t)i * 40)); /* narrow and wide ones */
        for (int i = 0; i < 100; i++)
            free(block[i]);
    }
    struct tally_node_info before = total();
    uint64_t live = 0;
    for (int i = 100; i < 300; i++)
        live += (uint64_t)i * 40;
    CHECK_EQUAL(bytes_at("Before"), live);
    tally_push("Across");
    for (int round = 0; round < 20; round++) {
        pid_t child = fork_by();
        CHECK(child >= 0);
        if (child == 0) {
            struct tally_node_info in_child = total();
            CHECK_EQUAL(in_child.bytes, before.bytes);
            CHECK_EQUAL(in_child.blocks, before.blocks);
            CHECK_EQUAL(tally_bytes(), before.bytes);
            void *own = keep(malloc(77)); /* billed to Across: the tag stack is inherited */
            CHECK_EQUAL(bytes_at("Across"), 77);
            for (int i = 100; i < 300; i++)
                free(block[i]);
            CHECK_EQUAL(bytes_at("Before"), 0);
            CHECK_EQUAL(total().bytes, before.bytes - live + 77);
            tally_pop();
            {
                TALLY_TAG("Only in the child");
                own = keep(realloc(own, 5000));
            }
            CHECK_EQUAL(bytes_at("Only in the child"), 5000);
            pid_t grandchild = fork_by();
            CHECK(grandchild >= 0);
            if (grandchild == 0) {
                free(own);
                CHECK_EQUAL(total().bytes, before.bytes - live);
                no_losses();
                _exit(0);
            }
            wait_for(grandchild, 0);
            CHECK_EQUAL(bytes_at("Only in the child"), 5000);
            no_losses();
            if (round % 2) exit(0);
            _exit(0);
        }
        wait_for(child, 0);
        struct tally_node_info after = total();
        CHECK(memcmp(&after, &before, sizeof after) == 0);
    }
    tally_pop();
    for (int i = 100; i < 300; i++)
        free(block[i]);
    CHECK_EQUAL(bytes_at("Before"), 0);
    no_losses();
}
static void fork_libc(void) { forks(by_fork); }
static void fork_syscall(void) { forks(by_syscall); }
static void fork_clone(void) { forks(by_clone); }
static void fork_clone3(void) { forks(by_clone3); }

/* A child that shares the parent's memory is the parent, as far as memory goes. */
static void fork_vfork(void) {
    struct tally_node_info before = total();
    for (int i = 0; i < 200; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        wait_for(child, 0);
        char *command[] = {"true", NULL};
        CHECK_EQUAL(posix_spawn(&child, "/bin/true", NULL, NULL, command, NULL), 0);
        wait_for(child, 0);
    }
    struct tally_node_info after = total();
    CHECK_EQUAL(after.bytes, before.bytes);
    no_losses();
}

/* A child that begins to allocate only after its parent went on to make many more tags. */
static void late_child(void) {
    int go[2];
    char byte = 0, name[16];
    CHECK(pipe(go) == 0);
    void *before = keep(malloc(50));
    uint64_t bytes = tally_bytes();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(read(go[0], &byte, 1) == 1);
        CHECK_EQUAL(tally_bytes(), bytes);
        for (int i = 0; i < 60000; i += 7) {
            snprintf(name, sizeof name, "n%d", i);
            TALLY_TAG_COPY(name);
            free(keep(malloc(10)));
        }
        CHECK_EQUAL(tally_bytes(), bytes);
        tally_tree *tree = tree_now(TALLY_TREE_FULL);
        tree_check(tally_tree_root(tree));
        CHECK_EQUAL(tree_at(tree, "n49", NULL).allocated_blocks, 1);
        CHECK(tree_at(tree, "n50", NULL).name == NULL); /* the parent's alone */
        tally_tree_free(tree);
        free(before);
        CHECK_EQUAL(tally_bytes(), bytes - 50);
        no_losses();
        _exit(0);
    }
    for (int i = 0; i < 60000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        TALLY_TAG_COPY(name);
        free(keep(malloc(10)));
    }
    CHECK(write(go[1], &byte, 1) == 1);
    wait_for(child, 0);
    CHECK_EQUAL(tally_bytes(), bytes);
}

/* A thread whose first deed is to go on another thread's stack. */
static tally_stack given;
static void *overriding(void *argument) {
    TALLY_STACK_OVERRIDE(&given);
    *(void **)argument = keep(malloc(123));
    return NULL;
}
static void override_first(void) {
    void *block;
    pthread_t thread;
    {
        TALLY_TAG("Giver");
        CHECK_EQUAL(tally_stack_get(&given), 0);
    }
    CHECK(pthread_create(&thread, NULL, overriding, &block) == 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(bytes_at("Giver"), 123);
    free(block);
    CHECK_EQUAL(bytes_at("Giver"), 0);
}

static _Atomic bool stop;
static _Atomic int64_t books; /* live bytes under Load */
static void *load(void *argument) {
    uint64_t state = 88172645463325252u + (uintptr_t)argument;
    void *ring[256] = {0};
    size_t size[256] = {0};
    int64_t own = 0;
    TALLY_TAG("Load");
    while (!atomic_load(&stop)) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        unsigned at = state % 256;
        free(ring[at]);
        own -= (int64_t)size[at];
        size[at] = state / 256 % 3000;
        ring[at] = keep(malloc(size[at]));
        own += (int64_t)size[at];
    }
    atomic_fetch_add(&books, own);
    return NULL; /* what is in the ring stays */
}
static void fork_under_load(void) {
    enum { LOADERS = 4 };
    pthread_t thread[LOADERS];
    for (uintptr_t i = 0; i < LOADERS; i++)
        CHECK(pthread_create(&thread[i], NULL, load, (void *)i) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct tally_node_info before = total();
            CHECK(before.bytes < 1u << 30);
            TALLY_TAG("Child");
            for (size_t j = 0; j < 60; j++) {
                void *block = keep(malloc(j * 31));
                CHECK_EQUAL(bytes_at("Child"), j * 31);
                free(block);
                if (j % 20) continue;
                CHECK_EQUAL(total().bytes, before.bytes);
            }
            CHECK_EQUAL(total().blocks, before.blocks);
            no_losses();
            _exit(0);
        }
        wait_for(child, 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(bytes_at("Load"), books);
    no_losses();
}

/* ---- signals ------------------------------------------------------------------------------------------------------ */

/* Needs an allocator whose malloc may be called from a handler at any point: run over mapping_allocator. */
static _Atomic uint64_t handled;
static void *_Atomic of_handler;
static void on_timer(int signal) {
    (void)signal;
    int saved = errno;
    TALLY_TAG("Handler");
    char name[16];
    snprintf(name, sizeof name, "h%u", (unsigned)(atomic_fetch_add(&handled, 1) % 50));
    TALLY_TAG_COPY(name);
    free(keep(malloc(100)));
    void *block = keep(malloc(300));
    free(atomic_exchange(&of_handler, block));
    errno = saved;
}
static void signals(void) {
    CHECK_EQUAL((uintptr_t)keep(malloc(1)) % 4096, 64); /* the allocator the test is meant for */
    CHECK_EQUAL(tally_clear(), 0);
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    {
        TALLY_PAUSE_THREAD();
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    }
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 3;
    uint64_t live = 0, count = 0;
    static void *ring[64];
    static size_t size[64];
    do {
        char name[24];
        snprintf(name, sizeof name, "m%u", (unsigned)(count % 2000));
        TALLY_TAG("Main");
        TALLY_TAG_COPY(name);
        unsigned at = count * 7 % 64;
        live -= size[at];
        free(ring[at]);
        size[at] = count % 9000;
        ring[at] = keep(count % 3 ? malloc(size[at]) : realloc(NULL, size[at]));
        live += size[at];
        count++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    memset(&every, 0, sizeof every);
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    say(1, "%u signals, %u turns\n", (unsigned)handled, (unsigned)count);
    CHECK(handled > 200 && count > 10000);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    tree_check(tally_tree_root(tree));
    /* a handler may come in anywhere, so its tags stand below any of Main's: by site, all must be exact */
    static struct tally_site_info sites[4096];
    size_t n = tally_tree_sites(tree, sites, 4096);
    CHECK(n < 4096);
    uint64_t main_bytes = 0, handler_bytes = 0, handler_blocks = 0;
    for (size_t i = 0; i < n; i++) {
        if (sites[i].name[0] == 'm') main_bytes += sites[i].bytes;
        if (sites[i].name[0] == 'h') handler_bytes += sites[i].bytes, handler_blocks += sites[i].blocks;
    }
    bool by_tag = main_bytes != 0; /* with automatic tags, the callers are the sites */
    if (by_tag) CHECK_EQUAL(main_bytes, live);
    CHECK_EQUAL(tree_at(tree, "Main", NULL).bytes + tree_at(tree, "Handler", NULL).bytes, live + 300);
    tally_tree_free(tree);
    CHECK_EQUAL(handler_bytes, by_tag ? 300 : 0);
    CHECK_EQUAL(handler_blocks, by_tag ? 1 : 0);
    no_losses();
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

static void *on_small_stack(void *argument) {
    tally_push("Small");
    for (int i = 0; i < 100; i++)
        tally_push(i % 2 ? "x" : "y");
    void *block = keep(malloc((size_t)argument));
    for (int i = 0; i < 100; i++)
        tally_pop();
    tally_pop();
    return block;
}
static void small_stacks(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    uint64_t live = 0;
    for (size_t i = 0; i < 300; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, on_small_stack, (void *)i) == 0);
        pthread_join(thread, NULL);
        live += i;
    }
    CHECK_EQUAL(bytes_at("Small"), live);
    no_losses();
}

/* Destructors of thread-specific data allocate and free, again and again, after ours if we had any. */
static pthread_key_t key;
static void at_thread_end(void *value) {
    TALLY_TAG("At thread end");
    uintptr_t turn = *(uintptr_t *)value;
    free(value);
    if (turn == 0) return;
    uintptr_t *next = keep(malloc(sizeof *next));
    *next = turn - 1;
    pthread_setspecific(key, next);
    if (turn == 1) (void)keep(malloc(11)); /* stays */
}
static void *with_destructor(void *argument) {
    uintptr_t *value = keep(malloc(sizeof *value));
    *value = (uintptr_t)argument;
    pthread_setspecific(key, value);
    return NULL;
}
static void thread_ends(void) {
    CHECK(pthread_key_create(&key, at_thread_end) == 0);
    for (int i = 0; i < 100; i++) {
        pthread_t thread[4];
        for (int j = 0; j < 4; j++)
            CHECK(pthread_create(&thread[j], NULL, with_destructor, (void *)3) == 0);
        for (int j = 0; j < 4; j++)
            pthread_join(thread[j], NULL);
    }
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    struct tally_node_info info = tree_at(tree, "At thread end", NULL);
    CHECK_EQUAL(info.bytes, 400 * 11);
    CHECK_EQUAL(info.allocated_blocks, 400 * 4);
    tally_tree_free(tree);
    no_losses();
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    CHECK_EQUAL(tally_perf_stats(&stats), 0);
    CHECK(stats.ledgers_live + stats.ledgers_recycled < 20); /* those of the dead are used again */
}

/* ---- plugins ------------------------------------------------------------------------------------------------------ */

static void *call(const char *path, int flags, const char *function, void **handle) {
    *handle = dlopen(path, flags);
    if (!*handle) say(2, "%s\n", dlerror());
    CHECK(*handle != NULL);
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(*handle, function);
    CHECK(make != NULL);
    return make(100);
}

/* Two plugins, one after the other at the same address: each with a literal tag of its own, at the same place. */
static void plugins(void) {
    void *first[50], *second[50], *handle;
    unsigned same = 0;
    for (int i = 0; i < 50; i++) {
        first[i] = call(arguments[0], RTLD_NOW, "plugin_make", &handle);
        void *at = dlsym(handle, "plugin_make");
        CHECK(dlclose(handle) == 0);
        second[i] = call(arguments[1], RTLD_NOW, "plugin_make", &handle);
        same += dlsym(handle, "plugin_make") == at;
        CHECK(dlclose(handle) == 0);
    }
    CHECK(same > 0); /* else the test shows nothing */
    CHECK_EQUAL(bytes_at("PluginA"), 50 * 100);
    CHECK_EQUAL(bytes_at("PluginB"), 50 * 100);
    for (int i = 0; i < 50; i++)
        free(first[i]), free(second[i]);
    CHECK_EQUAL(bytes_at("PluginA"), 0);
    no_losses();
}

/* RTLD_DEEPBIND: the plugin finds malloc in its own libraries first, so its blocks come from libc past us. */
static void deepbind(void) {
    void *handle, *block[20];
    for (int i = 0; i < 20; i++)
        block[i] = call(arguments[0], RTLD_NOW | RTLD_DEEPBIND, "plugin_make", &handle);
    for (int i = 0; i < 20; i++) {
        if (i % 2) block[i] = keep(realloc(block[i], 50));
        memset(block[i], 1, 50);
        free(block[i]);
    }
    CHECK_EQUAL(bytes_at("PluginA"), 0);
    CHECK(total().bytes < 1u << 20);
}

/* A C++ plugin in a C program: its C++ library is not in the global scope. */
static void cxx_plugin(void) {
    void *handle;
    char *result = call(arguments[2], RTLD_NOW | RTLD_LOCAL, "cxx_plugin_run", &handle);
    CHECK(strcmp(result, "caught bad_alloc") == 0);
    CHECK(bytes_at("Plugin in C++") >= 100);
    free(result);
    void (*drop)(void) = (void (*)(void))dlsym(handle, "cxx_plugin_drop");
    drop();
    CHECK_EQUAL(bytes_at("Plugin in C++"), 0);
    no_losses();
}

/* ---- the process changes what it may ------------------------------------------------------------------------------- */

static void *take_some(size_t count, size_t size) {
    void **first = NULL;
    for (size_t i = 0; i < count; i++) {
        void **block = keep(malloc(size));
        CHECK(block != NULL);
        *block = first;
        first = block;
    }
    return first;
}
static void drop_some(void *first) {
    while (first) {
        void *next = *(void **)first;
        free(first);
        first = next;
    }
}

static void limits_inside(void) {
    const struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    CHECK(prctl(PR_SET_NAME, "new/name\n") == 0);
    CHECK(chdir("/") == 0);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    char name[16];
    void *kept[2000];
    for (int i = 0; i < 2000; i++) { /* nodes and counters grow: so does the region */
        snprintf(name, sizeof name, "n%d", i);
        TALLY_TAG("Within limits");
        TALLY_TAG_COPY(name);
        kept[i] = take_some(2, 100);
    }
    CHECK_EQUAL(bytes_at("Within limits"), 2000 * 200);
    for (int i = 0; i < 2000; i++)
        drop_some(kept[i]);
    CHECK_EQUAL(bytes_at("Within limits"), 0);
    no_losses();
}

static void address_space_inside(void) {
    TALLY_TAG("Before the limit");
    void *some = take_some(1000, 1000);
    const struct rlimit little = {1, 1}; /* no new mapping, no brk */
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    CHECK(keep(malloc((size_t)64 << 20)) == NULL);
    CHECK_EQUAL(errno, ENOMEM);
    drop_some(some);
    some = take_some(500, 1000); /* from what was freed */
    for (int i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        TALLY_TAG_COPY(name);
        free(keep(malloc(10)));
    }
    drop_some(some);
}

static void locked(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        say(1, "skipped: mlockall: errno %d\n", errno);
        _exit(77);
    }
    TALLY_TAG("Locked");
    void *some = take_some(1000, 500);
    CHECK_EQUAL(bytes_at("Locked"), 500000);
    drop_some(some);
    no_losses();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
#define TEST(NAME) {#NAME, NAME}
        TEST(fork_libc),       TEST(fork_syscall),   TEST(fork_clone),    TEST(fork_clone3), TEST(fork_vfork),
        TEST(fork_under_load), TEST(signals),        TEST(small_stacks),  TEST(thread_ends), TEST(plugins),
        TEST(deepbind),        TEST(cxx_plugin),     TEST(limits_inside), TEST(locked),      TEST(address_space_inside),
        TEST(late_child),      TEST(override_first),
    };
    CHECK(argc > 1);
    arguments = argv + 2;
    CHECK(tally_active()); /* the library is there */
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(argv[1], tests[i].name) != 0) continue;
        tests[i].run();
        return 0;
    }
    say(2, "no such test: %s\n", argv[1]);
    return 2;
}
