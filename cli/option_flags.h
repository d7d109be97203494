/*
 * option_flags.h - the options of the table as flags of a command: --name=value, --name value, --name, --no-name.
 */
#ifndef TLY_OPTION_FLAGS_H
#define TLY_OPTION_FLAGS_H

#include <stdio.h>

#include "base/options.h"

/* Looks at argv[*at]. Returns 1 and moves *at past the flag if it is one and its value is good, 0 if it is none of the
 * table's, or -EINVAL with the reason in `error`. */
int tly_option_flag(struct tly_options *options, int argc, char **argv, int *at, char *error, size_t error_bytes);

/* The nearest flag to a mistyped one: of the table's and of `others`. */
const char *tly_option_flag_nearest(const char *flag, const char *const *others, size_t count, int *likely);

/* The part of a help text that lists them all. */
void tly_option_flags_help(FILE *out);

#endif
