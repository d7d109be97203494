/* facts.c - see facts.h. Runs before main, perhaps inside the very first malloc: system calls only. */
#define _GNU_SOURCE
#include "runtime/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/say.h"
#include "region/writer.h"

uint64_t tly_facts_random(void) {
    uint64_t word = 0;
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == sizeof word) return word;
    struct timespec now; /* early boot: unique enough together with O_EXCL */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return tly_hash_mix((uint64_t)now.tv_sec << 32 | (uint64_t)now.tv_nsec, (uint64_t)getpid());
}

void tly_rundir_find(struct tly_rundir *dir) {
    const char *given = getenv("TALLY_RUN_DIR");
    memset(dir, 0, sizeof *dir);
    if (!given || !given[0] || strlen(given) >= sizeof dir->path) return;
    /* Ours alone, as the collector made it: an account is not put where others can reach it. What is not there (the
     * `tally run` has ended) is made again when it is needed. */
    struct stat status;
    if (lstat(given, &status) == 0 &&
        (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0))
        return;
    memcpy(dir->path, given, strlen(given) + 1);
    dir->given = true;
}

/* A process that outlives its `tally run`, and begins to allocate only then: its account goes to a directory of that name
 * again. Nobody collects there, so the process writes its own file in the end, or the next command finds what is left. */
static int remake(struct tly_rundir *dir) {
    if (access(dir->path, F_OK) == 0 || errno != ENOENT) return 0;
    if (mkdir(dir->path, 0700) != 0) return -errno;
    dir->given = false;
    return 0;
}

/* A directory of ours alone below `base`. */
static int make_directory(struct tly_rundir *dir, const char *base) {
    struct tly_text_builder text;
    tly_text_begin(&text, dir->path, sizeof dir->path);
    tly_text_add(&text, base);
    tly_text_add(&text, "/tally-");
    tly_text_add_number(&text, getuid());
    tly_text_add(&text, "-");
    tly_text_add_hex(&text, tly_facts_random(), 16);
    if (text.length + 64 > sizeof dir->path || base[0] != '/') return -ENAMETOOLONG;
    return mkdir(dir->path, 0700) == 0 ? 0 : -errno;
}

int tly_rundir_name_region(struct tly_rundir *dir) {
    int result = 0;
    if (!dir->path[0]) {
        const char *bases[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
        result = -ENOENT;
        for (size_t i = 0; i < sizeof bases / sizeof *bases && result != 0; i++)
            if (bases[i] && bases[i][0]) result = make_directory(dir, bases[i]);
        if (result != 0) {
            dir->path[0] = 0;
            return result;
        }
    }
    if (dir->given && (result = remake(dir)) != 0) return result;
    struct tly_text_builder text;
    tly_text_begin(&text, dir->region_path, sizeof dir->region_path);
    tly_text_add(&text, dir->path);
    tly_text_add(&text, "/");
    tly_text_add_number(&text, (uint64_t)getpid());
    tly_text_add(&text, "-");
    tly_text_add_hex(&text, tly_facts_random(), 16);
    tly_text_add(&text, ".region");
    return 0;
}

void tly_rundir_remove(struct tly_rundir *dir) {
    if (dir->region_path[0]) unlink(dir->region_path);
    if (dir->path[0] && !dir->given) rmdir(dir->path);
    dir->region_path[0] = 0;
}

static size_t read_file(const char *path, char *buffer, size_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t length = 0;
    for (ssize_t got; length < bytes && (got = read(fd, buffer + length, bytes - length)) > 0;)
        length += (size_t)got;
    close(fd);
    return length;
}

/* Field 22 of /proc/self/stat, counted after the name in parentheses, which may contain anything. */
static uint64_t start_ticks(void) {
    char text[1024];
    size_t length = read_file("/proc/self/stat", text, sizeof text - 1);
    text[length] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void program_name(struct tly_text *text) {
    /* argv[0] is what the user called it; exec may have made it empty. */
    char path[PATH_MAX];
    size_t length = read_file("/proc/self/cmdline", path, sizeof path - 1);
    path[length] = 0;
    if (!path[0] || (path[0] == '-' && !path[1])) {
        ssize_t got = readlink("/proc/self/exe", path, sizeof path - 1);
        path[got > 0 ? got : 0] = 0;
    }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!name[0]) name = "program";
    size_t bytes = strlen(name);
    tly_writer_text(text, name, bytes < 200 ? bytes : 200);
}

void tly_facts_fill(struct tly_region *region, const struct tly_options *options, const struct tly_rundir *dir,
                    bool in_file, bool preloaded) {
    char buffer[8192];
    struct stat status;
    struct utsname host;
    region->pid = (uint32_t)getpid();
    region->ppid = (uint32_t)getppid();
    region->uid = getuid();
    region->pid_namespace = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
    region->process_start_ticks = start_ticks();
    region->id = tly_facts_random();
    region->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    region->auto_tags = options->auto_tags;
    region->flags = (in_file && dir->given ? TLY_REGION_COLLECTED : 0) | (preloaded ? 0 : TLY_REGION_LINKED);
    program_name(&region->program);
    tly_writer_text(&region->command_line, buffer, read_file("/proc/self/cmdline", buffer, sizeof buffer));
    if (getcwd(buffer, sizeof buffer)) tly_writer_text(&region->directory, buffer, strlen(buffer));
    if (uname(&host) == 0) tly_writer_text(&region->host, host.nodename, strlen(host.nodename));
    tly_writer_text(&region->output, options->output, strlen(options->output));
    const char *configuration = getenv("TALLY_CONF");
    if (configuration) tly_writer_text(&region->options, configuration, strlen(configuration));
}
