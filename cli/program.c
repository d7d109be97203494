/* program.c - see program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offline/failure.h"

static int check_executable(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return -errno;
    if (!S_ISREG(status.st_mode)) return -EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : -errno;
}

/* Along PATH. Like execvp, a file without permission is passed by, and remembered. */
static int search(const char *name, char *out, size_t bytes) {
    if (!name[0]) return -ENOENT;
    if (strchr(name, '/')) {
        if (snprintf(out, bytes, "%s", name) >= (int)bytes) return -ENAMETOOLONG;
        return check_executable(out);
    }
    const char *path = getenv("PATH");
    char fallback[256];
    if (!path) {
        confstr(_CS_PATH, fallback, sizeof fallback);
        path = fallback;
    }
    int result = -ENOENT;
    for (const char *at = path;; at++) {
        size_t length = strcspn(at, ":");
        if (snprintf(out, bytes, "%.*s%s%s", (int)length, at, length ? "/" : "./", name) < (int)bytes) {
            int found = check_executable(out);
            if (found == 0) return 0;
            if (found == -EACCES) result = -EACCES;
        }
        at += length;
        if (!*at) return result;
    }
}

/* The first two words of a "#!" line. 0: it is one; -ENOENT: it is none. */
static int read_interpreter(const char *path, char *line, size_t bytes, char **interpreter, char **argument) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, bytes - 1);
    if (fd >= 0) close(fd);
    if (got < 2) return -ENOENT;
    line[got] = 0;
    if (memcmp(line, "\177ELF", got < 4 ? (size_t)got : 4) == 0) return -ENOENT;
    static char shell[] = "/bin/sh";
    if (line[0] != '#' || line[1] != '!') { /* execvp gives a text to the shell */
        *interpreter = shell;
        *argument = NULL;
        return memchr(line, 0, (size_t)got) ? -ENOENT : 0;
    }
    line[strcspn(line, "\n")] = 0;
    char *rest = NULL;
    *interpreter = strtok_r(line + 2, " \t\r", &rest);
    *argument = *interpreter ? rest + strspn(rest, " \t") : NULL;
    return *interpreter ? 0 : -ENOENT;
}

/* "/usr/bin/env [-S] [options] [NAME=VALUE] program": the program, or NULL. */
static char *program_of_env(const char *interpreter, char *argument) {
    const char *slash = strrchr(interpreter, '/');
    char *rest = NULL;
    if (!argument || strcmp(slash ? slash + 1 : interpreter, "env") != 0) return NULL;
    for (char *word = strtok_r(argument, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest))
        if (word[0] != '-' && !strchr(word, '=')) return word;
    return NULL;
}

int tly_program_find(char *const *argv, struct tly_program *out, char *error, size_t error_bytes) {
    char line[512], *interpreter, *argument;
    memset(out, 0, sizeof *out);
    int result = search(argv[0], out->file, sizeof out->file);
    if (result != 0) return tly_failure(result, error, error_bytes, "%s: %s", argv[0], strerror(-result));
    snprintf(out->binary, sizeof out->binary, "%s", out->file);
    for (int depth = 0; depth < 6; depth++) {
        if (read_interpreter(out->binary, line, sizeof line, &interpreter, &argument) != 0) return 0;
        out->script = true;
        result = check_executable(interpreter);
        if (result != 0)
            return tly_failure(result, error, error_bytes, "%s: its interpreter %s: %s", out->binary, interpreter,
                               strerror(-result));
        snprintf(out->binary, sizeof out->binary, "%s", interpreter);
        char *program = program_of_env(interpreter, argument), found[PATH_MAX];
        if (program && search(program, found, sizeof found) == 0)
            snprintf(out->binary, sizeof out->binary, "%s", found);
    }
    return 0; /* the kernel will refuse so deep a nesting itself */
}
