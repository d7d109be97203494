/* family.c - starts COUNT children, each by fork and exec of itself, each owning (10,000 + its number) bytes under the
 * tag Child; waits for all. With "fork", without exec. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

static void *volatile keep;

static void own(int number) {
    TALLY_TAG("Child");
    keep = malloc(10000 + (size_t)number);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "child") == 0) {
        own(atoi(argv[2]));
        if (argc > 3) sleep((unsigned)atoi(argv[3]));
        return 0;
    }
    int count = argc > 1 ? atoi(argv[1]) : 1, at_once = 40;
    for (int i = 0; i < count; i++) {
        if (i >= at_once) wait(NULL);
        if (fork() != 0) continue;
        if (argc > 2 && strcmp(argv[2], "fork") == 0) {
            own(i);
            _exit(0);
        }
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        execl(argv[0], argv[0], "child", number, (char *)NULL);
        _exit(111);
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
