/*
 * hooks_of_runtime.h - what the core asks the runtime to do, filled in by the runtime at its start: the core itself
 * depends on nothing above it.
 */
#ifndef TLY_HOOKS_OF_RUNTIME_H
#define TLY_HOOKS_OF_RUNTIME_H

struct tly_hooks_of_runtime {
    /* On a thread's slow path: carries out what outsiders asked for. */
    void (*poll)(void);
    /* An allocation while nothing is tracked: counts it and polls. Must be quick. */
    void (*while_off)(void);
    /* The gate page was wiped: this is a forked child. Gives it a region of its own. */
    void (*forked)(void);
};
extern struct tly_hooks_of_runtime tly_hooks_of_runtime __attribute__((visibility("hidden")));

#endif
