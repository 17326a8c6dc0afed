/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - who runs the specs: processes, each with a context of its own, and threads within each.
 *
 * Compilers, the driver's above all, and the sequential reference take most of the time; within a process the driver
 * lets one thread in at a time.  Parts of specs are dealt out one by one.  A process that dies, hangs or loses its
 * context costs the spec it was at, which is a failure that says so, and is replaced.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu_tests.h"

enum { SPECS_MAX = 512, WATCH_LENGTH = 300, HANG_SECONDS = 120, REPLACEMENTS_MAX = 20, LOST_CONTEXT = 86 };

/* What a thread is at; in memory of all processes. */
struct watched {
    _Atomic double since; /* 0: at nothing */
    char what[WATCH_LENGTH];
};
static struct shared {
    _Atomic int next; /* piece of work to take */
    struct watched slot[PROCESSES_MAX * THREADS_MAX];
} * shared;

/* A piece of work is a part of a spec's sizes: piece i is part i / n of spec i % n, so that the parts of a spec lie far
 * from each other, and the later ones find what the driver compiled for the first in its cache. */
static struct {
    int n;
    char *path[SPECS_MAX];
    int parts, shard, shards;
} work = { .parts = 1, .shards = 1 };

/* ---- specs to run ---------------------------------------------------------------------------- */
static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void add_folder(struct suite *t, const char *folder)
{
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int first = work.n;

    if (dir == NULL) {
        note_failure(t, "%s: no such folder", folder);
        return;
    }
    while (work.n < SPECS_MAX && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);
        char path[1024];

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0 &&
            (t->filter == NULL || strstr(path, t->filter)))
            work.path[work.n++] = strdup(path);
    }
    closedir(dir);
    qsort(work.path + first, (size_t)(work.n - first), sizeof *work.path, by_name);
}

void choose_work(int parts, int shard, int shards)
{
    work.parts = parts;
    work.shard = shard;
    work.shards = shards;
}

/* Of this shard. */
static int pieces(void) { return (work.n * work.parts - work.shard + work.shards - 1) / work.shards; }

/* ---- watching -------------------------------------------------------------------------------- */
double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void watch(const struct suite *t, const char *format, ...)
{
    struct watched *w = shared ? &shared->slot[t->slot] : NULL;
    va_list ap;

    if (w == NULL)
        return;
    va_start(ap, format);
    vsnprintf(w->what, sizeof w->what, format, ap);
    va_end(ap);
    atomic_store(&w->since, seconds_now());
}

void unwatch(const struct suite *t)
{
    if (shared)
        atomic_store(&shared->slot[t->slot].since, 0);
}

/* After a failure: a fault on the device ends the context, and only a new process gets another. */
void leave_if_lost(struct suite *t)
{
    bool lost = false;

    for (int i = 0; i < STREAMS && t->gpu; i++)
        lost |= ptxgen_stream_wait(t->s, t->gpu, t->stream[i]) != PTXGEN_OK;
    ptxgen_diagnostics_clear(t->s);
    if (lost && shared)
        _exit(LOST_CONTEXT);
}

/* SIGTERM or SIGINT: what was found so far is still shown. */
static volatile sig_atomic_t stopped;
static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}
bool was_stopped(void) { return stopped; }

void heed_signals(void)
{
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
}

/* ---- threads --------------------------------------------------------------------------------- */
static const char *take_work(struct suite *t)
{
    const int taken = atomic_fetch_add(&shared->next, 1), i = taken * work.shards + work.shard;

    if (taken >= pieces() || stopped)
        return NULL;
    t->part = i / work.n;
    t->parts = work.parts;
    return work.path[i % work.n];
}

/* Take work until none is left, each piece with a session of its own. */
static void *worker(void *argument)
{
    struct suite mine = *(const struct suite *)argument;
    const char *path;

    mine.s = NULL;
    memset(mine.stream, 0, sizeof mine.stream);
    for (int i = 0; i < STREAMS && mine.gpu; i++)
        if (ptxgen_stream_create(NULL, mine.gpu, &mine.stream[i]) != PTXGEN_OK)
            note_failure(&mine, "no stream");
    if (!bed_create(&mine))
        note_failure(&mine, "no memory");
    while (mine.bed && (path = take_work(&mine)) != NULL) {
        if (ptxgen_session_create(&mine.s) != PTXGEN_OK)
            exit(3);
        run_spec(&mine, path);
        ptxgen_session_destroy(mine.s);
        mine.s = NULL;
    }
    bed_destroy(&mine);
    for (int i = 0; i < STREAMS && mine.gpu; i++)
        ptxgen_stream_destroy(mine.gpu, mine.stream[i]);
    return NULL;
}

/* All threads of a process, this one included. */
static void run_threads(const struct suite *t, int first_slot, int threads)
{
    pthread_t thread[THREADS_MAX];
    struct suite own[THREADS_MAX];
    int started = 1;

    for (int i = 0; i < threads; i++) {
        own[i] = *t;
        own[i].slot = first_slot + i;
    }
    while (started < threads && pthread_create(&thread[started], NULL, worker, &own[started]) == 0)
        started++;
    worker(&own[0]);
    while (started > 1)
        pthread_join(thread[--started], NULL);
}

/* ---- processes ------------------------------------------------------------------------------- */
/* The whole life of one. */
static int live(const struct suite *common, int process, int threads)
{
    struct suite t = *common;
    int devices = 1, device = t.device;

    if (device < 0 && ptxgen_gpu_count(NULL, &devices) == PTXGEN_OK)
        device = process % devices;
    if (ptxgen_session_create(&t.s) != PTXGEN_OK || !open_device(&t, device)) {
        char *text = t.s ? ptxgen_diagnostics_text(t.s, 0) : NULL;

        fputs(text ? text : "out of memory\n", stderr);
        return 3;
    }
    run_threads(&t, process * THREADS_MAX, threads);
    close_device(&t);
    return 0;
}

static pid_t begin(const struct suite *t, int process, int threads)
{
    pid_t child;

    fflush(stdout);
    fflush(stderr);
    child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        _exit(live(t, process, threads));
    }
    return child;
}

/* Kill a process one of whose threads has been at the same thing for too long. */
static void end_hung(int process, pid_t child, int threads)
{
    for (int i = 0; i < threads; i++) {
        struct watched *w = &shared->slot[process * THREADS_MAX + i];
        const double since = atomic_load(&w->since);

        if (since > 0 && seconds_now() - since > HANG_SECONDS) {
            note_failure(NULL, "%s: not done after %d seconds", w->what, HANG_SECONDS);
            atomic_store(&w->since, 0);
            kill(child, SIGKILL);
        }
    }
}

static void end_all(const pid_t *child, int processes, int threads)
{
    for (int i = 0; i < processes; i++)
        if (child[i] > 0) {
            kill(child[i], SIGKILL);
            waitpid(child[i], NULL, 0);
            for (int k = 0; k < threads; k++)
                if (*shared->slot[i * THREADS_MAX + k].what)
                    note_not_run("the rest of the spec behind %s", shared->slot[i * THREADS_MAX + k].what);
        }
    if (atomic_load(&shared->next) < pieces())
        note_not_run("%d of %d parts of specs", pieces() - atomic_load(&shared->next), pieces());
}

/* Say what a process that did not end well was at. True: replace it. */
static bool bury(int process, int threads, int status)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0, number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (code == 0 && number == 0)
        return false;
    for (int i = 0; i < threads; i++) {
        struct watched *w = &shared->slot[process * THREADS_MAX + i];

        if (*w->what) {
            note_failure(NULL, "%s: the process ended there or soon after (%s %d)", w->what,
                         number ? "signal" : "status", number ? number : code);
            note_not_run("the rest of the spec behind %s", w->what);
        }
        *w->what = 0;
        atomic_store(&w->since, 0);
    }
    if (code == 3)
        note_failure(NULL, "a process could not open its device");
    return code != 3;
}

static void run_processes(const struct suite *t, int processes, int threads)
{
    pid_t child[PROCESSES_MAX];
    int running = 0, replaced = 0;

    for (int i = 0; i < processes; i++)
        running += (child[i] = begin(t, i, threads)) > 0;
    while (running > 0 && !stopped) {
        usleep(10000);
        for (int i = 0; i < processes; i++) {
            int status;

            if (child[i] <= 0)
                continue;
            end_hung(i, child[i], threads);
            if (waitpid(child[i], &status, WNOHANG) != child[i])
                continue;
            running--;
            child[i] = 0;
            if (bury(i, threads, status) && atomic_load(&shared->next) < pieces() && replaced++ < REPLACEMENTS_MAX)
                running += (child[i] = begin(t, i, threads)) > 0;
        }
    }
    if (stopped)
        end_all(child, processes, threads);
    else if (atomic_load(&shared->next) < pieces())
        note_failure(NULL, "%d of %d parts of specs were not run: no process was left",
                     pieces() - atomic_load(&shared->next), pieces());
}

void run_specs(struct suite *t, int processes, int threads)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        shared = NULL;
        note_failure(t, "no memory");
    } else if (processes > 0) {
        run_processes(t, processes, threads);
    } else {
        run_threads(t, 0, threads);
    }
    if (shared)
        munmap(shared, sizeof *shared);
    shared = NULL;
    while (work.n > 0)
        free(work.path[--work.n]);
}
