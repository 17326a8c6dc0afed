/* SPDX-License-Identifier: Apache-2.0 */
/* settle.c - elements that leave a state as it is, found without combining them (settle.h).
 *
 * Of the four nearest points, say, almost all elements are none.  Let C be conditions on both operands, such that
 * wherever C hold the operator's result does not depend on the element: all selections take what the state alone gives.
 * If C held for an element that left the state as it was, bit by bit, then so does every other one for which C hold,
 * until the state changes.  This needs no law of the operator.
 *
 *     settled, once C held and nothing changed:
 *         unless settled and C:   combine;   settled := C held and nothing changed
 */
#include "settle.h"

#include "lower/access.h"

enum { HEAVY = 24 };

struct search {
    const struct problem *p;
    struct settle *found;
    int nodes;
    enum { UNSEEN, FREE, BOUND } let[LET_VALUES_MAX];
};

static bool is_free(struct search *s, const struct expr *e);

static bool assume(struct settle *c, const struct expr *e, bool holds)
{
    if (c->n == SETTLE_MAX)
        return false;
    c->condition[c->n] = e;
    c->holds[c->n++] = holds;
    return true;
}

/* A choice by a condition on the element: of the branch that does not depend on it. */
static bool choice_is_free(struct search *s, const struct expr *e)
{
    const struct settle *c = s->found;
    if (is_free(s, e->arg[0]))
        return is_free(s, e->arg[1]) && is_free(s, e->arg[2]);
    for (int i = 0; i < c->n; i++)
        if (expr_equal(c->condition[i], e->arg[0]))
            return is_free(s, e->arg[c->holds[i] ? 1 : 2]);
    const bool first = is_free(s, e->arg[1]);
    return (first || is_free(s, e->arg[2])) && assume(s->found, e->arg[0], first);
}

/* Does the expression not depend on the element, wherever the conditions hold? */
static bool is_free(struct search *s, const struct expr *e)
{
    bool free = true;
    s->nodes++;
    if (e->kind == EX_RIGHT)
        return s->p->reduction[0].map[e->field]->kind == EX_CONST;
    if (e->kind == EX_OP_LET) {
        if (s->let[e->which] == UNSEEN)
            s->let[e->which] = is_free(s, s->p->reduction[0].op->let[e->which].value) ? FREE : BOUND;
        return s->let[e->which] == FREE;
    }
    if (e->kind == EX_IF || (e->kind == EX_CALL && e->op == FN_SELECT))
        return choice_is_free(s, e);
    for (int i = 0; i < e->nargs && free; i++)
        free = is_free(s, e->arg[i]);
    return free;
}

bool settle_find(const struct problem *p, struct settle *found)
{
    struct search s = { .p = p, .found = found };
    *found = (struct settle){ 0 };
    if (p->nreductions != 1 || p->reduction[0].op->builtin || access_any_direct(p))
        return false;
    for (int f = 0; f < p->reduction[0].op->nfields; f++)
        if (!is_free(&s, p->reduction[0].op->combine[f]))
            return false;
    return found->n > 0 && s.nodes >= HEAVY;
}
