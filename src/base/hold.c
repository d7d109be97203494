/* hold.c - see hold.h. */
#include "base/hold.h"

#include <errno.h>
#include <time.h>

void tly_hold_begin(struct tly_hold *hold, int signal_number) {
    int saved = errno;
    sigset_t one, pending;
    hold->number = signal_number;
    sigemptyset(&pending);
    sigpending(&pending);
    hold->was_pending = sigismember(&pending, signal_number);
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    pthread_sigmask(SIG_BLOCK, &one, &hold->before);
    errno = saved;
}

void tly_hold_end(struct tly_hold *hold) {
    int saved = errno;
    sigset_t one;
    const struct timespec at_once = {0, 0};
    sigemptyset(&one);
    sigaddset(&one, hold->number);
    if (!hold->was_pending)
        while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR) {
        }
    pthread_sigmask(SIG_SETMASK, &hold->before, NULL);
    errno = saved;
}
