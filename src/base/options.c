/* options.c - see options.h. */
#include "base/options.h"

#include <errno.h>
#include <string.h>

#include "base/say.h"
#include "base/suggest.h"

#define TEXT_OF_BOOL_(DEFAULT) DEFAULT, NULL
#define TEXT_OF_INT_(DEFAULT) DEFAULT, NULL
#define TEXT_OF_TAGS_(DEFAULT) DEFAULT, NULL
#define TEXT_OF_TEXT_(DEFAULT) 0, DEFAULT
#define ROW_(NAME, TYPE, DEFAULT, MIN, MAX, HELP)                                                                      \
    {#NAME, TLY_OPTION_##TYPE, TEXT_OF_##TYPE##_(DEFAULT), MIN, MAX, HELP, offsetof(struct tly_options, NAME)},
#define NAME_(NAME, TYPE, DEFAULT, MIN, MAX, HELP) #NAME,

static const struct tly_option_row rows[] = {TLY_OPTION_TABLE(ROW_)};
static const char *const names[] = {TLY_OPTION_TABLE(NAME_)};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const tag_names[] = {"none", "module", "thread", "caller"}; /* bit i - 1 of the mask */

size_t tly_option_count(void) { return ROWS; }
const struct tly_option_row *tly_option_row(size_t index) { return index < ROWS ? &rows[index] : NULL; }

static bool same(const char *word, size_t word_bytes, const char *name) {
    if (strlen(name) != word_bytes) return false;
    for (size_t i = 0; i < word_bytes; i++)
        if (word[i] != name[i] && !(word[i] == '-' && name[i] == '_')) return false;
    return true;
}

const struct tly_option_row *tly_option_find(const char *key, size_t key_bytes) {
    for (size_t i = 0; i < ROWS; i++)
        if (same(key, key_bytes, rows[i].name)) return &rows[i];
    return NULL;
}

void tly_options_default(struct tly_options *options) {
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < ROWS; i++) {
        char *field = (char *)options + rows[i].offset;
        switch (rows[i].type) {
        case TLY_OPTION_BOOL: *(bool *)field = rows[i].default_number != 0; break;
        case TLY_OPTION_INT: *(int64_t *)field = rows[i].default_number; break;
        case TLY_OPTION_TAGS: *(uint32_t *)field = (uint32_t)rows[i].default_number; break;
        case TLY_OPTION_TEXT: memcpy(field, rows[i].default_text, strlen(rows[i].default_text) + 1); break;
        }
    }
}

/* ---- messages ----------------------------------------------------------------------------------------------------- */

/* Adds what the user typed, in quotes: a little of it, and nothing that a terminal would obey. */
static void add_quoted(struct tly_text_builder *out, const char *word, size_t bytes) {
    tly_text_add(out, "\"");
    for (size_t i = 0; i < bytes && i < 60; i++) {
        char c = word[i];
        if ((unsigned char)c < 0x20 || c == 0x7f) c = '?';
        tly_text_add_bytes(out, &c, 1);
    }
    tly_text_add(out, bytes > 60 ? "...\"" : "\"");
}

static void add_signed(struct tly_text_builder *out, int64_t number) {
    if (number < 0) tly_text_add(out, "-");
    tly_text_add_number(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void add_nearest(struct tly_text_builder *out, const char *word, size_t bytes, const char *const *from,
                        size_t count) {
    int likely = 0;
    const char *nearest = tly_suggest(word, bytes, from, count, &likely);
    tly_text_add(out, likely ? "; did you mean " : "; the nearest is ");
    tly_text_add(out, nearest);
    if (likely) tly_text_add(out, "?");
}

static int unknown_option(const char *key, size_t key_bytes, struct tly_text_builder *out) {
    tly_text_add(out, "there is no option ");
    add_quoted(out, key, key_bytes);
    add_nearest(out, key, key_bytes, names, ROWS);
    return -EINVAL;
}

/* "name: "value" is not " */
static void begin_bad_value(const struct tly_option_row *row, const char *value, size_t bytes,
                            struct tly_text_builder *out) {
    tly_text_add(out, row->name);
    tly_text_add(out, ": ");
    add_quoted(out, value, bytes);
    tly_text_add(out, " is ");
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static int set_bool(const struct tly_option_row *row, bool *field, const char *value, size_t bytes,
                    struct tly_text_builder *out) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (same(value, bytes, words[i])) {
            *field = i % 2 == 1;
            return 0;
        }
    begin_bad_value(row, value, bytes, out);
    tly_text_add(out, "neither true nor false");
    return -EINVAL;
}

static int set_int(const struct tly_option_row *row, int64_t *field, const char *value, size_t bytes,
                   struct tly_text_builder *out) {
    bool negative = bytes > 0 && value[0] == '-', good = bytes > (size_t)negative;
    int64_t number = 0;
    for (size_t i = negative; good && i < bytes; i++) {
        good = value[i] >= '0' && value[i] <= '9';
        if (good && number < INT64_MAX / 10 - 1)
            number = number * 10 + (value[i] - '0');
        else if (good)
            number = INT64_MAX / 10; /* beyond every range, and stays there */
    }
    if (negative) number = -number;
    if (good && number >= row->min && number <= row->max) {
        *field = number;
        return 0;
    }
    begin_bad_value(row, value, bytes, out);
    tly_text_add(out, good ? "outside the range " : "not a whole number; the range is ");
    add_signed(out, row->min);
    tly_text_add(out, " to ");
    add_signed(out, row->max);
    return -EINVAL;
}

static int set_tags(const struct tly_option_row *row, uint32_t *field, const char *value, size_t bytes,
                    struct tly_text_builder *out) {
    enum { WORDS = sizeof tag_names / sizeof *tag_names };
    uint32_t mask = 0;
    for (size_t at = 0, end; at <= bytes; at = end + 1) {
        for (end = at; end < bytes && value[end] != '+' && value[end] != '|' && value[end] != ',';)
            end++;
        size_t word = 0;
        while (word < WORDS && !same(value + at, end - at, tag_names[word]))
            word++;
        if (word == WORDS) {
            begin_bad_value(row, value + at, end - at, out);
            tly_text_add(out, "not one of none, module, thread, caller (join several with +)");
            add_nearest(out, value + at, end - at, tag_names, WORDS);
            return -EINVAL;
        }
        if (word > 0) mask |= 1u << (word - 1);
    }
    *field = mask;
    return 0;
}

static int set_text(const struct tly_option_row *row, char *field, const char *value, size_t bytes,
                    struct tly_text_builder *out) {
    if (bytes <= (size_t)row->min && !memchr(value, 0, bytes)) {
        memmove(field, value, bytes);
        field[bytes] = 0;
        return 0;
    }
    begin_bad_value(row, value, bytes, out);
    tly_text_add(out, "longer than ");
    add_signed(out, row->min);
    tly_text_add(out, " bytes");
    return -EINVAL;
}

static int set_row(struct tly_options *options, const struct tly_option_row *row, const char *value, size_t bytes,
                   struct tly_text_builder *out) {
    void *field = (char *)options + row->offset;
    switch (row->type) {
    case TLY_OPTION_BOOL: return set_bool(row, field, value, bytes, out);
    case TLY_OPTION_INT: return set_int(row, field, value, bytes, out);
    case TLY_OPTION_TAGS: return set_tags(row, field, value, bytes, out);
    case TLY_OPTION_TEXT: return set_text(row, field, value, bytes, out);
    }
    return -EINVAL;
}

int tly_option_set(struct tly_options *options, const char *key, size_t key_bytes, const char *value,
                   size_t value_bytes, char *error, size_t error_bytes) {
    char own[8];
    struct tly_text_builder out;
    tly_text_begin(&out, error && error_bytes ? error : own, error && error_bytes ? error_bytes : sizeof own);
    const struct tly_option_row *row = tly_option_find(key, key_bytes);
    return row ? set_row(options, row, value, value_bytes, &out) : unknown_option(key, key_bytes, &out);
}

/* ---- lists -------------------------------------------------------------------------------------------------------- */

/* The end of the entry at `at`: the next ',' that no '\' guards, or the end of the text. */
static const char *entry_end(const char *at) {
    while (*at && *at != ',')
        at += at[0] == '\\' && (at[1] == ',' || at[1] == '\\') ? 2 : 1;
    return at;
}

static size_t skip_blanks(const char *at, const char *end) {
    size_t blanks = 0;
    while (at + blanks < end && (at[blanks] == ' ' || at[blanks] == '\t' || at[blanks] == '\n'))
        blanks++;
    return blanks;
}

void tly_options_parse(struct tly_options *options, const char *text, void (*problem)(const char *line)) {
    char value[8192], error[TLY_OPTION_ERROR_BYTES];
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = entry_end(at);
        at += skip_blanks(at, end);
        if (at == end) continue;
        const char *colon = memchr(at, ':', (size_t)(end - at));
        int result = -EINVAL;
        if (!colon) {
            struct tly_text_builder out;
            tly_text_begin(&out, error, sizeof error);
            add_quoted(&out, at, (size_t)(end - at));
            tly_text_add(&out, " has no value: options are written name:value, with ',' between them");
            if (!tly_option_find(at, (size_t)(end - at))) add_nearest(&out, at, (size_t)(end - at), names, ROWS);
        } else {
            size_t length = 0;
            for (const char *from = colon + 1; from < end && length < sizeof value; from++) {
                if (from[0] == '\\' && from + 1 < end && (from[1] == ',' || from[1] == '\\')) from++;
                value[length++] = *from;
            }
            result = tly_option_set(options, at, (size_t)(colon - at), value, length, error, sizeof error);
        }
        if (result != 0 && problem) problem(error);
    }
}

void tly_options_aliases(struct tly_options *options, char *const *environment, void (*problem)(const char *line)) {
    static const char prefix[] = "PXR_TF_MALLOC_TAG_";
    static const struct {
        const char *variable, *option;
    } aliases[] = {{"EVENT_BUFFERS_MB=", "event_buffers_mb"},
                   {"CONSOLIDATE_PERIOD_MS=", "consolidate_period_ms"},
                   {"PATH_NODE_TABLE_MB=", "path_node_table_mb"}};
    for (; *environment; environment++) {
        if (strncmp(*environment, prefix, sizeof prefix - 1) != 0) continue;
        const char *name = *environment + sizeof prefix - 1;
        for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
            char error[TLY_OPTION_ERROR_BYTES];
            size_t length = strlen(aliases[i].variable);
            if (strncmp(name, aliases[i].variable, length) != 0) continue;
            int result = tly_option_set(options, aliases[i].option, strlen(aliases[i].option), name + length,
                                        strlen(name + length), error, sizeof error);
            if (result != 0 && problem) problem(error);
        }
    }
}

/* Adds to a text that may be too long for its buffer; `*length` counts on. */
static void put(char *out, size_t bytes, size_t *length, const char *from, size_t count) {
    for (size_t i = 0; i < count; i++, ++*length)
        if (*length + 1 < bytes) out[*length] = from[i];
}

static void put_value(const struct tly_option_row *row, const char *field, char *out, size_t bytes, size_t *length) {
    char number[160];
    struct tly_text_builder text;
    tly_text_begin(&text, number, sizeof number);
    uint32_t mask;
    switch (row->type) {
    case TLY_OPTION_BOOL: tly_text_add(&text, *(const bool *)field ? "true" : "false"); break;
    case TLY_OPTION_INT: add_signed(&text, *(const int64_t *)field); break;
    case TLY_OPTION_TAGS:
        mask = *(const uint32_t *)field;
        if (mask == 0) tly_text_add(&text, tag_names[0]);
        for (uint32_t bit = 0; bit < 3; bit++) {
            if (!(mask >> bit & 1)) continue;
            tly_text_add(&text, mask & ((1u << bit) - 1) ? "+" : "");
            tly_text_add(&text, tag_names[bit + 1]);
        }
        break;
    case TLY_OPTION_TEXT:
        for (const char *at = field; *at; at++) {
            if (*at == ',' || *at == '\\') put(out, bytes, length, "\\", 1);
            put(out, bytes, length, at, 1);
        }
        break;
    }
    put(out, bytes, length, number, text.length);
}

size_t tly_options_write(const struct tly_options *options, char *out, size_t bytes) {
    static struct tly_options defaults; /* written with the same values by everyone */
    tly_options_default(&defaults);
    size_t length = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const char *field = (const char *)options + rows[i].offset, *usual = (const char *)&defaults + rows[i].offset;
        bool differs = false;
        switch (rows[i].type) {
        case TLY_OPTION_BOOL: differs = *(const bool *)field != *(const bool *)usual; break;
        case TLY_OPTION_INT: differs = *(const int64_t *)field != *(const int64_t *)usual; break;
        case TLY_OPTION_TAGS: differs = *(const uint32_t *)field != *(const uint32_t *)usual; break;
        case TLY_OPTION_TEXT: differs = strcmp(field, usual) != 0; break;
        }
        if (!differs) continue;
        if (length > 0) put(out, bytes, &length, ",", 1);
        put(out, bytes, &length, rows[i].name, strlen(rows[i].name));
        put(out, bytes, &length, ":", 1);
        put_value(&rows[i], field, out, bytes, &length);
    }
    if (bytes > 0) out[length < bytes ? length : bytes - 1] = 0;
    return length;
}
