/* SPDX-License-Identifier: Apache-2.0 */
/* ref_stencil.c - stencils: every point of every time step from the values of the step before.
 *
 * Fed-back inputs live in arrays of tracked numbers from the second step on.  Only the last step writes outputs and
 * feeds reductions. With `interior` boundaries a point is skipped when any read of the stencil, from whichever
 * expression, would leave the array in such a dimension; a skipped point keeps the fed-back value, or without feedback
 * what is in the output's memory.
 */
#include "ref_internal.h"

/* How far reads of an input reach, per dimension. */
struct reach {
    int64_t lo[PROG_RANK_MAX], hi[PROG_RANK_MAX];
};

struct sweep {
    struct ref *r;
    struct reach *reach;     /* per input */
    const struct num **next; /* per input: the values for the step after */
    bool last;
    struct ref_fold *fold;
};

static void extend(struct reach *reach, int d, int64_t offset)
{
    reach->lo[d] = offset < reach->lo[d] ? offset : reach->lo[d];
    reach->hi[d] = offset > reach->hi[d] ? offset : reach->hi[d];
}

static void collect(struct sweep *w, const struct expr *e)
{
    if (e->kind == EX_INPUT) {
        for (int d = 0; d < e->noffsets; d++) {
            extend(&w->reach[e->which], d, e->offset[d]);
        }
    }
    if (e->kind == EX_GATHER) {
        int rank = w->r->p->input[e->which].array.rank;
        int64_t rows = ref_dim(w->r, &w->r->p->input[e->which2].array.dim[0]);
        for (int64_t i = 0; i < rows * rank; i++) {
            extend(&w->reach[e->which], (int)(i % rank), ref_input_number(w->r, e->which2, i));
        }
    }
}

static void collect_all(struct sweep *w)
{
    for (int i = 0; i < w->r->p->nreads; i++) {
        collect(w, w->r->p->read[i].e);
    }
}

static bool is_skipped(const struct sweep *w)
{
    const struct ref *r = w->r;
    for (int i = 0; i < r->p->ninputs; i++) {
        const struct input *x = &r->p->input[i];
        for (int d = 0; d < x->array.rank; d++) {
            if (x->role != ROLE_ELEMENT || x->boundary[d].mode != BOUND_INTERIOR) {
                continue;
            }
            int64_t at = r->at[x->axis[d]];
            if (at + w->reach[i].lo[d] < 0 || at + w->reach[i].hi[d] >= ref_dim(r, &x->array.dim[d])) {
                return true;
            }
        }
    }
    return false;
}

/* The input that is fed from an output, or -1. */
static int fed_from(const struct problem *p, int output)
{
    for (int i = 0; i < p->nfeedback; i++) {
        if (p->feedback[i].output == output) {
            return p->feedback[i].input;
        }
    }
    return -1;
}

static void read_tuple(const struct ref *r, int input, struct tuple *out)
{
    for (int f = 0; f < r->p->input[input].array.nfields; f++) {
        out->field[f] = ref_input(r, input, f, NULL);
    }
}

static void element_output(struct sweep *w, int o, bool skipped)
{
    struct ref *r = w->r;
    const struct problem *p = r->p;
    int input = fed_from(p, o);
    if (!skipped) {
        ref_eval_tuple(r, p->output[o].value, p->output[o].array.nfields, &r->output[o]);
    } else if (input >= 0) {
        read_tuple(r, input, &r->output[o]);
    } else {
        ref_output_read(r, o, &r->output[o]);
    }
    if (w->last && (!skipped || input >= 0)) {
        ref_output_write(r, o, &r->output[o]);
    }
}

static void feed(struct sweep *w)
{
    struct ref *r = w->r;
    for (int i = 0; i < r->p->nfeedback; i++) {
        const struct input *x = &r->p->input[r->p->feedback[i].input];
        int64_t element = ref_place(r, &x->array, x->axis);
        struct num *to = (struct num *)w->next[r->p->feedback[i].input] + element * x->array.nfields;
        for (int f = 0; f < x->array.nfields; f++) {
            to[f] = r->output[r->p->feedback[i].output].field[f];
        }
    }
}

static void sweep_point(struct sweep *w)
{
    struct ref *r = w->r;
    bool skipped = is_skipped(w);
    ref_next_element(r);
    for (int o = 0; o < r->p->noutputs; o++) {
        if (output_moment(&r->p->output[o]) == AT_POINT) {
            element_output(w, o, skipped);
        }
    }
    if (!w->last) {
        feed(w);
        return;
    }
    for (int i = 0; i < r->p->nreductions; i++) {
        struct tuple x;
        ref_eval_tuple(r, r->p->reduction[i].map, r->p->reduction[i].op->nfields, &x);
        fold_push(&w->fold[i], &x);
    }
}

/* The next point in row-major order; false after the last. */
static bool next_point(struct ref *r)
{
    for (int d = r->p->rank - 1; d >= 0; d--) {
        if (++r->at[d] < r->extent[d]) {
            return true;
        }
        r->at[d] = 0;
    }
    return false;
}

static int64_t first_point(struct ref *r)
{
    int64_t points = 1;
    for (int d = 0; d < r->p->rank; d++) {
        r->at[d] = 0;
        points *= r->extent[d];
    }
    return points;
}

/* No steps: the outputs are the inputs that they would feed. */
static const char *copy_inputs(struct ref *r)
{
    for (int o = 0; o < r->p->noutputs; o++) {
        if (fed_from(r->p, o) < 0) {
            return ref_message(r, "output '%s' has no value after 0 steps", r->p->output[o].array.name);
        }
    }
    for (bool more = first_point(r) > 0; more; more = next_point(r)) {
        for (int o = 0; o < r->p->noutputs; o++) {
            read_tuple(r, fed_from(r->p, o), &r->output[o]);
            ref_output_write(r, o, &r->output[o]);
        }
    }
    return NULL;
}

/* Two sets of arrays for the fed-back inputs, used in turns. */
static void allocate(struct ref *r, const struct num **set)
{
    for (int i = 0; i < r->p->nfeedback; i++) {
        int input = r->p->feedback[i].input;
        const struct prog_array *a = &r->p->input[input].array;
        set[input] = arena_new(r->scratch, struct num, problem_elements(r->p, a, r->args->size) * a->nfields);
    }
}

static const char *finish_reductions(struct ref *r, struct ref_fold *fold)
{
    for (int i = 0; i < r->p->nreductions; i++) {
        if (!fold_value(&fold[i], &r->state[i])) {
            return ref_message(r, "'%s' has no identity and no init, and there are no points", r->p->reduction[i].name);
        }
    }
    ref_write_outputs(r, AT_TOTAL);
    return NULL;
}

const char *ref_stencil(struct ref *r)
{
    const struct problem *p = r->p;
    int64_t steps = !p->iterated ? 1 : p->steps_param >= 0 ? r->args->param[p->steps_param].i : p->steps;
    if (steps < 0) {
        return ref_message(r, "the number of steps is %lld, which is negative", (long long)steps);
    }
    if (steps == 0) {
        return copy_inputs(r);
    }
    struct sweep w = { .r = r, .reach = arena_new(r->scratch, struct reach, p->ninputs) };
    const struct num **set[2] = { arena_new(r->scratch, const struct num *, p->ninputs),
                                  arena_new(r->scratch, const struct num *, p->ninputs) };
    w.fold = arena_new(r->scratch, struct ref_fold, p->nreductions);
    for (int i = 0; steps > 1 && i < 2; i++) {
        allocate(r, set[i]);
    }
    collect_all(&w);
    int64_t points = first_point(r);
    for (int i = 0; i < p->nreductions; i++) {
        fold_begin(&w.fold[i], r, i, points, false);
    }
    for (int64_t t = 0; t < steps && points > 0; t++) {
        r->fed = t == 0 ? NULL : set[(t + 1) % 2];
        w.next = set[t % 2];
        w.last = t == steps - 1;
        bool more = true;
        for (first_point(r); more; more = next_point(r)) {
            sweep_point(&w);
        }
    }
    ref_next_element(r);
    return finish_reductions(r, w.fold);
}
