/* process.c - see process.h. */
#define _GNU_SOURCE
#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define TALLY_BUILDING
#include "base/map.h"
#include "base/say.h"
#include "core/account.h"
#include "core/hooks_of_runtime.h"
#include "core/module.h"
#include "core/tag.h"
#include "region/writer.h"
#include "runtime/consolidator.h"
#include "runtime/facts.h"
#include "runtime/inherit.h"
#include "runtime/writeout.h"
#include "tally/tally.h"

TALLY_API_ volatile struct tally_gate tally_gate = {0, TALLY_VERSION};

struct tly_hooks_of_runtime tly_hooks_of_runtime;

static struct tly_options options;
static struct tly_rundir rundir;
static bool preloaded, dormant_for_ever;
static const char *unreachable; /* why malloc calls do not come here */
static const char *reason = "";
static _Atomic bool init_done, polling, starting, clearing;

static uint64_t realtime_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tly_process_unreachable(const char *why) { unreachable = why; }
const char *tly_process_reason(void) { return reason; }

static int fail(int error, const char *text) {
    reason = text;
    return -error;
}

/* Shows the state to the tags in the program, to the hooks and to readers. Threads that change it at the same time all
 * come here afterwards, and the last to come shows the last state. */
static void show_state(void) {
    uint32_t state = atomic_load(&tly_gate_state.state), shown;
    do {
        shown = state;
        if (tly_region) atomic_store(&tly_region->state, shown);
        tally_gate.active = shown == TLY_STATE_ON;
        tly_gate_open();
        state = atomic_load(&tly_gate_state.state);
    } while (state != shown);
}

static void set_state(uint32_t state) {
    atomic_store(&tly_gate_state.state, state);
    show_state();
}

static void change_state(uint32_t from, uint32_t to) {
    if (atomic_compare_exchange_strong(&tly_gate_state.state, &from, to)) show_state();
}

/* ---- the region --------------------------------------------------------------------------------------------------- */

/* In a file if there is a place for it (`share`), else in anonymous memory. */
static int make_region(bool share, uint32_t forked_from) {
    const struct tly_writer_sizes sizes = {(uint64_t)options.event_buffers_mb << 20,
                                           (uint64_t)options.path_node_table_mb << 20};
    int result = -ENOENT;
    bool in_file = share && tly_rundir_name_region(&rundir) == 0;
    if (in_file) {
        result = tly_writer_create(rundir.region_path, &sizes);
        /* Left over from a `tally run` that has ended: nobody would read it. */
        if (result == -ENOENT && rundir.given) return result;
        if (result != 0) {
            in_file = false;
            tly_say_note("cannot keep the account in ", rundir.path, " (", tly_errno_name(-result),
                         "): it stays in this process's memory, and is lost if the process is killed", NULL);
        }
    }
    if (!in_file) {
        rundir.region_path[0] = 0;
        result = tly_writer_create(NULL, &sizes);
    }
    if (result != 0) return result;

    uint64_t buckets_bytes = sizes.node_index_bytes;
    while (buckets_bytes & (buckets_bytes - 1))
        buckets_bytes &= buckets_bytes - 1;
    tly_facts_fill(tly_region, &options, &rundir, in_file, preloaded);
    tly_region->flush_bytes = TLY_FLUSH_BYTES;
    tly_region->forked_from = forked_from;
    tly_region->loaded_ns = realtime_ns(CLOCK_REALTIME);
    tly_threads_set_pool(sizes.ledger_pool_bytes);
    if (forked_from) {
        tly_inherit_tables();
        tly_region->flags |= TLY_REGION_INHERITED;
    }
    tly_tags_init(buckets_bytes);
    memcpy(tly_region->magic, TLY_REGION_MAGIC, sizeof tly_region->magic);
    return 0;
}

/* ---- what the core asks ------------------------------------------------------------------------------------------- */

static void carry_out_request(void) {
    struct tly_control *control = &tly_region->control;
    uint32_t seq = atomic_load_explicit(&control->seq, memory_order_acquire);
    int result = -EINVAL;
    switch (atomic_load(&control->request)) {
    case TLY_REQ_START: result = tly_process_start(); break;
    case TLY_REQ_STOP: result = tly_process_stop(); break;
    case TLY_REQ_CLEAR: result = tly_process_clear(); break;
    case TLY_REQ_PAUSE:
        tly_process_pause_all();
        result = 0;
        break;
    case TLY_REQ_RESUME: result = tly_process_resume_all() ? 0 : -EALREADY; break;
    default: break;
    }
    atomic_store(&control->result, result);
    atomic_store_explicit(&control->done_seq, seq, memory_order_release);
}

static void checkpoint(void) {
    static _Atomic uint64_t due_ns;
    uint64_t now_ns = realtime_ns(CLOCK_MONOTONIC_COARSE), due = atomic_load(&due_ns);
    uint64_t next = now_ns + options.checkpoint_s * (uint64_t)1000000000u;
    if (now_ns < due || !atomic_compare_exchange_strong(&due_ns, &due, next) || due == 0) return;
    char path[PATH_MAX];
    tly_writeout_path(options.output, path, sizeof path);
    int result = tly_writeout(path);
    if (result != 0) tly_say("cannot write the checkpoint ", path, ": ", tly_errno_name(-result), NULL);
}

void tly_process_poll(void) {
    const struct tly_control *control = &tly_region->control;
    bool asked = atomic_load_explicit(&control->seq, memory_order_relaxed) !=
                 atomic_load_explicit(&control->done_seq, memory_order_relaxed);
    bool collected = atomic_load_explicit(&tly_region->flags, memory_order_relaxed) & TLY_REGION_COLLECTED;
    bool checkpoints = options.checkpoint_s > 0 && !collected && options.output[0];
    if (__builtin_expect(!asked && !checkpoints, 1)) return;
    if (atomic_exchange(&polling, true)) return;
    if (asked) carry_out_request();
    if (checkpoints) checkpoint();
    atomic_store(&polling, false);
}

static void while_off(void) {
    uint32_t seen = tly_self.off_radar;
    tly_self.off_radar = 0;
    if (!atomic_load_explicit(&tly_gate_state.ready, memory_order_relaxed)) return;
    if (atomic_load_explicit(&tly_region->started_ns, memory_order_relaxed) == 0)
        atomic_fetch_add_explicit(&tly_region->off_radar_allocs, seen, memory_order_relaxed);
    tly_process_poll();
}

/* The gate page reads 0: a forked child's first allocation (or free, or tag). */
static void give_region(void) {
    tly_writer_shield();
    uint32_t state = atomic_load(&tly_gate_state.state);
    bool had_region = atomic_load(&tly_gate_state.ready);
    atomic_store(&tly_gate_state.ready, false);
    atomic_store(&tly_gate_state.clearing, false);
    atomic_store(&polling, false);
    atomic_store(&clearing, false);
    atomic_store(&starting, false);
    /* Whoever else paused all threads is not here to end it. */
    atomic_store(&tly_gate_state.paused_all, (int32_t)tly_self.pause_all_held);
    if (!had_region || dormant_for_ever || !options.follow) {
        dormant_for_ever = had_region;
        set_state(TLY_STATE_OFF);
        return;
    }
    uint64_t started_ns = tly_writer_parent() ? tly_writer_parent()->started_ns : 0;
    int result =
        tly_writer_parent() && tly_region ? make_region(rundir.region_path[0] != 0, tly_inherit_parent_pid()) : -ENOMEM;
    if (result != 0) {
        if (result != -ENOENT) tly_say_note("the forked process is not accounted: ", tly_errno_name(-result), NULL);
        dormant_for_ever = true;
        set_state(TLY_STATE_OFF);
        return;
    }
    tly_threads_after_fork();
    if (state != TLY_STATE_OFF) tly_account_inherit();
    tly_region->started_ns = started_ns;
    tly_region->paused_all = tly_self.pause_all_held;
    tly_writer_forget_parent();
    atomic_store(&tly_gate_state.ready, true);
    set_state(state);
}

/* One thread does it, others that come meanwhile wait: the gate stays shut till then. (The word is in the gate's page,
 * which is wiped at each fork.) */
static void forked(void) {
    if (atomic_exchange(&tly_gate_page.child_begun, 1) == 0) {
        give_region();
        return;
    }
    for (int turn = 0; turn < 10000 && atomic_load(&tly_gate_page.free) == 0; turn++)
        sched_yield();
}

bool tly_process_ready(void) {
    if (atomic_load(&tly_gate_page.free) == 0 && atomic_load(&tly_gate_state.ready)) tly_thread_ready(&tly_self);
    return atomic_load(&tly_gate_state.ready) && atomic_load(&tly_gate_page.free) != 0;
}

/* ---- start, stop, clear, pause ------------------------------------------------------------------------------------ */

int tly_process_start(void) {
    if (unreachable) return fail(ENOSYS, unreachable);
    bool account = tly_process_ready();
    if (dormant_for_ever) return fail(ENOSYS, "children are not followed (follow:false)");
    if (atomic_exchange(&starting, true)) return 0; /* somebody is at it, or a signal came in between */
    int result = 0;
    bool first = !account;
    if (first) {
        result = make_region(options.share, 0);
        if (result == 0) result = tly_threads_init();
    }
    if (result == 0) {
        if (first) atomic_store(&tly_gate_state.ready, true);
        uint64_t never = 0;
        atomic_compare_exchange_strong(&tly_region->started_ns, &never, realtime_ns(CLOCK_REALTIME));
        set_state(TLY_STATE_ON);
        if (rundir.region_path[0] == 0) tly_consolidator_start(options.consolidate_period_ms);
    }
    atomic_store(&starting, false);
    return result == 0 ? 0 : fail(-result, "the memory for the account could not be mapped");
}

int tly_process_stop(void) {
    if (!tly_process_ready()) return 0;
    change_state(TLY_STATE_ON, TLY_STATE_STOPPED);
    return 0;
}

/* After this every thread either sees the closed gate or is seen busy. */
static void barrier_on_all_threads(void) {
    static _Atomic int registered;
    if (!registered)
        registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    if (registered == 1 && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
    struct timespec pause = {0, 20000000}; /* far longer than any store stays in a store buffer */
    nanosleep(&pause, NULL);
}

static bool wait_until_idle(void) {
    uint32_t count = (uint32_t)(tly_region->section[TLY_SEC_LEDGERS].used_bytes / sizeof(struct tly_ledger));
    for (uint32_t i = 0; i < count; i++) {
        for (int turn = 0; atomic_load(&tly_writer_ledger(i)->busy) != 0; turn++) {
            struct timespec pause = {0, 1000000};
            if (turn >= 2000) return false;
            if (turn < 50)
                sched_yield();
            else
                nanosleep(&pause, NULL);
        }
    }
    return true;
}

static void zero_account(void) {
    uint32_t segs = (uint32_t)(tly_region->section[TLY_SEC_SEGS].used_bytes / sizeof(struct tly_seg));
    memset(tly_writer_base(TLY_SEC_SEGS), 0, segs * sizeof(struct tly_seg));
    uint32_t ledgers = (uint32_t)(tly_region->section[TLY_SEC_LEDGERS].used_bytes / sizeof(struct tly_ledger)),
             live = 0;
    for (uint32_t i = 0; i < ledgers; i++) {
        struct tly_ledger *ledger = tly_writer_ledger(i);
        atomic_store(&ledger->alloc_left, atomic_load(&ledger->alloc_quota));
        atomic_store(&ledger->free_left, atomic_load(&ledger->free_quota));
        ledger->unmatched_frees = ledger->untracked_allocs = ledger->missed_frees = 0;
        ledger->pop_errors = ledger->cut_names = ledger->events = 0;
        live += atomic_load(&ledger->state) == TLY_LEDGER_LIVE;
    }
    tly_region->total_bytes = tly_region->peak_bytes = 0;
    tly_region->peak_ns = 0;
    tly_region->peak_threads = live;
    tly_region->inherited_bytes = tly_region->inherited_blocks = 0;
    tly_region->cleared_ns = realtime_ns(CLOCK_REALTIME);
}

int tly_process_clear(void) {
    if (!tly_process_ready()) return 0;
    if (atomic_exchange(&clearing, true)) return fail(EBUSY, "another thread is clearing");
    struct tly_ledger *own = tly_self.ledger;
    int result = 0;
    if (own && atomic_load(&own->busy) != 0) {
        result = fail(EBUSY, "called from a signal handler that interrupted an allocation");
    } else {
        atomic_store(&tly_gate_state.clearing, true);
        tly_gate_renew();
        barrier_on_all_threads();
        if (wait_until_idle()) {
            atomic_fetch_add(&tly_region->epoch, 1);
            tly_map_wipe();
            zero_account();
            atomic_fetch_add(&tly_region->epoch, 1);
            change_state(TLY_STATE_STOPPED, TLY_STATE_OFF); /* nothing is left to be matched */
        } else {
            result = fail(EBUSY, "a thread stayed inside an allocation for two seconds");
        }
        atomic_store(&tly_gate_state.clearing, false);
        show_state();
    }
    atomic_store(&clearing, false);
    return result;
}

void tly_process_pause_all(void) {
    bool account = tly_process_ready();
    atomic_fetch_add(&tly_gate_state.paused_all, 1);
    tly_self.pause_all_held++;
    if (!account) return;
    atomic_fetch_add(&tly_region->paused_all, 1);
    tly_gate_renew();
}

bool tly_process_resume_all(void) {
    bool account = tly_process_ready();
    int32_t depth = atomic_load(&tly_gate_state.paused_all);
    do {
        if (depth <= 0) return false;
    } while (!atomic_compare_exchange_weak(&tly_gate_state.paused_all, &depth, depth - 1));
    if (tly_self.pause_all_held > 0) tly_self.pause_all_held--;
    if (!account) return true;
    atomic_fetch_sub(&tly_region->paused_all, 1);
    tly_gate_renew();
    return true;
}

/* ---- fork ---------------------------------------------------------------------------------------------------------- */

/* A signal handler may fork in the midst of a hook, which then goes on in the child with addresses inside its parent's
 * region: only such a child needs the shield at once. Others find out at the gate, and shield themselves then. */
static void before_fork(void) {
    const struct tly_ledger *own = tly_self.ledger;
    tly_self.forks_inside = tly_self.attaching || tly_self.exited || atomic_load(&clearing) || atomic_load(&polling) ||
                            (own && atomic_load(&own->busy) != 0);
}

static void in_forked_child(void) {
    if (tly_self.forks_inside) tly_writer_shield();
}

/* ---- begin and end ------------------------------------------------------------------------------------------------ */

static void alias_problem(const char *line) { tly_say(line, NULL); }
static void problem(const char *line) { tly_say("TALLY_CONF: ", line, NULL); }

void tly_process_early(void) {
    static _Atomic bool done;
    if (atomic_exchange(&done, true)) return;
    tly_map_init();
    tly_say_init();
    tly_hooks_of_runtime = (struct tly_hooks_of_runtime){tly_process_poll, while_off, forked};
    tly_gate_init();
}

void tly_process_init(void) {
    tly_process_early();
    if (!environ || atomic_exchange(&init_done, true)) return; /* the loader's own allocations come before environ */
    int saved = errno;
    tly_self.attaching = true; /* allocations of our own start-up, if libc makes any, pass unseen */
    tly_options_default(&options);
    if (getauxval(AT_SECURE)) { /* setuid: stay out entirely */
        dormant_for_ever = true;
    } else {
        const char *configuration = getenv("TALLY_CONF");
        tly_options_aliases(&options, environ, alias_problem);
        if (configuration) tly_options_parse(&options, configuration, problem);
        tly_say_set_quiet(options.quiet);
        atomic_store(&tly_gate_state.auto_tags, options.auto_tags);
        const char *preload = getenv("LD_PRELOAD"), *run_pid = getenv("TALLY_RUN_PID");
        preloaded = preload && strstr(preload, "libtally");
        if (!options.follow && run_pid && strtoul(run_pid, NULL, 10) != (unsigned long)getpid())
            dormant_for_ever = true;
        tly_rundir_find(&rundir);
        tly_module_init();
        pthread_atfork(before_fork, NULL, in_forked_child);
        if (!dormant_for_ever && preloaded) {
            int result = make_region(true, 0);
            if (result == 0) result = tly_threads_init();
            if (result == 0) {
                atomic_store(&tly_gate_state.ready, true);
                set_state(TLY_STATE_OFF);
                if (options.tags && unreachable)
                    tly_say("not accounting: ", unreachable, NULL);
                else if (options.tags)
                    tly_process_start();
            } else {
                if (result != -ENOENT)
                    tly_say("not accounting: its memory could not be mapped (", tly_errno_name(-result), ")", NULL);
                dormant_for_ever = true;
            }
        }
    }
    tly_self.attaching = false;
    errno = saved;
}

__attribute__((destructor(101))) static void on_exit_handlers(void) {
    if (!atomic_load(&tly_gate_state.ready) || atomic_load(&tly_gate_page.free) == 0) return;
    for (int turn = 0; atomic_exchange(&polling, true) && turn < 1000; turn++)
        sched_yield(); /* a checkpoint ends first */
    atomic_store(&tly_region->ended_ns, realtime_ns(CLOCK_REALTIME));
    uint32_t flags = atomic_fetch_or(&tly_region->flags, TLY_REGION_EXITED);
    if ((flags & TLY_REGION_COLLECTED) != 0 || tly_region->started_ns == 0 || options.output[0] == 0) {
        if (!(flags & TLY_REGION_COLLECTED)) tly_rundir_remove(&rundir);
        return;
    }
    char path[PATH_MAX];
    tly_writeout_path(options.output, path, sizeof path);
    int result = tly_writeout(path);
    if (result == 0)
        tly_rundir_remove(&rundir);
    else
        tly_say("cannot write ", path, ": ", tly_errno_name(-result),
                rundir.region_path[0] ? "; the account is still in " : "", rundir.region_path, NULL);
}
