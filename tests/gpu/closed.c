/* SPDX-License-Identifier: Apache-2.0 */
/* closed.c - scans, segments and stencils of more than 2^31 elements or 2^32 bytes, whose results are known in closed
 * form.
 *
 * Element i of the input is h(to) - h(from) of two places that depend on i, h a hash: sums of neighbours telescope, so
 * that what is expected at any place is again a difference of two hashes, and an element that was read, carried or
 * written somewhere else shows.  The input is made on the device, and every element of the output is compared there, by
 * small programs over slices in which no index comes near 2^31; they are told where a slice begins.  The hashes that
 * floats are made of have 8 bits, so that no sum that any schedule forms is rounded.
 */
#include <string.h>

#include "gpu_tests.h"

enum { TEXT_MAX = 2000, NAMED = 8 };
#define SLICE ((int64_t)1 << 28)
#define GIANT ((int64_t)1 << 31)

/* Where segments between offsets begin: their lengths differ, and the last one ends with the array. */
#define OFFSET(j) "((" j ") * length + (" j ") % 5)"
/* The one that element i is in. */
#define SEGMENT "select(i < " OFFSET("i / length") ", i / length - 1, i / length)"
/* The element at distance d along both dimensions, on a torus. */
#define DIAGONAL(d) "((i / columns + rows + " d ") % rows * columns + (i % columns + columns + " d ") % columns)"

/* Expressions in i (an element's number), rows, columns, and length. */
struct difference {
    const char *to, *from;
};
static const struct closed {
    const char *name, *text;       /* of the spec: of the benchmark's where there is no text */
    const char *type;              /* of the elements */
    int64_t rows, columns, length; /* rows 0: one dimension; length: of segments in it */
    int64_t results;               /* elements of the output */
    struct difference in, out;
    const char *second,
        *second_type; /* an expression for another input, per element or (offsets) one more than results */
    int64_t second_elements;
    const char *strategy[NAMED]; /* by name, beside the default */
} subjects[] = {
    { .name = "scan_i8",
      .type = "i8",
      .columns = GIANT + 12345,
      .results = GIANT + 12345,
      .in = { "i + 1", "i" },
      .out = { "i + 1", "0" },
      .strategy = { "scan.pipeline", "scan.lookback", "scan.three_pass" } },
    { .name = "scan_i64",
      .type = "i64",
      .columns = GIANT / 4 + 333,
      .results = GIANT / 4 + 333,
      .in = { "i + 1", "i" },
      .out = { "i + 1", "0" },
      .strategy = { "scan.lookback" } },
    { .name = "scan_flagged",
      .type = "f32",
      .columns = GIANT + 4 * 1003,
      .length = 1003,
      .results = GIANT + 4 * 1003,
      .in = { "i + 1", "i" },
      .out = { "i + 1", "i - i % length" },
      .second = "i % length == 0",
      .second_type = "u8",
      .second_elements = GIANT + 4 * 1003,
      .strategy = { "scan.pipeline", "scan.lookback" } },
    { .name = "scan_between",
      .type = "f32",
      .columns = 2147490000,
      .length = 1000,
      .results = 2147490000,
      .in = { "i + 1", "i" },
      .out = { "i + 1", OFFSET(SEGMENT) },
      .second = OFFSET("i"),
      .second_type = "i64",
      .second_elements = 2147490 + 1,
      .strategy = { "scan.pipeline", "scan.lookback", "scan.block@lanes=32" } },
    { .name = "offsets",
      .type = "f32",
      .columns = 2147490000,
      .length = 1000,
      .results = 2147490,
      .in = { "i + 1", "i" },
      .out = { OFFSET("i + 1"), OFFSET("i") },
      .second = OFFSET("i"),
      .second_type = "i64",
      .second_elements = 2147490 + 1,
      .strategy = { "segreduce.offsets" } },
    { .name = "segscan",
      .type = "f32",
      .rows = 65551,
      .columns = 32772,
      .results = 65551 * (int64_t)32772,
      .in = { "i + 1", "i" },
      .out = { "i + 1", "i - i % columns" },
      .strategy = { "scan.pipeline", "scan.block", "scan.block@cluster=2", "scan.lookback@across=1",
                    "scan.lookback@across=0" } },
    { .name = "segscan",
      .type = "f32",
      .rows = 21474900,
      .columns = 100,
      .results = 2147490000,
      .in = { "i + 1", "i" },
      .out = { "i + 1", "i - i % columns" },
      .strategy = { "scan.pipeline", "segscan.tile", "segscan.staged", "scan.block@lanes=32" } },
    { .name = "segsum",
      .type = "f32",
      .rows = 65551,
      .columns = 32772,
      .results = 65551,
      .in = { "i + 1", "i" },
      .out = { "(i + 1) * columns", "i * columns" },
      .strategy = { "segreduce.block@parts=1", "segreduce.block@parts=0" } },
    { .name = "segsum",
      .type = "f32",
      .rows = 21474900,
      .columns = 100,
      .results = 21474900,
      .in = { "i + 1", "i" },
      .out = { "(i + 1) * columns", "i * columns" },
      .strategy = { "segreduce.subwarp", "segreduce.tile", "segreduce.subwarp@lanes=1" } },
    { .name = "few rows",
      .text =
          "kind: reduce\ninputs: {x: 'i8[m, n]'}\nover: n\noperator: add\naccumulator: i8\noutputs: {sum: 'i8[m]'}\n",
      .type = "i8",
      .rows = 3,
      .columns = GIANT / 3 + 77,
      .results = 3,
      .in = { "i + 1", "i" },
      .out = { "(i + 1) * columns", "i * columns" },
      .strategy = { "segreduce.block@parts=0" } },
    { .name = "colscan",
      .type = "f32",
      .rows = GIANT / 16 + 333,
      .columns = 16,
      .results = GIANT + 333 * 16,
      .in = { "i + columns", "i" },
      .out = { "i + columns", "i % columns" },
      .strategy = { "scan.pipeline", "segscan.strips", "segscan.three_pass" } },
    { .name = "colscan",
      .type = "f32",
      .rows = 32771,
      .columns = 65540,
      .results = 32771 * (int64_t)65540,
      .in = { "i + columns", "i" },
      .out = { "i + columns", "i % columns" },
      .strategy = { "segscan.column", "segscan.strips", "segscan.three_pass" } },
    { .name = "colsum",
      .type = "f32",
      .rows = 32771,
      .columns = 65540,
      .results = 65540,
      .in = { "i + columns", "i" },
      .out = { "rows * columns + i", "i" },
      .strategy = { "segreduce.column" } },
    { .name = "diagonal",
      .text = "kind: stencil\ninputs: {x: 'i8[m, n]'}\nboundary: wrap\n"
              "outputs: {y: {type: 'i8[m, n]', value: 'x[1, 1] - x[-1, -1]'}}\n",
      .type = "i8",
      .rows = 32771,
      .columns = 65552,
      .results = 32771 * (int64_t)65552,
      .in = { "i", "0" },
      .out = { DIAGONAL("1"), DIAGONAL("-1") },
      .strategy = { "stencil.global", "stencil.stream", "stencil.multi_write", "stencil.big_tile" } },
    { .name = "diagonal of odd rows",
      .text = "kind: stencil\ninputs: {x: 'f32[m, n]'}\nboundary: wrap\n"
              "outputs: {y: {type: 'f32[m, n]', value: 'x[1, 1] - x[-1, -1]'}}\n",
      .type = "f32",
      .rows = 46349,
      .columns = 46351,
      .results = 46349 * (int64_t)46351,
      .in = { "i", "0" },
      .out = { DIAGONAL("1"), DIAGONAL("-1") },
      .strategy = { "stencil.global", "stencil.stream", "stencil.multi_write", "stencil.big_tile" } },
    { .name = "diagonal, five times",
      .text = "kind: stencil\ninputs: {x: 'f32[m, n]'}\nboundary: wrap\n"
              "outputs: {y: {type: 'f32[m, n]', value: 'x[1, 1]'}}\niterate: {steps: 5, feedback: {x: y}}\n",
      .type = "f32",
      .rows = 32771,
      .columns = 65540,
      .results = 32771 * (int64_t)65540,
      .in = { "i", "0" },
      .out = { DIAGONAL("5"), "0" },
      .strategy = { "stencil.temporal", "stencil.stream" } },
};

/* ---- programs --------------------------------------------------------------------------------- */
/* What slices are told, in this order. */
#define PARAMS "params: {first: i64, rows: i64, columns: i64, length: i64}\n"
enum { PARAM_COUNT = 4 };

static size_t size_of(const char *type) { return strcmp(type, "i64") == 0 ? 8 : strcmp(type, "f32") == 0 ? 4 : 1; }

/* The difference of hashes as an expression in the lets a and b. */
static void hashes(const char *type, const struct difference *d, char *lets, char *value)
{
    const int shift = strcmp(type, "i64") == 0 ? 0 : 56;

    snprintf(lets, TEXT_MAX,
             "let:\n  i: index(n) + first\n  a: u64(%s) * 2177342782468422677\n"
             "  b: u64(%s) * 2177342782468422677\n",
             d->to, d->from);
    snprintf(value, TEXT_MAX,
             "%s((a ^ a >> 29) * 4658895280553007687 >> %d) - %s((b ^ b >> 29) * 4658895280553007687 >> %d)", type,
             shift, type, shift);
}

struct tool {
    ptxgen_program *program;
    ptxgen_loaded *loaded;
};

static bool tool_load(struct suite *t, const char *text, struct tool *out)
{
    return load_text(t, text, NULL, &out->program, &out->loaded);
}

static void tool_finish(struct tool *x)
{
    ptxgen_loaded_destroy(x->loaded);
    ptxgen_program_destroy(x->program);
}

/* Writes `value` to every element; its input is there for its shape and never read. */
static bool maker_load(struct suite *t, const char *type, const char *lets, const char *value, struct tool *out)
{
    char text[3 * TEXT_MAX];

    snprintf(text, sizeof text,
             "kind: stencil\ninputs: {shape: '%s[n]'}\n" PARAMS "%soutputs: {x: {type: '%s[n]', value: '%s'}}\n", type,
             lets, type, value);
    return tool_load(t, text, out);
}

/* Counts the elements that are not `value`. */
static bool judge_load(struct suite *t, const char *type, const char *lets, const char *value, struct tool *out)
{
    char text[3 * TEXT_MAX];

    snprintf(text, sizeof text,
             "kind: reduce\ninputs: {y: '%s[n]'}\n" PARAMS
             "%smap: i64(y != (%s))\noperator: add\noutputs: {wrong: i64}\n",
             type, lets, value);
    return tool_load(t, text, out);
}

/* ---- data ------------------------------------------------------------------------------------- */
/* One subject on the device. */
struct data {
    const struct closed *c;
    struct tool make, make_second, judge;
    char *x, *second, *y, *wrong;
};

static void slice_params(const struct closed *c, int64_t first, ptxgen_value *param)
{
    param[0].i = first;
    param[1].i = c->rows;
    param[2].i = c->columns;
    param[3].i = c->length;
}

static bool make(struct suite *t, const struct closed *c, const struct tool *maker, char *to, const char *type,
                 int64_t elements)
{
    bool ok = true;

    for (int64_t first = 0; first < elements && ok; first += SLICE) {
        const int64_t n = elements - first < SLICE ? elements - first : SLICE;
        const void *nowhere[] = { (const void *)((uintptr_t)1 << 50) };
        void *out[] = { to + (size_t)first * size_of(type) };
        ptxgen_value param[PARAM_COUNT];
        const ptxgen_arguments args = { &n, nowhere, out, param };

        slice_params(c, first, param);
        ok = ptxgen_launch(t->s, maker->loaded, &args, t->stream[0], NULL) == PTXGEN_OK;
    }
    return ok && ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK;
}

/* How many elements of the output are wrong; -1: it could not be found out. */
static int64_t count_wrong(struct suite *t, const struct data *d)
{
    const struct closed *c = d->c;
    int64_t sum = 0, wrong;

    for (int64_t first = 0; first < c->results; first += SLICE) {
        const int64_t n = c->results - first < SLICE ? c->results - first : SLICE;
        const void *in[] = { d->y + (size_t)first * size_of(c->type) };
        void *out[] = { d->wrong };
        ptxgen_value param[PARAM_COUNT];
        const ptxgen_arguments args = { &n, in, out, param };

        slice_params(c, first, param);
        if (ptxgen_launch(t->s, d->judge.loaded, &args, t->stream[0], NULL) != PTXGEN_OK ||
            ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) != PTXGEN_OK ||
            ptxgen_gpu_read(t->s, t->gpu, &wrong, d->wrong, sizeof wrong) != PTXGEN_OK)
            return -1;
        sum += wrong;
    }
    return sum;
}

static void *get(struct suite *t, size_t bytes)
{
    void *p = NULL;

    return ptxgen_gpu_alloc(t->s, t->gpu, bytes, &p) == PTXGEN_OK ? p : NULL;
}

static bool data_create(struct suite *t, const struct closed *c, struct data *d)
{
    const int64_t elements = (c->rows ? c->rows : 1) * c->columns;
    char lets[TEXT_MAX], value[TEXT_MAX];
    bool ok;

    *d = (struct data){ .c = c };
    d->x = get(t, (size_t)elements * size_of(c->type));
    d->y = get(t, (size_t)c->results * size_of(c->type));
    d->wrong = get(t, sizeof(int64_t));
    ok = d->x && d->y && d->wrong;
    hashes(c->type, &c->in, lets, value);
    ok = ok && maker_load(t, c->type, lets, value, &d->make) && make(t, c, &d->make, d->x, c->type, elements);
    hashes(c->type, &c->out, lets, value);
    ok = ok && judge_load(t, c->type, lets, value, &d->judge);
    if (!ok || !c->second)
        return ok;
    snprintf(value, sizeof value, "%s(%s)", c->second_type, c->second);
    d->second = get(t, (size_t)c->second_elements * size_of(c->second_type));
    return d->second && maker_load(t, c->second_type, "let:\n  i: index(n) + first\n", value, &d->make_second) &&
           make(t, c, &d->make_second, d->second, c->second_type, c->second_elements);
}

static void data_finish(struct suite *t, struct data *d)
{
    tool_finish(&d->make);
    tool_finish(&d->make_second);
    tool_finish(&d->judge);
    ptxgen_gpu_free(t->gpu, d->x);
    ptxgen_gpu_free(t->gpu, d->y);
    ptxgen_gpu_free(t->gpu, d->second);
    ptxgen_gpu_free(t->gpu, d->wrong);
}

/* ---- subjects --------------------------------------------------------------------------------- */
/* How many results are wrong; -1: it did not run.  What was there before must count as wrong, or the judge is none. */
static int64_t run_one(struct suite *t, const struct data *d, ptxgen_loaded *loaded)
{
    const struct closed *c = d->c;
    const bool offsets = c->second && c->second_elements != c->columns;
    const int64_t size[] = { c->rows ? c->rows : c->columns, offsets ? c->second_elements : c->columns };
    const void *in[] = { d->x, d->second };
    void *out[] = { d->y };
    const ptxgen_arguments args = { size, in, out, NULL };

    if (ptxgen_gpu_fill(t->s, t->gpu, d->y, POISON, (size_t)c->results * size_of(c->type), t->stream[0]) != PTXGEN_OK ||
        count_wrong(t, d) < c->results / 2 || ptxgen_launch(t->s, loaded, &args, t->stream[0], NULL) != PTXGEN_OK ||
        ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) != PTXGEN_OK)
        return -1;
    return count_wrong(t, d);
}

static void run_form(struct suite *t, const char *specs, const struct data *d, const char *strategy)
{
    const struct closed *c = d->c;
    struct tool subject = { NULL, NULL };
    int64_t wrong = -1;
    char path[512];

    snprintf(path, sizeof path, "%s/%s.yaml", specs, c->name);
    if (c->text ? load_text(t, c->text, strategy, &subject.program, &subject.loaded)
                : load_spec(t, path, strategy, &subject.program, &subject.loaded))
        wrong = run_one(t, d, subject.loaded);
    if (wrong == 0)
        note_outcome(t, "large arrays", OUTCOME_PASSED);
    else
        note_failure(t, "large/%s %s, %lld x %lld: %s, %lld of %lld results are wrong", c->name,
                     strategy ? strategy : "default", (long long)c->rows, (long long)c->columns,
                     wrong < 0 ? "did not run" : "ran", (long long)wrong, (long long)c->results);
    tool_finish(&subject);
}

void run_closed(struct suite *t, const char *specs)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const struct closed *c = &subjects[i];
        const double since = seconds_now();
        struct data d;

        if (was_stopped() || (t->filter && !strstr(c->name, t->filter)))
            continue;
        if (data_create(t, c, &d)) {
            run_form(t, specs, &d, NULL);
            for (int k = 0; k < NAMED && c->strategy[k]; k++)
                run_form(t, specs, &d, c->strategy[k]);
        } else {
            note_failure(t, "large/%s: no data", c->name);
        }
        data_finish(t, &d);
        note_spec_time("large/of closed form", note_time(PHASE_DEVICE, since) - since);
    }
}
