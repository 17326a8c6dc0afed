/* SPDX-License-Identifier: Apache-2.0 */
/* test_expr.c - expressions: precedence and typing by canonical text, errors by code and column.
 *
 * Every row is the map of one spec whose user operator has a state of the wanted type.
 */
#include "support/spec_fixture.h"

#include <stdio.h>

/* The map begins in column 7 of line 1. */
static void build_map(struct spec *f, const char *type, const char *map)
{
    char text[4096];
    snprintf(text, sizeof text,
             "map: \"%s\"\n"
             "kind: reduce\n"
             "inputs:\n"
             "  x: f32[n]\n"
             "  y: f32[n]\n"
             "  i: i32[n]\n"
             "  k: i64[n]\n"
             "  u: u8[n]\n"
             "  h: f16[n]\n"
             "  p: bool[n]\n"
             "  q: bool[n]\n"
             "  z: {type: {re: f32, im: f64}, shape: [n]}\n"
             "params: {c: f32, d: f64}\n"
             "let: {two: 2, half: 0.5, twox: 2 * x, sign: \"if twox > 0 then two else 0\"}\n"
             "operator: {state: %s, combine: a}\n"
             "outputs:\n"
             "  r: {type: %s, value: r}\n",
             map, type, type);
    spec_build(f, text);
}

struct good {
    const char *type, *map, *canonical;
};

static const struct good good[] = {
    /* precedence, loosest to tightest */
    { "f32", "x + y * c", "(x + (y * c))" },
    { "f32", "x * y + c", "((x * y) + c)" },
    { "f32", "x - y - c", "((x - y) - c)" },
    { "f32", "x / y / c", "((x / y) / c)" },
    { "f32", "x - (y - c)", "(x - (y - c))" },
    { "i32", "i % 7 * 2", "((i % 7) * 2)" },
    { "i32", "i << 1 + 2", "(i << (1 + 2))" },
    { "i32", "i & 3 << 1", "(i & (3 << 1))" },
    { "i32", "i ^ i & 3", "(i ^ (i & 3))" },
    { "i32", "i | i ^ 3", "(i | (i ^ 3))" },
    { "bool", "i | 1 == 3", "((i | 1) == 3)" },
    { "bool", "not p == q", "(not (p == q))" },
    { "bool", "not p and q", "((not p) and q)" },
    { "bool", "!p && q || p", "(((not p) and q) or p)" },
    { "bool", "p or q and p", "(p or (q and p))" },
    { "bool", "x < y and y <= c", "((x < y) and (y <= c))" },
    { "bool", "p == (x != y)", "(p == (x != y))" },
    { "f32", "if p then x else y + c", "(if p then x else (y + c))" },
    { "f32", "if p then x else if q then y else c", "(if p then x else (if q then y else c))" },
    { "f32", "(if p then x else y) + c", "((if p then x else y) + c)" },
    { "f32", "x + if p then y else c", "(x + (if p then y else c))" },
    { "f32", "-x * y", "((-x) * y)" },
    { "f32", "- -x", "(-(-x))" },
    { "f32", "-z.re", "(-z.re)" },
    { "i32", "~i + 1", "((~i) + 1)" },
    { "f32", "x[1] - x[-1]", "(x[1] - x[-1])" },
    { "f32", "x[0] + z[-2].re", "(x + z[-2].re)" },
    { "f32", "max(x, min(y, c))", "max(x, min(y, c))" },
    { "f32", "((((x))))", "x" },
    { "f32", "x\\n  + y", "(x + y)" },
    /* literals take the type they are used at */
    { "f32", "x + 1", "(x + 1.0)" },
    { "f32", "1e-3 * x", "(0.001 * x)" },
    { "i64", "k + 1", "(k + i64(1))" },
    { "u8", "u + 255", "(u + u8(255))" },
    { "f16", "h * 2", "(h * f16(2.0))" },
    { "f32", "if p then 1 else 0", "(if p then 1.0 else 0.0)" },
    { "f64", "if p then 1 else 0.1", "(if p then f64(1.0) else f64(0.1))" },
    { "f32", "1 / 2", "(1.0 / 2.0)" },
    { "i32", "-2147483648", "-2147483648" },
    { "i64", "-9223372036854775808", "i64(-9223372036854775808)" },
    { "u64", "18446744073709551615", "u64(18446744073709551615)" },
    { "f32", "-inf", "-inf" },
    { "f32", "-1.5", "-1.5" },
    { "f32", "nan", "nan" },
    { "f32", "select(p, 1, x)", "select(p, 1.0, x)" },
    { "f64", "sqrt(2)", "sqrt(f64(2.0))" },
    { "f32", "sqrt(2)", "sqrt(2.0)" },
    { "bool", "1 < 2", "(1 < 2)" },
    { "bool", "3000000000 < 1", "(i64(3000000000) < i64(1))" },
    { "bool", "0.5 < 1", "(0.5 < 1.0)" },
    { "bool", "1 == k", "(i64(1) == k)" },
    /* through lets */
    { "f32", "two * x", "(two * x)" },
    { "i64", "two * k", "(two * k)" },
    { "f32", "half + twox", "(half + twox)" },
    { "f32", "sign * x", "(sign * x)" },
    { "i64", "sign * k", "(sign * k)" },
    { "i32", "sign", "sign" },
    /* conversions */
    { "f32", "f32(i)", "f32(i)" },
    { "i64", "i64(1)", "i64(1)" },
    { "f64", "f64(0.1)", "f64(0.1)" },
    { "u8", "u8(300)", "u8(300)" },
    { "u8", "u8(300 + 1)", "u8((300 + 1))" },
    { "f64", "f64(1 / 2)", "(f64(1.0) / f64(2.0))" },
    { "f64", "f64(ctz(8))", "f64(ctz(8))" },
    { "bool", "bool(two)", "bool(two)" },
    { "f32", "f32(~64)", "f32((~64))" },
    { "u32", "u32(--8)", "u32((--8))" },
    { "u32", "u32(-1)", "u32(-1)" },
    { "i32", "i32(1.5)", "i32(1.5)" },
    { "f32", "f32(n)", "f32(n)" },
    { "bool", "bool(i)", "bool(i)" },
    { "i32", "i32(p)", "i32(p)" },
    { "f32", "x / f32(index(n) + 1)", "(x / f32((index(n) + i64(1))))" },
    /* the map is widened to the state */
    { "f64", "x", "f64(x)" },
    { "i64", "i", "i64(i)" },
    { "f32", "h", "f32(h)" },
    { "i32", "u", "i32(u)" },
    { "f32", "u", "f32(u)" },
    { "i32", "p", "i32(p)" },
    /* functions */
    { "bool", "isnan(x) or isinf(d)", "(isnan(x) or isinf(d))" },
    { "i32", "popcount(i) + clz(i) + ctz(i)", "((popcount(i) + clz(i)) + ctz(i))" },
    { "f32", "fma(x, y, 1)", "fma(x, y, 1.0)" },
    { "i32", "clamp(i, 0, 9)", "clamp(i, 0, 9)" },
    { "bool", "p & q", "(p & q)" },
};

Test(expr, canonical_text)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char line[512];
        SPEC_BEGIN(f);
        build_map(&f, good[i].type, good[i].map);
        snprintf(line, sizeof line, "  map: %s = %s\n", good[i].type, good[i].canonical);
        cr_expect(strstr(spec_text(&f), line), "%s\nwanted %s\n%s", good[i].map, line, spec_text(&f));
        spec_end(&f);
    }
}

struct bad {
    const char *type, *map;
    int code, column; /* of the first message; columns are counted from the first of the map */
    int count;        /* messages */
};

static const struct bad bad[] = {
    /* text */
    { "f32", "", 2101, 1, 1 },
    { "f32", "x +", 2101, 4, 1 },
    { "f32", "x y", 2101, 3, 1 },
    { "f32", "(x", 2101, 3, 1 },
    { "f32", "x)", 2101, 2, 1 },
    { "f32", "max(x y)", 2101, 7, 1 },
    { "f32", "if p then x", 2101, 12, 1 },
    { "f32", "x. + 1", 2101, 4, 1 },
    { "f32", "x = y", 2102, 3, 1 },
    { "f32", "p ? x : y", 2102, 3, 1 },
    { "f32", "x ** 2", 2102, 3, 1 },
    { "f32", "x $ 2", 2102, 3, 1 },
    { "f32", "x + \xc3\xa9", 2102, 5, 1 },
    { "f32", "x + 1.", 2103, 5, 1 },
    { "f32", "1.0f * x", 2103, 1, 1 },
    { "i32", "0x1F", 2103, 1, 1 },
    { "i64", "99999999999999999999", 2103, 1, 1 },
    { "bool", "x < y < c", 2105, 7, 1 },
    /* names */
    { "f32", "x + w", 2201, 5, 1 },
    { "f32", "w + v", 2201, 1, 2 },
    { "f32", "fabs(x)", 2202, 1, 1 },
    { "f32", "fabs(w)", 2202, 1, 2 },
    { "f32", "z.ree", 2203, 3, 1 },
    { "f32", "x.re", 2203, 3, 1 },
    { "f32", "z.re.im", 2203, 3, 1 },
    { "f32", "x - r", 2204, 5, 1 },
    { "f32", "z + 1", 2211, 1, 1 },
    /* types */
    { "f32", "x + k", 2207, 3, 1 },
    { "f32", "x / n", 2207, 3, 1 },
    { "f32", "if p then x else d", 2207, 18, 1 },
    { "f32", "max(x, d)", 2207, 8, 1 },
    { "f32", "if x then y else c", 2206, 4, 1 },
    { "f32", "x * (p and i)", 2206, 12, 1 },
    { "bool", "p and 1", 2206, 7, 1 },
    { "i32", "i + 1.5", 2206, 5, 1 },
    { "i32", "if p then 1.5 else 2", 2206, 11, 1 },
    { "f32", "x % y & 1", 2208, 7, 1 },
    { "f32", "x << 1", 2208, 3, 1 },
    { "i32", "p + q", 2208, 3, 1 },
    { "bool", "-p", 2208, 1, 1 },
    { "f32", "~x", 2208, 1, 1 },
    { "f32", "sqrt(i)", 2208, 6, 1 },
    { "i32", "popcount(x)", 2208, 10, 1 },
    { "i32", "abs(p)", 2208, 5, 1 },
    { "u8", "u + 256", 2209, 5, 1 },
    { "u8", "u + -1", 2209, 5, 1 },
    { "i32", "2147483648", 2209, 1, 1 },
    { "f16", "h * 1e6", 2209, 5, 1 },
    { "f32", "max(x)", 2210, 1, 1 },
    { "f32", "f32(x, y)", 2210, 1, 1 },
    { "i32", "x", 2213, 1, 1 },
    { "f32", "i", 2213, 1, 1 },
    { "f32", "d", 2213, 1, 1 },
    /* neighbours and indices */
    { "f32", "x[1, 2]", 2212, 1, 1 },
    { "f32", "x[i]", 2212, 3, 1 },
    { "f32", "c[1]", 2212, 1, 1 },
    { "f32", "z.re[1]", 2212, 1, 1 },
    { "i64", "index(m)", 2215, 7, 1 },
    { "i64", "index(n + 1)", 2215, 7, 1 },
    /* one mistake, one message; every mistake a message */
    { "f32", "(x + k) * y + sqrt(x + k)", 2207, 4, 2 },
    { "f32", "-(w) + max(w, w) * (if p then w else x)", 2201, 3, 4 },
};

Test(expr, errors)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int line = 0, column = 0;
        SPEC_BEGIN(f);
        build_map(&f, bad[i].type, bad[i].map);
        const struct diag *first = f.s.diags.first;
        cr_assert(!f.p && first, "no error: %s", bad[i].map);
        diags_position(&f.s.diags, first->at.begin, &line, &column);
        cr_expect(first->code == (enum diag_code)bad[i].code && line == 1 && column == bad[i].column + 6 &&
                      f.s.diags.errors == bad[i].count,
                  "%s: wanted %d at column %d, %d messages\n%s", bad[i].map, bad[i].code, bad[i].column + 6,
                  bad[i].count, spec_text(&f));
        spec_end(&f);
    }
}

/* What the message suggests. */
Test(expr, did_you_mean)
{
    static const char *const rows[][2] = {
        { "twxx + x", "twox" }, { "sqr(x)", "sqrt" }, { "z.imm", "im" },    { "x / n", "convert" },
        { "x = y", "==" },      { "x ** y", "pow" },  { "sqrt(i)", "f32" }, { "fma(x, y)", "takes 3" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        build_map(&f, "f32", rows[i][0]);
        cr_expect(strstr(spec_text(&f), rows[i][1]), "%s: no '%s' in\n%s", rows[i][0], rows[i][1], spec_text(&f));
        spec_end(&f);
    }
}

/* Depth is limited; long chains below the limit are fine. */
static void build_chain(struct spec *f, const char *open, const char *between, int n, const char *close)
{
    struct str map = { 0 };
    for (int i = 0; i < n; i++)
        str_printf(&map, "%sx%s", open, i + 1 < n ? between : "");
    for (int i = 0; i < n; i++)
        str_add(&map, close);
    struct str text = { 0 };
    str_printf(&text, "kind: reduce\ninputs: {x: \"f32[n]\"}\nmap: \"%s\"\noperator: add\noutputs: {r: f32}\n",
               map.text);
    spec_build(f, text.text);
    str_finish(&text);
    str_finish(&map);
}

Test(expr, depth)
{
    static const struct {
        const char *open, *between, *close;
        int n, code; /* 0: fine */
    } rows[] = {
        { "", "+", "", 400, 0 },        { "", "+", "", 600, 2104 }, { "(", "+", ")", 100, 0 },
        { "(", "+", ")", 1000, 2104 },  { "-", "+", "", 200, 0 },   { "", "+", "", 20000, 2104 },
        { "(", "-", ")", 20000, 2104 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        build_chain(&f, rows[i].open, rows[i].between, rows[i].n, rows[i].close);
        cr_expect_eq(f.p != NULL, !rows[i].code, "row %zu: %.300s", i, spec_text(&f));
        if (rows[i].code)
            cr_expect(f.s.diags.errors == 1 && (int)f.s.diags.first->code == rows[i].code, "row %zu", i);
        spec_end(&f);
    }
}

/* Carets point into decoded scalars: a folded block and an escaped quote. */
Test(expr, carets)
{
    static const struct {
        const char *map;
        int line, column;
    } rows[] = {
        { "map: >\n  x +\n  w\n", 3, 3 },
        { "map: \"x\\n + w\"\n", 1, 13 },
        { "map: 'x + w'\n", 1, 11 },
        { "map: x + w\n", 1, 10 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        int line = 0, column = 0;
        SPEC_BEGIN(f);
        snprintf(text, sizeof text, "%skind: reduce\ninputs:\n  x: f32[n]\noperator: add\noutputs:\n  r: f32\n",
                 rows[i].map);
        spec_build(&f, text);
        cr_assert(f.s.diags.first != NULL);
        diags_position(&f.s.diags, f.s.diags.first->at.begin, &line, &column);
        cr_expect(line == rows[i].line && column == rows[i].column, "row %zu: %d:%d\n%s", i, line, column,
                  spec_text(&f));
        spec_end(&f);
    }
}
