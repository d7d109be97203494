/*
 * proc.h - what /proc says of a process.
 */
#ifndef TLY_PROC_H
#define TLY_PROC_H

#include <stdbool.h>
#include <stdint.h>

struct tly_proc {
    uint32_t pid, ppid;
    char state;                  /* as in /proc/PID/stat */
    uint64_t start_ticks;        /* with the pid, names the process since boot */
    uint64_t user_ns, system_ns; /* its own CPU time */
    bool has_waited;             /* it has waited for children of its own */
};

/* 0; -ESRCH: there is no such process, or only its zombie is left (out->state is 'Z' then, and the rest is valid);
 * -errno: not known. */
int tly_proc_read(uint32_t pid, struct tly_proc *out);

/* Inode of a process's PID namespace ("self" if pid is 0); 0: unknown. */
uint64_t tly_proc_namespace(uint32_t pid);

/* The pid that the process itself sees; 0: unknown. */
uint32_t tly_proc_inner_pid(uint32_t pid);

/* Which process of a namespace below ours is `pid` there, started at `start_ticks`: its pid as we see it, or 0. Walks
 * through all of /proc. */
uint32_t tly_proc_find_inside(uint64_t namespace_inode, uint32_t pid, uint64_t start_ticks);

enum tly_life { TLY_LIFE_ENDED, TLY_LIFE_RUNNING, TLY_LIFE_UNKNOWN };

/* Is the process that made a region still there? `descendant`: it is known to be visible from here if it runs. */
enum tly_life tly_proc_life(uint64_t namespace_inode, uint32_t pid, uint64_t start_ticks, bool descendant);

#endif
