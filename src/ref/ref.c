/* SPDX-License-Identifier: Apache-2.0 */
/* ref.c - entry points of the oracle. */
#include "ref_internal.h"

#include <setjmp.h>

/* Extents and shapes; NULL when they make sense. */
static const char *check_sizes(struct ref *r)
{
    const struct problem *p = r->p;
    for (int i = 0; i < p->nsizes; i++) {
        if (r->args->size[i] < 0) {
            return ref_message(r, "size '%s' is %lld, which is negative", p->size[i].name, (long long)r->args->size[i]);
        }
        if (p->size[i].elements && r->args->size[i] < p->size[i].min) {
            return ref_message(r, "at() reads an array and needs that %s is at least %lld", p->size[i].name,
                               (long long)p->size[i].min);
        }
    }
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = problem_array(p, i);
        if (prog_array_elements(a, r->args->size) < 0) {
            return ref_message(r, "the shape of '%s' is negative or too large", a->name);
        }
    }
    for (int d = 0; d < p->rank; d++) {
        r->extent[d] = ref_dim(r, &p->space[d].extent);
    }
    return NULL;
}

static int most_op_lets(const struct problem *p)
{
    int most = 0;
    for (int i = 0; i < p->nreductions; i++) {
        most = p->reduction[i].op->nlets > most ? p->reduction[i].op->nlets : most;
    }
    for (int o = 0; o < p->noutputs; o++) {
        const struct op *op = p->output[o].combine;
        most = op && op->nlets > most ? op->nlets : most;
    }
    for (int i = 0; i < p->ngatherers; i++) {
        most = p->gatherer[i].op->nlets > most ? p->gatherer[i].op->nlets : most;
    }
    return most;
}

static const char *run_in(struct ref *r)
{
    const struct problem *p = r->p;
    const char *message = check_sizes(r);
    if (message) {
        return message;
    }
    r->let = arena_new(r->scratch, struct num, p->nlets);
    r->let_stamp = arena_new(r->scratch, uint64_t, p->nlets);
    r->stamp = 1;
    r->op_let = arena_new(r->scratch, struct num, most_op_lets(p));
    r->state = arena_new(r->scratch, struct tuple, p->nreductions);
    r->total = arena_new(r->scratch, struct tuple, p->nreductions);
    r->output = arena_new(r->scratch, struct tuple, p->noutputs);
    r->kept = arena_new(r->scratch, int64_t, p->noutputs);
    r->unsure = arena_new(r->scratch, bool, p->noutputs);
    r->met = arena_alloc(r->scratch, sizeof *r->met * (size_t)p->noutputs);
    ref_initials(r);
    switch (p->kind) {
    case KIND_REDUCE: message = ref_reduce(r); break;
    case KIND_SCAN: message = ref_scan(r); break;
    case KIND_STENCIL: message = ref_stencil(r); break;
    }
    return message ? message : r->wrong;
}

struct running {
    struct ref ref;
    const char *message;
};

static void run_with(struct arena *scratch, void *user)
{
    struct running *r = user;
    r->ref.scratch = scratch;
    r->message = run_in(&r->ref);
}

static const char *run(struct ptxgen_session *s, const struct problem *p, const struct run_args *args, bool tracked,
                       double *const *bound)
{
    struct running r = { .ref = { .session = s, .p = p, .args = args, .tracked = tracked, .bound = bound } };
    session_scratch(s, run_with, &r);
    return r.message;
}

const char *ref_run(struct ptxgen_session *s, const struct problem *p, const struct run_args *args)
{
    return run(s, p, args, false, NULL);
}

const char *ref_bound(struct ptxgen_session *s, const struct problem *p, const struct run_args *args,
                      double *const *bound)
{
    return run(s, p, args, true, bound);
}

union value ref_const(const struct problem *p, const struct expr *e, const struct run_args *args)
{
    struct ref r = { .p = p, .args = args };
    return ref_eval(&r, e).v;
}

void ref_operate(const struct problem *p, const struct op *op, const struct run_args *args, const union value *a,
                 const union value *b, union value *out)
{
    struct num op_let[LET_VALUES_MAX];
    struct ref r = { .p = p, .args = args, .op_let = op_let };
    struct tuple left, right, both;
    for (int f = 0; f < op->nfields; f++) {
        left.field[f] = (struct num){ a[f], 0 };
        right.field[f] = (struct num){ b[f], 0 };
    }
    ref_combine(&r, op, &left, &right, &both);
    for (int f = 0; f < op->nfields; f++) {
        out[f] = both.field[f].v;
    }
}
