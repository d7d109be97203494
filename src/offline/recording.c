/* recording.c - reading `.tally` files and raw regions; see recording.h. */
#define _GNU_SOURCE
#include "offline/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "offline/failure.h"
#include "offline/record.h"
#include "offline/recording_file.h"
#include "offline/region_facts.h"

enum { TEXT_BYTES = 512 };

/* A recording that is being gone through. */
struct scan {
    const unsigned char *data;
    uint64_t bytes;
    uint64_t at;               /* offset of the record that comes next */
    uint32_t snapshots;        /* records of snapshots seen, whole or not */
    struct tly_snapshot *last; /* the last whole one */
    uint32_t last_number;      /* which one that was, from 1 */
    bool ended;
    bool no_memory;
    char trouble[TEXT_BYTES]; /* the first thing that was wrong; "": nothing */
};

static uint32_t crc_of(const void *bytes, size_t count) { return (uint32_t)crc32_z(0, bytes, count); }

static void note_trouble(struct scan *scan, const char *what, uint64_t offset) {
    if (scan->trouble[0]) return;
    snprintf(scan->trouble, sizeof scan->trouble, "%s (at byte %llu of %llu)", what, (unsigned long long)offset,
             (unsigned long long)scan->bytes);
}

/* The message of a record in fresh memory, or NULL with the reason. */
static uint8_t *unfold(struct scan *scan, const struct tly_record_head *head, const void *payload, const char **why) {
    *why = "a record that cannot be decompressed";
    if (head->compression > TLY_RECORD_ZSTD) return NULL;
    if (head->compression == TLY_RECORD_PLAIN && head->raw_bytes != head->stored_bytes) return NULL;
    if (head->compression == TLY_RECORD_ZSTD &&
        ZSTD_getFrameContentSize(payload, head->stored_bytes) != head->raw_bytes)
        return NULL;
    uint8_t *raw = malloc(head->raw_bytes + 1);
    if (!raw) {
        *why = "not enough memory for a record";
        scan->no_memory = true;
        return NULL;
    }
    if (head->compression == TLY_RECORD_PLAIN) {
        memcpy(raw, payload, head->raw_bytes);
        return raw;
    }
    size_t length = ZSTD_decompress(raw, head->raw_bytes, payload, head->stored_bytes);
    if (!ZSTD_isError(length) && length == head->raw_bytes) return raw;
    free(raw);
    return NULL;
}

static void read_snapshot(struct scan *scan, const struct tly_record_head *head, const void *payload, uint64_t offset) {
    const char *why = NULL;
    struct tly_snapshot *snapshot = NULL;
    scan->snapshots++;
    if (crc_of(payload, head->stored_bytes) != head->payload_crc) {
        note_trouble(scan, "a damaged record: its checksum does not match", offset);
        return;
    }
    uint8_t *raw = unfold(scan, head, payload, &why);
    int result = raw ? tly_record_unpack(raw, head->raw_bytes, &snapshot, &why) : -EBADMSG;
    free(raw);
    if (result == -ENOMEM) scan->no_memory = true;
    if (result != 0) {
        note_trouble(scan, why, offset);
        return;
    }
    tly_snapshot_free(scan->last);
    scan->last = snapshot;
    scan->last_number = scan->snapshots;
}

/* Takes the next record. False when there is none that could be read. */
static bool next_record(struct scan *scan) {
    struct tly_record_head head;
    uint64_t offset = scan->at, left = scan->bytes - scan->at;
    if (left == 0) {
        note_trouble(scan, "the file is cut off: its end mark is missing", offset);
        return false;
    }
    if (left < sizeof head) {
        note_trouble(scan, "the file is cut off inside a record", scan->bytes);
        return false;
    }
    memcpy(&head, scan->data + offset, sizeof head);
    if (crc_of(&head, offsetof(struct tly_record_head, crc)) != head.crc || head.stored_bytes > TLY_RECORD_MOST_BYTES ||
        head.raw_bytes > TLY_RECORD_MOST_BYTES) {
        note_trouble(scan, "a damaged record head", offset);
        return false;
    }
    if (head.stored_bytes > left - sizeof head) {
        if (head.kind == TLY_RECORD_SNAPSHOT) scan->snapshots++;
        note_trouble(scan, "the file is cut off inside a record", scan->bytes);
        return false;
    }
    scan->at = offset + sizeof head + head.stored_bytes;
    if (head.kind == TLY_RECORD_SNAPSHOT) read_snapshot(scan, &head, scan->data + offset + sizeof head, offset);
    if (head.kind == TLY_RECORD_END) scan->ended = true;
    return !scan->ended;
}

/* What the reader of the report should know about the file. */
static int add_note(struct scan *scan) {
    char text[2 * TEXT_BYTES];
    struct tly_snapshot *snapshot = scan->last;
    const char *before = snapshot->note.bytes ? snapshot->note.bytes : "";
    int length = snprintf(text, sizeof text, "%.400s%s%s; this is snapshot %u of at least %u, the last that is whole",
                          before, *before ? "; " : "", scan->trouble, scan->last_number, scan->snapshots);
    if (length >= (int)sizeof text) length = (int)sizeof text - 1;
    snapshot->note = tly_snapshot_copy(snapshot, text, (size_t)length);
    return snapshot->note.bytes ? 0 : -ENOMEM;
}

int tly_recording_parse(const char *name, const void *data, size_t bytes, struct tly_snapshot **out, char *error,
                        size_t error_bytes) {
    struct tly_file_head head;
    *out = NULL;
    if (bytes < sizeof head)
        return tly_failure(
            -EBADMSG, error, error_bytes,
            "%s: a recording that is cut off inside its header (at byte %zu): nothing can be read from it", name,
            bytes);
    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, TLY_RECORDING_MAGIC, sizeof head.magic) != 0)
        return tly_failure(-EBADMSG, error, error_bytes, "%s: not a recording: it does not begin with %s", name,
                           TLY_RECORDING_MAGIC);
    if (crc_of(&head, offsetof(struct tly_file_head, crc)) != head.crc)
        return tly_failure(
            -EBADMSG, error, error_bytes,
            "%s: damaged recording: the checksum of its header (at byte 0) does not match; get a fresh copy "
            "or record again",
            name);
    if (head.version != TLY_RECORDING_VERSION)
        return tly_failure(
            -EBADMSG, error, error_bytes,
            "%s: a recording of format version %u, this tally reads version %u: use the tally that wrote it", name,
            head.version, TLY_RECORDING_VERSION);
    struct scan scan = {.data = data, .bytes = bytes, .at = head.header_bytes};
    if (head.header_bytes < sizeof head || head.header_bytes > bytes) {
        scan.at = bytes;
        note_trouble(&scan, "the file is cut off inside its header", bytes);
    }
    while (next_record(&scan))
        continue;
    if (!scan.last) {
        const char *trouble = scan.trouble[0] ? scan.trouble : "it holds no snapshot";
        return tly_failure(scan.no_memory ? -ENOMEM : -EBADMSG, error, error_bytes,
                           "%s: nothing can be read from this recording: %s; get a fresh copy or record again", name,
                           trouble);
    }
    if (scan.trouble[0] && add_note(&scan) != 0) {
        tly_snapshot_free(scan.last);
        return tly_failure(-ENOMEM, error, error_bytes, "%s: not enough memory", name);
    }
    *out = scan.last;
    return 0;
}

static int load_recording(const char *path, int fd, uint64_t bytes, struct tly_snapshot **out, char *error,
                          size_t error_bytes) {
    /* read, not mapped: a file that somebody cuts short meanwhile must not end us with SIGBUS */
    char *data = malloc(bytes + 1);
    uint64_t got = 0;
    ssize_t length = 1;
    if (!data) return tly_failure(-ENOMEM, error, error_bytes, "%s: not enough memory", path);
    while (got < bytes && length > 0) {
        length = pread(fd, data + got, bytes - got, (off_t)got);
        if (length < 0 && errno == EINTR)
            length = 1;
        else if (length > 0)
            got += (uint64_t)length;
    }
    int result = length < 0 ? tly_failure(-errno, error, error_bytes, "%s: %s", path, strerror(errno))
                            : tly_recording_parse(path, data, got, out, error, error_bytes);
    free(data);
    return result;
}

/* A raw region's file does not say when it was written, and the region of a killed process not that it is gone. */
static void complete_facts(struct tly_snapshot *snapshot, const struct tly_region *region, const struct stat *status) {
    struct tly_process_facts *process = &snapshot->process;
    uint64_t written_ns = (uint64_t)status->st_mtim.tv_sec * 1000000000 + (uint64_t)status->st_mtim.tv_nsec;
    if (process->region_flags & TLY_REGION_WRITTEN) {
        if (process->ended_ns == 0) process->taken_ns = written_ns;
    } else if (tly_region_process_lives(region) == 0) {
        tly_snapshot_set_end(snapshot, TLY_END_UNKNOWN, 0);
    }
}

static int load_region(const char *path, const struct stat *status, struct tly_snapshot **out, char *error,
                       size_t error_bytes) {
    struct tly_view view;
    const char *why = "";
    char text[TEXT_BYTES];
    int result = tly_view_open(path, &view, &why);
    if (result == -EBADMSG)
        return tly_failure(result, error, error_bytes, "%s: %s; get a fresh copy or record again", path, why);
    if (result != 0) return tly_failure(result, error, error_bytes, "%s: %s", path, strerror(-result));
    result = tly_snapshot_from_view(&view, out, text, sizeof text);
    if (result == 0)
        complete_facts(*out, view.region, status);
    else
        tly_failure(result, error, error_bytes, "%s: %s; get a fresh copy or record again", path, text);
    tly_view_close(&view);
    return result;
}

int tly_snapshot_load(const char *path, struct tly_snapshot **out, char *error, size_t error_bytes) {
    struct stat status;
    char magic[8];
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int result = -errno;
        if (fd >= 0) close(fd);
        return tly_failure(result, error, error_bytes, "%s: %s", path, strerror(-result));
    }
    int result;
    ssize_t length = S_ISREG(status.st_mode) ? pread(fd, magic, sizeof magic, 0) : 0;
    if (!S_ISREG(status.st_mode))
        result =
            tly_failure(-EINVAL, error, error_bytes, "%s: not a regular file: give a .tally file or a region", path);
    else if (length == 0)
        result = tly_failure(-EBADMSG, error, error_bytes, "%s: the file is empty", path);
    else if (length == sizeof magic && memcmp(magic, TLY_REGION_MAGIC, sizeof magic) == 0)
        result = load_region(path, &status, out, error, error_bytes);
    else if (length > 0 && memcmp(magic, TLY_RECORDING_MAGIC, (size_t)length) == 0)
        result = load_recording(path, fd, (uint64_t)status.st_size, out, error, error_bytes);
    else
        result =
            tly_failure(-EBADMSG, error, error_bytes,
                        "%s: neither a recording (.tally) nor a region of Tally: it begins with other bytes", path);
    close(fd);
    return result;
}
