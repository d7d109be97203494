/*
 * auto.c - a program with a known owner for each block: the executable, a plugin, a named thread, two call sites; some
 * below a tag. For the automatic tags: see auto.sh.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "tally/tally.h"

static void *volatile kept[8];

static __attribute__((noinline)) void site_one(int at) { kept[at] = malloc(1001); }
static __attribute__((noinline)) void site_two(int at) { kept[at] = malloc(2002); }

static void *worker(void *argument) {
    pthread_setname_np(pthread_self(), "worker");
    site_one(3);
    return argument;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    void *handle = dlopen(argv[1], RTLD_NOW);
    CHECK(handle != NULL);
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(handle, "plugin_make");
    CHECK(make != NULL);
    CHECK(tally_clear() == 0);
    site_one(0);
    site_one(1);
    site_two(2);
    pthread_t thread;
    {
        TALLY_PAUSE_THREAD();
        CHECK(pthread_create(&thread, NULL, worker, NULL) == 0);
    }
    pthread_join(thread, NULL);
    kept[4] = make(4004); /* below PluginA */
    {
        TALLY_TAG("Mine");
        site_two(5);
    }
    free(kept[1]);
    _exit(0);
}
