/* steady.c - allocates under the tag Steady without end: a block of 1,000 bytes is kept for each line on stdin ("keep"),
 * and small ones come and go all the time. Prints "kept" after each. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/tally.h>

static void *volatile last;

int main(void) {
    char byte;
    fcntl(0, F_SETFL, O_NONBLOCK);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        for (int i = 0; i < 64; i++) {
            last = malloc(500);
            free(last);
        }
        ssize_t got = read(0, &byte, 1);
        if (got == 1 && byte == '\n') {
            TALLY_TAG("Steady");
            last = malloc(1000);
            if (write(1, "kept\n", 5) != 5) return 1;
        }
        if (got == 0) return 0;
        usleep(500);
    }
}
