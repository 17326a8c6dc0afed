/* SPDX-License-Identifier: Apache-2.0 */
/* down.c - full tiles of scalars down columns: the addresses of a thread's positions follow one another, an addition each. */
#include "llvmgen/scan/scan_gen.h"

/* Do addresses follow one another?  H200, sums of i8 10237 x 26112: 477 us, 571 without; but welford of f64 448 x 73215 396, 321,
 * backwards sums of f32 2302 x 26624 159, 145: ptxas takes more registers then. */
static bool chains(const struct gen *g)
{
    enum { WORDS = 2 };
    return !g->c->turns && !g->p->reverse && state_words(g->p, NULL) <= WORDS;
}

struct items items_down(struct gen *g, struct scan_segment *s, kb_val base, kb_val end, int rows, kb_val group)
{
    kb *k = g->k;
    const int n = gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR), tile = rows * n;
    struct items h = { .g = g, .segment = s, .n = n, .base = base, .apart = true };
    h.chained = chains(g);
    h.stepwise = h.chained || g->c->turns;
    h.own = kb_mul(k, group, n);
    h.valid = kb_cast(k, kb_min(k, kb_sub(k, end, base), tile), TY_I32);
    h.full = kb_eq(k, h.valid, tile);
    h.is_start = kb_and(k, kb_eq(k, base, 0), kb_eq(k, group, 0));
    for (int i = 0; i < n; i++)
        h.head[i] = kb_false(k);
    return h;
}

/* The scanned axes lie before the kept ones, side by side: positions are a fixed distance apart. */
static bool down(const struct items *h) { return h->chained && segments_adjacent(h->g->p) && !scan_trailing(h->g->p); }

/* From one position's element of an array to the next one's. */
static kb_val step_down(const struct items *h)
{
    const kb_val stride = space_stride(h->g);
    return h->g->p->reverse ? kb_neg(h->g->k, stride) : stride;
}

bool items_loads_go_down(const struct items *h)
{
    bool scalars = down(h) && h->g->p->flags < 0;
    for (int i = 0; i < h->g->p->ninputs; i++)
        scalars &= !access_input_direct(h->g->p, i) || !*h->g->p->input[i].array.field[0].name;
    return scalars;
}

void items_load_down(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    struct point pt;
    items_point(h, &pt, 0);
    const kb_val first = point_linear(&pt), zero = kb_imm(k, TY_I32, 0);
    for (int i = 0, slot = 0; i < g->p->ninputs; i++) {
        if (!access_input_direct(g->p, i))
            continue;
        kb_ptr at = kb_advance(k, gen_input(g, i), first);
        for (int e = 0; e < h->n; e++, at = kb_advance(k, at, step_down(h)))
            h->direct[e].v[slot] = kb_load(k, at, zero);
        slot++;
    }
}

bool items_stores_go_down(const struct items *h, int output)
{
    return h->whole && down(h) && access_output_vector(h->g->p, output);
}

void items_store_down(const struct items *h, kb_ptr out, const kb_val *x)
{
    kb *k = h->g->k;
    struct point pt;
    items_point(h, &pt, 0);
    kb_ptr at = kb_advance(k, out, point_linear(&pt));
    for (int i = 0; i < h->n; i++, at = kb_advance(k, at, step_down(h)))
        kb_store(k, at, kb_imm(k, TY_I32, 0), x[i]);
}
