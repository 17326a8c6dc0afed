/* SPDX-License-Identifier: Apache-2.0 */
/* invariant.c - what is true of every state that occurs.
 *
 * Laws need not hold for states that no element and no combination ever has: a count below zero, a maximum below one of
 * its parts.  Such truths are guessed and proved: simple claims about one, two or three fields are made, those that a
 * trial contradicts are dropped, and of the rest those that elements do not establish or a combination does not keep,
 * until all that are left support each other.
 *
 * Source: C. Flanagan, K. R. M. Leino, Houdini, an annotation assistant for ESC/Java, FME 2001.
 */
#include "terms.h"

enum { SAMPLES = 160, CLAIMS_MAX = 200, ROUNDS_MAX = 40 };

/* ---- claims ---- */

struct maker {
    struct arena *a;
    const struct op *op;
    struct invariants *inv;
};

static const struct expr *node(struct maker *m, enum expr_kind kind, int op, enum ty type, const struct expr *x,
                               const struct expr *y)
{
    struct expr *e = arena_new(m->a, struct expr, 1);
    *e = (struct expr){
        .kind = kind, .op = op, .type = type, .at = span_none(), .nargs = (x != NULL) + (y != NULL), .arg = { x, y }
    };
    return e;
}

static const struct expr *field(struct maker *m, int f)
{
    struct expr *e = (struct expr *)node(m, EX_LEFT, 0, m->op->field[f], NULL, NULL);
    e->field = f;
    return e;
}

static const struct expr *number(struct maker *m, enum ty t, union value v)
{
    struct expr *e = (struct expr *)node(m, EX_CONST, 0, t, NULL, NULL);
    e->imm = v;
    return e;
}

static const struct expr *relation(struct maker *m, enum binary op, const struct expr *x, const struct expr *y)
{
    return node(m, EX_BINARY, op, TY_BOOL, x, y);
}

static void claim(struct maker *m, const struct expr *e)
{
    if (m->inv->n < CLAIMS_MAX)
        ARENA_PUSH(m->a, m->inv->claim, m->inv->n, m->inv->cap, e);
}

static union value of_type(enum ty t, double x) { return ref_cast(TY_F64, t, (union value){ .f = x }); }

/* x >= 0, x >= 1, x >= -1, x <= 1; the truth value itself, and its opposite. */
static void claims_of_one(struct maker *m, int f)
{
    const enum ty t = m->op->field[f];
    const struct expr *x = field(m, f);
    if (t == TY_BOOL) {
        claim(m, x);
        claim(m, node(m, EX_UNARY, UN_NOT, TY_BOOL, x, NULL));
        return;
    }
    for (int least = ty_kind(t) == 'u' ? 1 : -1; least <= 1; least++)
        claim(m, relation(m, BIN_GE, x, number(m, t, of_type(t, least))));
    claim(m, relation(m, BIN_LE, x, number(m, t, of_type(t, 1))));
}

/* x <= y, x = y; where a truth value is so, x is what the identity has, or 0. */
static void claims_of_two(struct maker *m, int f, int g)
{
    const enum ty t = m->op->field[f], u = m->op->field[g];
    const struct expr *x = field(m, f), *y = field(m, g);
    if (f == g)
        return;
    if (t == u && t != TY_BOOL) {
        claim(m, relation(m, BIN_LE, x, y));
        if (f < g)
            claim(m, relation(m, BIN_EQ, x, y));
    }
    if (u != TY_BOOL)
        return;
    const struct expr *usual = m->op->identity[f] ? m->op->identity[f] : number(m, t, of_type(t, 0));
    const struct expr *is_usual = relation(m, BIN_EQ, x, usual);
    claim(m, relation(m, BIN_LOR, y, is_usual));
    claim(m, relation(m, BIN_LOR, node(m, EX_UNARY, UN_NOT, TY_BOOL, y, NULL), is_usual));
}

/* x = z exactly where y = z. */
static void claims_of_three(struct maker *m, int f, int g, int h)
{
    const enum ty *t = m->op->field;
    if (f >= g || f == h || g == h || t[f] == TY_BOOL || t[f] != t[g] || t[f] != t[h])
        return;
    const struct expr *z = field(m, h);
    claim(m, relation(m, BIN_EQ, relation(m, BIN_EQ, field(m, f), z), relation(m, BIN_EQ, field(m, g), z)));
}

static void make_claims(struct maker *m)
{
    const int n = m->op->nfields;
    for (int f = 0; f < n; f++)
        claims_of_one(m, f);
    for (int i = 0; i < n * n; i++)
        claims_of_two(m, i / n, i % n);
    for (int i = 0; i < n * n * n; i++)
        claims_of_three(m, i / n / n, i / n % n, i % n);
}

/* ---- trial ---- */

static void drop_contradicted(struct invariants *inv, struct evaluator *v, enum level level)
{
    const struct world *outer = v->w;
    struct world w = *outer;
    struct state x, y;
    w.level = level;
    v->w = &w;
    for (int i = 0; i < SAMPLES; i++) {
        w.seed = (uint64_t)i * 104729 + 11;
        w.palette = (enum palette)(i % PALETTE_COUNT);
        v->undefined = false;
        evaluate_element(v, 0, &x);
        for (int k = 1; k <= i % 4; k++) {
            evaluate_element(v, k, &y);
            evaluate_combine(v, &x, &y, &x);
        }
        for (int c = inv->n - 1; c >= 0 && !v->undefined; c--)
            if (!evaluate_claim(v, inv->claim[c], &x) && !v->undefined)
                inv->claim[c] = inv->claim[--inv->n];
    }
    v->w = outer;
}

/* ---- proof ---- */

/* Ask for a state, made as `kind` says, that contradicts a claim; drop what it contradicts.  NO: none does. */
static enum answer weed(struct invariants *inv, struct z3 *z, const struct world *w, struct arena *a, enum level level,
                        bool induction)
{
    struct terms t;
    struct symbols s;
    term x[STATE_FIELDS_MAX], y[STATE_FIELDS_MAX], fact[2 * CLAIMS_MAX + 1], ask[CLAIMS_MAX];
    union value model[CLAIMS_MAX];
    bool given[CLAIMS_MAX];
    int n = 0, kept = 0;
    terms_begin(&t, a, level);
    symbols_begin(&s, &t, w->p, w->red);
    if (induction) {
        symbols_state(&s, "a", x);
        symbols_state(&s, "b", y);
        for (int i = 0; i < inv->n; i++) {
            fact[n++] = symbols_claim(&s, inv->claim[i], x);
            fact[n++] = symbols_claim(&s, inv->claim[i], y);
        }
        symbols_combine(&s, x, y, x);
    } else {
        symbols_element(&s, 0, x);
    }
    term all = term_true(&t, true);
    for (int i = 0; i < inv->n; i++) {
        ask[i] = symbols_claim(&s, inv->claim[i], x);
        all = term_and(&t, all, ask[i]);
    }
    if (term_is(all, "true"))
        return ANSWER_NO;
    fact[n++] = term_not(&t, all);
    const enum answer answer = z3_ask(z, &t, fact, n, false, ask, inv->n, model, given);
    for (int i = 0; answer == ANSWER_YES && i < inv->n; i++)
        if (given[i] && model[i].i)
            inv->claim[kept++] = inv->claim[i];
    if (answer == ANSWER_YES && kept < inv->n)
        inv->n = kept;
    else if (answer != ANSWER_NO) /* nothing is known of any */
        inv->n = 0;
    return answer;
}

void invariants_find(struct invariants *inv, struct evaluator *v, struct z3 *z, enum level level)
{
    struct maker m = { v->a, v->w->red->op, inv };
    *inv = (struct invariants){ .n = 0 };
    make_claims(&m);
    drop_contradicted(inv, v, level);
    bool steady = false;
    for (int round = 0; inv->n && !steady && round < ROUNDS_MAX; round++) {
        steady = weed(inv, z, v->w, v->a, level, false) == ANSWER_NO;
        steady = inv->n && weed(inv, z, v->w, v->a, level, true) == ANSWER_NO && steady;
    }
    if (!steady)
        inv->n = 0;
}
