/*
 * region.h - the layout of a region: the block of memory a process writes its account into.
 *
 * A region holds offsets and no pointers, so it can be read from a file, from another process, or in place. One
 * process writes it, with plain stores and relaxed atomics; anybody may read it at any time. Its rules:
 *
 *  - Records in SITES, NODES, MODULES and SEGDIR are only ever appended. A record counts once its first word is
 *    non-zero (stored with release order); until then a reader skips it.
 *  - Cells are monotone: `alloc_*` and `free_*` only grow (until a clear, which bumps `epoch`). A reader that reads
 *    every cell's `free_*` before any cell's `alloc_*` can therefore never see a negative balance.
 *  - Nothing is ever moved: a thread's cells stay where they are when the thread ends, and the next thread that starts
 *    goes on adding to them. The account is thus whole after every single instruction.
 *
 * docs/region.md explains the format; this header is its definition. Little-endian. Version rules: a reader refuses
 * another `version`; new sections and new header fields (up to `header_bytes`) may be added within a version.
 */
#ifndef TLY_REGION_H
#define TLY_REGION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define TLY_REGION_MAGIC "TALLYRGN"
#define TLY_REGION_VERSION 1u

#define TLY_NAME_MAX 4096u /* longest tag name, bytes; longer ones are cut and counted */
#define TLY_SEG_NODES 64u  /* cells of one segment: the counters of 64 neighbouring nodes, of one ledger */
#define TLY_SEG_SHIFT 6u
#define TLY_NODE_ROOT 0u     /* `__root` */
#define TLY_NODE_PAUSED 1u   /* allocations made while paused; it and its descendants are never reported */
#define TLY_NODE_FIRST 2u    /* the first id of an ordinary node */
#define TLY_LEDGER_SHARED 0u /* ledger 0 is shared: threads without a ledger of their own add to it atomically */

/* What is kept where. The order is part of the format. */
enum tly_section_id {
    TLY_SEC_HEADER,  /* struct tly_region */
    TLY_SEC_NAMES,   /* bytes of names, referred to by offset; no terminators */
    TLY_SEC_SITES,   /* struct tly_site */
    TLY_SEC_NODES,   /* struct tly_node */
    TLY_SEC_MODULES, /* struct tly_module */
    TLY_SEC_LEDGERS, /* struct tly_ledger */
    TLY_SEC_SEGDIR,  /* struct tly_segref, entry i describes segment i */
    TLY_SEC_SEGS,    /* struct tly_seg */
    TLY_SEC_SITEIDX, /* writer's index of SITES by content; readers ignore it; empty in a written-out region */
    TLY_SEC_NODEIDX, /* writer's index of NODES by (parent, site); likewise */
    TLY_SEC_COUNT
};

/* One section: a range of the region. Records 0 .. used-1 may be read (used is in bytes). */
struct tly_section {
    uint64_t offset;                  /* bytes from the start of the region; a multiple of 64 */
    uint64_t capacity_bytes;          /* address space set aside */
    _Atomic uint64_t committed_bytes; /* backed by memory: touching these cannot fail */
    _Atomic uint64_t used_bytes;      /* handed out; can pass committed_bytes for a moment: readers take the lesser */
    uint32_t record_bytes;            /* size of one record, so that readers survive grown records */
    uint32_t reserved;
};

enum tly_site_kind {
    TLY_SITE_NONE = 0,
    TLY_SITE_TAG = 1,    /* name: what was pushed */
    TLY_SITE_MODULE = 2, /* module: index into MODULES; TLY_MODULE_UNKNOWN for code outside every module */
    TLY_SITE_THREAD = 3, /* name: the thread's name */
    TLY_SITE_CALLER = 4, /* value: return address of the call, minus the module's bias; module: index into MODULES */
};
#define TLY_MODULE_UNKNOWN 0xffffffffu

/* A call site: one distinct tag name, module, thread name or caller. */
struct tly_site {
    _Atomic uint32_t kind; /* enum tly_site_kind; written last */
    uint32_t name_bytes;
    uint64_t name_offset; /* in NAMES */
    uint64_t value;
    uint32_t module;
    uint32_t hash;
};

/* A path node: a call site below a parent node. A parent's id is always smaller than its children's. */
struct tly_node {
    _Atomic uint32_t
        site_plus_1; /* index into SITES, plus 1; 0: not (yet) in use; written last. Root, paused: 0xffffffff */
    uint32_t parent;
};

#define TLY_BUILD_ID_MAX 32u
/* A loaded file (executable or library) that called malloc, or a re-load of one at another place. */
struct tly_module {
    _Atomic uint32_t state; /* 1: valid; written last */
    uint32_t name_bytes;    /* absolute path, in NAMES */
    uint64_t name_offset;
    uint64_t start, end;     /* address range in the process, [start, end) */
    uint64_t bias;           /* address in the process minus address in the file's ELF headers */
    uint64_t first_seen_ns;  /* CLOCK_REALTIME */
    uint32_t build_id_bytes; /* 0: none */
    uint8_t build_id[TLY_BUILD_ID_MAX];
    uint32_t reserved;
};

/* The counters of one node in one ledger. Monotone. 32 bytes: alloc and free of one node share a cache line. */
struct tly_cell {
    _Atomic uint64_t alloc_bytes; /* requested */
    _Atomic uint64_t alloc_blocks;
    _Atomic uint64_t free_bytes;
    _Atomic uint64_t free_blocks;
};

struct tly_seg {
    struct tly_cell cell[TLY_SEG_NODES];
};

/* Whose counters segment i holds: nodes first_node .. first_node + 63, of one ledger. */
struct tly_segref {
    _Atomic uint32_t ledger_plus_1; /* 0: not (yet) in use; written last */
    uint32_t first_node;
};

enum tly_ledger_state { TLY_LEDGER_UNUSED = 0, TLY_LEDGER_LIVE = 1, TLY_LEDGER_FREE = 2, TLY_LEDGER_IS_SHARED = 3 };

/*
 * One thread's private balance. `alloc_left` counts down from `alloc_quota` by each allocation's size; the thread
 * passes its net change on to the region's total when it is used up (and likewise for frees), so at any moment
 * (alloc_quota - alloc_left) - (free_quota - free_left) bytes are not yet in `total_bytes`.
 */
struct tly_ledger {
    _Atomic uint32_t state; /* enum tly_ledger_state */
    _Atomic uint32_t tid;   /* the thread that owns it, or owned it last; 0 in the shared ledger */
    _Atomic int64_t alloc_left;
    _Atomic int64_t free_left;
    _Atomic int64_t alloc_quota;
    _Atomic int64_t free_quota;
    _Atomic uint32_t busy;    /* non-zero while the thread changes its account (clear waits for 0) */
    _Atomic uint32_t next;    /* free list: ledger index + 1 */
    _Atomic uint64_t threads; /* how many threads have used it */
    /* what could not be done as wanted; monotone until clear */
    _Atomic uint64_t unmatched_frees;  /* frees of blocks we never saw: forwarded, subtracted nowhere */
    _Atomic uint64_t untracked_allocs; /* allocations that could not be recorded (no memory for it, no map) */
    _Atomic uint64_t missed_frees; /* an address came back although its free was never seen; the old block was closed */
    _Atomic uint64_t pop_errors;   /* pops on an empty stack, ends that did not fit */
    _Atomic uint64_t cut_names;    /* names over TLY_NAME_MAX */
    _Atomic uint64_t events;       /* times the slow path ran */
    uint64_t reserved[3];
};

enum tly_state {
    TLY_STATE_OFF = 0,     /* never started, or stopped and cleared: nothing is looked at */
    TLY_STATE_ON = 1,      /* allocations are billed, frees matched */
    TLY_STATE_STOPPED = 2, /* allocations pass unseen; frees of billed blocks are still matched */
};

/* What outsiders ask for. The target looks at `seq` on its slow path (while off: at each allocation). */
enum tly_request {
    TLY_REQ_NONE = 0,
    TLY_REQ_START = 1,
    TLY_REQ_STOP = 2,
    TLY_REQ_CLEAR = 3,
    TLY_REQ_PAUSE = 4, /* all threads */
    TLY_REQ_RESUME = 5,
};
struct tly_control {
    _Atomic uint32_t seq;      /* the requester writes `request`, then adds 1 here */
    _Atomic uint32_t request;  /* enum tly_request */
    _Atomic uint32_t done_seq; /* the target: last seq it carried out */
    _Atomic int32_t result;    /* 0 or -errno of it */
};

enum tly_region_flags {
    TLY_REGION_INHERITED = 1u, /* forked: starts with the blocks that lived in the parent then */
    TLY_REGION_COLLECTED = 2u, /* a collector is there: the target writes no file at exit */
    TLY_REGION_WRITTEN = 4u,   /* a compact copy, written out by tally_snapshot_write or at exit */
    TLY_REGION_EXITED = 8u,    /* the process ran its exit handlers */
    TLY_REGION_LINKED = 16u,   /* the library is linked, not preloaded */
};

enum tly_auto_tags { TLY_AUTO_MODULE = 1u, TLY_AUTO_THREAD = 2u, TLY_AUTO_CALLER = 4u };

struct tly_text { /* a text of the header: bytes at `offset` in NAMES */
    uint64_t offset;
    uint32_t bytes;
    uint32_t reserved;
};

/* The header. Fields are set once at the start unless marked atomic. */
struct tly_region {
    char magic[8]; /* written last */
    uint32_t version;
    uint32_t header_bytes;
    uint64_t region_bytes; /* whole extent, most of it never touched */
    uint32_t section_count;
    _Atomic uint32_t flags; /* enum tly_region_flags */
    struct tly_section section[TLY_SEC_COUNT];

    /* process facts */
    uint32_t pid, ppid;           /* as the process sees them */
    uint32_t uid, forked_from;    /* forked_from: pid of the parent whose blocks were inherited, or 0 */
    uint64_t pid_namespace;       /* inode of /proc/self/ns/pid, 0 if unknown */
    uint64_t process_start_ticks; /* field 22 of /proc/self/stat: with pid, names the process uniquely since boot */
    uint64_t id;                  /* random */
    uint64_t loaded_ns;           /* CLOCK_REALTIME when the region was made */
    struct tly_text program, command_line, directory, host, output, options; /* command_line: NUL between arguments */
    uint32_t auto_tags;                                                      /* enum tly_auto_tags */
    uint32_t page_bytes;

    /* run state; atomic */
    _Atomic uint32_t state;      /* enum tly_state */
    _Atomic uint32_t epoch;      /* number of clears * 2; odd while one is under way */
    _Atomic uint64_t started_ns; /* CLOCK_REALTIME of the last start, 0: never */
    _Atomic uint64_t cleared_ns; /* of the last clear */
    _Atomic uint64_t ended_ns;   /* when exit handlers ran */
    _Atomic uint32_t paused_all; /* nesting depth of pause-all */
    uint32_t reserved1;
    struct tly_control control __attribute__((aligned(64)));

    /* totals; atomic; what threads have passed on so far */
    _Atomic int64_t total_bytes __attribute__((aligned(64)));
    _Atomic int64_t peak_bytes;    /* highest total_bytes seen */
    _Atomic uint64_t peak_ns;      /* CLOCK_REALTIME_COARSE of it */
    _Atomic uint32_t peak_threads; /* ledgers live then: the peak is right to +- peak_threads * flush_bytes */
    uint32_t flush_bytes;          /* a thread passes its change on at least every so many bytes, each way */
    _Atomic uint64_t inherited_bytes, inherited_blocks; /* live at the fork; also in the balances, as allocated */
    _Atomic uint64_t off_radar_allocs;                  /* allocations seen by the hooks before the (first) start */
    _Atomic uint64_t consolidations;
    _Atomic uint64_t spills;                   /* threads that had to use the shared ledger for want of memory */
    _Atomic uint64_t block_map_chunks;         /* 64 MiB pieces of address space with blocks in them */
    _Atomic uint64_t own_bytes[TLY_OWN_COUNT]; /* the runtime's own memory, by enum tly_own_memory */
    _Atomic uint64_t index_overflow;           /* sites and nodes that did not fit their index (slow, not lost) */
};

/* Size of one record of a section, as this version writes it. */
static inline uint32_t tly_record_bytes(enum tly_section_id id) {
    static const uint32_t bytes[TLY_SEC_COUNT] = {
        [TLY_SEC_HEADER] = sizeof(struct tly_region),
        [TLY_SEC_NAMES] = 1,
        [TLY_SEC_SITES] = sizeof(struct tly_site),
        [TLY_SEC_NODES] = sizeof(struct tly_node),
        [TLY_SEC_MODULES] = sizeof(struct tly_module),
        [TLY_SEC_LEDGERS] = sizeof(struct tly_ledger),
        [TLY_SEC_SEGDIR] = sizeof(struct tly_segref),
        [TLY_SEC_SEGS] = sizeof(struct tly_seg),
        [TLY_SEC_SITEIDX] = 8,
        [TLY_SEC_NODEIDX] = 8,
    };
    return bytes[id];
}

_Static_assert(sizeof(struct tly_site) == 32, "format");
_Static_assert(sizeof(struct tly_node) == 8, "format");
_Static_assert(sizeof(struct tly_cell) == 32, "format");
_Static_assert(sizeof(struct tly_segref) == 8, "format");
_Static_assert(sizeof(struct tly_ledger) == 128, "format");
_Static_assert(sizeof(struct tly_section) == 40, "format");

#endif
