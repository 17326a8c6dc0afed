/* SPDX-License-Identifier: Apache-2.0 */
/* stress.c - protocols between blocks, a thousand times at awkward sizes and at 2^28 on a device that is busy.
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
/* Elements, by whole vectors as the look-ahead counts them from the end, and one more than segments. */
#define RAGGED                                                                                                         \
    {                                                                                                                  \
        { 1000000, 20001 }, { 13312, 40000 }, { 8 * 13312 - 4, 4 }, { 4096, 3 }, { 131 * 1024 + 4, 999 }, { 4, 2 }     \
    }
/* The same, few enough for blocks that are resident at once. */
#define FEW_RAGGED                                                                                                     \
    {                                                                                                                  \
        { 500000, 20001 }, { 13313, 40000 }, { 300001, 4 }, { 4099, 3 }, { 131 * 1024 + 5, 999 }, { 1, 2 }             \
    }
#define LONG_ROWS                                                                                                      \
    {                                                                                                                  \
        { 3, 333001 }, { 1, 1000003 }, { 40, 20011 }, { 7, 70001 }, { 133, 16384 }, { 2, 65537 }                       \
    }
/* Whole vectors and few enough tiles that every block reads the totals of all before its own. */
#define WHOLE_ROWS                                                                                                     \
    {                                                                                                                  \
        { 3, 333004 }, { 1, 1000004 }, { 40, 20012 }, { 7, 70004 }, { 133, 4100 }, { 1, 4 }                            \
    }
/* Of as few columns as the look-ahead takes. */
#define CHANNELS                                                                                                       \
    {                                                                                                                  \
        { 70001, 16 }, { 3328, 4 }, { 26624, 8 }, { 250001, 4 }, { 20479, 64 }, { 1, 8 }                               \
    }
/* Segments of many tiles, of few, and of a part of one. */
#define PARTS                                                                                                          \
    {                                                                                                                  \
        { 1000003, 3 }, { 13313, 2 }, { 400000, 9 }, { 131 * 1024 + 5, 40 }, { 300000, 2001 }, { 1, 2 }                \
    }
/* What waits for other blocks, or is finished by the last of them. */
enum { RIVALS_MAX = 3 };
static const struct subject {
    const char *spec, *strategy[RIVALS_MAX];
    int64_t size[VISITS][2];
} subjects[] = {
    { "scan_exclusive", { "scan.pipeline", "scan.lookback", "scan.resident" }, LINES },
    { "scan_mss", { "scan.pipeline", "scan.lookback" }, LINES },
    { "scan_affine", { "scan.resident" }, LINES },
    { "scan_segmented", { "scan.pipeline", "scan.lookback" }, LINES },
    { "scan_ragged", { "scan.pipeline", "scan.lookback" }, RAGGED },
    { "scan_ragged", { "scan.resident" }, FEW_RAGGED },
    { "scan_rows", { "scan.lookback@across=0", "scan.lookback@across=1" }, ROWS },
    { "scan_rows", { "scan.block@cluster=2" }, LONG_ROWS },
    { "scan_rows", { "scan.pipeline", "scan.resident" }, WHOLE_ROWS },
    { "scan_columns", { "segscan.column", "segscan.strips", "segscan.three_pass" }, ROWS },
    { "scan_channels", { "scan.pipeline", "segscan.strips" }, CHANNELS },
    { "mss", { "reduce.last_block" }, LINES },
    { "matrix2x2", { "reduce.last_block" }, LINES },
    { "sum", { "reduce.gather", "reduce.last_block", "reduce.block@cluster=8" }, LINES },
    { "sum", { "reduce.atomic" }, LINES },
    { "stats", { "reduce.last_block" }, LINES },
    { "row_sum", { "segreduce.block@parts=0" }, ROWS },
    { "segment_sum", { "segreduce.block", "segreduce.block@queue=1" }, PARTS },
    { "column_sum", { "segreduce.column" }, ROWS },
    { "segment_sum", { "segreduce.offsets" }, RAGGED },
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

struct rival {
    const char *strategy;
    ptxgen_program *program;
    ptxgen_loaded *loaded;
    bool failed, decided;
};

/* A share of the repetitions of one strategy at one size. */
static void repeat(struct suite *t, const struct busy *b, const char *spec, struct rival *r, struct sample *x)
{
    const bool same_bits = promises_bits(r->program);
    const int n = REPETITIONS / VISITS + 1;
    void *keep[ARRAYS_MAX] = { NULL };
    char why[400] = "";
    int done = 0;
    bool ok = true;

    for (; done < n && ok && !was_stopped(); done += ok) {
        const double since = seconds_now();

        ok = once(t, b, r->loaded);
        const double ran = note_time(PHASE_DEVICE, since);
        ok = ok && bed_check(t, 0, same_bits ? keep : NULL, why, sizeof why);
        note_time(PHASE_COMPARE, ran);
    }
    r->failed |= done < n;
    r->decided |= sample_outcome(x) == OUTCOME_PASSED;
    if (!ok)
        note_failure(t, "stress/%s %s, size %lld %lld, repetition %d: %s", spec, r->strategy, (long long)x->size[0],
                     x->nsizes > 1 ? (long long)x->size[1] : 0, done, why);
    for (int o = 0; o < ARRAYS_MAX; o++)
        free(keep[o]);
}

static void at_size(struct suite *t, const struct busy *b, const struct subject *subject, const ptxgen_problem *problem,
                    const int64_t *size, struct rival *rival)
{
    const double since = seconds_now();
    struct sample x;
    const bool ok = sample_create(t, problem, size, &x) && !x.refused && bed_lay(t, &x, 0, 1, -1);

    note_time(PHASE_REFERENCE, since);
    if (!ok)
        note_failure(t, "stress/%s: no reference or no memory", subject->spec);
    for (int i = 0; i < RIVALS_MAX && rival[i].loaded && ok && !was_stopped(); i++)
        repeat(t, b, subject->spec, &rival[i], &x);
    bed_clear(t);
    sample_finish(&x);
}

static void run_subject(struct suite *t, const char *specs, const struct busy *b, const struct subject *subject)
{
    struct rival rival[RIVALS_MAX] = { { .failed = false } };
    const double since = seconds_now();
    ptxgen_problem *problem;
    char path[512];
    bool ok;

    snprintf(path, sizeof path, "%s/%s.yaml", specs, subject->spec);
    ok = ptxgen_problem_from_file(t->s, path, &problem) == PTXGEN_OK;
    for (int i = 0; i < RIVALS_MAX && subject->strategy[i] && ok; i++) {
        rival[i].strategy = subject->strategy[i];
        ok = load_spec(t, path, rival[i].strategy, &rival[i].program, &rival[i].loaded);
    }
    if (!ok)
        note_failure(t, "stress/%s: cannot be loaded", subject->spec);
    alarm(WATCHDOG_SECONDS);
    for (int k = 0; k < VISITS && ok && !was_stopped(); k++)
        at_size(t, b, subject, problem, subject->size[k], rival);
    alarm(0);
    for (int i = 0; i < RIVALS_MAX && rival[i].loaded; i++) {
        if (ok && !rival[i].failed && !was_stopped())
            note_outcome(t, "busy device", rival[i].decided ? OUTCOME_PASSED : OUTCOME_UNDECIDED);
        ptxgen_loaded_destroy(rival[i].loaded);
        ptxgen_program_destroy(rival[i].program);
    }
    snprintf(path, sizeof path, "stress/%s", subject->spec);
    note_spec_time(path, seconds_now() - since);
}

static bool is_chosen(const struct suite *t, const struct subject *subject)
{
    bool chosen = t->filter == NULL || strstr(subject->spec, t->filter);

    for (int i = 0; i < RIVALS_MAX && subject->strategy[i]; i++)
        chosen |= t->filter && strstr(subject->strategy[i], t->filter);
    return chosen;
}

/* ---- 2^28 elements ---------------------------------------------------------------------------- */
/* A thousand results of a gigabyte are not compared on the host: the sums of equal elements are known, and a reduction
 * counts where they lie how many are wrong. */
#define LONG_ELEMENTS ((int64_t)1 << 28)
static const char long_name[] = "scan_long",
                  long_scan[] = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n",
                  long_judge[] = "kind: reduce\ninputs: {y: 'i32[n]'}\n"
                                 "map: i32(y != i32(index(n) + 1) * 16843009)\n" /* every byte is 1 */
                                 "operator: add\noutputs: {wrong: i32}\n";
struct long_run {
    ptxgen_program *program[2];
    ptxgen_loaded *scan, *judge;
    void *x, *y, *wrong;
};

static bool long_create(struct suite *t, const char *strategy, struct long_run *r)
{
    const size_t bytes = (size_t)LONG_ELEMENTS * sizeof(int32_t);

    *r = (struct long_run){ .scan = NULL };
    return load_text(t, long_scan, strategy, &r->program[0], &r->scan) &&
           load_text(t, long_judge, NULL, &r->program[1], &r->judge) &&
           ptxgen_gpu_alloc(t->s, t->gpu, bytes, &r->x) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, bytes, &r->y) == PTXGEN_OK &&
           ptxgen_gpu_alloc(t->s, t->gpu, sizeof(int32_t), &r->wrong) == PTXGEN_OK &&
           ptxgen_gpu_fill(t->s, t->gpu, r->x, 1, bytes, t->stream[0]) == PTXGEN_OK;
}

static void long_finish(struct suite *t, struct long_run *r)
{
    ptxgen_gpu_free(t->gpu, r->x);
    ptxgen_gpu_free(t->gpu, r->y);
    ptxgen_gpu_free(t->gpu, r->wrong);
    ptxgen_loaded_destroy(r->scan);
    ptxgen_loaded_destroy(r->judge);
    for (int i = 0; i < 2; i++)
        ptxgen_program_destroy(r->program[i]);
}

static bool long_once(struct suite *t, const struct busy *b, const struct long_run *r, int32_t *wrong)
{
    const int64_t n = LONG_ELEMENTS;
    const void *x[] = { r->x }, *sums[] = { r->y };
    void *y[] = { r->y }, *count[] = { r->wrong };
    const ptxgen_arguments scan = { &n, x, y, NULL }, judge = { &n, sums, count, NULL };
    const size_t bytes = (size_t)n * sizeof(int32_t);

    return keep_busy(t, b) && ptxgen_gpu_fill(t->s, t->gpu, r->y, POISON, bytes, t->stream[0]) == PTXGEN_OK &&
           ptxgen_launch(t->s, r->scan, &scan, t->stream[0], NULL) == PTXGEN_OK &&
           ptxgen_launch(t->s, r->judge, &judge, t->stream[0], NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK &&
           ptxgen_gpu_read(t->s, t->gpu, wrong, r->wrong, sizeof *wrong) == PTXGEN_OK;
}

static void run_long(struct suite *t, const struct busy *b, const char *strategy)
{
    const double since = seconds_now();
    struct long_run r;
    int32_t wrong = -1;
    int done = 0;
    bool ok = long_create(t, strategy, &r);

    alarm(WATCHDOG_SECONDS);
    for (; done < REPETITIONS && ok && !was_stopped(); done += ok)
        ok = long_once(t, b, &r, &wrong) && wrong == 0;
    alarm(0);
    if (!ok)
        note_failure(t, "stress/%s %s, repetition %d: %d elements are wrong", long_name, strategy, done, (int)wrong);
    else if (done == REPETITIONS)
        note_outcome(t, "busy device", OUTCOME_PASSED);
    else
        note_not_run("%s by %s: repetitions from %d on", long_name, strategy, done);
    long_finish(t, &r);
    note_spec_time("stress/scan_long", note_time(PHASE_DEVICE, since) - since);
}

void run_stress(struct suite *t, const char *specs)
{
    static const char *const of_long[] = { "scan.pipeline", "scan.lookback" };
    struct busy b;

    signal(SIGALRM, bark);
    if (bed_create(t) && busy_create(t, specs, &b)) {
        for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
            if (was_stopped())
                note_not_run("%s on a busy device", subjects[i].spec);
            else if (is_chosen(t, &subjects[i]))
                run_subject(t, specs, &b, &subjects[i]);
        for (size_t i = 0; i < sizeof of_long / sizeof *of_long && (!t->filter || strstr(long_name, t->filter)); i++)
            run_long(t, &b, of_long[i]);
    } else {
        note_failure(t, "stress: no memory, or no reduction to keep the device busy");
    }
    busy_finish(t, &b);
    bed_destroy(t);
}
