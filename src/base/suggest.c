/* suggest.c - see suggest.h. */
#include "base/suggest.h"

#include <string.h>

enum { LONGEST = 63 };

static char plain(char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned tly_suggest_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    unsigned row[3][LONGEST + 1]; /* of the last three lengths of `a` */
    if (a_bytes > LONGEST) a_bytes = LONGEST;
    if (b_bytes > LONGEST) b_bytes = LONGEST;
    for (size_t j = 0; j <= b_bytes; j++)
        row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            char x = plain(a[i - 1]), y = plain(b[j - 1]);
            now[j] = least(before[j - 1] + (x != y), least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == plain(b[j - 2]) && y == plain(a[i - 2]))
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return row[a_bytes % 3][b_bytes];
}

const char *tly_suggest(const char *word, size_t word_bytes, const char *const *names, size_t count, int *likely) {
    const char *nearest = NULL;
    unsigned best = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned distance = tly_suggest_distance(word, word_bytes, names[i], strlen(names[i]));
        if (nearest && distance >= best) continue;
        nearest = names[i];
        best = distance;
    }
    if (likely) *likely = nearest && best <= 1 + word_bytes / 4 && best < strlen(nearest);
    return nearest;
}
