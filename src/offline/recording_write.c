/* recording_write.c - writing `.tally` files; see recording.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "offline/failure.h"
#include "offline/record.h"
#include "offline/recording.h"
#include "offline/recording_file.h"

enum { ZSTD_LEVEL = 3 };

static uint32_t crc_of(const void *bytes, size_t count) { return (uint32_t)crc32_z(0, bytes, count); }

static int write_all(int fd, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count) {
        ssize_t written = write(fd, at, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -errno;
        if (written == 0) return -ENOSPC;
        at += written;
        count -= (size_t)written;
    }
    return 0;
}

static int write_record(int fd, enum tly_record_kind kind, const void *raw, size_t raw_bytes) {
    struct tly_record_head head = {.kind = kind, .compression = TLY_RECORD_PLAIN, .raw_bytes = raw_bytes};
    const void *payload = raw;
    void *packed = NULL;
    size_t payload_bytes = raw_bytes;
    if (raw_bytes > TLY_RECORD_MOST_BYTES) return -EFBIG;
    if (raw_bytes) {
        size_t bound = ZSTD_compressBound(raw_bytes);
        packed = malloc(bound);
        if (!packed) return -ENOMEM;
        size_t packed_bytes = ZSTD_compress(packed, bound, raw, raw_bytes, ZSTD_LEVEL);
        if (!ZSTD_isError(packed_bytes)) {
            head.compression = TLY_RECORD_ZSTD;
            payload = packed;
            payload_bytes = packed_bytes;
        }
    }
    head.stored_bytes = payload_bytes;
    head.payload_crc = crc_of(payload, payload_bytes);
    head.crc = crc_of(&head, offsetof(struct tly_record_head, crc));
    int result = write_all(fd, &head, sizeof head);
    if (result == 0) result = write_all(fd, payload, payload_bytes);
    free(packed);
    return result;
}

static int write_file(int fd, const struct tly_snapshot *const *snapshots, size_t count) {
    struct tly_file_head head = {.version = TLY_RECORDING_VERSION, .header_bytes = sizeof head};
    memcpy(head.magic, TLY_RECORDING_MAGIC, sizeof head.magic);
    head.crc = crc_of(&head, offsetof(struct tly_file_head, crc));
    int result = write_all(fd, &head, sizeof head);
    for (size_t i = 0; i < count && result == 0; i++) {
        uint8_t *raw = NULL;
        size_t raw_bytes = 0;
        result = tly_record_pack(snapshots[i], &raw, &raw_bytes);
        if (result == 0) result = write_record(fd, TLY_RECORD_SNAPSHOT, raw, raw_bytes);
        free(raw);
    }
    return result == 0 ? write_record(fd, TLY_RECORD_END, NULL, 0) : result;
}

/* A file beside `path` that nobody else has; its name goes to `name`. */
static int open_temporary(const char *path, char *name, size_t name_bytes) {
    const char *slash = strrchr(path, '/');
    int directory_bytes = slash ? (int)(slash + 1 - path) : 0;
    for (int attempt = 0; attempt < 100; attempt++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uint64_t)getpid() << 8 | (unsigned)attempt;
        /* not made from the name itself, which may be as long as a name can be */
        int length =
            snprintf(name, name_bytes, "%.*s.tally-%016llx.part", directory_bytes, path, (unsigned long long)random);
        if (length < 0 || (size_t)length >= name_bytes) return -ENAMETOOLONG;
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0) return fd;
        if (errno != EEXIST) return -errno;
    }
    return -EEXIST;
}

static int write_and_rename(const char *path, const struct tly_snapshot *const *snapshots, size_t count) {
    char name[PATH_MAX];
    int fd = open_temporary(path, name, sizeof name);
    if (fd < 0) return fd;
    int result = write_file(fd, snapshots, count);
    if (close(fd) != 0 && result == 0) result = -errno;
    if (result == 0 && rename(name, path) != 0) result = -errno;
    if (result != 0) unlink(name);
    return result;
}

static int write_directly(const char *path, const struct tly_snapshot *const *snapshots, size_t count) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return -errno;
    int result = write_file(fd, snapshots, count);
    if (close(fd) != 0 && result == 0) result = -errno;
    return result;
}

int tly_recording_write(const char *path, const struct tly_snapshot *const *snapshots, size_t count, char *error,
                        size_t error_bytes) {
    struct stat status;
    int result;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        result = S_ISDIR(status.st_mode) ? -EISDIR : write_directly(path, snapshots, count);
    } else {
        char *target = realpath(path, NULL); /* through a symbolic link, to the file it names */
        result = write_and_rename(target ? target : path, snapshots, count);
        free(target);
    }
    if (result == 0) return 0;
    return tly_failure(result, error, error_bytes, "%s: cannot write the recording: %s", path, strerror(-result));
}
