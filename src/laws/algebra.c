/* SPDX-License-Identifier: Apache-2.0 */
/* algebra.c - equalities between fractions of polynomials, case by case.
 *
 * The prover is quick with linear arithmetic and lost with quotients of products.  So the choices in both sides are
 * decided in every way, one after the other, and what remains without choices is compared at random points modulo a
 * prime: two different fractions of the degrees that occur here agree at ROUNDS such points with a probability below
 * 2^-400.  Where they differ the prover, if there is one, is asked whether the case can occur at all: a question about
 * conditions, which are simple.
 *
 * What is no field operation is a function of its operands, whose values are mixed from theirs.
 *
 * Source: J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, JACM 27(4), 1980.
 */
#include <string.h>

#include "terms.h"

enum { DECISIONS_MAX = 28, CASES_MAX = 3000, QUESTIONS_MAX = 200, ROUNDS = 10 };

static const uint64_t prime = (UINT64_C(1) << 61) - 1;

struct cases {
    struct terms *t;
    struct z3 *z3;
    const term *fact;
    int nfacts, ncases, nquestions;
    int original; /* terms of the goal are numbered below */
    struct {
        term atom;
        bool value;
    } taken[DECISIONS_MAX];
    int ntaken;
    term *memo; /* by number: terms of the goal without choices */
    term need;  /* a condition that has to be decided first */
    /* evaluation */
    uint64_t *value, seed;
    char *state; /* 0 unknown, 1 being evaluated, 2 known */
    bool undefined;
};

/* ---- deciding ---- */

static term resolve(struct cases *c, term x);

static bool same_pair(term x, term y)
{
    return (x->arg[0] == y->arg[0] && x->arg[1] == y->arg[1]) || (x->arg[0] == y->arg[1] && x->arg[1] == y->arg[0]);
}

static bool relates(term x) { return x->nargs == 2 && (term_is(x, "<") || term_is(x, "=")); }

static int decided(struct cases *c, term atom)
{
    if (term_is(atom, "true") || term_is(atom, "false"))
        return term_is(atom, "true");
    for (int i = 0; i < c->ntaken; i++) {
        term other = c->taken[i].atom;
        if (other == atom)
            return c->taken[i].value;
        /* of x < y, x = y and y < x one is true */
        if (c->taken[i].value && relates(atom) && relates(other) && same_pair(atom, other))
            return false;
    }
    c->need = atom;
    return -1;
}

/* The same operation on operands without choices. */
static term rebuilt(struct cases *c, term x)
{
    term arg[3] = { NULL };
    for (int i = 0; i < x->nargs; i++)
        if (!(arg[i] = resolve(c, x->arg[i])))
            return NULL;
    if (term_is(x, "="))
        return term_equal(c->t, arg[0], arg[1]);
    if (term_is(x, "<") && arg[0] == arg[1])
        return term_true(c->t, false);
    if (term_is(x, "+") || term_is(x, "*"))
        return term_commuting(c->t, x->op, x->type, arg[0], arg[1]);
    return x->kind == TERM_FUNCTION ? term_function(c->t, x->op, x->type, x->nargs, arg[0], arg[1], arg[2])
                                    : term_make(c->t, x->op, x->type, x->nargs, arg[0], arg[1], arg[2]);
}

/* 1, 0, or -1: something has to be decided first. */
static int truth(struct cases *c, term x)
{
    if (term_is(x, "not")) {
        const int inner = truth(c, x->arg[0]);
        return inner < 0 ? -1 : !inner;
    }
    if (term_is(x, "and")) {
        const int left = truth(c, x->arg[0]);
        return left == 1 ? truth(c, x->arg[1]) : left;
    }
    if (term_is(x, "ite")) {
        const int which = truth(c, x->arg[0]);
        return which < 0 ? -1 : truth(c, x->arg[which ? 1 : 2]);
    }
    if (term_is(x, "=") && x->arg[0]->type == TY_BOOL) {
        const int left = truth(c, x->arg[0]), right = left < 0 ? -1 : truth(c, x->arg[1]);
        return right < 0 ? -1 : left == right;
    }
    term atom = x->nargs ? rebuilt(c, x) : x;
    return atom ? decided(c, atom) : -1;
}

/* x without choices, or NULL: something has to be decided first. */
static term resolve(struct cases *c, term x)
{
    if (x->id >= c->original || x->nargs == 0)
        return x;
    if (c->memo[x->id])
        return c->memo[x->id];
    term made = NULL;
    if (x->type == TY_BOOL) {
        const int value = truth(c, x);
        made = value < 0 ? NULL : term_true(c->t, value);
    } else if (term_is(x, "ite")) {
        const int which = truth(c, x->arg[0]);
        made = which < 0 ? NULL : resolve(c, x->arg[which ? 1 : 2]);
    } else {
        made = rebuilt(c, x);
    }
    return c->memo[x->id] = made;
}

/* ---- values modulo the prime ---- */

__extension__ typedef unsigned __int128 double_word;

static uint64_t times(uint64_t a, uint64_t b) { return (uint64_t)((double_word)a * b % prime); }
static uint64_t plus(uint64_t a, uint64_t b) { return (a + b) % prime; }
static uint64_t minus(uint64_t a, uint64_t b) { return (a + prime - b) % prime; }

static uint64_t inverse(uint64_t a)
{
    uint64_t r = 1;
    for (uint64_t e = prime - 2; e; e >>= 1, a = times(a, a))
        if (e & 1)
            r = times(r, a);
    return r;
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x632be59bd9b4e019);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % prime;
}

/* "5", "(- 5.0)", "(/ 1.0 4.0)", "(- (/ 1.0 4.0))" */
static uint64_t literal_value(const char *text)
{
    bool negative = false;
    uint64_t part[2] = { 0, 1 };
    int n = 0;
    for (; *text; text++) {
        negative ^= *text == '-';
        if (*text < '0' || *text > '9' || n == 2)
            continue;
        part[n] = 0;
        for (; *text >= '0' && *text <= '9'; text++)
            part[n] = plus(times(part[n], 10), (uint64_t)(*text - '0'));
        n++;
        while (*text == '.' || *text == '0') /* numbers are written with ".0" after */
            text++;
        if (!*text)
            break;
    }
    const uint64_t x = times(part[0], inverse(part[1]));
    return negative ? minus(0, x) : x;
}

static uint64_t evaluate(struct cases *c, term x);

/* A variable that the case says is equal to something has its value; one that stands for exp(u) follows from the value
 * of u. */
static uint64_t variable_value(struct cases *c, term x)
{
    for (int i = 0; i < c->t->npowers; i++)
        if (c->t->power[i] == x)
            return mixed(c->seed, evaluate(c, c->t->exponent[i]));
    for (int i = 0; i < c->ntaken; i++) {
        term e = c->taken[i].atom;
        if (!c->taken[i].value || !term_is(e, "=") || (e->arg[0] != x && e->arg[1] != x))
            continue;
        term other = e->arg[e->arg[0] == x];
        if (c->state[other->id] != 1 && (other->kind != TERM_VARIABLE || other->id < x->id))
            return evaluate(c, other);
    }
    return mixed(c->seed, (uint64_t)x->id);
}

static uint64_t operation_value(struct cases *c, term x)
{
    uint64_t v[3] = { 0 };
    for (int i = 0; i < x->nargs; i++)
        v[i] = evaluate(c, x->arg[i]);
    if (term_is(x, "+"))
        return plus(v[0], v[1]);
    if (term_is(x, "-"))
        return x->nargs == 1 ? minus(0, v[0]) : minus(v[0], v[1]);
    if (term_is(x, "*"))
        return times(v[0], v[1]);
    if (term_is(x, "to_real"))
        return v[0];
    if (term_is(x, "/")) {
        c->undefined |= v[1] == 0;
        return times(v[0], inverse(v[1]));
    }
    uint64_t h = c->seed;
    for (const char *op = x->op; *op; op++)
        h = mixed(h, (unsigned char)*op);
    for (int i = 0; i < x->nargs; i++)
        h = mixed(h, v[i]);
    return h;
}

static uint64_t evaluate(struct cases *c, term x)
{
    if (c->state[x->id] == 2)
        return c->value[x->id];
    c->state[x->id] = 1;
    const uint64_t v = x->kind == TERM_LITERAL    ? literal_value(x->op)
                       : x->kind == TERM_VARIABLE ? variable_value(c, x)
                                                  : operation_value(c, x);
    c->state[x->id] = 2;
    return c->value[x->id] = v;
}

/* Equal as fractions of polynomials, as far as this case makes them so. */
static bool same_fraction(struct cases *c, term x, term y)
{
    if (x == y)
        return true;
    c->value = arena_new(c->t->a, uint64_t, c->t->n);
    c->state = arena_new(c->t->a, char, c->t->n);
    for (int round = 0; round < ROUNDS; round++) {
        c->seed = mixed((uint64_t)round, 12345);
        c->undefined = false;
        memset(c->state, 0, (size_t)c->t->n);
        if (evaluate(c, x) != evaluate(c, y) || c->undefined)
            return false;
    }
    return true;
}

/* ---- cases ---- */

/* 1: the goal holds in this case, 0: not as an identity, -1: something has to be decided first. */
static int holds(struct cases *c, term goal)
{
    if (term_is(goal, "and")) {
        const int left = holds(c, goal->arg[0]);
        return left == 1 ? holds(c, goal->arg[1]) : left;
    }
    if (!term_is(goal, "=") || goal->arg[0]->type == TY_BOOL)
        return truth(c, goal);
    term x = resolve(c, goal->arg[0]), y = x ? resolve(c, goal->arg[1]) : NULL;
    return y ? same_fraction(c, x, y) : -1;
}

/* Nothing fulfils the facts and what this case has decided. */
static bool impossible(struct cases *c)
{
    term fact[256 + DECISIONS_MAX];
    int n = 0;
    if (!c->z3 || c->nquestions++ >= QUESTIONS_MAX || c->nfacts > 256)
        return false;
    for (int i = 0; i < c->nfacts; i++)
        fact[n++] = c->fact[i];
    for (int i = 0; i < c->ntaken; i++)
        fact[n++] = c->taken[i].value ? c->taken[i].atom : term_not(c->t, c->taken[i].atom);
    return z3_ask(c->z3, c->t, fact, n, true, NULL, 0, NULL, NULL) == ANSWER_NO;
}

static bool all_cases(struct cases *c, term goal);

static bool one_case(struct cases *c, term goal, term atom, bool value)
{
    c->taken[c->ntaken].atom = atom;
    c->taken[c->ntaken].value = value;
    c->ntaken++;
    const bool good = all_cases(c, goal);
    c->ntaken--;
    return good;
}

static bool all_cases(struct cases *c, term goal)
{
    memset(c->memo, 0, sizeof *c->memo * (size_t)c->original);
    const int now = holds(c, goal);
    if (now == 1)
        return true;
    if (now == 0)
        return impossible(c);
    if (c->ntaken == DECISIONS_MAX || ++c->ncases > CASES_MAX)
        return false;
    term atom = c->need;
    if (!one_case(c, goal, atom, true))
        return false;
    if (!term_is(atom, "<"))
        return one_case(c, goal, atom, false);
    term less = term_make(c->t, "<", TY_BOOL, 2, atom->arg[1], atom->arg[0], NULL);
    return one_case(c, goal, term_equal(c->t, atom->arg[0], atom->arg[1]), true) && one_case(c, goal, less, true);
}

bool algebra_is_for(const struct terms *t)
{
    for (int i = 0; i < TERM_BUCKETS; i++)
        for (const struct term *x = t->bucket[i]; x; x = x->next)
            if (term_is(x, "/") ||
                (term_is(x, "*") && x->arg[0]->kind != TERM_LITERAL && x->arg[1]->kind != TERM_LITERAL))
                return x->kind == TERM_PLAIN;
    return false;
}

bool algebra_proves(struct terms *t, struct z3 *z, term goal, const term *fact, int nfacts)
{
    struct cases c = { .t = t, .z3 = z, .fact = fact, .nfacts = nfacts, .original = t->n };
    c.memo = arena_new(t->a, term, t->n);
    return !t->lost && all_cases(&c, goal);
}
