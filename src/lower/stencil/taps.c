/* SPDX-License-Identifier: Apache-2.0 */
/* taps.c - outputs of bytes as sums of reads; see taps.h. */
#include "lower/stencil/taps.h"

#include "lower/stencil/dots.h"

#include <string.h>

static bool add_tap(const struct problem *p, struct taps *t, const struct expr *e, unsigned times)
{
    struct tap tap = { .input = e->which };
    for (int d = 0; d < p->rank && e->noffsets; d++) {
        if (e->offset[d] < -TAPS_SPAN / 2 || e->offset[d] >= TAPS_SPAN / 2)
            return false;
        tap.at[d] = e->offset[d];
    }
    int i = 0;
    while (i < t->n && (t->tap[i].input != tap.input || memcmp(t->tap[i].at, tap.at, sizeof tap.at)))
        i++;
    if (i == TAPS_MAX)
        return false;
    if (i == t->n)
        t->tap[t->n++] = tap;
    t->tap[i].times = (uint8_t)(t->tap[i].times + times);
    return true;
}

static bool add_terms(const struct problem *p, struct taps *t, const struct expr *e, unsigned times)
{
    enum { VISITS_MAX = 8 * TAPS_MAX };
    if (++t->visited > VISITS_MAX)
        return false;
    switch (e->kind) {
    case EX_CONST: t->plus = (uint8_t)(t->plus + times * (unsigned)(e->imm.i & 255)); return true;
    case EX_INPUT: return add_tap(p, t, e, times);
    case EX_LET: return add_terms(p, t, p->let[e->which].value, times);
    case EX_CAST: return add_terms(p, t, e->arg[0], times);
    case EX_UNARY: return add_terms(p, t, e->arg[0], -times);
    case EX_BINARY: break;
    default: return false;
    }
    const bool first = e->arg[0]->kind == EX_CONST;
    const unsigned constant = (unsigned)(e->arg[!first]->imm.i & 255);
    switch (e->op) {
    case BIN_ADD: return add_terms(p, t, e->arg[0], times) && add_terms(p, t, e->arg[1], times);
    case BIN_SUB: return add_terms(p, t, e->arg[0], times) && add_terms(p, t, e->arg[1], -times);
    case BIN_MUL: return add_terms(p, t, e->arg[first], times * constant);
    case BIN_SHL: return add_terms(p, t, e->arg[0], constant < 8 ? times << constant : 0);
    default: return false;
    }
}

static void drop_zeros(struct taps *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->tap[i].times)
            t->tap[n++] = t->tap[i];
    t->n = n;
}

bool stencil_taps(const struct problem *p, struct taps *t)
{
    const struct expr *e = NULL;
    for (int o = 0; o < p->noutputs; o++) {
        if (output_moment(&p->output[o]) != AT_POINT)
            continue;
        if (e)
            return false;
        e = p->output[o].value[0];
    }
    if (!e || !stencil_packs(p))
        return false;
    while (e->kind == EX_CAST || (e->kind == EX_BINARY && e->op == BIN_SHR))
        e = e->arg[0];
    *t = (struct taps){ .sum = e };
    if (!add_terms(p, t, e, 1))
        return false;
    drop_zeros(t);
    return true;
}

/* Is each input read times one constant? */
static bool equal(const struct taps *t)
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < i; k++)
            if (t->tap[i].input == t->tap[k].input && t->tap[i].times != t->tap[k].times)
                return false;
    return true;
}

/* PTX instructions a point, with and without: 25 points 25 and 28; 125 points on aligned rows 36 and 130, on skewed ones
 * 76 and 131.  Of 125 different constants, of which LLVM keeps the products, ptxas 13 spilled. */
static bool many(const struct problem *p, struct taps *t)
{
    enum { MANY = 27 };
    return p->rank > 2 && stencil_reads(p) >= MANY && stencil_taps(p, t) && t->n >= MANY;
}

bool stencil_by_dots(const struct problem *p)
{
    struct taps t;
    return many(p, &t) && !equal(&t) && stencil_dots_pay(&t, p->rank);
}

bool stencil_shares_sums(const struct problem *p)
{
    enum { FEW = 27 };
    struct taps t;
    return many(p, &t) && (equal(&t) ? t.n > FEW && stencil_reads(p) > FEW : stencil_dots_pay(&t, p->rank));
}

static bool reads_at(const struct taps *t, const struct tap *like, int last, int column)
{
    struct tap at = *like;
    at.at[last] = column;
    for (int i = 0; i < t->n; i++)
        if (t->tap[i].input == like->input && !memcmp(t->tap[i].at, at.at, sizeof at.at))
            return true;
    return false;
}

bool stencil_symmetric_rows(const struct problem *p, int input, int most)
{
    const int last = p->rank - 1;
    struct taps t;
    if (!stencil_taps(p, &t))
        return false;
    for (int i = 0; i < t.n; i++) {
        const int far = t.tap[i].at[last] < 0 ? -t.tap[i].at[last] : t.tap[i].at[last];
        if (t.tap[i].input == input && far > most)
            return false;
        for (int x = -far; x <= far && t.tap[i].input == input; x++)
            if (!reads_at(&t, &t.tap[i], last, x))
                return false;
    }
    return true;
}
