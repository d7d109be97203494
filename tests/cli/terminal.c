/*
 * terminal.c - a little shell on a pseudo-terminal: runs a command as its foreground job, types a key, and prints what
 * a shell would see of the job.
 *
 *     terminal KEY COMMAND...     KEY: C (Ctrl-C), Q (Ctrl-\), Z (Ctrl-Z, then fg, then Ctrl-C)
 *
 * The key is typed when the job has printed "ready". Everything the job prints goes to stdout.
 */

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int terminal; /* the master side, in the parent */

/* Runs in the session of the terminal. Prints "stopped N", "signal N" or "exit N". */
static int shell(char **argv) {
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        execvp(argv[0], argv);
        _exit(111);
    }
    setpgid(job, job);
    tcsetpgrp(0, job);
    for (int status; waitpid(job, &status, WUNTRACED) == job;) {
        if (WIFSTOPPED(status)) {
            printf("job stopped %d\n", WSTOPSIG(status));
            fflush(stdout);
            usleep(300000);
            kill(-job, SIGCONT);
            printf("job continued\n");
            fflush(stdout);
            continue;
        }
        printf("job %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fflush(stdout);
        return 0;
    }
    return 1;
}

static void type(char key) {
    char byte = (char)(key == 'C' ? 3 : key == 'Q' ? 28 : 26);
    if (write(terminal, &byte, 1) != 1) exit(3);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid < 0) return 2;
    if (pid == 0) _exit(shell(argv + 2));
    alarm(30);
    char all[65536];
    size_t length = 0;
    int typed = 0;
    for (ssize_t got; length < sizeof all - 1 && (got = read(terminal, all + length, sizeof all - 1 - length)) > 0;) {
        length += (size_t)got;
        all[length] = 0;
        if (typed == 0 && strstr(all, "ready")) {
            usleep(100000);
            type(argv[1][0]);
            typed = 1;
        }
        if (typed == 1 && argv[1][0] == 'Z' && strstr(all, "job continued")) {
            usleep(300000);
            type('C');
            typed = 2;
        }
    }
    fwrite(all, 1, length, stdout);
    return waitpid(pid, NULL, 0) == pid ? 0 : 1;
}
