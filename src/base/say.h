/*
 * say.h - one line on stderr, and text put together without stdio.
 *
 * For use inside the target: no malloc, no locks, async-signal-safe, errno kept. A line is written with one write(2).
 */
#ifndef TLY_SAY_H
#define TLY_SAY_H

#include <stddef.h>
#include <stdint.h>

/* A text being put together in a buffer of the caller's; what does not fit is cut. Always terminated. */
struct tly_text_builder {
    char *at;
    size_t room; /* including the terminator */
    size_t length;
};

void tly_text_begin(struct tly_text_builder *text, char *buffer, size_t bytes);
void tly_text_add(struct tly_text_builder *text, const char *string);
void tly_text_add_bytes(struct tly_text_builder *text, const char *bytes, size_t count);
void tly_text_add_number(struct tly_text_builder *text, uint64_t number);
void tly_text_add_hex(struct tly_text_builder *text, uint64_t number, int digits);

/* At the start of the process: lines go out only as long as descriptor 2 is the file that it is now. */
void tly_say_init(void);
/* "tally: " + the parts (a NULL ends the list) + newline, to stderr. `note` lines are left out when quiet. */
void tly_say(const char *part, ...) __attribute__((sentinel));
void tly_say_note(const char *part, ...) __attribute__((sentinel));
void tly_say_set_quiet(int quiet);

/* The system's name for an errno value ("ENOSPC"): a constant text. */
const char *tly_errno_name(int number);

#endif
