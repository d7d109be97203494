/* live.c - see live.h. */
#define _GNU_SOURCE
#include "live.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offline/failure.h"
#include "proc.h"

uint32_t tly_live_pid(const char *text) {
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    bool good = text[0] >= '0' && text[0] <= '9' && !*end && !errno && number <= INT32_MAX;
    return good ? (uint32_t)number : 0;
}

struct search {
    uint32_t inner_pid;
    uint64_t namespace, start_ticks;
    bool found;
    struct tly_live *out;
};

static void visit(const char *path, void *context) {
    struct search *search = context;
    struct tly_owner *owners = NULL;
    size_t count = 0;
    tly_place_regions(path, &owners, &count);
    for (size_t i = 0; i < count; i++) {
        const struct tly_owner *owner = &owners[i];
        if (!owner->readable || owner->pid != search->inner_pid || owner->start_ticks != search->start_ticks) continue;
        if (owner->pid_namespace && search->namespace && owner->pid_namespace != search->namespace) continue;
        if (search->found && search->out->owner.loaded_ns > owner->loaded_ns) continue; /* older: before an exec */
        search->found = true;
        search->out->owner = *owner;
        snprintf(search->out->path, sizeof search->out->path, "%s/%s", path, owner->name);
    }
    free(owners);
}

/* Which of our libraries is in the process, if any. 1, 0, or -errno. */
static int has_library(uint32_t pid) {
    char path[64], line[PATH_MAX + 256];
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps) return -errno;
    int result = 0;
    while (result == 0 && fgets(line, sizeof line, maps))
        result = strstr(line, "/libtally.so") != NULL;
    fclose(maps);
    return result;
}

static int explain(uint32_t pid, char *error, size_t error_bytes) {
    switch (has_library(pid)) {
    case 1:
        return tly_failure(
            -ENOENT, error, error_bytes,
            "process %u has libtally.so in it but no account that can be reached: it has not allocated since "
            "it was forked, is linked with the library and lacks share:true in TALLY_CONF, is left alone "
            "(follow:false), or had no directory to put the account into",
            pid);
    case 0:
        return tly_failure(-ENOENT, error, error_bytes,
                           "process %u runs without Tally: start it with 'tally run' or with LD_PRELOAD=libtally.so "
                           "(with TALLY_CONF=tags:false it sleeps until 'tally start')",
                           pid);
    default:
        return tly_failure(-EPERM, error, error_bytes, "process %u may not be looked at: %s", pid, strerror(EACCES));
    }
}

int tly_live_find(uint32_t pid, struct tly_live *out, char *error, size_t error_bytes) {
    struct tly_proc proc;
    struct stat status;
    char path[64];
    int result = tly_proc_read(pid, &proc);
    if (result == -ESRCH && proc.state == 'Z')
        return tly_failure(-ESRCH, error, error_bytes, "process %u has ended (its parent has not asked how)", pid);
    if (result == -ESRCH) return tly_failure(-ESRCH, error, error_bytes, "there is no process %u", pid);
    if (result != 0) return tly_failure(result, error, error_bytes, "process %u: %s", pid, strerror(-result));
    uint32_t inner = tly_proc_inner_pid(pid);
    struct search search = {inner ? inner : pid, tly_proc_namespace(pid), proc.start_ticks, false, out};
    tly_place_each(visit, &search);
    if (search.found) return 0;
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (stat(path, &status) == 0 && status.st_uid != getuid())
        return tly_failure(
            -EPERM, error, error_bytes,
            "process %u belongs to user %u: only that user can reach its account (sudo -u '#%u' tally ...)", pid,
            (unsigned)status.st_uid, (unsigned)status.st_uid);
    return explain(pid, error, error_bytes);
}
