/* sweep.c - see sweep.h. */
#define _GNU_SOURCE
#include "sweep.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"
#include "command.h"
#include "offline/snapshot.h"
#include "place.h"
#include "proc.h"

enum { BROKEN_FOR_S = 60, MOST_LINES = 8 };

struct sweep {
    int quiet, lines;
    struct tly_output_names names;
};

static void copy_text(const struct tly_view *view, const struct tly_text *text, char *out, size_t bytes) {
    const char *from = tly_view_name(view, text->offset, text->bytes);
    snprintf(out, bytes, "%.*s", from ? (int)text->bytes : 0, from ? from : "");
}

/* The file that the process itself would have written at its exit. */
static int name_of(const char *region, char *path, size_t bytes, struct tly_output_names *names) {
    struct tly_view view;
    char program[256], host[256], directory[PATH_MAX], pattern[PATH_MAX + 16];
    if (tly_place_noted(region, path, bytes) == 0) return 0; /* it was recorded before, while it ran */
    int result = tly_view_open(region, &view, NULL);
    if (result != 0) return result;
    copy_text(&view, &view.region->program, program, sizeof program);
    copy_text(&view, &view.region->host, host, sizeof host);
    copy_text(&view, &view.region->directory, directory, sizeof directory);
    copy_text(&view, &view.region->output, pattern, sizeof pattern);
    uint32_t pid = view.region->pid;
    tly_view_close(&view);
    if (!pattern[0]) return -ENOENT; /* `output:` empty: no file is wanted */
    struct tly_output_facts facts = {pid, program[0] ? program : "program", host};
    result = tly_output_name(path, bytes, directory, pattern, &facts);
    /* A fixed name may be another process's of the same run: that one stays. */
    if (result == 0 && !strstr(pattern, "%p") && access(path, F_OK) == 0)
        result = tly_output_claim(names, path, bytes, pid);
    return result ? result : tly_output_claim(names, path, bytes, pid);
}

static void tell(struct sweep *sweep, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct sweep *sweep, const char *format, ...) {
    char line[3 * PATH_MAX];
    va_list arguments;
    if (sweep->quiet || sweep->lines++ >= MOST_LINES) return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    tly_complain(NULL, "%s", line);
}

/* The directory that `path` is to be written to is no longer there. */
static bool has_no_place(const char *path) {
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash) *slash = 0;
    return slash && slash != directory && access(directory, F_OK) != 0 && errno == ENOENT;
}

static void collect(struct sweep *sweep, const char *region, const struct tly_owner *owner, enum tly_end_kind kind) {
    char path[PATH_MAX], error[PATH_MAX + 512] = "";
    const struct tly_ending ending = {.kind = kind};
    int result = owner->started_ns ? name_of(region, path, sizeof path, &sweep->names) : -ENOENT;
    if (result == -ENOENT) { /* nothing in it, or no file wanted */
        tly_place_remove(region);
        return;
    }
    if (result == 0 && has_no_place(path)) {
        const char *slash = strrchr(path, '/');
        memmove(path, slash + 1, strlen(slash)); /* here, then: nothing is thrown away */
        tell(sweep, "the directory of process %u's recording is gone", owner->pid);
    }
    if (result == 0)
        result = tly_collect_region(region, path, &ending, NULL, error, sizeof error);
    else
        snprintf(error, sizeof error, "%s", strerror(-result));
    if (result == 0) {
        tly_place_remove(region);
        tell(sweep, "process %u had left its account behind: recorded in %s", owner->pid, path);
    } else {
        tell(sweep, "process %u has left its account in %s, but it could not be recorded: %s", owner->pid, region,
             error);
    }
}

/* A file without a whole header: of a process that was stopped while it made it, if it does not get one. */
static void remove_broken(const char *region) {
    struct stat status;
    if (lstat(region, &status) == 0 && status.st_mtime + BROKEN_FOR_S < time(NULL)) unlink(region);
}

static void visit(const char *path, void *context) {
    struct sweep *sweep = context;
    struct tly_owner *owners = NULL;
    size_t count = 0;
    int lock;
    if (tly_place_lock(path, &lock) != 0) return; /* somebody collects there */
    tly_place_regions(path, &owners, &count);
    for (size_t i = 0; i < count; i++) {
        struct tly_owner *owner = &owners[i];
        char region[PATH_MAX + NAME_MAX + 2];
        snprintf(region, sizeof region, "%s/%s", path, owner->name);
        bool replaced = i + 1 < count && tly_owner_same_process(owner, &owners[i + 1]);
        uint64_t inode = owner->readable ? owner->pid_namespace : 0;
        if (!replaced && tly_proc_life(inode, owner->pid, owner->start_ticks, false) != TLY_LIFE_ENDED) continue;
        tly_place_reread(path, owner);
        if (owner->readable)
            collect(sweep, region, owner, replaced ? TLY_END_EXEC : TLY_END_UNKNOWN);
        else
            remove_broken(region);
    }
    free(owners);
    tly_place_leave(path, lock, false);
}

void tly_sweep(int quiet) {
    struct sweep sweep = {.quiet = quiet};
    tly_place_each(visit, &sweep);
    if (sweep.lines > MOST_LINES)
        tly_complain(NULL, "... and %d more accounts were left behind", sweep.lines - MOST_LINES);
    tly_output_forget(&sweep.names);
}
