/* consolidator.c - see consolidator.h. */
#define _GNU_SOURCE
#include "runtime/consolidator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/say.h"
#include "core/account.h"
#include "core/tagstack.h"
#include "runtime/process.h"

static _Atomic int32_t running_in; /* pid, as a forked child has no such thread; 0: none */
static int64_t period_ns;

static void look(void) {
    tly_account_consolidate();
    tly_process_poll();
}

static void *run(void *unused) {
    (void)unused;
    tly_tag_pause_thread();
    pthread_setname_np(pthread_self(), "tally");
    for (;;) {
        struct timespec pause = {period_ns / 1000000000, period_ns % 1000000000};
        nanosleep(&pause, NULL);
        look();
    }
    return NULL;
}

void tly_consolidator_start(int64_t period_ms) {
    int32_t here = (int32_t)getpid(), before = atomic_load(&running_in);
    if (period_ms <= 0 || before == here || !atomic_compare_exchange_strong(&running_in, &before, here)) return;
    period_ns = period_ms * 1000000;
    sigset_t all, old;
    sigfillset(&all);
    tly_tag_pause_thread();
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, NULL);
    if (error == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    tly_tag_resume_thread();
    if (error == 0) return;
    atomic_store(&running_in, 0);
    tly_say_note("no background consolidator (", tly_errno_name(error), "): the peak is right to its stated bound only",
                 NULL);
}
