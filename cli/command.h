/*
 * command.h - what every command of `tally` is: one function in a file of the same name, and how they all complain.
 */
#ifndef TLY_COMMAND_H
#define TLY_COMMAND_H

/* What a wrapper says when it could not start the program; as env(1), nohup(1) and timeout(1) do. */
enum {
    TLY_EXIT_USAGE = 2,     /* of the other commands */
    TLY_EXIT_REFUSED = 125, /* `tally run` itself failed, or the program is one it cannot account */
    TLY_EXIT_NOT_EXECUTABLE = 126,
    TLY_EXIT_NOT_FOUND = 127,
};

/* argv[0] is the command's name. They return the exit status. */
int tly_cmd_run(int argc, char **argv);
int tly_cmd_report(int argc, char **argv);
int tly_cmd_doctor(int argc, char **argv);
int tly_cmd_start(int argc, char **argv);
int tly_cmd_stop(int argc, char **argv);
int tly_cmd_clear(int argc, char **argv);
int tly_cmd_pause(int argc, char **argv);
int tly_cmd_resume(int argc, char **argv);
int tly_cmd_dump(int argc, char **argv);
int tly_cmd_help(int argc, char **argv);

/* "tally COMMAND: ..." and a newline on stderr; COMMAND may be NULL. */
void tly_complain(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with "Try 'tally COMMAND --help'." after it; returns `status`. */
int tly_misused(const char *command, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
