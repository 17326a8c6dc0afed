/* SPDX-License-Identifier: Apache-2.0 */
/* stress.c - scans whose blocks wait for one another, a thousand times at awkward sizes on a device that is busy.
 *
 * Other streams always have reductions queued that could fill the device, so blocks of the scan start late, few at a
 * time, and in any mixture with others; every result is compared.  A watchdog ends the program when a launch does not
 * come back: a hang is a failure with a message, not a test that runs for ever.
 */
#include "gpu_tests.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPETITIONS = 1000, WATCHDOG_SECONDS = 100, BUSY_STREAMS = 2, BUSY_ELEMENTS = 1 << 26, ELEMENTS_MAX = 1000003 };
static const int64_t sizes[] = { ELEMENTS_MAX, 13825, 8 * 13824 - 1, 4097, 131 * 1024 + 5, 1, 999424 };
enum { NSIZES = sizeof sizes / sizeof *sizes };

static void bark(int signal_number)
{
    static const char text[] = "stress: a launch did not come back\n";

    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

struct loaded_spec {
    ptxgen_program *program;
    ptxgen_loaded *loaded;
};

static bool load(struct suite *t, const char *specs, const char *name, const char *strategy, struct loaded_spec *out)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    const ptxgen_setting pin = { "strategy", strategy };
    char path[512], arch[16];
    ptxgen_problem *problem;
    ptxgen_plan *plan;

    snprintf(path, sizeof path, "%s/%s.yaml", specs, name);
    snprintf(arch, sizeof arch, "sm_%d", ptxgen_gpu_describe(t->gpu)->sm);
    options.arch = arch;
    options.setting = &pin;
    options.setting_count = strategy != NULL;
    return ptxgen_problem_from_file(t->s, path, &problem) == PTXGEN_OK &&
           ptxgen_plan_create(t->s, problem, &options, &plan) == PTXGEN_OK &&
           ptxgen_compile(t->s, plan, NULL, &out->program) == PTXGEN_OK &&
           ptxgen_load(t->s, t->gpu, out->program, &out->loaded) == PTXGEN_OK;
}

/* Device memory of the scan and of the reductions beside it, and what is expected. */
struct bed {
    uint32_t *in, *sums, *got;
    void *x, *y, *end, *busy_in, *busy_out;
};

static bool bed_create(struct suite *t, struct bed *b)
{
    const size_t bytes = ELEMENTS_MAX * sizeof(uint32_t);
    uint32_t sum = 0;

    *b = (struct bed){ malloc(bytes), malloc(bytes), malloc(bytes), NULL, NULL, NULL, NULL, NULL };
    if (!b->in || !b->sums || !b->got)
        return false;
    for (uint32_t i = 0; i < ELEMENTS_MAX; i++) {
        b->in[i] = i * 2654435761u >> 7;
        b->sums[i] = sum;
        sum += b->in[i];
    }
    return ptxgen_gpu_alloc(t->s, t->gpu, bytes, &b->x) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, bytes, &b->y) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, 256, &b->end) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, (size_t)BUSY_ELEMENTS * sizeof(float), &b->busy_in) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, 256 * BUSY_STREAMS, &b->busy_out) == PTXGEN_OK &&
           ptxgen_gpu_write(t->s, t->gpu, b->x, b->in, bytes) == PTXGEN_OK;
}

static void bed_finish(struct suite *t, struct bed *b)
{
    void *const device[] = { b->x, b->y, b->end, b->busy_in, b->busy_out };

    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        ptxgen_gpu_free(t->gpu, device[i]);
    free(b->in);
    free(b->sums);
    free(b->got);
}

static bool keep_busy(struct suite *t, const struct bed *b, ptxgen_loaded *sum)
{
    const int64_t n = BUSY_ELEMENTS;
    bool ok = true;

    for (int i = 0; i < BUSY_STREAMS && ok; i++) {
        const void *in[] = { b->busy_in };
        void *out[] = { (char *)b->busy_out + 256 * i };
        const ptxgen_arguments args = { &n, in, out, NULL };

        ok = ptxgen_launch(t->s, sum, &args, t->stream[1 + i], NULL) == PTXGEN_OK;
    }
    return ok;
}

static bool scan_once(struct suite *t, struct bed *b, ptxgen_loaded *scan, ptxgen_loaded *sum, int64_t n)
{
    const size_t bytes = (size_t)n * sizeof(uint32_t);
    const void *in[] = { b->x };
    void *out[] = { b->y, b->end };
    const ptxgen_arguments args = { &n, in, out, NULL };
    uint32_t end = 0;

    return keep_busy(t, b, sum) && ptxgen_gpu_fill(t->s, t->gpu, b->y, POISON, bytes, t->stream[0]) == PTXGEN_OK &&
           ptxgen_launch(t->s, scan, &args, t->stream[0], NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK &&
           ptxgen_gpu_read(t->s, t->gpu, b->got, b->y, bytes) == PTXGEN_OK &&
           ptxgen_gpu_read(t->s, t->gpu, &end, b->end, sizeof end) == PTXGEN_OK &&
           memcmp(b->got, b->sums, bytes) == 0 && end == b->sums[n - 1] + b->in[n - 1];
}

void run_stress(struct suite *t, const char *specs)
{
    static const char *const strategies[] = { "scan.lookahead", "scan.lookback", "scan.allpre" };
    struct loaded_spec sum = { NULL, NULL };
    struct bed b;
    bool ok = bed_create(t, &b) && load(t, specs, "sum", NULL, &sum);

    signal(SIGALRM, bark);
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies && ok; s++) {
        struct loaded_spec scan = { NULL, NULL };
        int done = 0;

        alarm(WATCHDOG_SECONDS);
        if (load(t, specs, "scan_exclusive", strategies[s], &scan))
            while (done < REPETITIONS && scan_once(t, &b, scan.loaded, sum.loaded, sizes[done % NSIZES]))
                done++;
        alarm(0);
        if (done == REPETITIONS)
            note_outcome(t, "busy device", OUTCOME_PASSED);
        else
            note_failure(t, "stress/%s, repetition %d, n=%lld", strategies[s], done, (long long)sizes[done % NSIZES]);
        ptxgen_loaded_destroy(scan.loaded);
        ptxgen_program_destroy(scan.program);
    }
    if (!ok)
        note_failure(t, "stress: no memory, or no reduction to keep the device busy");
    ptxgen_loaded_destroy(sum.loaded);
    ptxgen_program_destroy(sum.program);
    bed_finish(t, &b);
}
