/* control.c - `tally start`, `stop`, `clear`, `pause`, `resume`: a word in the region of a running process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "region/region.h"

enum { WAIT_MS = 1000, LOOK_EVERY_MS = 2 };

static const struct request {
    const char *name, *help, *done;
    enum tly_request word;
} requests[] = {
    {"start",
     "Begins the accounting in running processes, or resumes it after a stop. What was allocated before is not\n"
     "billed to anybody.",
     "accounting", TLY_REQ_START},
    {"stop",
     "Ends the accounting in running processes: later allocations pass unseen, frees of blocks that were billed are\n"
     "still matched.",
     "stopped", TLY_REQ_STOP},
    {"clear", "Forgets everything so far in running processes: reports then cover only later allocations.", "cleared",
     TLY_REQ_CLEAR},
    {"pause",
     "Lets the allocations of all threads of running processes pass unreported, until 'tally resume'. Pauses nest.",
     "paused", TLY_REQ_PAUSE},
    {"resume", "Ends a 'tally pause'.", "resumed", TLY_REQ_RESUME},
};

static const struct request *find(const char *name) {
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (strcmp(requests[i].name, name) == 0) return &requests[i];
    return &requests[0];
}

/* 0 and the target's answer; -EAGAIN: no answer in time; -errno. */
static int ask(const struct tly_live *live, enum tly_request word, int32_t *answer) {
    int fd = open(live->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -errno;
    while (flock(fd, LOCK_EX) != 0) /* one who asks at a time */
        if (errno != EINTR) break;
    struct tly_region *region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (region == MAP_FAILED) {
        int error = errno;
        close(fd);
        return -error;
    }
    struct tly_control *control = &region->control;
    atomic_store(&control->request, (uint32_t)word);
    uint32_t seq = atomic_fetch_add_explicit(&control->seq, 1, memory_order_release) + 1;
    int result = -EAGAIN;
    for (int waited = 0; waited < WAIT_MS && result != 0; waited += LOOK_EVERY_MS) {
        usleep(LOOK_EVERY_MS * 1000);
        if (atomic_load_explicit(&control->done_seq, memory_order_acquire) == seq) result = 0;
    }
    *answer = atomic_load(&control->result);
    munmap(region, sizeof *region);
    close(fd);
    return result;
}

static const char *reason(enum tly_request word, int32_t answer) {
    if (word == TLY_REQ_RESUME && answer == -EALREADY) return "it is not paused";
    if (answer == -EBUSY) return "one of its threads has stayed inside an allocation; try again";
    if (answer == -ENOSYS) return "its calls of malloc do not reach Tally";
    return strerror(-answer);
}

static int control_one(const struct request *request, const char *text) {
    struct tly_live live;
    char error[1024];
    int32_t answer = 0;
    uint32_t pid = tly_live_pid(text);
    if (!pid) return tly_misused(request->name, TLY_EXIT_USAGE, "'%s' is not a process id", text);
    int result = tly_live_find(pid, &live, error, sizeof error);
    if (result != 0) {
        tly_complain(request->name, "%s", error);
        return 1;
    }
    result = ask(&live, request->word, &answer);
    if (result == -EAGAIN) {
        tly_complain(request->name, "process %u has not answered yet: it does when it next allocates", pid);
        return 0;
    }
    if (result != 0 || answer < 0) {
        tly_complain(request->name, "process %u: %s", pid, result ? strerror(-result) : reason(request->word, answer));
        return 1;
    }
    printf("process %u: %s\n", pid, request->done);
    return 0;
}

static int control(int argc, char **argv) {
    const struct request *request = find(argv[0]);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("Usage: tally %s PID...\n\n%s\n\n"
               "  -h, --help    this text\n\n"
               "The processes must be the user's own and run with libtally.so (under 'tally run' or preloaded). A "
               "process\n"
               "answers when it next allocates; that is waited for up to a second.\n",
               request->name, request->help);
        return 0;
    }
    if (argc < 2) return tly_misused(request->name, TLY_EXIT_USAGE, "which process? Give its PID");
    int status = 0;
    for (int i = 1; i < argc; i++) {
        int one = control_one(request, argv[i]);
        if (one > status) status = one;
    }
    return status;
}

int tly_cmd_start(int argc, char **argv) { return control(argc, argv); }
int tly_cmd_stop(int argc, char **argv) { return control(argc, argv); }
int tly_cmd_clear(int argc, char **argv) { return control(argc, argv); }
int tly_cmd_pause(int argc, char **argv) { return control(argc, argv); }
int tly_cmd_resume(int argc, char **argv) { return control(argc, argv); }
