/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - see work.h. */
#include "work.h"

#include "access.h"

#include <string.h>

enum { PARTS_MAX = 32 };
struct counting {
    const struct problem *p;
    const int64_t *size;
    const struct op *op; /* whose `let`s EX_OP_LET means */
    int sm;
    bool let_seen[LET_VALUES_MAX], op_let_seen[LET_VALUES_MAX];
    double times;            /* neighbours of a gather */
    double fused, functions; /* slots of additions that are fused with multiplications; calls */
    bool in_sum;             /* a term: its equal parts are computed once */
    int nparts;
    const struct expr *part[PARTS_MAX];
    int ngathers;
    const struct expr *gather[PARTS_MAX]; /* that have been counted: all fields of a state together */
    struct work work;
};

enum { SPECIAL_SLOTS = 8, WIDE_INTEGER_SLOTS = 2 };

/* Issue slots of an f64 operation: half rate on the architectures of data centres. */
static double f64_slots(int sm) { return sm == 70 || sm == 80 || sm == 90 || sm == 100 || sm == 103 ? 2 : 64; }

static void add_flops(struct counting *c, enum ty type, int flops, int instructions)
{
    c->work.flops += (int)(flops * c->times);
    c->work.slots += instructions * c->times * (type == TY_F64 ? f64_slots(c->sm) : 1);
    c->fused += flops * c->times / 2 * (type == TY_F64 ? f64_slots(c->sm) : 1);
}

static void add_special(struct counting *c, enum ty type)
{
    c->work.special += (int)c->times;
    c->work.slots += SPECIAL_SLOTS * c->times * (type == TY_F64 ? f64_slots(c->sm) : 1);
    c->functions += c->times;
}

static void add_integer(struct counting *c, enum ty type)
{
    c->work.integer += (int)c->times;
    c->work.slots += c->times * (ty_bits(type) == 64 ? WIDE_INTEGER_SLOTS : 1);
}

static bool is_product(const struct expr *e)
{
    return e && e->kind == EX_BINARY && e->op == BIN_MUL && ty_is_float(e->type) && e->field != FUSES;
}

static void count_arithmetic(struct counting *c, const struct expr *e)
{
    const enum ty type = e->arg[0]->type;
    if (e->kind == EX_BINARY && (e->op == BIN_ADD || e->op == BIN_SUB) &&
        (is_product(e->arg[0]) || is_product(e->arg[1])))
        c->work.products += (int)c->times;
    if (e->kind == EX_CAST || e->kind == EX_IF || !ty_is_float(type))
        add_integer(c, type);
    else if (e->kind == EX_BINARY && (e->op == BIN_DIV || e->op == BIN_REM))
        add_special(c, type);
    else
        add_flops(c, type, 1, e->kind == EX_BINARY && e->op == BIN_MUL && e->field == FUSES ? 0 : 1);
}

static void count_call(struct counting *c, const struct expr *e)
{
    const enum ty type = e->arg[e->nargs - 1]->type;
    switch ((enum fn)e->op) {
    case FN_FMA: add_flops(c, type, 2, 1); return;
    case FN_CLAMP: ty_is_float(type) ? add_flops(c, type, 2, 2) : (add_integer(c, type), add_integer(c, type)); return;
    case FN_MIN:
    case FN_MAX:
    case FN_ABS:
    case FN_SIGN:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_ROUND:
    case FN_TRUNC:
    case FN_ISNAN:
    case FN_ISINF: ty_is_float(type) ? add_flops(c, type, 1, 1) : add_integer(c, type); return;
    case FN_SELECT:
    case FN_POPCOUNT:
    case FN_CLZ:
    case FN_CTZ: add_integer(c, type); return;
    case FN_SIN:
    case FN_COS:
    case FN_TAN:
        c->work.periodic += (int)c->times;
        add_special(c, type);
        return;
    default: add_special(c, type); return;
    }
}

static void count(struct counting *c, const struct expr *e);

static void count_combine(struct counting *c, const struct op *op)
{
    const struct op *const outer = c->op;
    c->op = op;
    memset(c->op_let_seen, 0, sizeof c->op_let_seen);
    for (int f = 0; f < op->nfields; f++)
        count(c, op->combine[f]);
    memset(c->op_let_seen, 0, sizeof c->op_let_seen);
    c->op = outer;
}

/* Has another field of the state been counted? */
static bool gathered(struct counting *c, const struct expr *e)
{
    for (int i = 0; i < c->ngathers; i++)
        if (expr_same_state(c->gather[i], e))
            return true;
    if (c->ngathers < PARTS_MAX)
        c->gather[c->ngathers++] = e;
    return false;
}

/* A fold over the rows of an offsets input, or over a dimension: as many as there are, one where that is not known. */
static void count_fold(struct counting *c, const struct expr *e)
{
    if (e->kind == EX_GATHER && gathered(c, e))
        return;
    const struct prog_dim along = { .size = e->which };
    const struct prog_dim *rows = e->kind == EX_SUM ? &along : &c->p->input[e->which2].array.dim[0];
    const double outer = c->times, n = rows->size < 0                        ? (double)rows->add
                                       : c->size && c->size[rows->size] >= 0 ? (double)c->size[rows->size]
                                                                             : 1;
    const bool within = c->in_sum;
    c->times *= n;
    c->in_sum = e->kind == EX_SUM;
    c->nparts = 0;
    if (e->kind == EX_SUM && e->op == FOLD_ADD && e->field != FUSES && is_product(e->arg[0]))
        c->work.products += (int)c->times;
    if (e->kind == EX_GATHER)
        count_combine(c, c->p->gatherer[e->op].op);
    else
        ty_is_float(e->type) ? add_flops(c, e->type, 1, e->field == FUSES ? 0 : 1) : add_integer(c, e->type);
    for (int f = 0; f < (e->kind == EX_GATHER ? e->nargs : 1); f++)
        count(c, e->arg[f]);
    c->times = outer;
    c->in_sum = within;
}

/* Has a part of the term been counted? */
static bool counted(struct counting *c, const struct expr *e)
{
    for (int i = 0; i < c->nparts; i++)
        if (expr_equal(c->part[i], e))
            return true;
    if (c->nparts < PARTS_MAX)
        c->part[c->nparts++] = e;
    return false;
}

static void count_let(struct counting *c, bool *seen, const struct let *let)
{
    if (*seen)
        return;
    *seen = true;
    count(c, let->value);
}

static void count(struct counting *c, const struct expr *e)
{
    if (!e || (c->in_sum && e->nargs && counted(c, e)))
        return;
    switch (e->kind) {
    case EX_LET: count_let(c, &c->let_seen[e->which], &c->p->let[e->which]); return;
    case EX_OP_LET: count_let(c, &c->op_let_seen[e->which], &c->op->let[e->which]); return;
    case EX_SUM:
    case EX_GATHER: count_fold(c, e); return;
    case EX_AT:
        add_integer(c, c->in_sum ? TY_I32 : TY_I64); /* the load alone: from term to term the address grows by a step */
        if (c->in_sum)
            return;
        break;
    case EX_CALL: count_call(c, e); break;
    case EX_UNARY:
    case EX_BINARY:
    case EX_CAST:
    case EX_IF: count_arithmetic(c, e); break;
    default: break;
    }
    for (int i = 0; i < e->nargs; i++)
        count(c, e->arg[i]);
}

int work_operations(const struct problem *p)
{
    const struct work w = work_of(p, NULL, 0);
    return w.flops + w.special + w.integer;
}

bool work_is_heavy(const struct problem *p)
{
    enum { HEAVY = 160 }; /* an H200 does some 66 in the time that 8 bytes take */
    return work_operations(p) > HEAVY;
}

struct work work_of(const struct problem *p, const int64_t *size, int sm)
{
    struct counting c = { .p = p, .size = size, .sm = sm, .times = 1 };
    for (int r = 0; r < p->nreductions; r++) {
        const struct reduction *red = &p->reduction[r];
        c.op = red->op;
        memset(c.op_let_seen, 0, sizeof c.op_let_seen);
        for (int f = 0; f < red->op->nfields; f++) {
            count(&c, red->map[f]);
            count(&c, red->op->combine[f]);
            c.work.products += is_product(red->map[f]) && op_field_native(red->op, f) == NATIVE_ADD;
        }
    }
    const bool fused = c.work.products > 0;
    for (int d = 0; d < p->nby; d++)
        count(&c, p->by[d]);
    count(&c, p->key);
    for (int o = 0; o < p->noutputs; o++) {
        for (int f = 0; output_moment(&p->output[o]) != AT_TOTAL && f < p->output[o].array.nfields; f++)
            count(&c, p->output[o].value[f]);
        for (int d = 0; d < PROG_RANK_MAX; d++)
            count(&c, p->output[o].index[d]);
    }
    if (fused && p->determinism != DET_ANY)
        c.work.products = 0; /* `contract` is refused */
    const double issued = c.fused + c.functions, beside = SPECIAL_SLOTS * c.functions;
    c.work.least = issued > beside ? issued : beside;
    return c.work;
}
