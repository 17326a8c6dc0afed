/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - see results.h. */
#include "results.h"

#include "lower_impl.h"
#include "segments.h"

#include <string.h>

enum { THREADS = 256, GRID_MAX = 1 << 20 };

int results_layout(const struct problem *p, int *offset)
{
    enum ty type[STATE_FIELDS_MAX];
    const int n = state_fields(p, type);
    int bytes = 0, align = 1;
    for (int f = 0; f < n; f++) {
        const int size = ty_bytes(type[f]);
        bytes = (bytes + size - 1) / size * size;
        if (offset)
            offset[f] = bytes;
        bytes += size;
        align = size > align ? size : align;
    }
    return (bytes + align - 1) / align * align;
}

bool results_kernel(const struct plan_case *c, const struct prog_kernel *kernel)
{
    return c->mapper && kernel == &c->code.kernel[c->mapper];
}

int results_vector(const struct problem *p, const struct plan_case *c)
{
    enum { SEARCHED = 4 }; /* elements of several segments: each is looked for */
    const int vector = c->aligned && !c->shift[0] ? c->tunable[TN_VECTOR] : 1;
    return p->offsets >= 0 && vector > SEARCHED ? SEARCHED : vector;
}

static void add_mapper(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int vector = results_vector(p, c);
    const struct formula bytes = f_mul(segments_count(p), results_layout(p, NULL));
    c->mapper = c->code.nkernels;
    struct prog_kernel *k = plan_kernel(pl, c, "map");
    k->threads = THREADS;
    plan_value_arg(k, VAL_SEGMENTS, TY_I64, segments_count(p));
    plan_value_arg(k, VAL_ELEMENTS, TY_I64, segments_elements(p));
    plan_value_arg(k, VAL_HEAD, TY_I64, vector > 1 ? access_head(p, vector) : f_const(0));
    plan_buffer_arg(pl, c, 0, BUF_RESULTS, REGION_SCRATCH, bytes);
    /* One vector more, for those in front of the first whole one. */
    const struct formula vectors = f_add(f_cdiv(segments_elements(p), vector), vector > 1);
    const int each = p->offsets >= 0 ? RESULTS_ROUNDS : 1;
    plan_launch(pl, c, c->mapper, f_min(f_cdiv(vectors, (int64_t)THREADS * each), GRID_MAX));
}

static bool initials_exist(const struct problem *p)
{
    bool some = false;
    for (int o = 0; o < p->noutputs; o++)
        some |= p->output[o].initial[0] != NULL;
    return some;
}

bool initials_kernel(const struct plan_case *c, const struct prog_kernel *kernel)
{
    return c->filler && kernel == &c->code.kernel[c->filler];
}

/* The last kernel, and the first step. */
static void add_filler(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    struct formula most = f_const(0);
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].initial[0])
            most = f_max(most, access_elements(p, &p->output[o].array));
    c->filler = c->code.nkernels;
    plan_kernel(pl, c, "fill")->threads = THREADS;
    plan_launch(pl, c, c->filler, f_min(f_cdiv(most, THREADS), GRID_MAX));
    const struct prog_step fill = c->code.step[c->code.nsteps - 1];
    memmove(&c->code.step[1], c->code.step, sizeof fill * (size_t)(c->code.nsteps - 1));
    c->code.step[0] = fill;
}

bool plan_case_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *own = pl->plan->problem, *p = pl->plan->problem = strategy_problem(c->strategy, own);
    if (p->sums && c->tunable[TN_MIN_BLOCKS] != 1)
        plan_set(c, TN_MIN_BLOCKS, 1, "sums of several elements at once need registers");
    const bool good = c->strategy->build(pl, c);
    if (good && problem_writes(p, AT_RESULT) && !c->maps)
        add_mapper(pl, c);
    if (good && initials_exist(p))
        add_filler(pl, c);
    plan_arguments_end(pl, c);
    pl->plan->problem = own;
    return good;
}
