/* say.c - see say.h. */
#define _GNU_SOURCE
#include "base/say.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hold.h"

static int quiet_notes;

void tly_text_begin(struct tly_text_builder *text, char *buffer, size_t bytes) {
    text->at = buffer;
    text->room = bytes;
    text->length = 0;
    buffer[0] = 0;
}

void tly_text_add_bytes(struct tly_text_builder *text, const char *bytes, size_t count) {
    size_t free_bytes = text->room - text->length - 1;
    if (count > free_bytes) count = free_bytes;
    memcpy(text->at + text->length, bytes, count);
    text->length += count;
    text->at[text->length] = 0;
}

void tly_text_add(struct tly_text_builder *text, const char *string) {
    tly_text_add_bytes(text, string, strlen(string));
}

void tly_text_add_number(struct tly_text_builder *text, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    tly_text_add_bytes(text, digits + sizeof digits - count, count);
}

void tly_text_add_hex(struct tly_text_builder *text, uint64_t number, int digits) {
    for (int i = digits - 1; i >= 0; i--)
        tly_text_add_bytes(text, &"0123456789abcdef"[number >> (4 * i) & 15], 1);
}

void tly_say_set_quiet(int quiet) { quiet_notes = quiet; }

/* What descriptor 2 was at the start. A program may close it and get its number back for a file of its own. */
static struct {
    int known;
    dev_t device;
    ino_t inode;
} standard_error;

void tly_say_init(void) {
    struct stat status;
    int saved = errno;
    if (fstat(STDERR_FILENO, &status) == 0) {
        standard_error.known = 1;
        standard_error.device = status.st_dev;
        standard_error.inode = status.st_ino;
    }
    errno = saved;
}

static int is_still_ours(void) {
    struct stat status;
    return standard_error.known && fstat(STDERR_FILENO, &status) == 0 && status.st_dev == standard_error.device &&
           status.st_ino == standard_error.inode;
}

static void say_list(const char *part, va_list parts) {
    int saved = errno;
    char line[5000];
    struct tly_text_builder text;
    tly_text_begin(&text, line, sizeof line - 1);
    tly_text_add(&text, "tally: ");
    for (; part; part = va_arg(parts, const char *))
        tly_text_add(&text, part);
    line[text.length] = '\n';
    struct tly_hold hold;
    tly_hold_begin(&hold);
    ssize_t written = is_still_ours() ? write(STDERR_FILENO, line, text.length + 1) : 0;
    (void)written; /* nobody to tell */
    tly_hold_end(&hold);
    errno = saved;
}

void tly_say(const char *part, ...) {
    va_list parts;
    va_start(parts, part);
    say_list(part, parts);
    va_end(parts);
}

void tly_say_note(const char *part, ...) {
    if (quiet_notes) return;
    va_list parts;
    va_start(parts, part);
    say_list(part, parts);
    va_end(parts);
}

const char *tly_errno_name(int number) {
    const char *name = strerrorname_np(number);
    return name ? name : "unknown error";
}
