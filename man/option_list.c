/*
 * option_list.c - fills the option table (src/base/option_table.h) into a manual page, at build time.
 *
 *     option_list TEMPLATE VERSION > PAGE
 *
 * A line "@OPTIONS@" becomes the keys of TALLY_CONF, "@FLAGS@" the flags of `tally run`; @VERSION@ anywhere the version.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/option_table.h"

enum type { BOOL, INT, TEXT, TAGS };

struct row {
    const char *name, *text_default;
    enum type type;
    long long number_default, min, max;
    const char *help;
};

/* One macro per type, because the default of a text is a string and of the others a number. */
#define ROW_BOOL(NAME, DEFAULT, MIN, MAX, HELP) {#NAME, NULL, BOOL, DEFAULT, MIN, MAX, HELP},
#define ROW_INT(NAME, DEFAULT, MIN, MAX, HELP) {#NAME, NULL, INT, DEFAULT, MIN, MAX, HELP},
#define ROW_TEXT(NAME, DEFAULT, MIN, MAX, HELP) {#NAME, DEFAULT, TEXT, 0, MIN, MAX, HELP},
#define ROW_TAGS(NAME, DEFAULT, MIN, MAX, HELP) {#NAME, NULL, TAGS, DEFAULT, MIN, MAX, HELP},
#define ROW(NAME, TYPE, DEFAULT, MIN, MAX, HELP) ROW_##TYPE(NAME, DEFAULT, MIN, MAX, HELP)
static const struct row rows[] = {TLY_OPTION_TABLE(ROW)};
enum { ROWS = sizeof rows / sizeof *rows };

/* Text as roff wants it: hyphens that stay hyphens, no escapes, no control lines. */
static void put(const char *text) {
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

static void put_flag(const char *prefix, const char *name) {
    put(prefix);
    for (; *name; name++)
        fputs(*name == '_' ? "\\-" : (char[]){*name, 0}, stdout);
}

static void put_help(const struct row *row) {
    printf("\n%c", row->help[0] >= 'a' && row->help[0] <= 'z' ? row->help[0] - 'a' + 'A' : row->help[0]);
    put(row->help + 1);
    puts(".");
}

static void put_tags(long long mask) {
    static const char *const names[] = {"module", "thread", "caller"};
    const char *between = "";
    for (int i = 0; i < 3; i++) {
        if (!(mask >> i & 1)) continue;
        printf("%s%s", between, names[i]);
        between = "+";
    }
    if (mask == 0) fputs("none", stdout);
}

static void put_options(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        printf(".TP\n.BR %s :", row->name);
        switch (row->type) {
        case BOOL: fputs("true|false", stdout); break;
        case INT: fputs("\\fIN\\fR", stdout); break;
        case TEXT: fputs("\\fITEXT\\fR", stdout); break;
        case TAGS: fputs("\\fITAGS\\fR", stdout); break;
        }
        put_help(row);
        fputs("Default: ", stdout);
        switch (row->type) {
        case BOOL: fputs(row->number_default ? "true" : "false", stdout); break;
        case INT: printf("%lld; from %lld to %lld", row->number_default, row->min, row->max); break;
        case TEXT: put(row->text_default); break;
        case TAGS: put_tags(row->number_default); break;
        }
        puts(".");
    }
}

static void put_flags(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        fputs(".TP\n.B ", stdout);
        put_flag("--", row->name);
        switch (row->type) {
        case BOOL:
            fputs("\\fR, \\fB", stdout);
            put_flag("--no-", row->name);
            break;
        case INT: fputs("=\\fIN", stdout); break;
        case TEXT: fputs("=\\fITEXT", stdout); break;
        case TAGS: fputs("=\\fITAGS", stdout); break;
        }
        fputs("\\fR", stdout);
        put_help(row);
    }
}

int main(int argc, char **argv) {
    char line[4096];
    FILE *template = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!template) {
        fputs("usage: option_list TEMPLATE VERSION > PAGE\n", stderr);
        return 1;
    }
    while (fgets(line, sizeof line, template)) {
        char *version;
        if (strcmp(line, "@OPTIONS@\n") == 0) {
            put_options();
        } else if (strcmp(line, "@FLAGS@\n") == 0) {
            put_flags();
        } else if ((version = strstr(line, "@VERSION@")) != NULL) {
            printf("%.*s%s%s", (int)(version - line), line, argv[2], version + strlen("@VERSION@"));
        } else {
            fputs(line, stdout);
        }
    }
    fclose(template);
    return fflush(stdout) != 0;
}
