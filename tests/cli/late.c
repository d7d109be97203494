/* late.c - a daemon that begins to allocate only after the program that started it has ended. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tally/tally.h"

static void *volatile kept;

int main(void) {
    if (daemon(1, 1) != 0) return 1;
    usleep(500000);
    TALLY_TAG("Late");
    for (int i = 0; i < 100; i++)
        kept = malloc(1000);
    return 0;
}
