/* library.c - see library.h. */
#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offline/failure.h"

/* From the directory of the command: installed, in the build tree, side by side. */
static const char *const places[] = {TALLY_LIBRARY_FROM_BIN "/libtally.so.0", TALLY_LIBRARY_FROM_BIN "/libtally.so",
                                     "../src/libtally.so.0", "libtally.so.0", "libtally.so"};
enum { PLACES = sizeof places / sizeof *places };

/* LD_PRELOAD has no way to write these. */
static int check_name(const char *path, char *error, size_t error_bytes) {
    if (!strpbrk(path, " :\t\n")) return 0;
    return tly_failure(
        -EINVAL, error, error_bytes,
        "the loader cannot preload %s: the path holds a blank or a colon. Move it, or name another copy in "
        "TALLY_LIBRARY",
        path);
}

int tly_library_find(char *out, size_t bytes, char *error, size_t error_bytes) {
    char self[PATH_MAX], candidate[2 * PATH_MAX], real[PATH_MAX];
    const char *given = getenv("TALLY_LIBRARY");
    if (given && given[0]) {
        if (!realpath(given, real) || access(real, R_OK) != 0)
            return tly_failure(-ENOENT, error, error_bytes, "TALLY_LIBRARY is %s: %s", given, strerror(errno));
        if (snprintf(out, bytes, "%s", real) >= (int)bytes)
            return tly_failure(-EINVAL, error, error_bytes, "the path of the library is too long");
        return check_name(out, error, error_bytes);
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    for (int i = 0; slash && i < PLACES; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s", self, places[i]);
        if (!realpath(candidate, real) || access(real, R_OK) != 0) continue;
        if (snprintf(out, bytes, "%s", real) >= (int)bytes) continue;
        return check_name(out, error, error_bytes);
    }
    return tly_failure(
        -ENOENT, error, error_bytes,
        "libtally.so is not where it belongs (%s/%s): install Tally, or name the library in TALLY_LIBRARY",
        slash ? self : "?", places[0]);
}
