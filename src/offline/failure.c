/* failure.c - see failure.h. */
#include "offline/failure.h"

#include <stdarg.h>
#include <stdio.h>

int tly_failure(int result, char *error, size_t error_bytes, const char *format, ...) {
    if (!error || error_bytes == 0) return result;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, error_bytes, format, arguments);
    va_end(arguments);
    return result;
}
