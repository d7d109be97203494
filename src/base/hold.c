/* hold.c - see hold.h. */
#include "base/hold.h"

#include <errno.h>
#include <time.h>

static const int held[] = {SIGPIPE, SIGXFSZ};
enum { HELD = sizeof held / sizeof *held };

void tly_hold_begin(struct tly_hold *hold) {
    int saved = errno;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < HELD; i++)
        sigaddset(&set, held[i]);
    sigemptyset(&hold->pending);
    sigpending(&hold->pending);
    pthread_sigmask(SIG_BLOCK, &set, &hold->before);
    errno = saved;
}

void tly_hold_end(struct tly_hold *hold) {
    int saved = errno;
    const struct timespec at_once = {0, 0};
    for (int i = 0; i < HELD; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, held[i]);
        if (sigismember(&hold->pending, held[i])) continue; /* was there before us */
        while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &hold->before, NULL);
    errno = saved;
}
