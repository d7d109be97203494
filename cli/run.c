/* run.c - `tally run`: checks the program, runs it with the library, and collects the accounts. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "collector.h"
#include "command.h"
#include "launch.h"
#include "library.h"
#include "offline/elf_check.h"
#include "option_flags.h"
#include "place.h"
#include "program.h"
#include "region/region.h"
#include "summary.h"
#include "sweep.h"

enum { LOOK_AT_LEAST_MS = 200, LOOK_MS_PER_PROCESS = 2 };

static void print_help(void) {
    puts("Usage: tally run [options] [--] PROGRAM [ARGUMENTS]\n"
         "\n"
         "Runs PROGRAM and records who owns its memory: one .tally file for each process that allocated. Input, "
         "output,\n"
         "signals and the exit status are the program's own.\n"
         "\n"
         "  -o, --output=PATTERN          where recordings go, relative to the directory of the start\n"
         "  -q, --quiet                   no summary at the end\n"
         "  -h, --help                    this text\n"
         "\n"
         "Options, also read from TALLY_CONF=\"name:value,name:value\" (flags win; the default stands in brackets, "
         "except\n"
         "that run sets --auto-tags=module+caller):\n");
    tly_option_flags_help(stdout);
    puts("\n"
         "Exit status: PROGRAM's own (or its signal); 125 if PROGRAM cannot be accounted, and is therefore not run, or "
         "if\n"
         "tally itself failed; 126 if PROGRAM cannot be executed; 127 if it is not found.");
}

static void conf_problem(const char *line) { tly_complain("run", "TALLY_CONF: %s", line); }

static void alias_problem(const char *line) { tly_complain("run", "PXR_TF_MALLOC_TAG_...: %s", line); }

/* Returns the index of PROGRAM in argv, 0 after --help, or -1 after a complaint. */
static int parse_flags(int argc, char **argv, struct tly_options *options) {
    static const char *const others[] = {"--help", "-o", "-q"};
    char error[TLY_OPTION_ERROR_BYTES + 64];
    int at = 1;
    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        const char *flag = argv[at];
        if (strcmp(flag, "--") == 0) {
            at++;
            break;
        }
        if (strcmp(flag, "-h") == 0 || strcmp(flag, "--help") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(flag, "-q") == 0) {
            options->quiet = true;
            at++;
            continue;
        }
        if (strncmp(flag, "-o", 2) == 0) {
            const char *value = flag[2] ? flag + 2 : at + 1 < argc ? argv[++at] : NULL;
            if (!value) return tly_misused("run", -1, "-o needs a pattern");
            if (tly_option_set(options, "output", 6, value, strlen(value), error, sizeof error) != 0)
                return tly_misused("run", -1, "%s", error);
            at++;
            continue;
        }
        int result = tly_option_flag(options, argc, argv, &at, error, sizeof error);
        if (result < 0) return tly_misused("run", -1, "%s", error);
        if (result == 0) {
            int likely = 0;
            const char *nearest = tly_option_flag_nearest(flag, others, sizeof others / sizeof *others, &likely);
            return tly_misused("run", -1, "there is no option %s; %s %s%s", flag,
                               likely ? "did you mean" : "the nearest is", nearest, likely ? "?" : "");
        }
    }
    if (at >= argc) return tly_misused("run", -1, "which program?");
    return at;
}

/* A place that recordings cannot go to is found out before the program runs for hours, as far as it can be known: the
 * directory, if no part of it depends on the process. 0, or the exit status after a complaint. */
static int check_output(const char *pattern) {
    char directory[PATH_MAX];
    struct stat status;
    if (strlen(pattern) >= sizeof directory) return 0;
    memcpy(directory, pattern, strlen(pattern) + 1);
    char *slash = strrchr(directory, '/');
    if (stat(pattern, &status) == 0 && S_ISDIR(status.st_mode)) {
        tly_complain("run", "-o %s: that is a directory; the program was not started", pattern);
        return TLY_EXIT_REFUSED;
    }
    if (!slash || slash == directory) return 0;
    *slash = 0;
    if (strchr(directory, '%') || (stat(directory, &status) == 0 && S_ISDIR(status.st_mode))) return 0;
    tly_complain("run", "-o %s: there is no directory %s; the program was not started", pattern, directory);
    return TLY_EXIT_REFUSED;
}

/* 0, or the exit status after a complaint. */
static int check_program(char **argv) {
    struct tly_program program;
    struct tly_elf_facts facts;
    char error[PATH_MAX + 256];
    int result = tly_program_find(argv, &program, error, sizeof error);
    if (result != 0) {
        tly_complain("run", "%s", error);
        return result == -ENOENT ? TLY_EXIT_NOT_FOUND : TLY_EXIT_NOT_EXECUTABLE;
    }
    if (tly_elf_check(program.binary, &facts) != 0) return 0; /* may be executed, not read: it is tried */
    if (facts.verdict == TLY_ELF_FINE) return 0;
    tly_complain("run", "%s%s%s cannot be accounted: %s", program.file, program.script ? ", run by " : "",
                 program.script ? program.binary : "", facts.reason);
    tly_complain("run", "it was not started; %s", facts.advice);
    return TLY_EXIT_REFUSED;
}

static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    return text;
}

/* The configuration as the processes read it: `output` absolute, so that it means the same wherever they are. */
static char *configuration_text(const struct tly_options *options, const char *directory) {
    struct tly_options *absolute = malloc(sizeof *absolute);
    if (!absolute) return NULL;
    *absolute = *options;
    if (tly_output_absolute(absolute->output, sizeof absolute->output, directory, options->output) != 0)
        snprintf(absolute->output, sizeof absolute->output, "%s", options->output);
    size_t bytes = tly_options_write(absolute, NULL, 0) + 1;
    char *text = malloc(bytes);
    if (text) tly_options_write(absolute, text, bytes);
    free(absolute);
    return text;
}

/* Names that are in front of the program's own preloads already are not repeated. */
static char *preload_text(const char *library) {
    const char *existing = getenv("LD_PRELOAD");
    if (!existing || !existing[0]) return text_of("LD_PRELOAD=%s", library);
    size_t length = strlen(library);
    const char *again = strstr(existing, library);
    if (again && (again == existing || strchr(" :", again[-1])) && strchr(" :", again[length]))
        return text_of("LD_PRELOAD=%s", existing);
    return text_of("LD_PRELOAD=%s:%s", library, existing);
}

static int prepare_collector(struct tly_collector *collector, const struct tly_options *options, char **argv) {
    collector->command = "run";
    collector->descendants = true;
    if (!getcwd(collector->start_directory, sizeof collector->start_directory)) return -errno;
    snprintf(collector->pattern, sizeof collector->pattern, "%s", options->output[0] ? options->output : "%n.%p.tally");
    const char *slash = strrchr(argv[0], '/');
    snprintf(collector->main_program, sizeof collector->main_program, "%s", slash ? slash + 1 : argv[0]);
    return 0;
}

static void wait_and_collect(struct tly_launch *launch, struct tly_collector *collector,
                             const struct tly_options *options, struct tly_ending *ending) {
    for (;;) {
        int64_t period_ms = options->consolidate_period_ms; /* 0: no looks in between */
        if (period_ms > 0 && period_ms < LOOK_AT_LEAST_MS) period_ms = LOOK_AT_LEAST_MS;
        int64_t crowd_ms = (int64_t)collector->waiting * LOOK_MS_PER_PROCESS;
        if (period_ms > 0 && period_ms < crowd_ms) period_ms = crowd_ms;
        if (tly_launch_wait(launch, period_ms > 0 ? (int)period_ms : -1, ending)) break;
        tly_collector_look(collector);
    }
    tly_collector_finish(collector, ending);
}

/* Returns the exit status. */
static int run(char **argv, const struct tly_options *options, const char *library) {
    struct tly_launch launch = {0};
    struct tly_ending ending = {0};
    int lock;
    struct tly_collector *collector = calloc(1, sizeof *collector);
    char *conf = NULL;
    int result = collector ? prepare_collector(collector, options, argv) : -ENOMEM;
    if (result == 0 && !(conf = configuration_text(options, collector->start_directory))) result = -ENOMEM;
    if (result == 0) result = tly_place_make(collector->directory, sizeof collector->directory, &lock);
    if (result != 0) {
        tly_complain("run", "no place for the account (XDG_RUNTIME_DIR, /dev/shm, TMPDIR, /tmp): %s",
                     strerror(-result));
        free(conf);
        free(collector);
        return TLY_EXIT_REFUSED;
    }
    char *environment[] = {preload_text(library), text_of("TALLY_RUN_DIR=%s", collector->directory),
                           text_of("TALLY_CONF=%s", conf), NULL};
    result = environment[0] && environment[1] && environment[2] ? 0 : -ENOMEM;
    if (result == 0) result = tly_launch(argv, (const char *const *)environment, &launch);
    bool started = result == 0 && launch.exec_error == 0;
    if (started) {
        collector->main_pid = (uint32_t)launch.pid;
        wait_and_collect(&launch, collector, options, &ending);
        if (!options->quiet) tly_summary_print(stderr, collector);
    }
    tly_place_leave(collector->directory, lock, true);
    tly_collector_free(collector);
    free(collector);
    free(conf);
    for (int i = 0; i < 3; i++)
        free(environment[i]);
    if (result != 0) {
        tly_complain("run", "cannot start %s: %s", argv[0], strerror(-result));
        return TLY_EXIT_REFUSED;
    }
    if (!started) {
        tly_complain("run", "%s: %s", argv[0], strerror(launch.exec_error));
        return launch.exec_error == ENOENT ? TLY_EXIT_NOT_FOUND : TLY_EXIT_NOT_EXECUTABLE;
    }
    tly_sweep(options->quiet);
    return tly_launch_end_alike(&ending);
}

int tly_cmd_run(int argc, char **argv) {
    static struct tly_options options;
    char library[PATH_MAX], error[PATH_MAX + 256];
    tly_options_default(&options);
    options.auto_tags = TLY_AUTO_MODULE | TLY_AUTO_CALLER;
    const char *conf = getenv("TALLY_CONF");
    tly_options_aliases(&options, environ, alias_problem);
    if (conf) tly_options_parse(&options, conf, conf_problem);
    int at = parse_flags(argc, argv, &options);
    if (at <= 0) return at == 0 ? 0 : TLY_EXIT_REFUSED;
    int status = check_program(argv + at);
    if (status == 0) status = check_output(options.output);
    if (status != 0) return status;
    if (tly_library_find(library, sizeof library, error, sizeof error) != 0) {
        tly_complain("run", "%s", error);
        return TLY_EXIT_REFUSED;
    }
    return run(argv + at, &options, library);
}
