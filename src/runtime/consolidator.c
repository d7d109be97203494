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
    /* A forked child has no such thread: the word is in the page that is wiped there. */
    if (period_ms <= 0 || atomic_exchange(&tly_gate_page.consolidator, 1)) return;
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
    atomic_store(&tly_gate_page.consolidator, 0);
    tly_say_note("no background consolidator (", tly_errno_name(error), "): the peak is right to its stated bound only",
                 NULL);
}
