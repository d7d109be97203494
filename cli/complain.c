/* complain.c - how the commands speak on stderr: see command.h. */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One write per line, so that lines of several processes do not mix. */
static void complain(const char *command, const char *format, va_list arguments) {
    char line[8192];
    int length = command ? snprintf(line, sizeof line, "tally %s: ", command) : snprintf(line, sizeof line, "tally: ");
    vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    size_t bytes = strlen(line);
    for (size_t i = 0; i < bytes; i++) /* names come from anywhere; a terminal must not obey them */
        if ((unsigned char)line[i] < ' ' && line[i] != '\n' && line[i] != '\t') line[i] = '?';
    line[bytes++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written; /* nobody to tell */
}

void tly_complain(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
}

int tly_misused(const char *command, int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    if (command)
        fprintf(stderr, "Try 'tally %s --help'.\n", command);
    else
        fputs("Try 'tally --help'.\n", stderr);
    return status;
}
