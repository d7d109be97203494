/*
 * program.h - which file a command line would execute: along PATH as execvp(3) does, and through "#!" lines to the
 * interpreter.
 */
#ifndef TLY_PROGRAM_H
#define TLY_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct tly_program {
    char file[PATH_MAX];   /* what PATH led to */
    char binary[PATH_MAX]; /* what runs in the end: the file itself, or the last interpreter */
    bool script;           /* binary is an interpreter */
};

/* 0; or -errno as exec would give it (-ENOENT: not found, -EACCES: not executable ...) with the reason in `error`. */
int tly_program_find(char *const *argv, struct tly_program *out, char *error, size_t error_bytes);

#endif
