/* known.c - owns a known set of blocks under the tag Known, then ends as it is told to.
 * Live 193,456 bytes in 701 blocks, allocated 223,456 in 1,001. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/tally.h>

static void *volatile keep[1001];

static void own(void) {
    TALLY_TAG("Known");
    for (int i = 0; i < 1000; i++)
        keep[i] = malloc(100);
    keep[1000] = malloc(123456);
    for (int i = 0; i < 300; i++)
        free(keep[i]);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "return";
    own();
    if (strcmp(way, "return") == 0) return 3;
    if (strcmp(way, "exit") == 0) exit(4);
    if (strcmp(way, "_exit") == 0) _exit(5);
    if (strcmp(way, "quick_exit") == 0) quick_exit(6);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "term") == 0) raise(SIGTERM);
    if (strcmp(way, "segv") == 0) *(volatile int *)(uintptr_t)argc = 1;
    if (strcmp(way, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(way, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    if (strcmp(way, "wait") == 0) {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    return 99;
}
