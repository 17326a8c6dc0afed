/* SPDX-License-Identifier: Apache-2.0 */
/* formula_known.c - what is known of formulas before a launch.
 *
 * Of each value on the stack: between which numbers it lies, and a number that it is a multiple of.  So conditions are
 * decided whose operands are not known: with rows of 500, `m < sms * (n - 8192)` is false whatever m and the device are.
 */
#include "formula.h"

#include <string.h>

/* Of a device that is not known.  GB202 has 192. */
enum { SMS_MOST = 1024 };

struct partial {
    int64_t lo, hi, divisor;
};

static const struct partial anything = { INT64_MIN, INT64_MAX, 1 };

static bool is_known(struct partial x) { return x.lo == x.hi; }

static struct partial between(int64_t lo, int64_t hi) { return (struct partial){ lo, hi, lo == hi ? lo : 1 }; }

static int64_t rest(int64_t a, int64_t b) { return formula_binary(FO_MOD, a, b); }

static struct partial partial_size(int i, const struct formula_facts *facts)
{
    const int64_t n = facts->size ? facts->size[i] : -1;
    if (n >= 0)
        return between(n, n);
    struct partial x = between(facts->least ? facts->least[i] : 0, facts->most ? facts->most[i] : INT64_MAX);
    x.divisor = is_known(x) ? x.lo : facts->divisor ? facts->divisor[i] : 1;
    return x;
}

/* All bits of an address that are looked at are those of less than 16. */
static struct partial partial_address(uint64_t set, const struct formula_facts *facts)
{
    int64_t divisor = facts->alignment ? 16 : 1;
    for (; facts->alignment && set; set &= set - 1)
        if (facts->alignment[__builtin_ctzll(set)] < divisor)
            divisor = facts->alignment[__builtin_ctzll(set)];
    return (struct partial){ 0, 16 - divisor, divisor };
}

static struct partial partial_leaf(const struct formula_step *s, const struct formula_facts *facts)
{
    switch (s->op) {
    case FO_CONST: return between(s->imm, s->imm);
    case FO_SIZE: return partial_size((int)s->imm, facts);
    case FO_SMS: return facts->sms > 0 ? between(facts->sms, facts->sms) : between(1, SMS_MOST);
    case FO_MISALIGN:
    case FO_APART: return partial_address((uint64_t)s->imm, facts);
    default: return anything;
    }
}

/* Of an operator that only rises, or only falls, with each operand: its least and most results are at the ends. */
static struct partial at_ends(enum formula_op op, struct partial a, struct partial b)
{
    const int64_t end[] = { formula_binary(op, a.lo, b.lo), formula_binary(op, a.lo, b.hi),
                            formula_binary(op, a.hi, b.lo), formula_binary(op, a.hi, b.hi) };
    struct partial x = { end[0], end[0], 1 };
    for (int i = 1; i < 4; i++) {
        x.lo = end[i] < x.lo ? end[i] : x.lo;
        x.hi = end[i] > x.hi ? end[i] : x.hi;
    }
    x.divisor = is_known(x) ? x.lo : 1;
    return x;
}

static bool is_true(struct partial x) { return x.lo > 0 || x.hi < 0; }
static bool is_false(struct partial x) { return x.lo == 0 && x.hi == 0; }

static struct partial partial_quotient(enum formula_op op, struct partial a, struct partial b)
{
    if (is_false(b))
        return at_ends(op, b, b);
    if (b.lo < 1)
        return anything;
    if (op != FO_MOD)
        return at_ends(op, a, b);
    if (is_known(b) && rest(a.divisor, b.lo) == 0)
        return between(0, 0);
    const int64_t most = a.hi < b.hi - 1 ? a.hi : b.hi - 1;
    return a.lo < 0 ? between(1 - b.hi, b.hi - 1) : a.hi < b.lo ? a : between(0, most);
}

static struct partial truth(bool never, bool always) { return between(always, !never); }

static struct partial partial_comparison(enum formula_op op, struct partial a, struct partial b)
{
    const bool apart = a.hi < b.lo || b.hi < a.lo, same = is_known(a) && is_known(b) && a.lo == b.lo;
    switch (op) {
    case FO_LT: return truth(a.lo >= b.hi, a.hi < b.lo);
    case FO_LE: return truth(a.lo > b.hi, a.hi <= b.lo);
    case FO_GT: return truth(a.hi <= b.lo, a.lo > b.hi);
    case FO_GE: return truth(a.hi < b.lo, a.lo >= b.hi);
    case FO_EQ: return truth(apart, same);
    default: return truth(same, apart);
    }
}

static struct partial partial_binary(enum formula_op op, struct partial a, struct partial b)
{
    struct partial x;
    if (is_known(a) && is_known(b)) {
        const int64_t value = formula_binary(op, a.lo, b.lo);
        return between(value, value);
    }
    switch (op) {
    case FO_ADD:
    case FO_SUB:
    case FO_MIN:
    case FO_MAX: return at_ends(op, a, b);
    case FO_MUL:
        x = at_ends(op, a, b);
        x.divisor = formula_binary(FO_MUL, a.divisor, b.divisor);
        return x;
    case FO_DIV:
    case FO_CDIV:
    case FO_POW2:
    case FO_MOD: return partial_quotient(op, a, b);
    case FO_AND: return truth(is_false(a) || is_false(b), is_true(a) && is_true(b));
    case FO_OR: return truth(is_false(a) && is_false(b), is_true(a) || is_true(b));
    default: return partial_comparison(op, a, b);
    }
}

bool formula_known(const struct formula *f, const struct formula_facts *facts, int64_t *value)
{
    struct partial stack[FORMULA_STACK];
    int top = 0;
    *value = f->n == 0;
    if (f->n <= 0)
        return true;
    for (int i = 0; i < f->n; i++) {
        const struct formula_step *s = &f->step[i];
        if (s->op < FO_ADD) {
            stack[top++] = partial_leaf(s, facts);
        } else if (s->op == FO_NOT) {
            stack[top - 1] = truth(is_true(stack[top - 1]), is_false(stack[top - 1]));
        } else {
            top--;
            stack[top - 1] = partial_binary(s->op, stack[top - 1], stack[top]);
        }
    }
    *value = stack[0].lo;
    return is_known(stack[0]);
}

/* Where the operand begins that ends before step `end`. */
static int operand_begin(const struct formula *f, int end)
{
    for (int missing = 1; missing > 0;) {
        const enum formula_op op = f->step[--end].op;
        missing += op < FO_ADD ? -1 : op != FO_NOT;
    }
    return end;
}

/* Is `one` among the conditions that `and` joins to the first `end` steps of f, from `begin` on? */
static bool has_condition(const struct formula *f, int begin, int end, const struct formula *one)
{
    if (begin == end)
        return false;
    bool same = end - begin == one->n;
    for (int i = 0; same && i < one->n; i++)
        same = f->step[begin + i].op == one->step[i].op && f->step[begin + i].imm == one->step[i].imm;
    if (same || f->step[end - 1].op != FO_AND)
        return same;
    const int right = operand_begin(f, end - 1);
    return has_condition(f, begin, right, one) || has_condition(f, right, end - 1, one);
}

static bool follows(const struct formula *f, int begin, int end, const struct formula *g,
                    const struct formula_facts *facts)
{
    struct formula one = { .n = end - begin };
    int64_t holds;
    memcpy(one.step, &f->step[begin], sizeof one.step[0] * (size_t)one.n);
    if ((formula_known(&one, facts, &holds) && holds) || has_condition(g, 0, g->n, &one))
        return true;
    if (one.n == 0 || f->step[end - 1].op != FO_AND)
        return false;
    const int right = operand_begin(f, end - 1);
    return follows(f, begin, right, g, facts) && follows(f, right, end - 1, g, facts);
}

bool formula_follows(const struct formula *f, const struct formula *g, const struct formula_facts *facts)
{
    return f->n >= 0 && g->n >= 0 && follows(f, 0, f->n, g, facts);
}
