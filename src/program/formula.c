/* SPDX-License-Identifier: Apache-2.0 */
/* formula.c - building and evaluating formulas; formula_text.c prints and parses them, formula_known.c says what is
 * known of them before a launch.
 *
 * A formula is postfix code for a stack of FORMULA_STACK numbers.  Whoever builds one (here or in the parser) checks
 * that it fits, so evaluation needs no checks.
 */
#include "formula.h"

#include <string.h>

/* ---- arithmetic that saturates -------------------------------------------------------------------- */

static int64_t saturated(bool negative) { return negative ? INT64_MIN : INT64_MAX; }

static int64_t add(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? saturated(a < 0) : r;
}

static int64_t sub(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? saturated(a < 0) : r;
}

static int64_t mul(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? saturated((a < 0) != (b < 0)) : r;
}

static int64_t quotient(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? sub(0, a) : a / b;
}

static int64_t rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/* Rounded towards plus infinity. */
static int64_t quotient_up(int64_t a, int64_t b)
{
    const int64_t r = rest(a, b);
    return quotient(a, b) + (r != 0 && (r < 0) == (b < 0));
}

/* The least power of two that is not below the quotient, and at least 1. */
static int64_t power(int64_t a, int64_t b)
{
    const int64_t least = quotient_up(a, b), most = INT64_C(1) << 62;
    int64_t p = 1;
    while (p < least && p < most)
        p *= 2;
    return p;
}

static inline __attribute__((always_inline)) int64_t binary(enum formula_op op, int64_t a, int64_t b)
{
    switch (op) {
    case FO_ADD: return add(a, b);
    case FO_SUB: return sub(a, b);
    case FO_MUL: return mul(a, b);
    case FO_DIV: return quotient(a, b);
    case FO_MOD: return rest(a, b);
    case FO_CDIV: return quotient_up(a, b);
    case FO_POW2: return power(a, b);
    case FO_MIN: return a < b ? a : b;
    case FO_MAX: return a > b ? a : b;
    case FO_LT: return a < b;
    case FO_LE: return a <= b;
    case FO_EQ: return a == b;
    case FO_NE: return a != b;
    case FO_GE: return a >= b;
    case FO_GT: return a > b;
    case FO_AND: return a != 0 && b != 0;
    case FO_OR: return a != 0 || b != 0;
    default: return 0;
    }
}

/* ---- evaluation ----------------------------------------------------------------------------------- */

/* The low bits that any address of the set has; `apart`: in which any differs from the first one's. */
static int64_t low_bits(const struct formula_env *env, uint64_t set, bool apart)
{
    uintptr_t bits = 0;
    if (env->pointer == NULL || set == 0)
        return 0;
    const uintptr_t first = apart ? (uintptr_t)env->pointer[__builtin_ctzll(set)] : 0;
    for (; set; set &= set - 1)
        bits |= (uintptr_t)env->pointer[__builtin_ctzll(set)] ^ first;
    return (int64_t)(bits % 16);
}

static inline __attribute__((always_inline)) int64_t leaf(const struct formula_step *s, const struct formula_env *env)
{
    switch (s->op) {
    case FO_CONST: return s->imm;
    case FO_SIZE: return env->size[s->imm];
    case FO_PARAM: return env->param[s->imm];
    case FO_SMS: return env->sms;
    case FO_SM_ARCH: return env->arch;
    case FO_SMEM: return env->smem;
    case FO_RESIDENT: return env->resident == NULL ? 0 : env->resident[s->imm];
    case FO_MISALIGN: return low_bits(env, (uint64_t)s->imm, false);
    case FO_APART: return low_bits(env, (uint64_t)s->imm, true);
    default: return 0;
    }
}

int64_t formula_binary(enum formula_op op, int64_t a, int64_t b) { return binary(op, a, b); }

int64_t formula_eval(const struct formula *f, const struct formula_env *env)
{
    int64_t stack[FORMULA_STACK];
    int top = 0;
    if (f->n <= 0)
        return f->n == 0;
    for (int i = 0; i < f->n; i++) {
        const struct formula_step *s = &f->step[i];
        if (s->op < FO_ADD) {
            stack[top++] = leaf(s, env);
        } else if (s->op == FO_NOT) {
            stack[top - 1] = stack[top - 1] == 0;
        } else {
            top--;
            stack[top - 1] = binary(s->op, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

/* ---- building ------------------------------------------------------------------------------------- */

int formula_depth(const struct formula *f)
{
    int depth = 0, most = 0;
    for (int i = 0; i < f->n; i++) {
        depth += f->step[i].op < FO_ADD ? 1 : f->step[i].op == FO_NOT ? 0 : -1;
        if (depth > most)
            most = depth;
    }
    return most;
}

/* What lies behind step n is never read, and formulas are mostly short: it is left as it is. */
struct formula f_leaf(enum formula_op op, int64_t imm)
{
    struct formula f;
    f.n = 1;
    f.step[0] = (struct formula_step){ .op = op, .imm = imm };
    return f;
}

struct formula f_const(int64_t x) { return f_leaf(FO_CONST, x); }

struct formula f_bin(enum formula_op op, const struct formula *a, const struct formula *b)
{
    if (op == FO_AND && a->n == 0) /* absent guards hold */
        return *b;
    if (op == FO_AND && b->n == 0)
        return *a;
    struct formula r;
    r.n = -1;
    if (a->n <= 0 || b->n <= 0 || a->n + b->n + 1 > FORMULA_MAX || formula_depth(b) >= FORMULA_STACK)
        return r;
    memcpy(r.step, a->step, sizeof a->step[0] * (size_t)a->n);
    memcpy(&r.step[a->n], b->step, sizeof b->step[0] * (size_t)b->n);
    r.n = a->n + b->n + 1;
    r.step[r.n - 1] = (struct formula_step){ .op = op };
    return r;
}

struct formula f_not(const struct formula *a)
{
    struct formula r = *a;
    if (r.n <= 0 || r.n == FORMULA_MAX)
        r.n = -1;
    else
        r.step[r.n++] = (struct formula_step){ .op = FO_NOT };
    return r;
}
