/*
 * options.h - the values of the options in option_table.h, and their parser.
 *
 * Used inside the target and by the command line alike: no malloc, no stdio, async-signal-safe. Values written as text
 * are `true`/`false` (also yes/no, on/off, 1/0), whole decimal numbers, names joined by '+' or '|', and texts. In
 * "key:value,key:value" a text may contain ':' as it is, and ',' or '\' with a '\' before it.
 */
#ifndef TLY_OPTIONS_H
#define TLY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option_table.h"

/* Room enough for any message of this parser. */
enum { TLY_OPTION_ERROR_BYTES = 512 };

#define TLY_OPTION_FIELD_BOOL_(NAME, MAX) bool NAME;
#define TLY_OPTION_FIELD_INT_(NAME, MAX) int64_t NAME;
#define TLY_OPTION_FIELD_TEXT_(NAME, MAX) char NAME[(MAX) + 1];
#define TLY_OPTION_FIELD_TAGS_(NAME, MAX) uint32_t NAME;
/* The longest text of a TEXT row stands in the column `min`. */
#define TLY_OPTION_FIELD_(NAME, TYPE, DEFAULT, MIN, MAX, HELP) TLY_OPTION_FIELD_##TYPE##_(NAME, MIN)

/* One field for each row, in the row's unit. */
struct tly_options {
    TLY_OPTION_TABLE(TLY_OPTION_FIELD_)
};

enum tly_option_type { TLY_OPTION_BOOL, TLY_OPTION_INT, TLY_OPTION_TEXT, TLY_OPTION_TAGS };

/* A row of the table, for those who list the options. */
struct tly_option_row {
    const char *name;
    enum tly_option_type type;
    int64_t default_number;   /* BOOL, INT, TAGS */
    const char *default_text; /* TEXT */
    int64_t min, max;         /* INT, TAGS; TEXT: min is the longest, in bytes */
    const char *help;
    size_t offset; /* of the field in struct tly_options */
};
size_t tly_option_count(void);
const struct tly_option_row *tly_option_row(size_t index);
/* The row called `key`, where '-' and '_' are the same; NULL: there is none. */
const struct tly_option_row *tly_option_find(const char *key, size_t key_bytes);

void tly_options_default(struct tly_options *options);

/* Sets one option. 0; or -EINVAL, and then nothing is changed and `error` (may be NULL) says in one line what is wrong,
 * with the nearest valid name or the range. */
int tly_option_set(struct tly_options *options, const char *key, size_t key_bytes, const char *value,
                   size_t value_bytes, char *error, size_t error_bytes);

/* Reads "key:value,key:value" into `options`. A later entry wins. Each one that is wrong is passed to `problem` (may be
 * NULL) as a line without newline that is valid during the call, and changes nothing. */
void tly_options_parse(struct tly_options *options, const char *text, void (*problem)(const char *line));

/* Reads the variables of the reference's own settings, PXR_TF_MALLOC_TAG_EVENT_BUFFERS_MB, _CONSOLIDATE_PERIOD_MS and
 * _PATH_NODE_TABLE_MB, out of `environment` ("NAME=value" texts, ended by NULL). To be called before
 * tly_options_parse(), so that TALLY_CONF wins. */
void tly_options_aliases(struct tly_options *options, char *const *environment, void (*problem)(const char *line));

/* The opposite: what differs from the defaults, as tly_options_parse() reads it. Returns the length of the whole text;
 * if that is not less than `bytes`, it was cut. */
size_t tly_options_write(const struct tly_options *options, char *out, size_t bytes);

#endif
