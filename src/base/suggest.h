/*
 * suggest.h - the valid name that a mistyped one was most likely meant to be. No malloc, no stdio.
 */
#ifndef TLY_SUGGEST_H
#define TLY_SUGGEST_H

#include <stddef.h>

/* How many single characters have to be inserted, left out, replaced or swapped with their neighbour to make `b` of
 * `a`. '-' and '_' count as the same, and so do upper and lower case. Words longer than 63 bytes are compared by their
 * first 63. */
unsigned tly_suggest_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

/* The nearest of `count` names; the first one of several equally near. `*likely` (may be NULL) is set to 1 if it is so
 * near that the word was probably a slip of it. NULL only when there are no names. */
const char *tly_suggest(const char *word, size_t word_bytes, const char *const *names, size_t count, int *likely);

#endif
