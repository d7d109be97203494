/*
 * number.h - numbers and sizes as people read them. No malloc, no stdio, no locale.
 *
 * All write at most `bytes` bytes with the terminator, cut what does not fit, and return `out`. TLY_NUMBER_BYTES is
 * room enough for each.
 */
#ifndef TLY_NUMBER_H
#define TLY_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { TLY_NUMBER_BYTES = 32 };

/* "1,234,567": exact. */
char *tly_number_exact(char *out, size_t bytes, uint64_t number);

/* "1.21 MiB", "843 B": three or four digits, rounded to nearest; below 1024 exact. Units are powers of 1024. */
char *tly_number_size(char *out, size_t bytes, uint64_t size_bytes);

/* "1.23 M", "843": the same for counts, in powers of 1000. */
char *tly_number_count(char *out, size_t bytes, uint64_t count);

/* "12.3 %" of part in whole, "<0.1 %" when it is tiny but not nothing; "-" when whole is 0. */
char *tly_number_percent(char *out, size_t bytes, uint64_t part, uint64_t whole);

/* "2 h 05 min", "3.21 s", "12.3 ms", "45 us". */
char *tly_number_duration(char *out, size_t bytes, uint64_t ns);

/* "12", "12k", "1.5M", "2GiB", "64 KB" (all powers of 1024) to bytes: 0 or -EINVAL (not a size, or over 2^63). */
int tly_number_parse_size(const char *text, uint64_t *out);

#endif
