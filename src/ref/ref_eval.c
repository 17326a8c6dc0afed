/* SPDX-License-Identifier: Apache-2.0 */
/* ref_eval.c - expressions: a walk over the tree, one case per kind of node. */
#include <math.h>

#include "ref_internal.h"

static struct num exact(union value v) { return (struct num){ v, 0 }; }

/* Lets are evaluated when first used at an element: one that is not used there may be undefined there. */
static struct num eval_let(struct ref *r, int which)
{
    if (r->let_stamp[which] != r->stamp) {
        r->let[which] = ref_eval(r, r->p->let[which].value);
        r->let_stamp[which] = r->stamp;
    }
    return r->let[which];
}

static struct num eval_input(struct ref *r, const struct expr *e)
{
    int64_t offset[OFFSET_MAX] = { 0 };
    for (int d = 0; d < e->noffsets; d++) {
        offset[d] = e->offset[d];
    }
    return ref_input(r, e->which, e->field, e->noffsets ? offset : NULL);
}

/* Where a place is not known exactly, nothing is known of the value. */
static struct num eval_at(struct ref *r, const struct expr *e)
{
    int64_t at[PROG_RANK_MAX] = { 0 };
    double err = 0;
    for (int d = 0; d < e->nargs; d++) {
        const struct num i = ref_eval(r, e->arg[d]);
        at[d] = i.v.i;
        err = i.err > 0 ? INFINITY : err;
    }
    struct num x = ref_input_at(r, e->which, e->field, at);
    x.err = fmax(x.err, err);
    return x;
}

/* A fold over nothing. */
static struct num fold_identity(const struct expr *e)
{
    enum ty t = e->type;
    double extreme = e->op == FOLD_MIN ? INFINITY : -INFINITY;
    switch ((enum fold)e->op) {
    case FOLD_MIN:
    case FOLD_MAX: return exact(ref_cast(TY_F64, t, (union value){ .f = extreme }));
    case FOLD_MUL: return exact(ref_cast(TY_I32, t, (union value){ .i = 1 }));
    case FOLD_AND: return exact(ref_unary(t == TY_BOOL ? UN_NOT : UN_COMPL, t, (union value){ .i = 0 }));
    default: return exact(ref_cast(TY_I32, t, (union value){ .i = 0 }));
    }
}

static struct num fold_combine(struct ref *r, const struct expr *e, struct num a, struct num b)
{
    static const struct {
        enum expr_kind kind;
        int op;
    } row[FOLD_COUNT] = {
        [FOLD_ADD] = { EX_BINARY, BIN_ADD }, [FOLD_MUL] = { EX_BINARY, BIN_MUL }, [FOLD_MIN] = { EX_CALL, FN_MIN },
        [FOLD_MAX] = { EX_CALL, FN_MAX },    [FOLD_AND] = { EX_BINARY, BIN_AND }, [FOLD_OR] = { EX_BINARY, BIN_OR },
    };
    struct expr step = { .kind = row[e->op].kind, .op = row[e->op].op, .type = e->type, .nargs = 2 };
    step.arg[0] = step.arg[1] = e->arg[0];
    return ref_apply(r, &step, (struct num[]){ a, b });
}

/* Rows one after the other.  No rows give the identity, which is combined with none. */
static struct num eval_gather(struct ref *r, const struct expr *e)
{
    const struct input *x = &r->p->input[e->which];
    const struct op *op = r->p->gatherer[e->op].op;
    int rank = x->array.rank;
    const int along = r->p->input[e->which2].array.dim[0].size;
    int64_t rows = ref_dim(r, &r->p->input[e->which2].array.dim[0]);
    const struct tuple *outer = r->neighbour;
    struct tuple sum;
    ref_eval_tuple(r, op->identity, op->nfields, &sum);
    for (int64_t i = 0; i < rows; i++) {
        int64_t offset[OFFSET_MAX] = { 0 };
        struct tuple k, term;
        for (int d = 0; d < rank; d++) {
            offset[d] = ref_input_number(r, e->which2, i * rank + d);
        }
        for (int f = 0; f < x->array.nfields && f < STATE_FIELDS_MAX; f++) {
            k.field[f] = ref_input(r, e->which, f, offset);
        }
        r->neighbour = &k;
        if (along >= 0)
            r->run[along] = i;
        ref_eval_tuple(r, e->arg, op->nfields, &term);
        if (i == 0)
            sum = term;
        else
            (r->tracked ? ref_combine_bounded : ref_combine)(r, op, &sum, &term, &sum);
    }
    r->neighbour = outer;
    return sum.field[e->field];
}

/* With `contract`, a product and the sum so far are rounded once. */
static struct num fused_term(struct ref *r, const struct expr *product, struct num sum)
{
    struct expr step = { .kind = EX_CALL, .op = FN_FMA, .type = product->type, .nargs = 3 };
    const struct num x = ref_eval(r, product->arg[0]), y = ref_eval(r, product->arg[1]);
    step.arg[0] = step.arg[1] = step.arg[2] = product;
    return ref_apply(r, &step, (struct num[]){ x, y, sum });
}

static struct num eval_sum(struct ref *r, const struct expr *e)
{
    const int64_t n = ref_eval(r, e->arg[1]).v.i;
    struct num sum = fold_identity(e);
    for (int64_t i = 0; i < n; i++) {
        r->run[e->which] = i;
        if (i > 0 && e->field == FUSES)
            sum = fused_term(r, e->arg[0], sum);
        else {
            const struct num term = ref_eval(r, e->arg[0]);
            sum = i == 0 ? term : fold_combine(r, e, sum, term);
        }
    }
    return sum;
}

static struct num eval_operation(struct ref *r, const struct expr *e)
{
    struct num arg[OPERANDS_MAX] = { { { 0 }, 0 } };
    for (int i = 0; i < e->nargs; i++) {
        arg[i] = ref_eval(r, e->arg[i]);
    }
    if (e->kind == EX_IF || (e->kind == EX_CALL && e->op == FN_SELECT)) {
        return ref_choose(e, arg[0], arg[1], arg[2]);
    }
    return ref_apply(r, e, arg);
}

struct num ref_eval(struct ref *r, const struct expr *e)
{
    switch (e->kind) {
    case EX_CONST: return exact(e->imm);
    case EX_INPUT: return eval_input(r, e);
    case EX_PARAM: return exact(r->args->param[e->which]);
    case EX_SIZE: return exact((union value){ .i = problem_size(r->p, e->which, r->args->size) });
    case EX_INDEX: return exact((union value){ .i = r->at[e->which] });
    case EX_LET: return eval_let(r, e->which);
    case EX_OP_LET: return r->op_let[e->which];
    case EX_LEFT: return r->left->field[e->field];
    case EX_RIGHT: return r->right->field[e->field];
    case EX_STATE: return r->state[e->which].field[e->field];
    case EX_TOTAL: return r->total[e->which].field[e->field];
    case EX_OUTPUT: return r->output[e->which].field[e->field];
    case EX_NEIGHBOUR: return r->neighbour->field[e->field];
    case EX_GATHER: return eval_gather(r, e);
    case EX_AT: return eval_at(r, e);
    case EX_SUM: return eval_sum(r, e);
    case EX_RUN: return exact((union value){ .i = r->run[e->which] });
    default: return eval_operation(r, e);
    }
}

void ref_eval_tuple(struct ref *r, const struct expr *const *e, int n, struct tuple *out)
{
    for (int f = 0; f < n; f++) {
        out->field[f] = ref_eval(r, e[f]);
    }
}

void ref_combine(struct ref *r, const struct op *op, const struct tuple *a, const struct tuple *b, struct tuple *out)
{
    struct tuple result;
    r->op = op;
    r->left = a;
    r->right = b;
    for (int i = 0; i < op->nlets; i++) {
        r->op_let[i] = ref_eval(r, op->let[i].value);
    }
    ref_eval_tuple(r, op->combine, op->nfields, &result);
    *out = result;
}
