/* place.c - see place.h. */
#define _GNU_SOURCE
#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "region/view.h"

enum { BASES = 4, EMPTY_FOR_S = 10 };

/* In the order the library tries them; NULL: not set. */
static void bases(const char *out[BASES]) {
    out[0] = getenv("XDG_RUNTIME_DIR");
    out[1] = "/dev/shm";
    out[2] = getenv("TMPDIR");
    out[3] = "/tmp";
    for (int i = 0; i < BASES; i++)
        if (out[i] && out[i][0] != '/') out[i] = NULL;
}

static bool is_ours(const struct stat *status) {
    return S_ISDIR(status->st_mode) && status->st_uid == getuid() && (status->st_mode & 077) == 0;
}

/* "tally-<uid>-<16 hex digits>" */
static bool is_name(const char *name) {
    char prefix[32];
    int length = snprintf(prefix, sizeof prefix, "tally-%u-", (unsigned)getuid());
    return strncmp(name, prefix, (size_t)length) == 0 && strlen(name + length) == 16 &&
           strspn(name + length, "0123456789abcdef") == 16;
}

int tly_place_lock(const char *path, int *lock) {
    struct stat status, again;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -errno;
    int result = fstat(fd, &status) == 0 && is_ours(&status) ? 0 : -EPERM;
    if (result == 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) result = -errno;
    /* it may have been removed between open and lock */
    if (result == 0 && (lstat(path, &again) != 0 || again.st_ino != status.st_ino || again.st_dev != status.st_dev))
        result = -ENOENT;
    if (result != 0)
        close(fd);
    else
        *lock = fd;
    return result;
}

int tly_place_make(char *path, size_t bytes, int *lock) {
    const char *base[BASES];
    int result = -ENOENT;
    bases(base);
    for (int i = 0; i < BASES; i++) {
        uint64_t random;
        if (!base[i] || !base[i][0]) continue;
        if (getrandom(&random, sizeof random, 0) != sizeof random) return -EIO;
        int length =
            snprintf(path, bytes, "%s/tally-%u-%016llx", base[i], (unsigned)getuid(), (unsigned long long)random);
        if (length < 0 || (size_t)length >= bytes || strpbrk(path, "\n")) {
            result = -ENAMETOOLONG;
            continue;
        }
        result = mkdir(path, 0700) == 0 ? 0 : -errno;
        if (result == 0 && chmod(path, 0700) != 0) result = -errno; /* whatever the umask */
        if (result == 0) result = tly_place_lock(path, lock);
        if (result == 0) return 0;
    }
    return result;
}

void tly_place_leave(const char *path, int lock, bool now) {
    struct stat status;
    if (fstat(lock, &status) == 0 && (now || status.st_mtime + EMPTY_FOR_S < time(NULL))) rmdir(path);
    close(lock);
}

void tly_place_each(void (*visit)(const char *path, void *context), void *context) {
    const char *base[BASES];
    struct stat seen[BASES], status;
    bases(base);
    for (int i = 0; i < BASES; i++) {
        memset(&seen[i], 0, sizeof seen[i]);
        bool again = !base[i] || stat(base[i], &seen[i]) != 0;
        for (int k = 0; k < i && !again; k++)
            again = seen[k].st_ino == seen[i].st_ino && seen[k].st_dev == seen[i].st_dev;
        DIR *all = again ? NULL : opendir(base[i]);
        if (!all) continue;
        for (struct dirent *entry; (entry = readdir(all));) {
            char path[PATH_MAX];
            if (!is_name(entry->d_name)) continue;
            if (fstatat(dirfd(all), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !is_ours(&status)) continue;
            if (snprintf(path, sizeof path, "%s/%s", base[i], entry->d_name) < (int)sizeof path) visit(path, context);
        }
        closedir(all);
    }
}

/* ---- regions ------------------------------------------------------------------------------------------------------ */

static bool is_region(int directory, const char *name, uint32_t *pid) {
    char *end;
    struct stat status;
    unsigned long number = strtoul(name, &end, 10);
    *pid = (uint32_t)number;
    return number > 0 && number <= INT32_MAX && end[0] == '-' && strspn(end + 1, "0123456789abcdef") == 16 &&
           strcmp(end + 17, ".region") == 0 && fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_uid == getuid();
}

static void read_owner(const char *path, struct tly_owner *owner) {
    char file[PATH_MAX];
    struct tly_view view;
    if (snprintf(file, sizeof file, "%s/%s", path, owner->name) >= (int)sizeof file) return;
    if (tly_view_open(file, &view, NULL) != 0) return;
    owner->pid = view.region->pid;
    owner->pid_namespace = view.region->pid_namespace;
    owner->start_ticks = view.region->process_start_ticks;
    owner->loaded_ns = view.region->loaded_ns;
    owner->started_ns = view.region->started_ns;
    owner->flags = view.region->flags;
    owner->state = view.region->state;
    owner->readable = true;
    tly_view_close(&view);
}

void tly_place_reread(const char *path, struct tly_owner *owner) { read_owner(path, owner); }

static int note_name(const char *region, char *out, size_t bytes) {
    return snprintf(out, bytes, "%s.to", region) < (int)bytes ? 0 : -ENAMETOOLONG;
}

void tly_place_note(const char *region, const char *recording) {
    char name[PATH_MAX + NAME_MAX + 8];
    int fd = -1;
    if (note_name(region, name, sizeof name) == 0)
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return; /* the recording will get a name of its own */
    size_t length = strlen(recording);
    bool whole = write(fd, recording, length) == (ssize_t)length;
    close(fd);
    if (!whole) unlink(name);
}

int tly_place_noted(const char *region, char *out, size_t bytes) {
    char name[PATH_MAX + NAME_MAX + 8];
    if (note_name(region, name, sizeof name) != 0) return -ENOENT;
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, out, bytes - 1);
    if (fd >= 0) close(fd);
    out[got > 0 ? got : 0] = 0;
    return out[0] == '/' ? 0 : -ENOENT;
}

void tly_place_remove(const char *region) {
    char name[PATH_MAX + NAME_MAX + 8];
    unlink(region);
    if (note_name(region, name, sizeof name) == 0) unlink(name);
}

static int compare(const void *a, const void *b) {
    const struct tly_owner *x = a, *y = b;
    if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
    if (x->loaded_ns != y->loaded_ns) return x->loaded_ns < y->loaded_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

int tly_place_regions(const char *path, struct tly_owner **out, size_t *count) {
    DIR *all = opendir(path);
    *out = NULL;
    *count = 0;
    if (!all) return -errno;
    int result = 0;
    for (struct dirent *entry; (entry = readdir(all));) {
        uint32_t pid;
        if (!is_region(dirfd(all), entry->d_name, &pid)) continue;
        if (*count % 64 == 0) {
            struct tly_owner *more = realloc(*out, (*count / 64 + 1) * 64 * sizeof **out);
            if (!more) {
                result = -ENOMEM;
                break;
            }
            *out = more;
        }
        struct tly_owner *owner = &(*out)[(*count)++];
        memset(owner, 0, sizeof *owner);
        snprintf(owner->name, sizeof owner->name, "%s", entry->d_name);
        owner->pid = pid;
        read_owner(path, owner);
    }
    closedir(all);
    if (*count) qsort(*out, *count, sizeof **out, compare);
    return result;
}

bool tly_owner_same_process(const struct tly_owner *a, const struct tly_owner *b) {
    return a->readable && b->readable && a->pid == b->pid && a->pid_namespace == b->pid_namespace &&
           a->start_ticks == b->start_ticks;
}
