/* SPDX-License-Identifier: Apache-2.0 */
/* ref_fold.c - combining states in order.
 *
 * Plain mode combines from left to right in the declared types.  Tracked mode keeps complete binary trees like the
 * digits of a binary counter, each with the combination of everything up to it, so that the combination so far is there
 * after every element at a constant number of combinations per element, and its error grows with the logarithm of the
 * count.
 *
 * A kernel's tree is deeper than that: its threads combine runs of elements one by one, a scan may chain its tiles. The
 * rounding errors of a tree grow at most in proportion to its depth, so the unit of rounding is multiplied by the depth
 * that a kernel may have over the depth of ours.  Up to 1024 elements any order is covered; beyond, runs of n / 32768
 * elements per thread (32768 threads fill a small GPU), and for scans a chain of tiles of 2048.
 */
#include <math.h>

#include "ref_internal.h"

enum { ANY_ORDER = 1024, THREADS = 32768, CHAINED_TILE = 2048 };

/* in_turn: one after the other, as the elements of a bin that one word is for, or that has one in each tile. */
static double depth_factor(int64_t n, bool chained, bool in_turn)
{
    double count = fmax((double)n, 2);
    double depth = log2(count) + 1;
    double kernel = fmin(count, in_turn ? count : ANY_ORDER) + count / (chained ? CHAINED_TILE : THREADS) + 2 * depth;
    return kernel / depth;
}

void fold_begin(struct ref_fold *f, struct ref *r, int reduction, int64_t n, bool chained)
{
    f->r = r;
    f->reduction = &r->p->reduction[reduction];
    f->combine_factor = depth_factor(n, chained, r->p->nby > 0 || r->p->key);
    f->running = chained || !r->tracked;
    f->top = 0;
    f->begun = f->reduction->init[0] != NULL;
    if (f->begun) { /* a node of a level that is never merged with others */
        ref_eval_tuple(r, f->reduction->init, f->reduction->op->nfields, &f->node[0]);
        f->prefix[0] = f->node[0];
        f->level[0] = FOLD_DEPTH;
        f->top = 1;
    }
}

static void combine(struct ref_fold *f, const struct tuple *a, const struct tuple *b, struct tuple *out)
{
    f->r->combine_factor = f->combine_factor;
    ref_combine_bounded(f->r, f->reduction->op, a, b, out);
    f->r->combine_factor = 0;
}

static void push_tree(struct ref_fold *f, const struct tuple *x)
{
    struct tuple node = *x;
    int level = 0;
    while (f->top > 0 && f->level[f->top - 1] == level) {
        f->top--;
        combine(f, &f->node[f->top], &node, &node);
        level++;
    }
    f->node[f->top] = f->prefix[f->top] = node;
    f->level[f->top] = level;
    if (f->top > 0 && f->running) {
        combine(f, &f->prefix[f->top - 1], &node, &f->prefix[f->top]);
    }
    f->top++;
}

void fold_push(struct ref_fold *f, const struct tuple *x)
{
    if (f->r->tracked) {
        push_tree(f, x);
    } else if (f->begun) {
        ref_combine(f->r, f->reduction->op, &f->prefix[0], x, &f->prefix[0]);
    } else {
        f->prefix[0] = *x;
        f->top = 1;
    }
    f->begun = true;
}

/* A kernel may have combined a pad, which wins against NaN here: nothing is known of NaN alone. */
static void doubt_nan(const struct op *op, struct tuple *out)
{
    const bool open = op->finite && op->pad[0] && isnan(out->field[0].v.f);
    for (int i = 0; i < op->nfields && open; i++)
        out->field[i].err = INFINITY;
}

bool fold_value(struct ref_fold *f, struct tuple *out)
{
    const struct op *op = f->reduction->op;
    if (f->begun && f->running) {
        *out = f->prefix[f->top - 1];
    } else if (f->begun) {
        *out = f->node[0];
        for (int i = 1; i < f->top; i++) {
            combine(f, out, &f->node[i], out);
        }
    } else if (op->identity[0]) {
        ref_eval_tuple(f->r, op->identity, op->nfields, out);
    }
    if (f->begun && f->r->tracked)
        doubt_nan(op, out);
    return f->begun || op->identity[0];
}
