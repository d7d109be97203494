/*
 * output.h - the names of recordings: %p, %n, %h and %% in a pattern, and no two processes in one file.
 */
#ifndef TLY_OUTPUT_H
#define TLY_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct tly_output_facts {
    uint32_t pid;
    const char *program, *host; /* terminated; a '/' in them becomes '_' */
};

/* `pattern` below `directory` (if it is relative) with the facts put in. 0 or -ENAMETOOLONG. */
int tly_output_name(char *out, size_t bytes, const char *directory, const char *pattern,
                    const struct tly_output_facts *facts);

/* Names that were given out. */
struct tly_output_names {
    char **names;
    size_t count;
};
/* Remembers `name`; if it was given out before, first makes another of it: NAME.PID.tally, NAME.PID.2.tally ...
 * 0, -ENAMETOOLONG or -ENOMEM. */
int tly_output_claim(struct tly_output_names *names, char *name, size_t bytes, uint32_t pid);
void tly_output_forget(struct tly_output_names *names);

/* The pattern as it must be written so that it means `directory` wherever it is used: absolute, '%' in the directory
 * doubled. 0 or -ENAMETOOLONG. */
int tly_output_absolute(char *out, size_t bytes, const char *directory, const char *pattern);

#endif
