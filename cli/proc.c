/* proc.c - see proc.h. */
#define _GNU_SOURCE
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t first_namespace = 0xeffffffc; /* the kernel's fixed inode of the initial PID namespace */

static ssize_t read_file(const char *path, char *buffer, size_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    ssize_t got = read(fd, buffer, bytes - 1);
    int error = errno;
    close(fd);
    if (got < 0) return -error;
    buffer[got] = 0;
    return got;
}

static uint64_t ticks_to_ns(uint64_t ticks) {
    static long per_second;
    if (!per_second) per_second = sysconf(_SC_CLK_TCK);
    return ticks * (1000000000u / (uint64_t)per_second);
}

int tly_proc_read(uint32_t pid, struct tly_proc *out) {
    char path[64], text[1024];
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    ssize_t got = read_file(path, text, sizeof text);
    if (got == -ENOENT) return access("/proc/self/stat", R_OK) == 0 ? -ESRCH : -ENOENT;
    if (got < 0) return (int)got;
    uint64_t field[23] = {0}; /* numbered as in proc(5) */
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2]) return -EBADMSG;
    out->state = at[2];
    at += 3;
    for (int i = 4; i <= 22; i++)
        field[i] = (uint64_t)strtoll(at, &at, 10);
    out->pid = pid;
    out->ppid = (uint32_t)field[4];
    out->has_waited = (field[11] | field[13] | field[16] | field[17]) != 0;
    out->user_ns = ticks_to_ns(field[14]);
    out->system_ns = ticks_to_ns(field[15]);
    out->start_ticks = field[22];
    /* A first thread that has ended shows as a zombie while others go on. */
    bool gone = (out->state == 'Z' && field[20] <= 1) || out->state == 'X';
    if (gone) out->state = 'Z';
    return gone ? -ESRCH : 0;
}

uint64_t tly_proc_namespace(uint32_t pid) {
    char path[64];
    struct stat status;
    if (pid)
        snprintf(path, sizeof path, "/proc/%u/ns/pid", pid);
    else
        snprintf(path, sizeof path, "/proc/self/ns/pid");
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* The last number of the line NSpid. */
uint32_t tly_proc_inner_pid(uint32_t pid) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    if (read_file(path, text, sizeof text) <= 0) return 0;
    char *line = strstr(text, "\nNSpid:");
    if (!line) return 0;
    line += 7;
    line[strcspn(line, "\n")] = 0;
    char *last = strrchr(line, '\t');
    return last ? (uint32_t)strtoul(last + 1, NULL, 10) : 0;
}

uint32_t tly_proc_find_inside(uint64_t namespace_inode, uint32_t pid, uint64_t start_ticks) {
    DIR *all = opendir("/proc");
    uint32_t found = 0;
    if (!all) return 0;
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        struct tly_proc proc;
        uint32_t outer = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!outer || tly_proc_namespace(outer) != namespace_inode) continue;
        if (tly_proc_read(outer, &proc) == 0 && proc.start_ticks == start_ticks && tly_proc_inner_pid(outer) == pid)
            found = outer;
    }
    closedir(all);
    return found;
}

enum tly_life tly_proc_life(uint64_t namespace_inode, uint32_t pid, uint64_t start_ticks, bool descendant) {
    uint64_t ours = tly_proc_namespace(0);
    if (namespace_inode == 0 || namespace_inode == ours || ours == 0) {
        struct tly_proc proc;
        int result = tly_proc_read(pid, &proc);
        if (result == -ESRCH) return TLY_LIFE_ENDED;
        if (result != 0) return TLY_LIFE_UNKNOWN;
        return start_ticks == 0 || proc.start_ticks == start_ticks ? TLY_LIFE_RUNNING : TLY_LIFE_ENDED;
    }
    if (tly_proc_find_inside(namespace_inode, pid, start_ticks)) return TLY_LIFE_RUNNING;
    return descendant || ours == first_namespace ? TLY_LIFE_ENDED : TLY_LIFE_UNKNOWN;
}
