/*
 * ends.c - allocates a known set of blocks under tags, then ends in the way it is told. The account must be exact up to
 * the last block, whatever the way: see ends.sh.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"
#include "tally/tally.h"

static void *kept[2000];
static volatile int *volatile nowhere;

static void *in_thread(void *argument) {
    TALLY_TAG("Thread");
    for (size_t i = 0; i < 100; i++)
        kept[1000 + i] = keep(malloc(10));
    sigset_t none;
    sigemptyset(&none);
    if (argument) {
        *(_Atomic int *)argument = 1;
        for (;;)
            sigsuspend(&none); /* still there at the end */
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    {
        TALLY_TAG("Kept");
        for (size_t i = 0; i < 1000; i++)
            kept[i] = keep(malloc(i + 1));
        TALLY_TAG("Freed");
        for (size_t i = 0; i < 500; i++)
            free(keep(calloc(3, i)));
    }
    static _Atomic int waits;
    pthread_t done, stays;
    {
        TALLY_PAUSE_THREAD(); /* the threads' own memory */
        CHECK(pthread_create(&done, NULL, in_thread, NULL) == 0);
        pthread_join(done, NULL);
        CHECK(pthread_create(&stays, NULL, in_thread, (void *)&waits) == 0);
        while (!waits)
            sched_yield();
    }
    say(1, "ends by %s\n", way);
    {
        TALLY_TAG("Last");
        kept[1999] = keep(malloc(7)); /* the last thing it does */
    }
    if (strcmp(way, "return") == 0) return 3;
    if (strcmp(way, "exit") == 0) exit(4);
    if (strcmp(way, "_exit") == 0) _exit(5);
    if (strcmp(way, "quick_exit") == 0) quick_exit(6);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "TERM") == 0) raise(SIGTERM);
    if (strcmp(way, "SEGV") == 0) *nowhere = 1;
    if (strcmp(way, "KILL") == 0) raise(SIGKILL);
    if (strcmp(way, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    if (strcmp(way, "pthread_exit") == 0) {
        pthread_kill(stays, SIGUSR1); /* ends the process by a signal, the main thread being gone */
        pthread_exit(NULL);
    }
    return 99;
}
