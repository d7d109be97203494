/* doctor.c - `tally doctor`: can this program, or this process, be accounted? If not, why, and what to do. */
#define _GNU_SOURCE
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "command.h"
#include "library.h"
#include "live.h"
#include "offline/elf_check.h"
#include "place.h"
#include "proc.h"
#include "program.h"
#include "region/view.h"

static const char usage[] = "Usage: tally doctor [[--] PROGRAM [ARGUMENTS]]\n"
                            "       tally doctor PID\n"
                            "\n"
                            "Says whether PROGRAM can be accounted, without running it, or why nothing is tracked in "
                            "the running process PID, and\n"
                            "what to do about it. Without either: whether Tally itself is in order. A number is taken "
                            "as a PID; put -- before a\n"
                            "program that is called like one.\n"
                            "\n"
                            "  -h, --help    this text\n"
                            "\n"
                            "Exit status: 0 all is well, 1 something is in the way, 125 PROGRAM cannot be accounted, "
                            "126 and 127 as 'tally run'.\n";

/* Code that is not position-independent has the address of a weak symbol in it, as a number that nobody changes. */
#define REMEDY "compile with -fPIE and link with -pie (or with -Wl,-z,dynamic-undefined-weak), or link with -ltally"

/* One line of the findings. */
static void say(const char *mark, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(const char *mark, const char *what, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("  %-5s %-13s ", mark, what);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

/* ---- Tally itself ------------------------------------------------------------------------------------------------- */

static int check_library(void) {
    char path[PATH_MAX], error[PATH_MAX + 256];
    if (tly_library_find(path, sizeof path, error, sizeof error) != 0) {
        say("WRONG", "library", "%s", error);
        return 1;
    }
    say("ok", "library", "%s", path);
    return 0;
}

static int check_place(void) {
    char path[PATH_MAX], size[TLY_NUMBER_BYTES];
    struct statvfs volume;
    int lock, result = tly_place_make(path, sizeof path, &lock);
    if (result != 0) {
        say("WRONG", "directory", "none of XDG_RUNTIME_DIR, /dev/shm, TMPDIR and /tmp can be written: %s",
            strerror(-result));
        return 1;
    }
    uint64_t left = statvfs(path, &volume) == 0 ? (uint64_t)volume.f_bavail * volume.f_frsize : 0;
    tly_place_leave(path, lock, true);
    *strrchr(path, '/') = 0;
    bool scarce = left < 16u << 20;
    say(scarce ? "note" : "ok", "directory", "accounts are kept in %s, %s free%s", path,
        tly_number_size(size, sizeof size, left), scarce ? ": little; set XDG_RUNTIME_DIR to a larger one" : "");
    return 0;
}

/* Growing a region needs MADV_POPULATE_WRITE (Linux 5.14): it fails cleanly where a store would raise SIGBUS. */
static int check_system(void) {
    struct utsname host;
    uname(&host);
    long page = sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool populates = memory != MAP_FAILED && madvise(memory, (size_t)page, 23 /* MADV_POPULATE_WRITE */) == 0;
    if (memory != MAP_FAILED) munmap(memory, (size_t)page);
    say("ok", "system", "Linux %s, glibc %s", host.release, gnu_get_libc_version());
    if (!populates)
        say("note", "system", "this kernel has no MADV_POPULATE_WRITE (Linux 5.14): memory is touched instead");
    const char *preload = getenv("LD_PRELOAD"), *conf = getenv("TALLY_CONF");
    if (preload && preload[0]) say("note", "environment", "LD_PRELOAD=%s: Tally goes in front of it", preload);
    if (conf && conf[0]) say("note", "environment", "TALLY_CONF=%s", conf);
    return 0;
}

/* ---- a program ---------------------------------------------------------------------------------------------------- */

/* Names of libraries by which an allocator is known. */
static const char *allocator_of(const char *library) {
    static const char *const known[][2] = {{"libjemalloc", "jemalloc"}, {"libmimalloc", "mimalloc"},
                                           {"libtcmalloc", "tcmalloc"}, {"libtbbmalloc", "TBB malloc"},
                                           {"libsnmalloc", "snmalloc"}, {"libhardened_malloc", "hardened_malloc"},
                                           {"librpmalloc", "rpmalloc"}, {"libscudo", "Scudo"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(library, known[i][0])) return known[i][1];
    return NULL;
}

/* What the loader would load, by its own account: it lists, and runs nothing. Returns the number of missing ones. */
static int list_libraries(const struct tly_elf_facts *facts, const char *program, char *allocator, size_t bytes) {
    int output[2], missing = 0;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    char list[] = "LD_TRACE_LOADED_OBJECTS=1", *arguments[] = {(char *)facts->interpreter, (char *)program, NULL};
    size_t variables = 0;
    while (environ[variables])
        variables++;
    char **environment = calloc(variables + 2, sizeof *environment);
    if (!environment) return 0;
    memcpy(environment, environ, variables * sizeof *environment);
    environment[variables] = list;
    if (pipe(output) != 0) {
        free(environment);
        return 0;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, output[0]);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
    int error = posix_spawn(&pid, facts->interpreter, &actions, NULL, arguments, environment);
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    FILE *lines = error == 0 ? fdopen(output[0], "r") : NULL;
    char line[PATH_MAX + 256];
    while (lines && fgets(line, sizeof line, lines)) {
        char *name = line + strspn(line, " \t");
        if (strstr(name, "=> not found")) {
            name[strcspn(name, " ")] = 0;
            say("WRONG", "libraries", "%s is not found: the program cannot start", name);
            missing++;
        }
        const char *known = allocator_of(name);
        if (known && !allocator[0]) snprintf(allocator, bytes, "%s (%.*s)", known, (int)strcspn(name, " \n"), name);
    }
    if (lines)
        fclose(lines);
    else
        close(output[0]);
    if (error == 0) waitpid(pid, NULL, 0);
    return missing;
}

static int describe(const struct tly_elf_facts *facts, const struct tly_program *program) {
    char allocator[PATH_MAX] = "";
    const char *preload = getenv("LD_PRELOAD");
    int wrong = list_libraries(facts, program->binary, allocator, sizeof allocator);
    if (preload && allocator_of(preload))
        snprintf(allocator, sizeof allocator, "%s (LD_PRELOAD)", allocator_of(preload));
    say("ok", "allocator", "Tally will run over %s", allocator[0] ? allocator : "glibc's malloc");
    if (facts->malloc_wrapper)
        say("note", "allocator", "it has a malloc of its own that passes calls on: callers are seen as that function");
    if (facts->private_allocator[0])
        say("note", "allocator", "it contains %s under names of its own: what that hands out is not seen",
            facts->private_allocator);
    switch (facts->tags) {
    case TLY_ELF_TAGS_READY: say("ok", "tags", "it uses tally.h: its tags will be seen"); break;
    case TLY_ELF_TAGS_FIXED_MISSING:
        say("WRONG", "tags", "it uses tally.h, but the linker has fixed the library as missing for ever: " REMEDY);
        wrong++;
        break;
    default:
        if (facts->position_independent)
            say("ok", "tags", "it does not use tally.h itself: modules and callers are billed");
        else
            say("note", "tags",
                "no trace of tally.h; if it is used, the linker has fixed the library as missing: " REMEDY);
        break;
    }
    say("ok", "layout", "position-%s executable", facts->position_independent ? "independent" : "dependent (not PIE)");
    if (facts->debug_info)
        say("ok", "symbols", "debug information: functions, files and lines");
    else
        say("note", "symbols", "no debug information in the file itself: %s, unless it is found separately",
            facts->symbol_table ? "function names only" : "exported function names only");
    return wrong;
}

static int examine_program(char **argv) {
    struct tly_program program;
    struct tly_elf_facts facts;
    char error[PATH_MAX + 256];
    int result = tly_program_find(argv, &program, error, sizeof error);
    if (result != 0) {
        say("WRONG", "program", "%s", error);
        return result == -ENOENT ? TLY_EXIT_NOT_FOUND : TLY_EXIT_NOT_EXECUTABLE;
    }
    if (program.script)
        say("ok", "program", "%s, a script run by %s", program.file, program.binary);
    else
        say("ok", "program", "%s", program.file);
    result = tly_elf_check(program.binary, &facts);
    if (result != 0) {
        say("note", "program", "may be executed but not read (%s): it cannot be looked into", strerror(-result));
        return 0;
    }
    if (facts.verdict != TLY_ELF_FINE) {
        say("WRONG", "program", "it cannot be accounted: %s", facts.reason);
        say("", "", "what to do: %s", facts.advice);
        return TLY_EXIT_REFUSED;
    }
    return describe(&facts, &program) ? 1 : 0;
}

/* ---- a process ---------------------------------------------------------------------------------------------------- */

static void describe_counters(const struct tly_view *view) {
    char text[TLY_NUMBER_BYTES];
    uint64_t unmatched = 0, untracked = 0;
    for (uint32_t i = 0; i < tly_view_count(view, TLY_SEC_LEDGERS); i++) {
        const struct tly_ledger *ledger = tly_view_record(view, TLY_SEC_LEDGERS, i);
        if (!ledger) continue;
        unmatched += ledger->unmatched_frees;
        untracked += ledger->untracked_allocs;
    }
    if (view->region->off_radar_allocs)
        say("note", "off the radar", "%s allocations came before the start",
            tly_number_exact(text, sizeof text, view->region->off_radar_allocs));
    if (unmatched)
        say("note", "off the radar", "%s frees of blocks that were never seen",
            tly_number_exact(text, sizeof text, unmatched));
    if (untracked)
        say("WRONG", "memory", "%s allocations could not be recorded: memory is short",
            tly_number_exact(text, sizeof text, untracked));
}

static int examine_process(uint32_t pid) {
    static const char *const states[] = {"not started: 'tally start' begins", "on", "stopped: 'tally start' goes on"};
    struct tly_live live;
    struct tly_view view;
    char error[1024], path[64], exe[PATH_MAX], size[TLY_NUMBER_BYTES];
    const char *why = "";
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t length = readlink(path, exe, sizeof exe - 1);
    exe[length > 0 ? length : 0] = 0;
    if (length > 0) say("ok", "process", "%u runs %s", pid, exe);
    if (tly_live_find(pid, &live, error, sizeof error) != 0) {
        say("WRONG", "account", "%s", error);
        struct tly_elf_facts facts;
        if (length > 0 && tly_elf_check(exe, &facts) == 0 && facts.verdict != TLY_ELF_FINE) {
            say("WRONG", "program", "it could not be accounted anyway: %s", facts.reason);
            say("", "", "what to do: %s", facts.advice);
        }
        return 1;
    }
    int result = tly_view_open(live.path, &view, &why);
    if (result != 0) {
        say("WRONG", "account", "%s: %s", live.path, result == -EBADMSG ? why : strerror(-result));
        return 1;
    }
    uint32_t state = view.region->state;
    say("ok", "account", "%s", live.path);
    say(state == TLY_STATE_ON ? "ok" : "note", "accounting", "%s", state < 3 ? states[state] : "?");
    if (view.region->paused_all) say("note", "accounting", "paused on all threads: 'tally resume' ends one pause");
    int64_t bytes = tly_view_live_bytes(&view);
    say("ok", "live", "%s", tly_number_size(size, sizeof size, bytes > 0 ? (uint64_t)bytes : 0));
    describe_counters(&view);
    tly_view_close(&view);
    return state == TLY_STATE_ON ? 0 : 1;
}

int tly_cmd_doctor(int argc, char **argv) {
    int at = 1, status = 0;
    bool program = false;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--") == 0) {
        program = true;
        at++;
        if (argc == 2) return tly_misused("doctor", TLY_EXIT_USAGE, "which program?");
    } else if (argc > 1 && argv[1][0] == '-') {
        return tly_misused("doctor", TLY_EXIT_USAGE, "there is no option %s", argv[1]);
    }
    uint32_t pid = argc == 2 && !program ? tly_live_pid(argv[1]) : 0;
    status |= check_library();
    status |= check_place();
    status |= check_system();
    if (argc == 1) return status;
    int found = pid ? examine_process(pid) : examine_program(argv + at);
    return found ? found : status;
}
