/*
 * hold.h - writing without the signals that writing can raise.
 *
 * Inside somebody else's process a write to a closed pipe, or past a file-size limit, must give an error and not SIGPIPE
 * or SIGXFSZ. The signal is blocked in the calling thread around the writing; if the writing raised it, it is taken out
 * again. Async-signal-safe; errno kept.
 */
#ifndef TLY_HOLD_H
#define TLY_HOLD_H

#include <signal.h>

struct tly_hold {
    sigset_t before, pending;
};

void tly_hold_begin(struct tly_hold *hold);
void tly_hold_end(struct tly_hold *hold);

#endif
