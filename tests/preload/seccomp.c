/*
 * seccomp.c - a program that allows itself only the system calls that its own work needs, malloc's among them; any other
 * one kills it. Afterwards it allocates and pushes tags: new ones, which the account has to make room for.
 * Usage: seccomp malloc|strict: what libc's malloc needs; or nothing but read, write, exit and sigreturn, which leaves
 * no way to make room for anything, so that tags and blocks are only of known kinds then
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"
#include "tally/tally.h"

static void allow_only_mallocs(void) {
    static const int allowed[] = {SYS_brk,   SYS_mmap,  SYS_munmap, SYS_mremap,     SYS_mprotect, SYS_madvise,
                                  SYS_futex, SYS_write, SYS_exit,   SYS_exit_group, SYS_read};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
                                                     (unsigned char)(COUNT - i), 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {COUNT + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv) {
    int strict = argc > 1 && strcmp(argv[1], "strict") == 0;
    static void *block[5000];
    {
        TALLY_TAG_COPY("n0");
        for (int i = 0; i < 5000; i++)
            block[i] = keep(malloc(200));
        for (int i = 0; i < 5000; i++)
            free(block[i]);
    }
    if (strict)
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    else
        allow_only_mallocs();
    for (int i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", strict ? 0 : i);
        TALLY_TAG_COPY(name);
        block[i] = keep(malloc(strict ? 100 : (size_t)i * 10));
    }
    void *big = strict ? NULL : keep(malloc(100 << 20));
    for (int i = 0; i < 3000; i++)
        free(block[i]);
    free(big);
    say(1, "done\n");
    if (strict) syscall(SYS_exit, 9); /* exit_group is not among the four */
    return 9;
}
