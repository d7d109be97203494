/* blocked.c - executes its arguments with a few signals blocked. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

int main(int argc, char **argv) {
    sigset_t set;
    if (argc < 2) return 2;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
    execvp(argv[1], argv + 1);
    return 111;
}
