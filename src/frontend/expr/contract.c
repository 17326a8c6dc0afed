/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c - `contract: true`: a product and the sum that takes it are rounded once.
 *
 * In maps, lets and values, x * y + z becomes fma(x, y, z) here, inside one expression as it is written and not through the
 * name of a let.  All kernels and the oracle then compute the same bits.  Of two products the right one is taken, so a
 * chain of n products and sums is n operations.
 *
 * What operators combine has no fixed order, so there is no need of one form.  There, products and sums are marked, and
 * so is a product that a map gives to an operator: LLVM fuses those that meet in a kernel, and the oracle allows both.
 *
 * A conversion is rounded, even to the type that the product has: stages/fuse_root.c writes one where the results of a
 * stage stand in another, which must be the bits that a stage of its own would have read.
 *
 * The rule of maps is that of `#pragma STDC FP_CONTRACT ON` in C (ISO C17, 6.5).
 */
#include "frontend/frontend_impl.h"

static bool contracts(const struct builder *b, enum ty t) { return b->p->contract && ty_is_float(t); }

static bool is_product(const struct expr *e) { return e->kind == EX_BINARY && e->op == BIN_MUL; }

static const struct expr *negative(struct arena *a, const struct expr *e)
{
    struct expr *minus = expr_new(a, e->kind == EX_CONST ? EX_CONST : EX_UNARY, e->type, e->at);
    minus->op = UN_NEG;
    minus->imm.f = -e->imm.f;
    minus->nargs = e->kind == EX_CONST ? 0 : 1;
    minus->arg[0] = e;
    return minus;
}

static const struct expr *fma_of(struct arena *a, const struct expr *x, const struct expr *y, const struct expr *z,
                                 const struct expr *whole)
{
    struct expr *e = expr_new(a, EX_CALL, whole->type, whole->at);
    e->op = FN_FMA;
    e->nargs = 3;
    e->arg[0] = x;
    e->arg[1] = y;
    e->arg[2] = z;
    return e;
}

const struct expr *contract_binary(const struct scope *sc, struct expr *e)
{
    struct arena *a = sc->b->a;
    const struct expr *left = e->arg[0], *right = e->arg[1];
    const bool minus = e->op == BIN_SUB;
    if (!contracts(sc->b, e->type) || (e->op != BIN_ADD && !minus && e->op != BIN_MUL))
        return e;
    if (sc->allows & SC_OPERATOR) {
        e->field = FUSES;
        return e;
    }
    if (e->op != BIN_MUL && is_product(right))
        return fma_of(a, minus ? negative(a, right->arg[0]) : right->arg[0], right->arg[1], left, e);
    if (e->op != BIN_MUL && is_product(left))
        return fma_of(a, left->arg[0], left->arg[1], minus ? negative(a, right) : right, e);
    return e;
}

void contract_sum(const struct builder *b, struct expr *e)
{
    if (e->op == FOLD_ADD && contracts(b, e->type) && is_product(e->arg[0]))
        e->field = FUSES;
}

const struct expr *contract_converted(const struct builder *b, const struct expr *e)
{
    if (!contracts(b, e->type) || !is_product(e))
        return e;
    struct expr *rounded = expr_binary(b->a, BIN_MUL, e->type, e->arg[0], e->arg[1]);
    rounded->at = e->at;
    return expr_cast(b->a, rounded, e->type);
}

struct marked {
    bool sum, product;
};

static void find_marked(const struct expr *e, void *user)
{
    struct marked *m = user;
    if (e->kind == EX_BINARY && e->field == FUSES)
        *(e->op == BIN_MUL ? &m->product : &m->sum) = true;
}

static struct marked marked_in(const struct op *op)
{
    struct marked m = { false, false };
    for (int f = 0; f < op->nfields && op->combine[f]; f++)
        expr_walk(op->combine[f], find_marked, &m);
    for (int i = 0; i < op->nlets; i++)
        expr_walk(op->let[i].value, find_marked, &m);
    return m;
}

static const struct expr *fusing(struct arena *a, const struct expr *product)
{
    struct expr *e = expr_binary(a, BIN_MUL, product->type, product->arg[0], product->arg[1]);
    e->at = product->at;
    e->field = FUSES;
    return e;
}

void contract_maps(const struct builder *b, struct reduction *r)
{
    struct marked m = { false, false };
    if (b->p->contract && r->op)
        m = marked_in(r->op);
    for (int f = 0; m.sum && f < r->op->nfields; f++)
        if (r->map[f] && contracts(b, r->map[f]->type) && is_product(r->map[f])) {
            r->map[f] = fusing(b->a, r->map[f]);
            m.product = true;
        }
    if (m.sum && m.product && b->p->determinism != DET_ANY)
        diag_hint(b->d,
                  diag_error(b->d, D_CONFLICT, r->at,
                             "with `contract`, the kernel that is taken says which products of '%s' are fused; "
                             "`determinism` asks for the same bits from all",
                             r->name),
                  "a converted product is rounded, as in f32(x * y)");
}
