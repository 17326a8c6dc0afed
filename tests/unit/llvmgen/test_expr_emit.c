/* SPDX-License-Identifier: Apache-2.0 */
/* test_expr_emit.c - the meaning of emitted expressions, at the edges.
 *
 * Each row is computed twice: from constants, which fold while they are emitted, and from the same values hidden in
 * variables, so that the code for unknown operands is emitted and then folded by the passes.  Undefined behaviour would
 * fold to anything. The result is read from the IR as bits.
 */
#include <inttypes.h>
#include <math.h>

#include "support/emit_fixture.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

enum what { BINARY, UNARY, FUNCTION, CAST };
struct row {
    enum what what;
    int op;     /* enum binary, unary, fn; CAST: the type to convert to */
    enum ty ty; /* of the operands */
    double a, b, c;
    double r; /* of the result type */
};

#define I8_MIN  (-128.0)
#define I32_MIN (-2147483648.0)
#define I64_MIN (-9223372036854775808.0)
#define BIN(op, ty, a, b, r)                                                                                           \
    {                                                                                                                  \
        BINARY, BIN_##op, TY_##ty, a, b, 0, r                                                                          \
    }
#define FUN(fn, ty, a, b, c, r)                                                                                        \
    {                                                                                                                  \
        FUNCTION, FN_##fn, TY_##ty, a, b, c, r                                                                         \
    }
#define CONV(from, to, a, r)                                                                                           \
    {                                                                                                                  \
        CAST, TY_##to, TY_##from, a, 0, 0, r                                                                           \
    }

static const struct row rows[] = {
    /* division */
    BIN(DIV, I32, 7, 2, 3),
    BIN(DIV, I32, -7, 2, -3),
    BIN(DIV, I32, 7, 0, 0),
    BIN(DIV, I32, I32_MIN, -1, I32_MIN),
    BIN(DIV, I32, 5, -1, -5),
    BIN(DIV, I64, I64_MIN, -1, I64_MIN),
    BIN(DIV, I64, -9, 0, 0),
    BIN(DIV, I8, I8_MIN, -1, I8_MIN),
    BIN(DIV, U32, 7, 0, 0),
    BIN(DIV, U32, 4294967295.0, 2, 2147483647),
    BIN(DIV, U8, 200, 3, 66),
    BIN(DIV, U64, 9, 0, 0),
    BIN(REM, I32, 7, 2, 1),
    BIN(REM, I32, -7, 2, -1),
    BIN(REM, I32, 7, 0, 0),
    BIN(REM, I32, I32_MIN, -1, 0),
    BIN(REM, I64, I64_MIN, -1, 0),
    BIN(REM, I16, 9, -4, 1),
    BIN(REM, U32, 7, 0, 0),
    BIN(REM, U8, 200, 7, 4),
    BIN(DIV, F32, 1, 0, INFINITY),
    BIN(DIV, F64, -1, 0, -INFINITY),
    BIN(DIV, F16, 1, 4, 0.25),
    BIN(DIV, BF16, 1, 4, 0.25),
    /* by odd whole numbers: where the rounded reciprocal gives a neighbour; denormal, zero and infinite ones */
    BIN(DIV, F32, 1.00095367, 7, 0.14299337565898895),
    BIN(DIV, F32, 5.6051938572992683e-45, 7, 1.4012984643248171e-45),
    BIN(DIV, F32, 1.40130266822021e-39, 7, 2.0018669601651472e-40),
    BIN(DIV, F32, 3.4028234663852886e+38, 7, 4.8611763805504123e+37),
    BIN(DIV, F32, -0.0, 7, -0.0),
    BIN(DIV, F32, -INFINITY, 7, -INFINITY),
    BIN(DIV, F32, NAN, 7, NAN),
    BIN(DIV, F32, 1.00191021, 13, 0.07707001268863678),
    BIN(DIV, F32, 1.40130266822021e-39, 1023, 1.3704698981096711e-42),
    BIN(DIV, F32, 3.4028234663852886e+38, 1023, 3.3263183441253745e+35),
    BIN(DIV, F64, 1.0000000009094947, 13, 0.076923076993038048),
    BIN(DIV, F64, -0.0, 13, -0.0),
    /* shifts */
    BIN(SHL, I32, 1, 31, I32_MIN),
    BIN(SHL, I32, 1, 32, 0),
    BIN(SHL, I32, 1, -1, 0),
    BIN(SHL, U64, 1, 64, 0),
    BIN(SHL, U8, 255, 7, 128),
    BIN(SHL, U8, 255, 8, 0),
    BIN(SHR, I32, -8, 1, -4),
    BIN(SHR, I32, -8, 32, -1),
    BIN(SHR, I32, 8, 99, 0),
    BIN(SHR, I32, -8, -1, -1),
    BIN(SHR, U32, 4294967288.0, 1, 2147483644),
    BIN(SHR, U32, 8, 32, 0),
    BIN(SHR, I8, I8_MIN, 8, -1),
    BIN(SHR, I64, -1, 63, -1),
    BIN(SHR, I64, I64_MIN, 64, -1),
    BIN(SHR, U16, 65535, 16, 0),
    /* wrapping, comparison, logic */
    BIN(ADD, I32, 2147483647, 1, I32_MIN),
    BIN(MUL, U8, 200, 2, 144),
    BIN(SUB, U32, 0, 1, 4294967295.0),
    BIN(ADD, I8, 127, 1, I8_MIN),
    BIN(LT, I32, -1, 1, 1),
    BIN(LT, U32, 4294967295.0, 1, 0),
    BIN(EQ, F32, NAN, NAN, 0),
    BIN(NE, F32, NAN, NAN, 1),
    BIN(LT, F64, NAN, 1, 0),
    BIN(GE, BF16, 2, 2, 1),
    BIN(GT, F16, 2, 2, 0),
    BIN(LE, I64, I64_MIN, 0, 1),
    BIN(LAND, BOOL, 1, 0, 0),
    BIN(LOR, BOOL, 1, 0, 1),
    BIN(XOR, BOOL, 1, 1, 0),
    BIN(NE, BOOL, 1, 0, 1),
    BIN(AND, U8, 12, 10, 8),
    BIN(OR, I16, 12, 10, 14),
    BIN(XOR, I64, -1, 1, -2),
    { UNARY, UN_NEG, TY_I32, I32_MIN, 0, 0, I32_MIN },
    { UNARY, UN_NEG, TY_F32, 0, 0, 0, -0.0 },
    { UNARY, UN_NOT, TY_BOOL, 1, 0, 0, 0 },
    { UNARY, UN_COMPL, TY_U8, 1, 0, 0, 254 },
    { UNARY, UN_NEG, TY_U8, 1, 0, 0, 255 },
    { UNARY, UN_NEG, TY_BF16, 2, 0, 0, -2 },
    /* functions */
    FUN(MIN, I32, -1, 1, 0, -1),
    FUN(MIN, U32, 4294967295.0, 1, 0, 1),
    FUN(MAX, I8, I8_MIN, 1, 0, 1),
    FUN(MIN, F32, NAN, 1, 0, 1),
    FUN(MAX, F64, 1, NAN, 0, 1),
    FUN(MIN, F16, NAN, 2, 0, 2),
    FUN(MAX, BF16, -3, 2, 0, 2),
    FUN(MIN, F32, NAN, NAN, 0, NAN),
    FUN(ABS, I32, I32_MIN, 0, 0, I32_MIN),
    FUN(ABS, I32, -5, 0, 0, 5),
    FUN(ABS, U32, 5, 0, 0, 5),
    FUN(ABS, F32, -0.0, 0, 0, 0),
    FUN(ABS, BF16, -2, 0, 0, 2),
    FUN(ABS, F16, -2, 0, 0, 2),
    FUN(SIGN, I32, -9, 0, 0, -1),
    FUN(SIGN, I8, 0, 0, 0, 0),
    FUN(SIGN, U64, 9, 0, 0, 1),
    FUN(SIGN, F32, -0.0, 0, 0, -0.0),
    FUN(SIGN, F64, -7, 0, 0, -1),
    FUN(SIGN, F32, NAN, 0, 0, NAN),
    FUN(CLAMP, I32, 9, 0, 5, 5),
    FUN(CLAMP, F32, -9, 0, 5, 0),
    FUN(CLAMP, I32, 3, 5, 1, 1),
    FUN(ISNAN, F32, NAN, 0, 0, 1),
    FUN(ISNAN, F64, INFINITY, 0, 0, 0),
    FUN(ISNAN, F16, NAN, 0, 0, 1),
    FUN(ISINF, F32, -INFINITY, 0, 0, 1),
    FUN(ISINF, BF16, 1, 0, 0, 0),
    FUN(POPCOUNT, U8, 255, 0, 0, 8),
    FUN(POPCOUNT, I64, -1, 0, 0, 64),
    FUN(CLZ, U8, 1, 0, 0, 7),
    FUN(CLZ, I32, 0, 0, 0, 32),
    FUN(CLZ, U16, 0, 0, 0, 16),
    FUN(CTZ, I8, 0, 0, 0, 8),
    FUN(CTZ, U64, 0, 0, 0, 64),
    FUN(CTZ, I32, 8, 0, 0, 3),
    FUN(ROUND, F32, 2.5, 0, 0, 2),
    FUN(ROUND, F64, -3.5, 0, 0, -4),
    FUN(ROUND, F16, 0.5, 0, 0, 0),
    FUN(FLOOR, F32, -1.5, 0, 0, -2),
    FUN(CEIL, F64, -1.5, 0, 0, -1),
    FUN(TRUNC, BF16, -1.5, 0, 0, -1),
    FUN(SQRT, F32, 2, 0, 0, 1.41421356237309515),
    FUN(SQRT, F16, 4, 0, 0, 2),
    FUN(FMA, F32, 16777217, 1, 1, 16777217),
    FUN(FMA, F64, 3, 4, 5, 17),
    /* conversions */
    CONV(F32, I32, NAN, 0),
    CONV(F32, I32, 3e9, 2147483647),
    CONV(F32, I32, -3e9, I32_MIN),
    CONV(F32, U8, -1, 0),
    CONV(F32, U8, 300, 255),
    CONV(F64, I8, -200, I8_MIN),
    CONV(F64, I64, 1e30, 9223372036854775807.0),
    CONV(F64, U64, NAN, 0),
    CONV(F64, I64, NAN, 0),
    CONV(F16, I32, INFINITY, 2147483647),
    CONV(BF16, I16, -1e30, -32768),
    CONV(F32, I32, -1.9, -1),
    CONV(I32, I8, 300, 44),
    CONV(U8, I8, 255, -1),
    CONV(I8, U32, -1, 4294967295.0),
    CONV(U8, I64, 255, 255),
    CONV(I32, BOOL, 256, 1),
    CONV(F32, BOOL, NAN, 1),
    CONV(F64, BOOL, -0.0, 0),
    CONV(BOOL, I32, 1, 1),
    CONV(BOOL, F32, 1, 1),
    CONV(BOOL, BF16, 1, 1),
    CONV(F64, F32, 1e300, INFINITY),
    CONV(F64, F16, 65520, INFINITY),
    CONV(F32, BF16, 1.00390625, 1),
    CONV(F16, BF16, 1.00390625, 1),
    CONV(BF16, F16, 1e30, INFINITY),
    CONV(F16, F64, 0.5, 0.5),
    CONV(I64, F32, 16777217, 16777216),
    CONV(U64, F64, 18446744073709551615.0, 18446744073709551616.0),
    CONV(I32, F16, 65520, INFINITY),
    CONV(I32, BF16, 257, 256),
    CONV(I32, BF16, 16842753, 16908288), /* a tie that is none: rounded once */
};
enum { NROWS = sizeof rows / sizeof *rows };

static enum ty result_type(const struct row *r)
{
    if (r->what == CAST)
        return (enum ty)r->op;
    if (r->what == BINARY && r->op >= BIN_EQ && r->op <= BIN_GE)
        return TY_BOOL;
    if (r->what == FUNCTION && (r->op == FN_ISNAN || r->op == FN_ISINF))
        return TY_BOOL;
    return r->ty;
}

/* ---- emission ---------------------------------------------------------------------------------------------------- */

static union value number(enum ty ty, double x)
{
    union value v;
    if (ty_is_float(ty))
        v.f = x;
    else if (x >= 9223372036854775808.0)
        v.u = x >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)x;
    else
        v.i = (int64_t)x;
    return v;
}

/* Memory image of the expected value, as an integer; saturated where a double cannot say it. */
static uint64_t image(enum ty ty, double x)
{
    uint64_t bits = 0;
    union value v = number(ty, x);
    if (ty == TY_I64 && x >= 9223372036854775807.0)
        v.i = INT64_MAX;
    value_store(ty, &bits, v);
    return bits;
}

static kb_val operand(kb *k, enum ty ty, double x, bool hidden)
{
    const kb_val c = kb_const(k, ty, number(ty, x));
    return hidden ? kb_get(k, kb_var_new(k, c, "hidden")) : c;
}

static kb_val leaf_of_row(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct row *r = env->user;
    const double x[] = { r->a, r->b, r->c };
    return operand(k, e->type, x[e->which], e->field);
}

static int arity(const struct row *r)
{
    static const int of[] = {
#define FN(id, name, arity, types, what) [FN_##id] = arity,
#include "frontend/expr/functions.def"
#undef FN
    };
    return r->what == BINARY ? 2 : r->what == FUNCTION ? of[r->op] : 1;
}

/* The row as an expression over params. */
static kb_val emit_row(kb *k, const struct row *r, bool hidden)
{
    static const enum expr_kind kind[] = { EX_BINARY, EX_UNARY, EX_CALL, EX_CAST };
    struct expr leaf[3], e = { .kind = kind[r->what], .type = result_type(r), .op = r->op, .nargs = arity(r) };
    struct emit_env env;
    for (int i = 0; i < 3; i++) {
        leaf[i] = (struct expr){ .kind = EX_PARAM, .type = r->ty, .which = i, .field = hidden };
        e.arg[i] = &leaf[i];
    }
    emit_env_init(&env, leaf_of_row, (void *)r, NULL);
    return emit_expr(k, &env, &e);
}

static void emit_rows(kb *k, const void *arg)
{
    static const enum ty bits_of[] = { [TY_F16] = TY_U16, [TY_BF16] = TY_U16, [TY_F32] = TY_U32, [TY_F64] = TY_U64 };
    const bool hidden = *(const bool *)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, TY_COUNT);
    kb_ptr out[TY_COUNT];
    for (int t = 0; t < TY_COUNT; t++)
        out[t] = kb_param_ptr(k, (enum ty)t, 8, 0, "out");
    for (int i = 0; i < NROWS; i++) {
        kb_val r = emit_row(k, &rows[i], hidden);
        cr_expect_eq(r.ty, result_type(&rows[i]), "row %d", i);
        const kb_val at = kb_imm(k, TY_I32, i);
        if (ty_is_float(r.ty))
            r = kb_bitcast(k, r, bits_of[r.ty]);
        kb_store(k, out[r.ty], at, r);
    }
    kb_kernel_end(k);
}

/* The stored constants, in order. */
static int stored(const char *ir, uint64_t *value, int max)
{
    int n = 0;
    for (const char *at = ir; (at = strstr(at, "store i")) != NULL; at++) {
        char *end;
        strtol(at + 7, &end, 10);
        if (n < max)
            value[n] = (uint64_t)strtoll(end + 1, NULL, 10);
        cr_expect(end[1] == '-' || (end[1] >= '0' && end[1] <= '9'), "not a constant: %.60s", at);
        n++;
    }
    return n;
}

static void check_rows(bool hidden)
{
    uint64_t got[NROWS];
    struct emitted e = emit_with((struct emission_options){ .ir = true }, emit_rows, &hidden);
    cr_assert(e.ok, "%s", e.error);
    const int n = stored(e.text, got, NROWS);
    cr_assert_eq(n, NROWS, "%d stores of constants, not %d", n, (int)NROWS);
    for (int i = 0; i < NROWS; i++) {
        const struct row *r = &rows[i];
        const enum ty ty = result_type(r);
        const uint64_t mask = UINT64_MAX >> (64 - 8 * ty_bytes(ty)), want = image(ty, r->r) & mask;
        if (ty_is_float(ty) && isnan(r->r)) {
            const uint64_t x = got[i] & mask;
            cr_expect(isnan(value_load(ty, &x).f), "row %d: %" PRIx64 " is no NaN", i, x);
        } else {
            cr_expect_eq(got[i] & mask, want, "row %d (%d %d %s: %g %g): %" PRIx64 ", not %" PRIx64, i, (int)r->what,
                         r->op, ty_name(r->ty), r->a, r->b, got[i] & mask, want);
        }
    }
    free(e.text);
}

Test(expr_emit, constants) { check_rows(false); }
Test(expr_emit, unknown_operands) { check_rows(true); }

/* ---- structure --------------------------------------------------------------------------------------------------- */

static const struct expr input = { .kind = EX_INPUT, .type = TY_I32 };
static const struct expr two = { .kind = EX_CONST, .type = TY_I32, .imm.i = 2 };
static const struct expr doubled = {
    .kind = EX_BINARY, .type = TY_I32, .op = BIN_MUL, .nargs = 2, .arg = { &input, &input }
};
static const struct expr use = { .kind = EX_LET, .type = TY_I32 };
static const struct expr use_twice = {
    .kind = EX_BINARY, .type = TY_I32, .op = BIN_ADD, .nargs = 2, .arg = { &use, &use }
};
static const struct let lets[] = { { "d", &doubled } };
static const struct problem with_let = { .nlets = 1, .let = lets };

static kb_val count_loads(kb *k, struct emit_env *env, const struct expr *e)
{
    ++*(int *)env->user;
    return kb_imm(k, e->type, 3);
}

static void lets_once(kb *k, const void *arg)
{
    int loads = 0;
    struct emit_env env;
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    emit_env_init(&env, count_loads, &loads, &with_let);
    kb_if(k, kb_eq(k, kb_tid(k), 1)) {
        emit_expr(k, &env, &use_twice);
        cr_expect_eq(loads, 2, "the let's own two reads, once");
        kb_if(k, kb_eq(k, kb_tid(k), 2)) {
            emit_expr(k, &env, &use);
        }
        cr_expect_eq(loads, 2, "still visible inside");
    }
    kb_else
    {
        emit_expr(k, &env, &use);
        cr_expect_eq(loads, 4, "not visible in the other arm");
    }
    emit_expr(k, &env, &use);
    cr_expect_eq(loads, 6, "nor behind the scopes");
    emit_expr(k, &env, &use);
    cr_expect_eq(loads, 6);
    emit_env_init(&env, count_loads, &loads, &with_let);
    emit_expr(k, &env, &use);
    cr_expect_eq(loads, 8);
    kb_kernel_end(k);
}
Test(expr_emit, lets_once)
{
    struct emitted e = emit_with((struct emission_options){ 0 }, lets_once, NULL);
    cr_assert(e.ok, "%s", e.error);
    free(e.text);
}

/* state {m, c}: combine m = a.m + b.m * scale, c = t + t with t = a.c - b.c; `scale` is a param. */
static const struct expr a0 = { .kind = EX_LEFT, .type = TY_I32, .field = 0 },
                         a1 = { .kind = EX_LEFT, .type = TY_I32, .field = 1 };
static const struct expr b0 = { .kind = EX_RIGHT, .type = TY_I32, .field = 0 },
                         b1 = { .kind = EX_RIGHT, .type = TY_I32, .field = 1 };
static const struct expr scale = { .kind = EX_PARAM, .type = TY_I32 };
static const struct expr scaled = {
    .kind = EX_BINARY, .type = TY_I32, .op = BIN_MUL, .nargs = 2, .arg = { &b0, &scale }
};
static const struct expr first = {
    .kind = EX_BINARY, .type = TY_I32, .op = BIN_ADD, .nargs = 2, .arg = { &a0, &scaled }
};
static const struct expr minus = { .kind = EX_BINARY, .type = TY_I32, .op = BIN_SUB, .nargs = 2, .arg = { &a1, &b1 } };
static const struct expr t = { .kind = EX_OP_LET, .type = TY_I32 };
static const struct expr second = { .kind = EX_BINARY, .type = TY_I32, .op = BIN_ADD, .nargs = 2, .arg = { &t, &t } };
static const struct let op_lets[] = { { "t", &minus } };
static const struct op op = { .name = "user",
                              .nfields = 2,
                              .field = { TY_I32, TY_I32 },
                              .identity = { &two, &scale },
                              .nlets = 1,
                              .let = op_lets,
                              .combine = { &first, &second } };

static kb_val scale_is_ten(kb *k, struct emit_env *env, const struct expr *e)
{
    (void)env;
    cr_expect_eq(e->kind, EX_PARAM);
    return kb_imm(k, e->type, 10);
}

static void combine(kb *k, const void *arg)
{
    struct emit_env env;
    int64_t x = 0;
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    emit_env_init(&env, scale_is_ten, NULL, NULL);
    const kb_tup a = { .n = 2, .e = { kb_imm(k, TY_I32, 1), kb_imm(k, TY_I32, 5) } };
    const kb_tup b = { .n = 2, .e = { kb_imm(k, TY_I32, 7), kb_imm(k, TY_I32, 3) } };
    const kb_tup r = emit_combine(k, &op, &env, a, b), id = emit_identity(k, &op, &env), pad = emit_pad(k, &op, &env);
    cr_expect_eq(r.n, 2);
    cr_expect(kb_is_const(r.e[0], &x) && x == 71);
    cr_expect(kb_is_const(r.e[1], &x) && x == 4);
    cr_expect(kb_is_const(id.e[0], &x) && x == 2);
    cr_expect(kb_is_const(id.e[1], &x) && x == 10);
    cr_expect(kb_is_const(pad.e[1], &x) && x == 10);
    kb_kernel_end(k);
}
Test(expr_emit, combine)
{
    struct emitted e = emit_with((struct emission_options){ 0 }, combine, NULL);
    cr_assert(e.ok, "%s", e.error);
    free(e.text);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void no_supplier(kb *k, const void *arg)
{
    struct emit_env env;
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    emit_env_init(&env, NULL, NULL, NULL);
    emit_expr(k, &env, &input);
    kb_kernel_end(k);
}
static void wrong_type(kb *k, const void *arg)
{
    struct emit_env env;
    struct expr f = { .kind = EX_PARAM, .type = TY_F32 };
    (void)arg;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    emit_env_init(&env, leaf_of_row, (void *)&rows[0], NULL);
    f.kind = EX_UNARY, f.op = UN_NEG, f.nargs = 1, f.arg[0] = &use;
    emit_expr(k, &env, &f);
    kb_kernel_end(k);
}
static void no_identity(kb *k, const void *arg)
{
    struct op none = op;
    (void)arg;
    none.identity[0] = NULL;
    kb_kernel_begin(k, "kernel", 32, 0, 0, 0);
    cr_expect_eq(emit_identity(k, &none, NULL).n, 2);
    kb_kernel_end(k);
}
Test(expr_emit, faults)
{
    const struct {
        emitter f;
        const char *says;
    } fault[] = { { no_supplier, "does not supply" },
                  { wrong_type, "let 0 does not exist" },
                  { no_identity, "user has no identity" } };
    for (int i = 0; i < 3; i++) {
        struct emitted e = emit_with((struct emission_options){ 0 }, fault[i].f, NULL);
        cr_expect_not(e.ok);
        cr_expect_not_null(strstr(e.error, fault[i].says), "%s", e.error);
    }
}
