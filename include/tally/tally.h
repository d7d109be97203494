/*
 * tally.h - exact memory accounting by tag. This header is the manual.
 *
 * Tally bills every heap block to the path of tags that were active on the thread when the block was allocated, until
 * it is freed:
 *
 *     #include <tally/tally.h>
 *
 *     void load_scene(const char *path) {
 *         TALLY_TAG("Scene");              // until the end of this block
 *         {
 *             TALLY_TAG("Geometry");
 *             read_geometry(path);         // billed to Scene/Geometry
 *         }
 *     }
 *
 * Nothing needs to be linked. In a program that runs without Tally a tag costs the read of a global and a predictable
 * branch. `tally run -- prog` (or LD_PRELOAD=libtally.so) turns the tags on; so does linking with -ltally and calling
 * tally_start(). (Compile with -fPIE or -fPIC, as most systems do unasked: code for a fixed address has the missing library
 * settled as missing for ever by the static linker, unless it is linked with -ltally.)
 *
 * Unless a function says otherwise: it returns 0 or -errno, and tally_error_text() then says why in words; it may be
 * called from any thread at any time, also from a signal handler where the text says "async-signal-safe"; it keeps
 * errno; a forked child goes on with an account of its own. Everything here is since 0.1.
 *
 * Without the library (header only) every call below does nothing and returns -ENOSYS, NULL or 0.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0
#define TALLY_VERSION (TALLY_VERSION_MAJOR * 10000 + TALLY_VERSION_MINOR * 100 + TALLY_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* How a function is declared. For users: a weak reference behind an inline function that does nothing when the library
 * is not there (-38 is -ENOSYS), so a program needs neither the library nor an #ifdef. TALLY_BUILDING is set while the
 * library itself is built. (The inline functions get assembler names of their own, or they would be the reference.) */
#ifdef TALLY_BUILDING
#define TALLY_API_ __attribute__((visibility("default")))
#define TALLY_FN_(RET, NAME, PARAMS, ARGS, ABSENT) TALLY_API_ RET NAME PARAMS;
#define TALLY_FN_VOID_(NAME, PARAMS, ARGS) TALLY_API_ void NAME PARAMS;
#else
#define TALLY_FN_(RET, NAME, PARAMS, ARGS, ABSENT)                                                                     \
    extern RET NAME##_lib_ PARAMS __asm__(#NAME) __attribute__((weak));                                                \
    static inline __attribute__((unused)) RET NAME PARAMS __asm__("tally_inline_" #NAME);                              \
    static inline __attribute__((unused)) RET NAME PARAMS { return NAME##_lib_ != NULL ? NAME##_lib_ ARGS : ABSENT; }
#define TALLY_FN_VOID_(NAME, PARAMS, ARGS)                                                                             \
    extern void NAME##_lib_ PARAMS __asm__(#NAME) __attribute__((weak));                                               \
    static inline __attribute__((unused)) void NAME PARAMS __asm__("tally_inline_" #NAME);                             \
    static inline __attribute__((unused)) void NAME PARAMS {                                                           \
        if (NAME##_lib_ != NULL) NAME##_lib_ ARGS;                                                                     \
    }
#endif

/* ---- Simple: start, tag, ask ------------------------------------------------------------------------------------ */

/* Begins the accounting. What was allocated before is off the radar: its free changes nothing. After a stop it goes on
 * with the same account. Returns 0, also when already on; -ENOSYS if malloc calls do not reach the library (it is
 * linked behind another allocator that could not be rerouted); -ENOMEM if its memory could not be mapped. */
TALLY_FN_(int, tally_start, (void), (), -38)

/* Ends it: later allocations pass unseen. Frees of blocks that were billed are still matched, at the cost of one
 * look-up each, so the account stays exact; tally_clear() after it ends even that. */
TALLY_FN_(int, tally_stop, (void), (), -38)

/* Forgets everything so far, while running or stopped: totals, peak, cumulative figures. Frees of earlier blocks
 * change nothing. Tag stacks stay. Waits for threads that are inside a hook (well under a microsecond each, but a
 * thread may be off its CPU just there); -EBUSY after two seconds of that, or when called from a signal handler that
 * interrupted a hook, and then nothing has changed. Not async-signal-safe. */
TALLY_FN_(int, tally_clear, (void), (), -38)

/* 1 while allocations are billed, else 0. Async-signal-safe. */
TALLY_FN_(int, tally_active, (void), (), 0)

/* Live bytes, as requested, over all tags: exact when no other thread is allocating at the moment. Blocks allocated
 * while paused are not in it. Async-signal-safe. */
TALLY_FN_(uint64_t, tally_bytes, (void), (), 0)

/* The highest value tally_bytes() ever had since start or clear, in bytes; it is right to within
 * struct tally_perf_stats::peak_error_bytes. Async-signal-safe. */
TALLY_FN_(uint64_t, tally_peak_bytes, (void), (), 0)

/* What the thread's last failed call here complained about, for a person; "" if none failed. Valid until the thread's
 * next failure; never freed by the caller. */
TALLY_FN_(const char *, tally_error_text, (void), (), "")

/* The library's version, TALLY_VERSION of its build; compare with the macro to find a mismatch. */
TALLY_FN_(int, tally_version, (void), (), 0)

/* ---- Tags ------------------------------------------------------------------------------------------------------- */

/* Pushes `name` on the calling thread's tag stack. The string must stay what it is for as long as its module is
 * loaded (a literal). Any bytes but NUL, at most 4,096 (longer names are cut and counted). NULL or "" pushes nothing,
 * but still wants its pop. Cannot fail. Async-signal-safe. */
TALLY_FN_VOID_(tally_push, (const char *name), (name))

/* The same for a name in a buffer that may change or go away after the call. */
TALLY_FN_VOID_(tally_push_copy, (const char *name), (name))

/* Takes the last tag off. On an empty stack: does nothing and is counted (tally_perf_stats, pop_errors). */
TALLY_FN_VOID_(tally_pop, (void), ())

/* A thread's position in the tag tree: a small value that may be copied, kept, and handed to another thread of the same
 * process. Opaque. A zeroed one is the empty stack. */
typedef struct tally_stack {
    uint32_t node;
    uint32_t depth;
    uint64_t owner;
} tally_stack;

/* Stores the calling thread's tag stack. Async-signal-safe. */
TALLY_FN_(int, tally_stack_get, (tally_stack * out), (out), -38)

/* Puts the calling thread on `stack` (usually another thread's) until the matching end, which brings back the stack
 * that was there at the begin whatever was pushed or left pushed in between. Nests. `mark` is the caller's, filled by
 * begin and read by end. */
TALLY_FN_(int, tally_override_begin, (const tally_stack *stack, tally_stack *mark), (stack, mark), -38)
TALLY_FN_(int, tally_override_end, (const tally_stack *mark), (mark), -38)

/* After a longjmp: brings the calling thread back to a stack captured by tally_stack_get() on this thread before.
 * -EINVAL if it was captured on another thread or the thread has since popped below it. */
TALLY_FN_(int, tally_stack_rewind, (const tally_stack *stack), (stack), -38)

/* Pause: allocations are tracked only so that their free can be matched; they are in no total and no report. Nests.
 * An end without a begin is counted as pop_errors. Pausing all threads holds for every thread until its end. */
TALLY_FN_VOID_(tally_pause_thread_begin, (void), ())
TALLY_FN_VOID_(tally_pause_thread_end, (void), ())
TALLY_FN_VOID_(tally_pause_all_begin, (void), ())
TALLY_FN_VOID_(tally_pause_all_end, (void), ())

/* Scopes, until the end of the enclosing block, in C and C++ (C++ code may prefer tally.hpp). They end right when the
 * block is left by goto, break, return or an exception. NAME of TALLY_TAG must be a literal. */
#define TALLY_TAG(NAME) TALLY_SCOPE_(tally_scope, tally_scope_begin_("" NAME ""))
#define TALLY_TAG_COPY(NAME) TALLY_SCOPE_(tally_scope, tally_scope_begin_copy_(NAME))
#define TALLY_TAG_FUNC() TALLY_SCOPE_(tally_scope, tally_scope_begin_(__func__))
#define TALLY_STACK_OVERRIDE(STATE) TALLY_SCOPE_(tally_override, tally_override_scope_begin_(STATE))
#define TALLY_PAUSE_THREAD() TALLY_SCOPE_(tally_pause, tally_pause_scope_begin_(0))
#define TALLY_PAUSE_ALL() TALLY_SCOPE_(tally_pause, tally_pause_scope_begin_(1))

/* ---- The tree --------------------------------------------------------------------------------------------------- */

/* One picture of the account. Its memory is mapped by the library, belongs to the caller, is in no bill, and goes with
 * tally_tree_free(). It does not change any more, and may be read by several threads. */
typedef struct tally_tree tally_tree;

enum {
    TALLY_TREE_FULL = 0,
    /* Fold repeated sites: a tag that is already on the path does not make a new node (A, B, C, B, C gives A, A/B,
     * A/B/C); bytes are billed to the longest node of the folded path. */
    TALLY_TREE_SKIP_REPEATED = 1
};

/* The account now. NULL with errno set: ENOSYS (nothing was ever started), ENOMEM, EINVAL (flags). */
TALLY_FN_(tally_tree *, tally_tree_get, (unsigned flags), (flags), NULL)
TALLY_FN_VOID_(tally_tree_free, (tally_tree * tree), (tree))

/* A node of a tree; belongs to the tree. All figures are exact when no thread was allocating while the tree was made;
 * else each is a value it had during that time. */
typedef struct tally_node tally_node;
struct tally_node_info {
    size_t struct_bytes; /* the caller sets sizeof(struct tally_node_info) before the call */
    const char *name;    /* name_bytes bytes and a NUL; `__root` for the root. Belongs to the tree */
    size_t name_bytes;
    uint64_t bytes;        /* inclusive: live bytes of the node and all below it, as requested */
    uint64_t bytes_direct; /* of the node alone */
    uint64_t blocks;       /* live blocks, inclusive */
    uint64_t blocks_direct;
    uint64_t allocated_bytes; /* cumulative, inclusive: live or freed since */
    uint64_t allocated_blocks;
    uint64_t allocated_bytes_direct;
    uint64_t allocated_blocks_direct;
    uint32_t kind; /* 0 root, 1 tag, 2 module, 3 thread, 4 caller */
    uint32_t reserved;
};

TALLY_FN_(const tally_node *, tally_tree_root, (const tally_tree *tree), (tree), NULL)
TALLY_FN_(const tally_node *, tally_node_first_child, (const tally_node *node), (node),
          NULL) /* children by name; NULL: none */
TALLY_FN_(const tally_node *, tally_node_next_sibling, (const tally_node *node), (node), NULL)
TALLY_FN_(const tally_node *, tally_node_parent, (const tally_node *node), (node), NULL)
/* Fills `info` up to info->struct_bytes. -EINVAL if that is smaller than the first version of the struct. */
TALLY_FN_(int, tally_node_get_info, (const tally_node *node, struct tally_node_info *info), (node, info), -38)
/* The node at the path of `count` names below the root, or NULL. count 0: the root. */
TALLY_FN_(const tally_node *, tally_tree_find, (const tally_tree *tree, const char *const *names, size_t count),
          (tree, names, count), NULL)

/* Live bytes of every call site of the tree, each wherever it stands: a site counts once per block even if it is
 * repeated on the path. Fills at most `capacity` entries, largest first, and returns how many there are. */
struct tally_site_info {
    const char *name; /* belongs to the tree */
    size_t name_bytes;
    uint64_t bytes; /* live, directly billed to nodes whose last call site this is */
    uint64_t blocks;
    uint32_t kind;
    uint32_t reserved;
};
TALLY_FN_(size_t, tally_tree_sites, (const tally_tree *tree, struct tally_site_info *out, size_t capacity),
          (tree, out, capacity), 0)

/* ---- Files and facts -------------------------------------------------------------------------------------------- */

/* Writes the account to `path` (to a temporary name, then renamed): a file for `tally report`. The call paths inside
 * are resolved to functions and lines by the command line tool, so the binaries should still be there then. */
TALLY_FN_(int, tally_snapshot_write, (const char *path), (path), -38)

struct tally_perf_stats {
    size_t struct_bytes;          /* the caller sets sizeof(struct tally_perf_stats) before the call */
    uint64_t own_bytes;           /* all memory the library has mapped and may touch, the sum of the next four */
    uint64_t own_region_bytes;    /* call sites, nodes, counters */
    uint64_t own_block_map_bytes; /* resident pages of the block map */
    uint64_t own_thread_bytes;    /* caches, tag stacks */
    uint64_t own_other_bytes;
    uint64_t nodes;
    uint64_t call_sites;
    uint64_t ledgers_live;     /* threads that have one now */
    uint64_t ledgers_recycled; /* waiting for the next thread */
    uint64_t consolidations;   /* rounds of the background consolidator */
    uint64_t spills;           /* threads that share the common ledger (slower, still exact) */
    uint64_t block_map_pages;  /* resident, 4 KiB each */
    uint64_t unmatched_frees;  /* frees of blocks never seen: forwarded, subtracted nowhere */
    uint64_t missed_frees;     /* blocks whose address came back without a free having been seen */
    uint64_t dropped_events;   /* allocations that could not be recorded */
    uint64_t off_radar_allocs; /* allocations seen before the first start */
    uint64_t pop_errors;
    uint64_t cut_names;
    uint64_t index_overflow;   /* nodes and sites outside their index (slow to find, not lost) */
    double table_load;         /* filled share of the path-node index, 0..1 */
    uint64_t peak_error_bytes; /* tally_peak_bytes() is right to within this */
};
/* Fills `stats` up to stats->struct_bytes. Async-signal-safe. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* in C++ the struct of the same name is hidden, and meant to be */
TALLY_FN_(int, tally_perf_stats, (struct tally_perf_stats * stats), (stats), -38)
#pragma GCC diagnostic pop

/* ---- Inside the macros: not for direct use ---------------------------------------------------------------------- */

/* `active`: the tags' gate, 1 while tags are kept. */
struct tally_gate {
    uint32_t active;
    uint32_t version;
};
#ifndef TALLY_BUILDING
extern const volatile struct tally_gate tally_gate __attribute__((weak));
#endif

/* Both return / take 1 + the depth of the tag stack before the push; 0 means that nothing was pushed. */
TALLY_FN_(uint32_t, tally_scope_push, (const char *name), (name), 0)
TALLY_FN_(uint32_t, tally_scope_push_copy, (const char *name), (name), 0)
TALLY_FN_VOID_(tally_scope_pop, (uint32_t scope), (scope))

#ifndef TALLY_BUILDING
#define TALLY_CAT2_(A, B) A##B
#define TALLY_CAT_(A, B) TALLY_CAT2_(A, B)
#define TALLY_SCOPE_(KIND, BEGIN)                                                                                      \
    __attribute__((cleanup(KIND##_end_), unused)) struct KIND##_ TALLY_CAT_(tally_scope_at_, __COUNTER__) = BEGIN

struct tally_scope_ {
    uint32_t scope;
};
struct tally_override_ {
    tally_stack mark;
    int on;
};
struct tally_pause_ {
    int what; /* 0 nothing, 1 this thread, 2 all */
};

static inline __attribute__((always_inline)) int tally_on_(void) {
    return __builtin_expect(&tally_gate != NULL && tally_gate.active, 0);
}
static inline __attribute__((always_inline)) struct tally_scope_ tally_scope_begin_(const char *name) {
    struct tally_scope_ s = {0};
    if (tally_on_()) s.scope = tally_scope_push(name);
    return s;
}
static inline __attribute__((always_inline)) struct tally_scope_ tally_scope_begin_copy_(const char *name) {
    struct tally_scope_ s = {0};
    if (tally_on_()) s.scope = tally_scope_push_copy(name);
    return s;
}
static inline __attribute__((always_inline)) void tally_scope_end_(struct tally_scope_ *s) {
    if (__builtin_expect(s->scope != 0, 0)) tally_scope_pop(s->scope);
}
static inline struct tally_override_ tally_override_scope_begin_(const tally_stack *state) {
    struct tally_override_ s = {{0, 0, 0}, 0};
    if (&tally_gate != NULL) s.on = tally_override_begin(state, &s.mark) == 0;
    return s;
}
static inline void tally_override_end_(struct tally_override_ *s) {
    if (s->on) (void)tally_override_end(&s->mark);
}
static inline struct tally_pause_ tally_pause_scope_begin_(int all) {
    struct tally_pause_ s = {0};
    if (&tally_gate != NULL) {
        s.what = all ? 2 : 1;
        if (all)
            tally_pause_all_begin();
        else
            tally_pause_thread_begin();
    }
    return s;
}
static inline void tally_pause_end_(struct tally_pause_ *s) {
    if (s->what == 1) tally_pause_thread_end();
    if (s->what == 2) tally_pause_all_end();
}
#endif

#ifdef __cplusplus
}
#endif
#endif
