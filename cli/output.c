/* output.c - see output.h. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    char *out;
    size_t bytes, length;
};

static void add(struct builder *builder, const char *text, size_t count, char instead_of_slash) {
    for (size_t i = 0; i < count; i++, builder->length++)
        if (builder->length + 1 < builder->bytes)
            builder->out[builder->length] = text[i] == '/' && instead_of_slash ? instead_of_slash : text[i];
}

static int finish(struct builder *builder) {
    if (builder->length >= builder->bytes) return -ENAMETOOLONG;
    builder->out[builder->length] = 0;
    return 0;
}

int tly_output_name(char *out, size_t bytes, const char *directory, const char *pattern,
                    const struct tly_output_facts *facts) {
    struct builder builder = {out, bytes, 0};
    char number[16];
    if (pattern[0] != '/') {
        add(&builder, directory, strlen(directory), 0);
        add(&builder, "/", 1, 0);
    }
    for (const char *at = pattern; *at; at++) {
        if (at[0] != '%' || !at[1]) {
            add(&builder, at, 1, 0);
            continue;
        }
        switch (*++at) {
        case 'p': add(&builder, number, (size_t)snprintf(number, sizeof number, "%u", facts->pid), 0); break;
        case 'n': add(&builder, facts->program, strlen(facts->program), '_'); break;
        case 'h': add(&builder, facts->host, strlen(facts->host), '_'); break;
        case '%': add(&builder, "%", 1, 0); break;
        default: add(&builder, at - 1, 2, 0); break; /* not one of ours: as it is */
        }
    }
    return finish(&builder);
}

int tly_output_absolute(char *out, size_t bytes, const char *directory, const char *pattern) {
    struct builder builder = {out, bytes, 0};
    if (pattern[0] && pattern[0] != '/') {
        for (const char *at = directory; *at; at++)
            add(&builder, "%%", *at == '%' ? 2 : 0, 0), add(&builder, at, *at != '%', 0);
        add(&builder, "/", 1, 0);
    }
    add(&builder, pattern, strlen(pattern), 0);
    return finish(&builder);
}

static bool given_out(const struct tly_output_names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0) return true;
    return false;
}

int tly_output_claim(struct tly_output_names *names, char *name, size_t bytes, uint32_t pid) {
    char *plain = strdup(name);
    char **more = realloc(names->names, (names->count + 1) * sizeof *more);
    if (more) names->names = more;
    if (!plain || !more) {
        free(plain);
        return -ENOMEM;
    }
    size_t stem = strlen(plain);
    const char *ending = stem > 6 && strcmp(plain + stem - 6, ".tally") == 0 ? ".tally" : "";
    stem -= strlen(ending);
    char number[16];
    snprintf(number, sizeof number, ".%u", pid);
    size_t digits = strlen(number);
    if (stem >= digits && memcmp(plain + stem - digits, number, digits) == 0) number[0] = 0; /* it is there already */
    int result = 0;
    for (unsigned turn = number[0] ? 1 : 2; result == 0 && given_out(names, name); turn++) {
        int length = turn == 1 ? snprintf(name, bytes, "%.*s%s%s", (int)stem, plain, number, ending)
                               : snprintf(name, bytes, "%.*s%s.%u%s", (int)stem, plain, number, turn, ending);
        if (length < 0 || (size_t)length >= bytes) result = -ENAMETOOLONG;
    }
    free(plain);
    if (result != 0) return result;
    names->names[names->count] = strdup(name);
    if (!names->names[names->count]) return -ENOMEM;
    names->count++;
    return 0;
}

void tly_output_forget(struct tly_output_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct tly_output_names){NULL, 0};
}
