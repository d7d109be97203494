/* launch.c - see launch.h. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"

static volatile sig_atomic_t child; /* whom signals are passed on to; 0: nobody */
static int wake[2] = {-1, -1};      /* a byte for each SIGCHLD and SIGCONT */
static volatile sig_atomic_t told_to_stop, told_to_go_on;
static volatile uint64_t ended_ns; /* CLOCK_MONOTONIC; 0: the child has not ended */
static struct sigaction before[NSIG];
static bool changed[NSIG];

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- signals ------------------------------------------------------------------------------------------------------ */

/* After the program's end our handlers only keep a late signal, meant for it, from ending us before the recordings are
 * made. Whoever means us can say so a second later. */
static void ended_already(int number) {
    if (ended_ns == 0 || clock_ns(CLOCK_MONOTONIC) - ended_ns < 1000000000u) return;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigaction(number, &before[number], NULL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* Signals of the kernel's own go to the whole foreground group (Ctrl-C, a resized window): the child has got its own.
 * Those that somebody sent to this process are meant for the program, and so is the hang-up that the kernel sends to the
 * leader of a session alone. */
static void pass_on(int number, siginfo_t *info, void *context) {
    (void)context;
    int saved = errno;
    pid_t to = child;
    if (number == SIGTSTP) told_to_stop = 1;
    if (to <= 0) {
        ended_already(number);
    } else if (number == SIGHUP && info->si_code > 0 && getsid(0) == getpid()) {
        kill(to, number);
    } else if (info->si_code <= 0 && info->si_pid != to) {
        if (number >= SIGRTMIN)
            sigqueue(to, number, info->si_value);
        else
            kill(to, number);
    }
    errno = saved;
}

static void wake_up(int number) {
    int saved = errno;
    if (number == SIGCONT) told_to_go_on = 1;
    ssize_t written = write(wake[1], "", 1); /* if the pipe is full, the waking is on its way already */
    (void)written;
    errno = saved;
}

static void handle(int number, void (*plain)(int), void (*full)(int, siginfo_t *, void *)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_RESTART | (full ? SA_SIGINFO : 0);
    if (full)
        action.sa_sigaction = full;
    else
        action.sa_handler = plain;
    sigfillset(&action.sa_mask);
    changed[number] = sigaction(number, &action, &before[number]) == 0;
}

static void take_signals(void) {
    static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,   SIGTERM, SIGUSR1, SIGUSR2,  SIGALRM,
                                    SIGTSTP, SIGPROF, SIGVTALRM, SIGIO,   SIGPWR,  SIGWINCH, SIGURG};
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        handle(passed_on[i], NULL, pass_on);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        handle(number, NULL, pass_on);
    handle(SIGCHLD, wake_up, NULL);
    handle(SIGCONT, wake_up, NULL);
    handle(SIGPIPE, SIG_IGN, NULL); /* of our own summary */
    handle(SIGXFSZ, SIG_IGN, NULL); /* of our own recordings: they fail, we do not */
}

void tly_launch_release(void) {
    child = 0;
    for (int number = 1; number < NSIG; number++)
        if (changed[number]) sigaction(number, &before[number], NULL);
    memset(changed, 0, sizeof changed);
}

/* ---- start -------------------------------------------------------------------------------------------------------- */

static void become(char **argv, const char *const *environment, const sigset_t *mask, int report) {
    char pid[32];
    snprintf(pid, sizeof pid, "TALLY_RUN_PID=%d", (int)getpid());
    for (; *environment; environment++)
        putenv((char *)*environment);
    putenv(pid);
    tly_launch_release();
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int error = errno;
    ssize_t written = write(report, &error, sizeof error);
    (void)written; /* the parent sees the closed pipe, and 127 */
    _exit(127);
}

int tly_launch(char **argv, const char *const *environment, struct tly_launch *out) {
    sigset_t all, mask;
    int report[2];
    memset(out, 0, sizeof *out);
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(report, O_CLOEXEC) != 0) return -errno;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask); /* what comes until the child is there waits for it */
    take_signals();
    out->begun_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t pid = fork();
    int error = errno;
    if (pid == 0) become(argv, environment, &mask, report[1]);
    if (pid > 0) child = pid;
    close(report[1]);
    sigset_t open_mask;
    sigemptyset(&open_mask); /* what was blocked for the program must not be lost on us */
    sigprocmask(SIG_SETMASK, &open_mask, NULL);
    if (pid > 0) {
        ssize_t got;
        while ((got = read(report[0], &out->exec_error, sizeof out->exec_error)) < 0 && errno == EINTR)
            continue;
        if (got != sizeof out->exec_error) out->exec_error = 0;
        if (out->exec_error) waitpid(pid, NULL, 0);
    }
    close(report[0]);
    if (pid < 0 || out->exec_error) tly_launch_release();
    if (pid < 0) return -error;
    out->pid = pid;
    return 0;
}

/* ---- wait --------------------------------------------------------------------------------------------------------- */

/* The child is over but still there to be looked at. */
static void take_facts(const struct tly_launch *launch, struct tly_ending *out) {
    struct tly_proc proc;
    struct rusage usage;
    int status = 0;
    out->ended_ns = clock_ns(CLOCK_REALTIME);
    out->wall_ns = clock_ns(CLOCK_MONOTONIC) - launch->begun_ns;
    bool known = tly_proc_read((uint32_t)launch->pid, &proc) == -ESRCH && proc.state == 'Z';
    if (known) {
        out->user_ns = proc.user_ns;
        out->system_ns = proc.system_ns;
    }
    ended_ns = clock_ns(CLOCK_MONOTONIC);
    child = 0; /* from here on its pid may become another's */
    while (wait4(launch->pid, &status, 0, &usage) < 0 && errno == EINTR)
        continue;
    /* The kernel's maximum is over the process and the children it has waited for. */
    if (known && !proc.has_waited) out->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    out->kind = WIFSIGNALED(status) ? TLY_END_SIGNAL : TLY_END_EXITED;
    out->value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    out->core_dumped = WIFSIGNALED(status) && WCOREDUMP(status);
}

static bool is_stopped(pid_t pid) {
    struct tly_proc proc;
    return tly_proc_read((uint32_t)pid, &proc) == 0 && proc.state == 'T';
}

/* As the default action does it: the shell is told the same signal. */
static void stop_alike(void) {
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigaction(SIGTSTP, &usual, &ours);
    raise(SIGTSTP); /* goes on here when the job is continued */
    sigaction(SIGTSTP, &ours, NULL);
}

/* A job stops as a whole: if the terminal (or the program, for its group) has told us to, we stop when the program has.
 * A program that somebody stops by its pid, and will continue by its pid, stops alone. */
static void follow_stop(pid_t pid, int number) {
    if (number != SIGTSTP || !told_to_stop) return;
    told_to_stop = 0;
    if (is_stopped(pid)) stop_alike();
    if (is_stopped(pid)) kill(pid, SIGCONT);
}

int tly_launch_wait(struct tly_launch *launch, int timeout_ms, struct tly_ending *out) {
    struct pollfd woken = {.fd = wake[0], .events = POLLIN};
    for (int turn = 0;; turn++) {
        siginfo_t info;
        char bytes[64];
        while (read(wake[0], bytes, sizeof bytes) > 0)
            continue;
        if (told_to_go_on) {
            told_to_go_on = 0;
            if (is_stopped(launch->pid)) kill(launch->pid, SIGCONT);
        }
        memset(&info, 0, sizeof info);
        int result = waitid(P_PID, (id_t)launch->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
        if (result == 0 && info.si_pid == launch->pid) {
            if (info.si_code == CLD_STOPPED) {
                waitid(P_PID, (id_t)launch->pid, &info, WSTOPPED | WNOHANG);
                follow_stop(launch->pid, info.si_status);
                turn--;
                continue;
            }
            memset(out, 0, sizeof *out);
            take_facts(launch, out);
            return 1;
        }
        if (turn > 0 && timeout_ms >= 0) return 0;
        poll(&woken, 1, timeout_ms);
    }
}

int tly_launch_end_alike(const struct tly_ending *ending) {
    if (ending->kind != TLY_END_SIGNAL) return ending->value;
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    fflush(NULL);
    signal(ending->value, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, ending->value);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(ending->value);
    return 128 + ending->value; /* the first process of a container does not die of it */
}
