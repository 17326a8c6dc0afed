/* SPDX-License-Identifier: Apache-2.0 */
/* stress.c - protocols between blocks, a thousand times at awkward sizes on a device that is busy.
 *
 * Other streams always have reductions queued that could fill the device, so blocks start late, few at a time, and in
 * any mixture with others; every result is compared.  A watchdog ends the program when a launch does not come back: a
 * hang is a failure with a message, not a test that runs for ever.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_tests.h"

enum { REPETITIONS = 1000, WATCHDOG_SECONDS = 100, BUSY_STREAMS = 2, BUSY_ELEMENTS = 1 << 25, VISITS = 6 };

#define LINES                                                                                                          \
    {                                                                                                                  \
        { 1000003 }, { 13313 }, { 8 * 13312 - 1 }, { 4097 }, { 131 * 1024 + 5 }, { 1 }                                 \
    }
#define ROWS                                                                                                           \
    {                                                                                                                  \
        { 3, 333001 }, { 1, 1000003 }, { 1001, 257 }, { 7, 70001 }, { 133, 4099 }, { 1, 1 }                            \
    }
#define LONG_ROWS                                                                                                      \
    {                                                                                                                  \
        { 3, 333001 }, { 1, 1000003 }, { 40, 20011 }, { 7, 70001 }, { 133, 16384 }, { 2, 65537 }                       \
    }
/* What waits for other blocks, or is finished by the last of them. */
static const struct subject {
    const char *spec, *strategy;
    int64_t size[VISITS][2];
} subjects[] = {
    { "scan_exclusive", "scan.lookahead", LINES }, { "scan_exclusive", "scan.lookback", LINES },
    { "scan_exclusive", "scan.allpre", LINES },    { "scan_mss", "scan.lookahead", LINES },
    { "scan_mss", "scan.lookback", LINES },        { "scan_affine", "scan.allpre", LINES },
    { "scan_segmented", "segscan.flags", LINES },  { "scan_rows", "segscan.lookback", ROWS },
    { "scan_rows", "segscan.flat", ROWS },         { "scan_rows", "segscan.cluster", LONG_ROWS },
    { "scan_columns", "segscan.column", ROWS },    { "mss", "reduce.ordered", LINES },
    { "matrix2x2", "reduce.ordered", LINES },      { "sum", "reduce.gather", LINES },
    { "sum", "reduce.last_block", LINES },         { "sum", "reduce.cluster", LINES },
    { "stats", "reduce.last_block", LINES },       { "row_sum", "segreduce.multi_block", ROWS },
    { "column_sum", "segreduce.column", ROWS },
};

static void bark(int signal_number)
{
    static const char text[] = "stress: a launch did not come back\n";

    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

/* ---- what keeps the device busy --------------------------------------------------------------- */
struct busy {
    ptxgen_program *program;
    ptxgen_loaded *sum;
    void *in, *out;
};

static bool busy_create(struct suite *t, const char *specs, struct busy *b)
{
    const size_t bytes = (size_t)BUSY_ELEMENTS * sizeof(float);
    char path[512];

    snprintf(path, sizeof path, "%s/sum.yaml", specs);
    *b = (struct busy){ .program = NULL };
    return load_spec(t, path, NULL, &b->program, &b->sum) &&
           ptxgen_gpu_alloc(t->s, t->gpu, bytes, &b->in) == PTXGEN_OK &&
           ptxgen_gpu_fill(t->s, t->gpu, b->in, 0, bytes, t->stream[1]) == PTXGEN_OK &&
           ptxgen_stream_wait(t->s, t->gpu, t->stream[1]) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, 256 * BUSY_STREAMS, &b->out) == PTXGEN_OK;
}

static void busy_finish(struct suite *t, struct busy *b)
{
    ptxgen_gpu_free(t->gpu, b->in);
    ptxgen_gpu_free(t->gpu, b->out);
    ptxgen_loaded_destroy(b->sum);
    ptxgen_program_destroy(b->program);
}

static bool keep_busy(struct suite *t, const struct busy *b)
{
    const int64_t n = BUSY_ELEMENTS;
    bool ok = true;

    for (int i = 0; i < BUSY_STREAMS && ok; i++) {
        const void *in[] = { b->in };
        void *out[] = { (char *)b->out + 256 * i };
        const ptxgen_arguments args = { &n, in, out, NULL };

        ok = ptxgen_launch(t->s, b->sum, &args, t->stream[1 + i], NULL) == PTXGEN_OK;
    }
    return ok;
}

/* ---- subjects --------------------------------------------------------------------------------- */
static bool once(struct suite *t, const struct busy *b, ptxgen_loaded *loaded)
{
    const ptxgen_arguments args = bed_arguments(t->bed, 0);

    return keep_busy(t, b) && bed_poison(t) && ptxgen_launch(t->s, loaded, &args, t->stream[0], NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK && bed_fetch(t);
}

/* A share of the repetitions at one size; the number that were right, less than `n` after a failure. */
static int at_size(struct suite *t, const struct busy *b, const ptxgen_problem *problem, const int64_t *size,
                   ptxgen_loaded *loaded, bool same_bits, int n, char *why, size_t length)
{
    void *keep[ARRAYS_MAX] = { NULL };
    struct sample x;
    int done = 0;

    if (sample_create(t, problem, size, &x) && !x.refused && bed_lay(t, &x, 0, 1, -1))
        while (done < n && once(t, b, loaded) && bed_check(t, 0, same_bits ? keep : NULL, why, length))
            done++;
    for (int o = 0; o < ARRAYS_MAX; o++)
        free(keep[o]);
    bed_clear(t);
    sample_finish(&x);
    return done;
}

static void run_subject(struct suite *t, const char *specs, const struct busy *b, const struct subject *subject)
{
    ptxgen_program *program = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_problem *problem;
    char path[512], why[400] = "";
    bool ok = true;

    snprintf(path, sizeof path, "%s/%s.yaml", specs, subject->spec);
    if (!load_spec(t, path, subject->strategy, &program, &loaded) ||
        ptxgen_problem_from_file(t->s, path, &problem) != PTXGEN_OK) {
        note_failure(t, "stress/%s %s: cannot be loaded", subject->spec, subject->strategy);
        return;
    }
    alarm(WATCHDOG_SECONDS);
    for (int k = 0; k < VISITS && ok; k++) {
        const int n = REPETITIONS / VISITS + 1;
        const int done = at_size(t, b, problem, subject->size[k], loaded, promises_bits(program), n, why, sizeof why);

        ok = done == n;
        if (!ok)
            note_failure(t, "stress/%s %s, size %lld %lld, repetition %d: %s", subject->spec, subject->strategy,
                         (long long)subject->size[k][0], (long long)subject->size[k][1], done, why);
    }
    alarm(0);
    if (ok)
        note_outcome(t, "busy device", OUTCOME_PASSED);
    ptxgen_loaded_destroy(loaded);
    ptxgen_program_destroy(program);
}

void run_stress(struct suite *t, const char *specs)
{
    struct busy b;

    signal(SIGALRM, bark);
    if (bed_create(t) && busy_create(t, specs, &b)) {
        for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
            if (t->filter == NULL || strstr(subjects[i].strategy, t->filter) || strstr(subjects[i].spec, t->filter))
                run_subject(t, specs, &b, &subjects[i]);
    } else {
        note_failure(t, "stress: no memory, or no reduction to keep the device busy");
    }
    busy_finish(t, &b);
    bed_destroy(t);
}
