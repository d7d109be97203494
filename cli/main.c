/* main.c - `tally`: finds the command and hands over. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "command.h"
#include "sweep.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
    int sweeps; /* first collects what ended processes left behind (`run` does so at its end) */
} commands[] = {
    {"run", tly_cmd_run, "run a program and record who owns its memory", 0},
    {"report", tly_cmd_report, "show a recording: the tree of owners, exact", 1},
    {"doctor", tly_cmd_doctor, "say whether a program or a process can be accounted, and why not", 0},
    {"start", tly_cmd_start, "begin or resume the accounting in a running process", 1},
    {"stop", tly_cmd_stop, "end the accounting in a running process", 1},
    {"clear", tly_cmd_clear, "forget everything so far in a running process", 1},
    {"pause", tly_cmd_pause, "let the allocations of all threads of a running process pass unreported", 1},
    {"resume", tly_cmd_resume, "end that pause", 1},
    {"dump", tly_cmd_dump, "record a running process", 1},
    {"help", tly_cmd_help, "explain a command", 0},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static void print_usage(FILE *out) {
    fputs("Usage: tally COMMAND [options] ...\n"
          "\n"
          "Tells who owns a program's memory, exactly. To begin with:\n"
          "\n"
          "    tally run -- PROGRAM [ARGUMENTS]      writes PROGRAM.PID.tally\n"
          "    tally report PROGRAM.PID.tally\n"
          "\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].help);
    fputs("\n"
          "'tally COMMAND --help' explains each. 'tally --version' prints the version.\n",
          out);
}

static int unknown(const char *name) {
    const char *names[COMMANDS];
    int likely = 0;
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = tly_suggest(name, strlen(name), names, COMMANDS, &likely);
    return tly_misused(NULL, TLY_EXIT_USAGE, "there is no command '%s'; %s %s%s", name,
                       likely ? "did you mean" : "the nearest is", nearest, likely ? "?" : "");
}

int tly_cmd_help(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    const struct command *command = find(argv[1]);
    if (!command) return unknown(argv[1]);
    if (command->run == tly_cmd_help) {
        puts("Usage: tally help [COMMAND]\n\nPrints the text of 'tally COMMAND --help'.");
        return 0;
    }
    char help[] = "--help", *arguments[] = {argv[1], help, NULL};
    return command->run(2, arguments);
}

/* Keeps 0, 1 and 2 from being taken by files of ours. A program that is started sees them closed, as they were. */
static void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR | O_CLOEXEC);
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    if (argc < 2) {
        print_usage(stderr);
        return TLY_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("tally " TALLY_VERSION_TEXT);
        return 0;
    }
    const struct command *command = find(argv[1]);
    if (!command) return unknown(argv[1]);
    if (command->sweeps) tly_sweep(0);
    return command->run(argc - 1, argv + 1);
}
