/* counts_signals.c - says "ready", then counts signals until SIGTERM, and prints how often each came. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t count[NSIG];
static volatile sig_atomic_t value;

static void got(int number, siginfo_t *info, void *context) {
    (void)context;
    count[number]++;
    if (number >= SIGRTMIN) value = info->si_value.sival_int;
}

int main(void) {
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGTERM};
    struct sigaction action;
    sigset_t all, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = got;
    action.sa_flags = SA_SIGINFO;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    sigaction(SIGRTMIN + 3, &action, NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (!count[SIGTERM])
        sigsuspend(&before);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (count[numbers[i]]) printf("%s %d\n", sigabbrev_np(numbers[i]), (int)count[numbers[i]]);
    if (count[SIGRTMIN + 3]) printf("RT3 %d value %d\n", (int)count[SIGRTMIN + 3], (int)value);
    return 42;
}
