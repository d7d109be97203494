/*
 * handover.c - work that another thread does is billed to whoever asked for it.
 *
 *     cc -pthread -o handover handover.c && tally run -- ./handover && tally report handover.*.tally
 *
 * A job carries the tag stack of the thread that made it; the worker puts itself on that stack while it does the job.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

struct job {
    tally_stack stack; /* a small value: who asked */
    size_t bytes;
    void *result;
};

static struct job queue[16];
static int queued, taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void submit(size_t bytes) {
    struct job job = {.bytes = bytes};
    tally_stack_get(&job.stack);
    pthread_mutex_lock(&lock);
    queue[queued++] = job;
    pthread_mutex_unlock(&lock);
}

static struct job *take(void) {
    pthread_mutex_lock(&lock);
    struct job *job = taken < queued ? &queue[taken++] : NULL;
    pthread_mutex_unlock(&lock);
    return job;
}

static void *work(void *unused) {
    TALLY_TAG("Worker");
    (void)unused;
    for (struct job *job; (job = take()) != NULL;) {
        TALLY_STACK_OVERRIDE(&job->stack); /* until the end of this round; then "Worker" again */
        TALLY_TAG("Job");
        job->result = malloc(job->bytes);
    }
    return NULL;
}

int main(void) {
    {
        TALLY_TAG("Search");
        for (int i = 0; i < 4; i++)
            submit(1000);
    }
    {
        TALLY_TAG("Upload");
        for (int i = 0; i < 6; i++)
            submit(5000);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    size_t bytes = 0;
    for (int i = 0; i < queued; i++)
        bytes += queue[i].result ? queue[i].bytes : 0;
    printf("%d jobs, %zu bytes\n", queued, bytes);
    return 0; /* the results are left for the report to show: Search/Job 4,000 bytes, Upload/Job 30,000 */
}
