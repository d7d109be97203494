/* option_flags.c - see option_flags.h. */
#define _GNU_SOURCE
#include "option_flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "offline/failure.h"

int tly_option_flag(struct tly_options *options, int argc, char **argv, int *at, char *error, size_t error_bytes) {
    const char *flag = argv[*at];
    if (strncmp(flag, "--", 2) != 0 || !flag[2]) return 0;
    flag += 2;
    size_t length = strcspn(flag, "=");
    const char *value = flag[length] == '=' ? flag + length + 1 : NULL;
    const struct tly_option_row *row = tly_option_find(flag, length);
    if (!row && strncmp(flag, "no-", 3) == 0) {
        row = tly_option_find(flag + 3, length - 3);
        if (!row || row->type != TLY_OPTION_BOOL) return 0;
        if (value) return tly_failure(-EINVAL, error, error_bytes, "--%.*s takes no value", (int)length, flag);
        value = "false";
    } else if (row && row->type == TLY_OPTION_BOOL && !value) {
        value = "true";
    } else if (row && !value) {
        if (*at + 1 >= argc) return tly_failure(-EINVAL, error, error_bytes, "--%s needs a value", flag);
        value = argv[++*at];
    }
    if (!row) return 0;
    ++*at;
    int result = tly_option_set(options, row->name, strlen(row->name), value, strlen(value), error, error_bytes);
    return result == 0 ? 1 : result;
}

/* "--name" with '-' for '_', in fresh memory. */
static char *flag_of(const char *name, const char *prefix) {
    char *flag = NULL;
    if (asprintf(&flag, "%s%s", prefix, name) < 0) return NULL;
    for (char *at = flag; *at; at++)
        if (*at == '_') *at = '-';
    return flag;
}

const char *tly_option_flag_nearest(const char *flag, const char *const *others, size_t count, int *likely) {
    static char nearest[64];
    size_t rows = tly_option_count(), names = 0;
    const char **all = calloc(2 * rows + count, sizeof *all);
    char **own = calloc(2 * rows, sizeof *own);
    nearest[0] = 0;
    for (size_t i = 0; all && own && i < rows; i++) {
        const struct tly_option_row *row = tly_option_row(i);
        if ((own[names] = flag_of(row->name, "--"))) names++;
        if (row->type == TLY_OPTION_BOOL && (own[names] = flag_of(row->name, "--no-"))) names++;
    }
    if (all && own) {
        memcpy(all, own, names * sizeof *all);
        memcpy(all + names, others, count * sizeof *all);
        const char *found = tly_suggest(flag, strcspn(flag, "="), all, names + count, likely);
        snprintf(nearest, sizeof nearest, "%s", found ? found : "");
        for (size_t i = 0; i < names; i++)
            free(own[i]);
    }
    free(own);
    free(all);
    return nearest;
}

void tly_option_flags_help(FILE *out) {
    for (size_t i = 0; i < tly_option_count(); i++) {
        const struct tly_option_row *row = tly_option_row(i);
        char left[64], *name = flag_of(row->name, row->type == TLY_OPTION_BOOL ? "--[no-]" : "--");
        static const char *const values[] = {"", "=N", "=TEXT", "=NAMES"};
        if (!name) continue;
        snprintf(left, sizeof left, "%s%s", name, values[row->type]);
        fprintf(out, "  %-28s  %s", left, row->help);
        switch (row->type) {
        case TLY_OPTION_BOOL: fprintf(out, " (%s)", row->default_number ? "yes" : "no"); break;
        case TLY_OPTION_INT: fprintf(out, " (%lld)", (long long)row->default_number); break;
        case TLY_OPTION_TEXT: fprintf(out, " (%s)", row->default_text); break;
        case TLY_OPTION_TAGS: break;
        }
        fputc('\n', out);
        free(name);
    }
}
