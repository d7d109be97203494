/*
 * snapshot.h - one picture of a process's account: who owns how much, and the facts that make it readable.
 *
 * A snapshot is made from a region (of a live process, a dead one, or a raw file) or loaded from a recording; it is
 * self-contained, and nothing in it points into what it was made of. Everything that reports, compares or exports
 * works on snapshots alone.
 *
 * Shape guarantees, also for damaged input (what breaks them is refused or left out when the snapshot is made):
 *  - nodes[0] is the root; parent < own index for every other node; no two children of a node have the same site;
 *  - free <= alloc in every balance, and the sums over all nodes fit in an int64_t;
 *  - every index (site, module, frame) is in range or the constant that stands for "none";
 *  - paused allocations, and paths on which nothing was ever allocated, are not in it.
 *
 * Memory: the snapshot owns all it points to; tly_snapshot_free() releases it. Not locked: one thread at a time may
 * change it, any number may read it.
 */
#ifndef TLY_SNAPSHOT_H
#define TLY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/view.h"

struct tly_arena;

#define TLY_NONE UINT32_MAX /* no site (the root), no module, no name */

/* Any bytes; a NUL follows them that is not counted. bytes == NULL: not known. */
struct tly_bytes {
    const char *bytes;
    uint32_t length;
};

struct tly_snapshot_node {
    uint32_t parent;           /* index into nodes; 0 in the root */
    uint32_t site;             /* index into sites; TLY_NONE in the root */
    struct tly_balance direct; /* billed to this very node: since start or clear */
};

struct tly_snapshot_site {
    uint32_t kind;         /* enum tly_site_kind: TAG, MODULE, THREAD or CALLER */
    uint32_t module;       /* MODULE, CALLER: index into modules; TLY_NONE: code outside every module */
    uint64_t value;        /* CALLER: return address as in the file's ELF headers (or in the process if no module) */
    struct tly_bytes name; /* TAG, THREAD */
    uint32_t first_frame, frame_count; /* CALLER, once symbolised: the innermost (inlined) function first */
};

/* One function of a call site. */
struct tly_snapshot_frame {
    struct tly_bytes function; /* demangled; unknown: bytes == NULL */
    struct tly_bytes file;     /* source file as the compiler noted it; NULL: no line information */
    uint32_t line;             /* in that file, of the call; 0: unknown */
};

enum tly_symbol_state {
    TLY_SYMBOLS_NOT_SOUGHT = 0,
    TLY_SYMBOLS_LINES = 1,   /* debug information was found */
    TLY_SYMBOLS_NAMES = 2,   /* function names only */
    TLY_SYMBOLS_NONE = 3,    /* the file has neither */
    TLY_SYMBOLS_NO_FILE = 4, /* the file is gone or cannot be read */
    TLY_SYMBOLS_OTHER = 5,   /* the file at that path is another build than the one that ran */
};

/* How much it takes to tell a module from the others of a snapshot. */
enum tly_module_name {
    TLY_MODULE_BY_BASE_NAME = 0,
    TLY_MODULE_BY_PATH = 1,  /* another has the same base name */
    TLY_MODULE_BY_BUILD = 2, /* another has the same path: the file was replaced while the program ran */
};

struct tly_snapshot_module {
    struct tly_bytes path;
    uint32_t told_by;          /* enum tly_module_name; follows from the rest */
    uint64_t start, end, bias; /* where it was first loaded */
    uint64_t first_seen_ns;    /* CLOCK_REALTIME */
    uint32_t symbols;          /* enum tly_symbol_state */
    uint32_t build_id_bytes;   /* 0: none */
    uint8_t build_id[TLY_BUILD_ID_MAX];
};

enum tly_end_kind {
    TLY_END_UNKNOWN = 0, /* no longer there; how it ended is not known */
    TLY_END_RUNNING = 1, /* was still running */
    TLY_END_EXITED = 2,  /* end_value: exit status */
    TLY_END_SIGNAL = 3,  /* end_value: signal number */
    TLY_END_EXEC = 4,    /* became another program; that has a snapshot of its own */
};

/* What is known of the process. The collector fills in what only it can know: the end, times, max_rss_bytes. */
struct tly_process_facts {
    uint32_t pid, ppid, uid;
    uint32_t forked_from; /* pid of the parent whose live blocks were inherited; 0: none */
    uint64_t pid_namespace, process_start_ticks, region_id;
    struct tly_bytes program, directory, host, options;
    struct tly_bytes command_line; /* NUL between arguments */
    uint32_t auto_tags;            /* enum tly_auto_tags */
    uint32_t region_flags;         /* enum tly_region_flags */
    uint32_t state;                /* enum tly_state */
    uint32_t end_kind;             /* enum tly_end_kind */
    int32_t end_value;
    bool core_dumped;
    /* CLOCK_REALTIME in ns; 0: unknown or never */
    uint64_t loaded_ns, started_ns, cleared_ns, ended_ns, taken_ns;
    uint64_t wall_ns;            /* how long it ran; 0: unknown */
    uint64_t user_ns, system_ns; /* CPU time; 0: unknown */
    uint64_t max_rss_bytes;      /* 0: unknown */
};

struct tly_snapshot_totals {
    struct tly_balance sum;                     /* over all nodes: exact */
    uint64_t peak_bytes;                        /* highest live bytes */
    uint64_t peak_error_bytes;                  /* ... right to within this */
    uint64_t peak_ns;                           /* when; 0: unknown */
    uint64_t inherited_bytes, inherited_blocks; /* live at the fork; also in the balances, as allocated */
};

/* What went past the account, and what it cost. */
struct tly_snapshot_counters {
    uint64_t unmatched_frees, untracked_allocs, missed_frees, off_radar_allocs, pop_errors, cut_names;
    uint64_t threads, ledgers_live, spills, consolidations, index_overflow, block_map_chunks;
    uint64_t own_bytes[TLY_OWN_COUNT]; /* the runtime's own memory, by enum tly_own_memory */
    uint64_t nodes, sites;             /* in the region, pruned ones included */
};

struct tly_snapshot {
    struct tly_process_facts process;
    struct tly_snapshot_totals totals;
    struct tly_snapshot_counters counters;

    uint32_t node_count, site_count, module_count, frame_count;
    struct tly_snapshot_node *nodes;
    struct tly_snapshot_site *sites;
    struct tly_snapshot_module *modules;
    struct tly_snapshot_frame *frames;

    bool exact;               /* nobody was allocating meanwhile: the process has ended, or wrote the file itself */
    bool symbolised;          /* callers have been looked up */
    uint32_t damaged_records; /* records left out because they were damaged: not exact then */
    struct tly_bytes note; /* what the reader should know, in a sentence ("the file is cut off ..."); NULL: nothing */

    struct tly_arena *arena; /* holds everything above */
};

/* Takes a picture of a region. The view may be closed afterwards. `exact` is set if the region says that its process
 * wrote it out or ran its exit handlers; a collector that knows the process to be gone calls tly_snapshot_set_end().
 * 0; -ENOMEM; -EBADMSG: damaged beyond use. On failure `error` (may be NULL) says what, in words. */
int tly_snapshot_from_view(const struct tly_view *view, struct tly_snapshot **out, char *error, size_t error_bytes);

/* How the process ended. Anything but TLY_END_RUNNING makes the snapshot exact (if it is not damaged). */
void tly_snapshot_set_end(struct tly_snapshot *snapshot, enum tly_end_kind kind, int value);

void tly_snapshot_free(struct tly_snapshot *snapshot);

/* An empty snapshot, for those who fill one (there is no node in it yet, not even the root). NULL: no memory. */
struct tly_snapshot *tly_snapshot_new(void);

/* Works out what follows from the rest, for those who fill one: totals.sum, a peak no lower than what is live, by what
 * modules are told apart. 0; -ENOMEM; -EBADMSG if a balance or the sum is impossible. */
int tly_snapshot_complete(struct tly_snapshot *snapshot);

/* A copy of `length` bytes that lives as long as the snapshot. bytes == NULL when there is no memory. */
struct tly_bytes tly_snapshot_copy(struct tly_snapshot *snapshot, const char *bytes, size_t length);

static inline void tly_balance_add(struct tly_balance *sum, const struct tly_balance *more) {
    sum->alloc_bytes += more->alloc_bytes;
    sum->alloc_blocks += more->alloc_blocks;
    sum->free_bytes += more->free_bytes;
    sum->free_blocks += more->free_blocks;
}

static inline uint64_t tly_live_bytes(const struct tly_balance *balance) {
    return balance->alloc_bytes - balance->free_bytes;
}
static inline uint64_t tly_live_blocks(const struct tly_balance *balance) {
    return balance->alloc_blocks - balance->free_blocks;
}

#endif
