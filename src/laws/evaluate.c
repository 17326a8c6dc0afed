/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - expressions over a world, at the level of bits (with the oracle's operations) or ideally.
 *
 * Arms that are not taken and lets that are not used are not evaluated: ideally they may be undefined.
 */
#include "laws_impl.h"

static struct cell evaluate(struct evaluator *v, const struct expr *e);

void evaluator_begin(struct evaluator *v, struct arena *a, const struct world *w)
{
    *v = (struct evaluator){ .w = w, .a = a, .stamp = 1, .op_stamp = 1 };
    v->let = arena_new(a, struct memo, w->p->nlets ? w->p->nlets : 1);
    v->op_let = arena_new(a, struct memo, w->red->op->nlets ? w->red->op->nlets : 1);
}

static struct cell from_bits(struct evaluator *v, enum ty t, union value x)
{
    struct cell out = { .bits = x };
    if (v->w->level == LEVEL_IDEAL && ty_is_float(t) && !ideal_from_bits(t, x, &out))
        v->undefined = true;
    return out;
}

static struct cell remembered(struct evaluator *v, struct memo *m, uint64_t stamp, const struct expr *e)
{
    if (m->stamp != stamp) {
        m->value = evaluate(v, e);
        m->stamp = stamp;
    }
    return m->value;
}

/* The operand that decides what an operation means. */
static enum ty operand_type(const struct expr *e)
{
    return e->arg[e->kind == EX_CALL && e->op == FN_SELECT ? 1 : 0]->type;
}

static union value apply_bits(const struct expr *e, const struct cell *arg)
{
    const enum ty t = operand_type(e);
    union value x[OPERANDS_MAX];
    for (int i = 0; i < e->nargs; i++)
        x[i] = arg[i].bits;
    switch (e->kind) {
    case EX_UNARY: return ref_unary((enum unary)e->op, t, x[0]);
    case EX_BINARY: return ref_binary((enum binary)e->op, t, x[0], x[1]);
    case EX_CAST: return ref_cast(t, e->type, x[0]);
    default: return ref_call((enum fn)e->op, t, x);
    }
}

static struct cell operation(struct evaluator *v, const struct expr *e)
{
    struct cell arg[OPERANDS_MAX] = { 0 }, out = { 0 };
    for (int i = 0; i < e->nargs; i++)
        arg[i] = evaluate(v, e->arg[i]);
    if (v->w->level == LEVEL_BITS) {
        out.bits = apply_bits(e, arg);
    } else if (!v->undefined && !ideal_apply(e, arg, &out)) {
        v->undefined = true;
        v->overflow |= ty_is_int(e->type);
    }
    return out;
}

/* `and`, `or`: the right side only when it matters. */
static struct cell logical(struct evaluator *v, const struct expr *e)
{
    struct cell left = evaluate(v, e->arg[0]);
    const bool decided = e->op == BIN_LAND ? !left.bits.i : left.bits.i != 0;
    return decided ? left : evaluate(v, e->arg[1]);
}

static struct cell evaluate(struct evaluator *v, const struct expr *e)
{
    switch (e->kind) {
    case EX_CONST: return from_bits(v, e->type, e->imm);
    case EX_LET: return remembered(v, &v->let[e->which], v->stamp, v->w->p->let[e->which].value);
    case EX_OP_LET: return remembered(v, &v->op_let[e->which], v->op_stamp, v->w->red->op->let[e->which].value);
    case EX_LEFT: return v->left->field[e->field];
    case EX_RIGHT: return v->right->field[e->field];
    case EX_OUTPUT: return evaluate(v, v->w->p->output[e->which].value[e->field]);
    case EX_IF: return evaluate(v, evaluate(v, e->arg[0]).bits.i ? e->arg[1] : e->arg[2]);
    case EX_UNARY:
    case EX_CAST: return operation(v, e);
    case EX_CALL:
        if (e->op == FN_SELECT)
            return evaluate(v, evaluate(v, e->arg[0]).bits.i ? e->arg[1] : e->arg[2]);
        return operation(v, e);
    case EX_BINARY: return e->op == BIN_LAND || e->op == BIN_LOR ? logical(v, e) : operation(v, e);
    default: return from_bits(v, e->type, world_leaf(v->w, v->at, e));
    }
}

void evaluate_element(struct evaluator *v, int k, struct state *out)
{
    const struct op *op = v->w->red->op;
    v->stamp++;
    world_point(v->w, k, v->at);
    for (int f = 0; f < op->nfields; f++)
        out->field[f] = v->w->direct ? from_bits(v, op->field[f], v->w->direct[k * op->nfields + f])
                                     : evaluate(v, v->w->red->map[f]);
}

void evaluate_identity(struct evaluator *v, struct state *out)
{
    const struct op *op = v->w->red->op;
    for (int f = 0; f < op->nfields; f++)
        out->field[f] = evaluate(v, op->identity[f]);
}

bool evaluate_claim(struct evaluator *v, const struct expr *claim, const struct state *of)
{
    v->left = of;
    return evaluate(v, claim).bits.i != 0;
}

void evaluate_combine(struct evaluator *v, const struct state *a, const struct state *b, struct state *out)
{
    const struct op *op = v->w->red->op;
    struct state result;
    v->op_stamp++;
    v->stamp++;
    v->left = a;
    v->right = b;
    world_point(v->w, 0, v->at); /* what varies from element to element is not read here */
    for (int f = 0; f < op->nfields; f++)
        result.field[f] = evaluate(v, op->combine[f]);
    *out = result;
}
