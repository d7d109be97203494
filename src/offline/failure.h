/*
 * failure.h - puts a sentence into a caller's error buffer and returns the error number, in one statement.
 */
#ifndef TLY_FAILURE_H
#define TLY_FAILURE_H

#include <stddef.h>

/* Formats into `error` (may be NULL; cut at error_bytes) and returns `result`. */
int tly_failure(int result, char *error, size_t error_bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
