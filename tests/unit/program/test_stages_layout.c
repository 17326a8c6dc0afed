/* SPDX-License-Identifier: Apache-2.0 */
/* test_stages_layout.c - memory between stages, and the walk over stages, on random graphs, by brute force. */
#include "program/stages.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES = 9, ARRAYS = 24 };

/* A graph whose arrays are bytes of one size each; element i of array a in step t is a hash of what its stage read. */
struct graph {
    struct prog_stages p;
    struct program shape;
    struct prog_stage stage[STAGES];
    struct stage_array array[ARRAYS];
    struct stage_feedback feedback[4];
    int in[STAGES][ARRAYS], out[STAGES][ARRAYS];
    int64_t size[ARRAYS];
    struct prog_array input[ARRAYS], output[ARRAYS];
    int nsize[STAGES][ARRAYS];
    unsigned char *data[2][ARRAYS]; /* of the whole: inputs, outputs */
};

static uint64_t state;
static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static int add(struct graph *g, enum stage_place place, int index, int first, int size)
{
    static const struct prog_field byte[] = { { "", TY_U8, 0 } };
    const int n = g->p.narrays++;
    g->array[n] = (struct stage_array){
        { .name = "a", .nfields = 1, .field = byte, .stride = 1, .rank = 1, .dim = { { size, 0 } } },
        place,
        index,
        first,
        first
    };
    return n;
}

static void put(struct graph *g, enum stage_place place, int stage, int size)
{
    int *count = place == PLACE_INPUT ? &g->shape.ninputs : &g->shape.noutputs;
    const int n = add(g, place, place == PLACE_BETWEEN ? 0 : (*count)++, stage, size);
    if (place == PLACE_INPUT)
        g->input[g->array[n].index] = g->array[n].array;
    if (place == PLACE_OUTPUT)
        g->output[g->array[n].index] = g->array[n].array;
    if (stage >= 0)
        g->out[stage][g->stage[stage].noutputs++] = n;
}

static void read_some(struct graph *g, int stage)
{
    for (int k = 0; k < 3; k++) {
        const int a = draw(g->p.narrays);
        g->in[stage][g->stage[stage].ninputs++] = a;
        g->array[a].last = stage;
    }
}

/* An output of the same size becomes the input in the next step. */
static void feed(struct graph *g)
{
    const int input = draw(g->shape.ninputs);
    for (int a = 0; a < g->p.narrays; a++)
        if (g->array[a].place != PLACE_INPUT && g->array[a].array.dim[0].size == g->array[input].array.dim[0].size) {
            g->feedback[g->p.nfeedback++] =
                (struct stage_feedback){ input, a, g->array[input].last >= g->array[a].first };
            g->array[a].first = 0;
            g->array[a].last = g->p.nstages - 1;
            return;
        }
}

static void make(struct graph *g, uint64_t seed)
{
    memset(g, 0, sizeof *g);
    state = seed * 77 + 1;
    g->p = (struct prog_stages){ .shape = &g->shape,
                                 .stage = g->stage,
                                 .array = g->array,
                                 .feedback = g->feedback,
                                 .nstages = 2 + draw(STAGES - 1),
                                 .steps = 1,
                                 .steps_param = -1,
                                 .until = -1,
                                 .check_every = 1 };
    g->shape = (struct program){ .name = "g", .nsizes = 4, .input = g->input, .output = g->output };
    for (int i = 0; i < 4; i++)
        g->size[i] = draw(3) ? draw(5000) : 0;
    for (int i = 0; i < 2; i++)
        put(g, PLACE_INPUT, -1, draw(4));
    for (int s = 0; s < g->p.nstages; s++) {
        read_some(g, s);
        for (int k = draw(2); k >= 0; k--)
            put(g, draw(4) ? PLACE_BETWEEN : PLACE_OUTPUT, s, draw(4));
        g->stage[s].name = "s";
        g->stage[s].input = g->in[s];
        g->stage[s].output = g->out[s];
    }
    if (draw(2)) {
        g->p.steps = 1 + draw(5);
        feed(g);
    }
}

/* ---- what a walk computes, with memory of its own for every array, or where the layout says ------------------------ */

static int64_t bytes(const struct graph *g, int a) { return prog_array_elements(&g->array[a].array, g->size); }

struct run {
    struct graph *g;
    int stage_calls;
};

static bool run_stage(void *user, int stage, const struct run_args *args)
{
    struct run *r = user;
    const struct graph *g = r->g;
    uint64_t h = 1469598103934665603u + (uint64_t)stage;
    r->stage_calls++;
    for (int i = 0; i < g->stage[stage].ninputs; i++)
        for (int64_t k = 0; k < bytes(g, g->in[stage][i]); k++)
            h = (h ^ ((const unsigned char *)args->input[i])[k]) * 1099511628211u;
    for (int o = 0; o < g->stage[stage].noutputs; o++)
        for (int64_t k = 0; k < bytes(g, g->out[stage][o]); k++)
            ((unsigned char *)args->output[o])[k] = (unsigned char)((h + (uint64_t)(o * 31)) >> (k % 50));
    return true;
}

static bool copy(void *user, void *to, const void *from, int64_t n)
{
    (void)user;
    memcpy(to, from, (size_t)n);
    return true;
}

/* The results of the whole, with the arrays between stages where `layout` says. */
static uint64_t results(struct graph *g, const struct stages_layout *layout)
{
    const void *input[ARRAYS];
    void *output[ARRAYS];
    for (int i = 0; i < g->shape.ninputs; i++) {
        unsigned char *of = g->data[0][i] = malloc(5001);
        memset(of, 3 + i, 5001);
        input[i] = of;
    }
    for (int i = 0; i < g->shape.noutputs; i++)
        output[i] = g->data[1][i] = calloc(1, 5001);
    unsigned char *memory = aligned_alloc(256, (size_t)layout->bytes + 256);
    memset(memory, 0xee, (size_t)layout->bytes + 256);
    struct run r = { g, 0 };
    const struct run_args args = { g->size, input, output, NULL };
    cr_assert(stages_walk(&g->p, &args, layout, memory, &(struct stages_doer){ &r, run_stage, copy, NULL, false }));
    cr_assert_eq(r.stage_calls, g->p.nstages * g->p.steps);
    uint64_t h = 7;
    for (int i = 0; i < g->shape.noutputs; i++)
        for (int k = 0; k < 5001; k++)
            h = (h ^ g->data[1][i][k]) * 1099511628211u;
    for (int64_t k = layout->bytes; k < layout->bytes + 256; k++)
        cr_assert_eq(memory[k], 0xee, "written behind the layout's end");
    for (int i = 0; i < g->shape.ninputs; i++)
        free(g->data[0][i]);
    for (int i = 0; i < g->shape.noutputs; i++)
        free(g->data[1][i]);
    free(memory);
    return h;
}

/* Every array between stages and every twin alone: 8 KB each. */
static void spread(const struct graph *g, struct stages_layout *l)
{
    l->bytes = 0;
    for (int i = 0; i < g->p.narrays + g->p.nfeedback; i++) {
        l->offset[i < g->p.narrays ? i : STAGE_ARRAYS_MAX + i - g->p.narrays] = l->bytes;
        l->bytes += 8192;
    }
}

/* The largest sum of what lives during one stage: no layout is smaller. */
static int64_t least(const struct graph *g)
{
    int64_t most = 0;
    for (int s = 0; s < g->p.nstages; s++) {
        int64_t sum = 0;
        for (int a = 0; a < g->p.narrays; a++)
            if (g->array[a].place == PLACE_BETWEEN && g->array[a].first <= s && s <= g->array[a].last)
                sum += (bytes(g, a) + 255) / 256 * 256;
        for (int f = 0; f < g->p.nfeedback; f++)
            if (g->feedback[f].twin)
                sum += (bytes(g, g->feedback[f].output) + 255) / 256 * 256;
        most = sum > most ? sum : most;
    }
    return most;
}

Test(stages_layout, shared_memory_changes_no_result_and_little_is_wasted)
{
    int shared = 0, exact = 0, graphs = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        static struct graph g;
        struct stages_layout tight, wide;
        make(&g, seed);
        cr_assert(stages_place(&g.p, g.size, &tight));
        spread(&g, &wide);
        cr_assert_eq(results(&g, &tight), results(&g, &wide), "seed %d", (int)seed);
        cr_assert_geq(tight.bytes, least(&g));
        int64_t sum = 0;
        for (int a = 0; a < g.p.narrays; a++)
            sum += g.array[a].place == PLACE_BETWEEN ? (bytes(&g, a) + 255) / 256 * 256 : 0;
        shared += tight.bytes < sum;
        exact += tight.bytes == least(&g);
        graphs++;
    }
    cr_expect_gt(shared, graphs / 3, "%d of %d share memory", shared, graphs);
    cr_expect_gt(exact, graphs * 95 / 100, "%d of %d take the least memory", exact, graphs);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

struct loop {
    struct graph g;
    int64_t ends; /* after this step */
    int64_t asked;
};

static bool holds(void *user, const void *flag, bool *ends)
{
    struct loop *l = user;
    (void)flag;
    *ends = ++l->asked == l->ends;
    return true;
}

/* next = x + 1 where x is fed, with a twin. */
static bool add_one(void *user, int stage, const struct run_args *args)
{
    (void)user, (void)stage;
    for (int k = 0; k < 10; k++)
        ((unsigned char *)args->output[0])[k] = (unsigned char)(((const unsigned char *)args->input[0])[9 - k] + 1);
    return true;
}

static int64_t loop(struct loop *l, int64_t steps, int64_t ends)
{
    struct graph *g = &l->g;
    struct stages_layout layout;
    unsigned char x[10] = { 0 }, y[10] = { 0 };
    const void *in[] = { x };
    void *out[] = { y };
    memset(l, 0, sizeof *l);
    g->p = (struct prog_stages){ .shape = &g->shape,
                                 .stage = g->stage,
                                 .array = g->array,
                                 .feedback = g->feedback,
                                 .nstages = 1,
                                 .steps = steps,
                                 .steps_param = -1,
                                 .until = -1,
                                 .check_every = 1 };
    g->size[0] = 10;
    put(g, PLACE_INPUT, -1, 0);
    put(g, PLACE_OUTPUT, 0, 0);
    g->in[0][g->stage[0].ninputs++] = 0;
    g->stage[0].input = g->in[0];
    g->stage[0].output = g->out[0];
    g->feedback[g->p.nfeedback++] = (struct stage_feedback){ 0, 1, true };
    g->p.until = ends >= 0 ? 1 : -1;
    l->ends = ends;
    cr_assert(stages_place(&g->p, g->size, &layout));
    cr_assert_eq(layout.bytes, 256);
    char memory[512];
    const struct run_args args = { g->size, in, out, NULL };
    cr_assert(stages_walk(&g->p, &args, &layout, memory, &(struct stages_doer){ l, add_one, copy, holds, false }));
    for (int k = 0; k < 10; k++)
        cr_assert_eq(y[k], y[0]);
    return y[0];
}

Test(stages_layout, a_loop_brings_its_last_values_home)
{
    static struct loop l;
    for (int64_t steps = 0; steps < 7; steps++) {
        cr_expect_eq(loop(&l, steps, -1), steps);
        for (int64_t ends = 1; ends < 9; ends++)
            cr_expect_eq(loop(&l, steps, ends), steps < ends ? steps : ends, "%d steps, until %d", (int)steps,
                         (int)ends);
    }
}

/* Step, then the condition's stage: which steps run it, and after which the loop ends. */
struct seldom {
    char ran[100];
    int ends, asked;
};

static bool note(void *user, int stage, const struct run_args *args)
{
    struct seldom *x = user;
    (void)args;
    x->ran[strlen(x->ran)] = (char)('a' + stage);
    return true;
}

static bool ends_at(void *user, const void *flag, bool *ends)
{
    struct seldom *x = user;
    (void)flag;
    *ends = ++x->asked == x->ends;
    return true;
}

Test(stages_layout, the_condition_s_stage_runs_where_it_is_checked)
{
    static const struct {
        int every, steps, ends;
        bool all;
        const char *ran;
    } rows[] = { { 1, 3, 9, false, "ababab" }, { 2, 5, 9, false, "aabaaba" }, { 3, 9, 2, false, "aaabaaab" },
                 { 4, 3, 1, false, "aaa" },    { 4, 4, 1, false, "aaaab" },   { 4, 3, 1, true, "ababab" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct graph g;
        static const struct stages_layout layout;
        struct seldom x = { .ends = rows[i].ends };
        char memory[1];
        memset(&g, 0, sizeof g);
        g.p = (struct prog_stages){ .shape = &g.shape,
                                    .stage = g.stage,
                                    .array = g.array,
                                    .nstages = 2,
                                    .narrays = 1,
                                    .steps = rows[i].steps,
                                    .steps_param = -1,
                                    .until = 0,
                                    .check_every = rows[i].every };
        g.array[0].place = PLACE_BETWEEN;
        const struct run_args args = { g.size, NULL, NULL, NULL };
        cr_assert(
            stages_walk(&g.p, &args, &layout, memory, &(struct stages_doer){ &x, note, copy, ends_at, rows[i].all }));
        cr_expect_str_eq(x.ran, rows[i].ran, "%zu: %s", i, x.ran);
    }
}
