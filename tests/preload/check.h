/*
 * check.h - assertions of the test programs. No allocation of its own, so that a program can keep its books exactly.
 * A failed check prints where and what, and ends the process with status 1 at once.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* printf to a descriptor without any allocation (libc's dprintf makes itself a buffer). At most 1,000 bytes. */
static inline __attribute__((unused, format(printf, 2, 3))) void say(int fd, const char *format, ...) {
    char text[1000];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (bytes > (int)sizeof text - 1) bytes = (int)sizeof text - 1;
    if (bytes > 0 && write(fd, text, (size_t)bytes) < 0) _exit(1);
}

#define CHECK(CONDITION)                                                                                               \
    do {                                                                                                               \
        if (!(CONDITION)) {                                                                                            \
            say(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION);                                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Both sides as unsigned 64-bit numbers; prints them. */
#define CHECK_EQUAL(GOT, WANTED)                                                                                       \
    do {                                                                                                               \
        uint64_t got_ = (uint64_t)(GOT), wanted_ = (uint64_t)(WANTED);                                                 \
        if (got_ != wanted_) {                                                                                         \
            say(2, "%s:%d: %s is %" PRIu64 ", wanted %" PRIu64 "\n", __FILE__, __LINE__, #GOT, got_, wanted_);         \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Keeps the compiler from taking out an allocation whose block is not used. */
static inline void *keep(void *block) {
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

#endif
