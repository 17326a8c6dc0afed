/* SPDX-License-Identifier: Apache-2.0 */
/* terms.c - terms, each distinct one once. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "terms.h"

void terms_begin(struct terms *t, struct arena *a, enum level level) { *t = (struct terms){ .a = a, .level = level }; }

static unsigned hash_of(const struct term *x)
{
    unsigned h = 2166136261u;
    for (const char *c = x->op; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    for (int i = 0; i < x->nargs; i++)
        h = (h ^ (unsigned)x->arg[i]->id) * 16777619u;
    return (h ^ (unsigned)x->type) * 16777619u;
}

static bool same(const struct term *x, const struct term *y)
{
    if (x->type != y->type || x->nargs != y->nargs || strcmp(x->op, y->op) != 0)
        return false;
    for (int i = 0; i < x->nargs; i++)
        if (x->arg[i] != y->arg[i])
            return false;
    return true;
}

static term intern(struct terms *t, const struct term *x)
{
    struct term **head = &t->bucket[hash_of(x) % TERM_BUCKETS];
    for (struct term *y = *head; y; y = y->next)
        if (same(x, y))
            return y;
    struct term *made = arena_new(t->a, struct term, 1);
    *made = *x;
    made->op = arena_strdup(t->a, x->op);
    made->id = t->n++;
    made->next = *head;
    *head = made;
    return made;
}

static term make(struct terms *t, int kind, const char *op, enum ty type, int nargs, term x, term y, term z)
{
    struct term made = { .op = op, .type = type, .nargs = nargs, .arg = { x, y, z } };
    made.kind = kind;
    for (int i = 0; i < nargs; i++)
        t->lost |= made.arg[i]->infinite != 0; /* callers that can deal with them do not come here */
    return intern(t, &made);
}

term term_make(struct terms *t, const char *op, enum ty type, int nargs, term x, term y, term z)
{
    return make(t, TERM_PLAIN, op, type, nargs, x, y, z);
}

term term_variable(struct terms *t, const char *name, enum ty type)
{
    return make(t, TERM_VARIABLE, name, type, 0, NULL, NULL, NULL);
}

term term_function(struct terms *t, const char *name, enum ty type, int nargs, term x, term y, term z)
{
    return make(t, TERM_FUNCTION, name, type, nargs, x, y, z);
}

term term_commuting(struct terms *t, const char *op, enum ty type, term x, term y)
{
    return x->id <= y->id ? term_make(t, op, type, 2, x, y, NULL) : term_make(t, op, type, 2, y, x, NULL);
}

/* ---- literals ---- */

static term literal(struct terms *t, const char *text, enum ty type)
{
    return make(t, TERM_LITERAL, text, type, 0, NULL, NULL, NULL);
}

term term_true(struct terms *t, bool value) { return literal(t, value ? "true" : "false", TY_BOOL); }

static const char *decimal(struct arena *a, wide x)
{
    char text[48], *at = text + sizeof text;
    *--at = '\0';
    do
        *--at = (char)('0' + (int)(x % 10));
    while ((x /= 10) != 0);
    return arena_strdup(a, at);
}

static term ideal_float(struct terms *t, enum ty type, double f)
{
    struct cell x;
    if (isinf(f)) {
        struct term made = { .op = f < 0 ? "-oo" : "+oo", .type = type, .infinite = f < 0 ? -1 : 1 };
        made.kind = TERM_LITERAL;
        return intern(t, &made);
    }
    if (!ideal_from_bits(type, (union value){ .f = f }, &x) || x.real.kind != REAL_EXACT) {
        t->lost = true;
        return literal(t, "0.0", type);
    }
    const bool negative = x.real.n < 0;
    const char *n = decimal(t->a, negative ? -x.real.n : x.real.n);
    const char *text =
        x.real.d == 1 ? arena_printf(t->a, "%s.0", n) : arena_printf(t->a, "(/ %s.0 %s.0)", n, decimal(t->a, x.real.d));
    return literal(t, negative ? arena_printf(t->a, "(- %s)", text) : text, type);
}

/* Sign, exponent and fraction of a float type, as SMT-LIB has them. */
static const int exponent_bits[TY_COUNT] = { [TY_F16] = 5, [TY_BF16] = 8, [TY_F32] = 8, [TY_F64] = 11 };

static term bits_float(struct terms *t, enum ty type, double f)
{
    const int bits = ty_bits(type), e = exponent_bits[type];
    uint64_t image = 0;
    char text[128], *at = text;
    if (isnan(f))
        return literal(t, arena_printf(t->a, "(_ NaN %d %d)", e, bits - e), type);
    value_store(type, &image, (union value){ .f = f });
    at = stpcpy(at, "(fp #b");
    for (int i = bits - 1; i >= 0; i--) {
        *at++ = (char)('0' + (image >> i & 1));
        if (i == bits - 1 || i == bits - 1 - e)
            at = stpcpy(at, " #b");
    }
    stpcpy(at, ")");
    return literal(t, text, type);
}

term term_value(struct terms *t, enum ty type, union value v)
{
    if (type == TY_BOOL)
        return term_true(t, v.i != 0);
    if (ty_is_float(type))
        return t->level == LEVEL_IDEAL ? ideal_float(t, type, v.f) : bits_float(t, type, v.f);
    if (t->level == LEVEL_BITS) {
        const int bits = ty_bits(type);
        return literal(
            t, arena_printf(t->a, "#x%0*" PRIx64, bits / 4, bits == 64 ? v.u : v.u & ((UINT64_C(1) << bits) - 1)),
            type);
    }
    const bool negative = ty_is_signed(type) && v.i < 0;
    const char *digits = decimal(t->a, negative ? -(wide)v.i : ty_is_signed(type) ? (wide)v.i : (wide)v.u);
    return literal(t, negative ? arena_printf(t->a, "(- %s)", digits) : digits, type);
}

term term_integer(struct terms *t, enum ty type, int64_t value)
{
    return term_value(t, type, ref_cast(TY_I64, type, (union value){ .i = value }));
}

/* ---- truth ---- */

static int known(term x) { return term_is(x, "true") ? 1 : term_is(x, "false") ? 0 : -1; }

term term_not(struct terms *t, term x)
{
    if (known(x) >= 0)
        return term_true(t, !known(x));
    return term_is(x, "not") ? x->arg[0] : term_make(t, "not", TY_BOOL, 1, x, NULL, NULL);
}

term term_and(struct terms *t, term x, term y)
{
    if (known(x) == 0 || known(y) == 0)
        return term_true(t, false);
    return known(x) == 1 ? y : known(y) == 1 || x == y ? x : term_commuting(t, "and", TY_BOOL, x, y);
}

term term_or(struct terms *t, term x, term y) { return term_not(t, term_and(t, term_not(t, x), term_not(t, y))); }

term term_equal(struct terms *t, term x, term y)
{
    if (x == y)
        return term_true(t, true);
    if (x->kind == TERM_LITERAL && y->kind == TERM_LITERAL) /* equal values have one text */
        return term_true(t, false);
    if (x->infinite || y->infinite) /* against a finite one */
        return term_true(t, false);
    if (x->type == TY_BOOL && known(x) >= 0)
        return known(x) ? y : term_not(t, y);
    if (x->type == TY_BOOL && known(y) >= 0)
        return known(y) ? x : term_not(t, x);
    return term_commuting(t, "=", TY_BOOL, x, y);
}

term term_if(struct terms *t, term condition, term x, term y)
{
    if (known(condition) >= 0)
        return known(condition) ? x : y;
    if (x == y)
        return x;
    if (term_is(condition, "not"))
        return term_if(t, condition->arg[0], y, x);
    if (x->type == TY_BOOL && (known(x) >= 0 || known(y) >= 0)) {
        if (known(x) >= 0)
            return known(x) ? term_or(t, condition, y) : term_and(t, term_not(t, condition), y);
        return known(y) ? term_or(t, term_not(t, condition), x) : term_and(t, condition, x);
    }
    return term_make(t, "ite", x->type, 3, condition, x, y);
}

void term_assume(struct terms *t, term fact) { ARENA_PUSH(t->a, t->fact, t->nfacts, t->cap_facts, fact); }
void term_demand(struct terms *t, term clean) { ARENA_PUSH(t->a, t->clean, t->nclean, t->cap_clean, clean); }
