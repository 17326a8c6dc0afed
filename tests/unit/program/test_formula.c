/* SPDX-License-Identifier: Apache-2.0 */
/* test_formula.c - formulas of sizes: their values, their text both ways, their limits. */
#include "base/arena.h"
#include "program/formula.h"
#include "base/str.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static const char *const size_names[] = { "m", "n", "min", "sms", "size" };
static const char *const param_names[] = { "steps", "n" };
static const char *const kernel_names[] = { "main", "tail" };
static const char *const pointer_names[] = { "x", "y", "out" };
static const struct formula_names all_names = { 5, 2, 2, 3, size_names, param_names, kernel_names, pointer_names };

static char memory[64];
static struct formula_env environment(void)
{
    static const int64_t size[] = { 7, 1000, 3, 5, 2 }, param[] = { 4, -9 };
    static const int resident[] = { 2, 8 };
    static const void *pointer[3];
    char *base = memory + (16 - (uintptr_t)memory % 16) % 16;
    pointer[0] = base + 4;
    pointer[1] = base + 19;
    pointer[2] = base + 12;
    return (struct formula_env){
        .size = size, .param = param, .sms = 132, .arch = 90, .smem = 1 << 17, .resident = resident, .pointer = pointer
    };
}

static const struct {
    const char *text;
    int64_t value;
    const char *printed; /* NULL: the same */
} formulas[] = {
    { "1 + 2 * 3", 7, NULL },
    { "(1 + 2) * 3", 9, NULL },
    { "10 - 4 - 3", 3, NULL },
    { "10 - (4 - 3)", 9, NULL },
    { "1 + (2 + 3)", 6, NULL },
    { "((1 + 2)) + 3", 6, "1 + 2 + 3" },
    { "7 / 2", 3, NULL },
    { "-7 / 2", -3, NULL },
    { "-7 % 2", -1, NULL },
    { "7 / 0 + 7 % 0 + cdiv(7, 0)", 0, NULL },
    { "cdiv(n, 256)", 4, NULL },
    { "cdiv(-7, 2)", -3, NULL },
    { "cdiv(7, -2)", -3, NULL },
    { "cdiv(-7, -2)", 4, NULL },
    { "pow2(n, 256)", 4, NULL },
    { "pow2(9, 2)", 8, NULL },
    { "pow2(8, 2)", 4, NULL },
    { "pow2(-7, 2) + pow2(n, 0)", 2, NULL },
    { "pow2(9223372036854775807, 1)", 4611686018427387904, NULL },
    { "min(m, n) + max(m, n)", 1007, NULL },
    { "size(min) + size(sms) + size(size)", 10, NULL },
    { "size(n)", 1000, "n" },
    { "param(steps) * param(n)", -36, NULL },
    { "sms * resident(tail) + arch", 132 * 8 + 90, NULL },
    { "smem", 1 << 17, NULL },
    { "misalign(x) + 100 * misalign(y)", 304, NULL },
    { "misalign(x, out)", 12, NULL },
    { "misalign(out, y, x, x)", 15, "misalign(x, y, out)" },
    { "apart(x)", 0, NULL },
    { "apart(x, y)", 7, NULL },
    { "apart(x, out)", 8, NULL },
    { "apart(x, out) % 8 == 0 and apart(x, y, out) % 4 != 0", 1, NULL },
    { "n <= 1000 and not m == 7 or 1", 1, NULL },
    { "(not m) == 0", 1, NULL },
    { "not not m", 1, NULL },
    { "not (m and n)", 0, NULL },
    { "(m or n) and 0", 0, NULL },
    { "m or n and 0", 1, NULL },
    { "(m < n) == (n > m)", 1, NULL },
    { "m >= 7 and m != 8", 1, NULL },
    { "9223372036854775807 + 1", INT64_MAX, NULL },
    { "-9223372036854775808 - 1", INT64_MIN, NULL },
    { "-9223372036854775808 / -1", INT64_MAX, NULL },
    { "-9223372036854775808 % -1", 0, NULL },
    { "9223372036854775807 * 2", INT64_MAX, NULL },
    { "9223372036854775807 * -2", INT64_MIN, NULL },
    { "-9223372036854775808 * -9223372036854775808", INT64_MAX, NULL },
    { "cdiv(9223372036854775807, 2)", 4611686018427387904, NULL },
    { "true", 1, NULL },
};

Test(formula, rows)
{
    const struct formula_env env = environment();
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
        struct formula f;
        int at = -1;
        const char *error = formula_parse(formulas[i].text, &all_names, &f, &at);
        cr_assert_null(error, "%s: %s at %d", formulas[i].text, error, at);
        cr_expect_eq(formula_eval(&f, &env), formulas[i].value, "%s = %lld", formulas[i].text,
                     (long long)formula_eval(&f, &env));
        struct str s = { 0 };
        formula_print(&f, &all_names, &s);
        cr_expect_str_eq(s.text, formulas[i].printed ? formulas[i].printed : formulas[i].text);
        str_finish(&s);
    }
}

static const struct {
    const char *text, *error;
    int at;
} malformed[] = {
    { "", "expected a number, a name or '('", 0 },
    { "1 +", "expected a number, a name or '('", 3 },
    { "(1", "expected ')'", 2 },
    { "1 2", "expected an operator or the end", 2 },
    { "k + 1", "unknown size", 0 },
    { "param(k)", "unknown param", 6 },
    { "param(2)", "there is no such number", 6 },
    { "resident main", "expected '('", 9 },
    { "resident(x)", "unknown kernel", 9 },
    { "misalign(q)", "unknown array", 9 },
    { "apart(x, q)", "unknown array", 9 },
    { "apart(x, )", "unknown array", 9 },
    { "misalign(x y)", "expected ')'", 11 },
    { "misalign(3)", "there is no such number", 9 },
    { "1 < 2 < 3", "comparisons do not chain", 6 },
    { "9223372036854775808", "the number is too large", 0 },
    { "12x", "malformed number", 0 },
    { "-n", "expected a number after '-'", 1 },
    { "1 $ 2", "expected an operator or the end", 2 },
    { "true and 1", "'true' stands alone", 5 },
    { "1=2", "expected an operator or the end", 1 },
};

Test(formula, malformed_texts)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        struct formula f;
        int at = -1;
        const char *error = formula_parse(malformed[i].text, &all_names, &f, &at);
        cr_assert_not_null(error, "%s", malformed[i].text);
        cr_expect(strcmp(error, malformed[i].error) == 0 && at == malformed[i].at, "%s: %s at %d", malformed[i].text,
                  error, at);
    }
    char deep[400];
    memset(deep, '(', 399);
    deep[399] = '\0';
    cr_expect_not_null(formula_parse(deep, &all_names, &(struct formula){ 0 }, NULL));
}

static uint32_t random_state = 12345;
static uint32_t rnd(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

static struct formula random_leaf(void)
{
    switch (rnd(8)) {
    case 0: return f_const((int64_t)rnd(20) - 10);
    case 1: return f_const(rnd(2) ? INT64_MIN : INT64_MAX);
    case 2:
    case 3: return f_size(rnd(5));
    case 4: return f_leaf(FO_PARAM, rnd(2));
    case 5: return f_resident(rnd(2));
    case 6: return rnd(2) ? f_misalign(1 + rnd(7)) : f_apart(1 + rnd(7));
    default: return f_leaf((enum formula_op)(FO_SMS + (int)rnd(3)), 0);
    }
}

static struct formula random_formula(int depth)
{
    if (depth == 0 || rnd(5) == 0)
        return random_leaf();
    const struct formula a = random_formula(depth - 1), b = random_formula(depth - 1);
    const enum formula_op op = (enum formula_op)(FO_ADD + (int)rnd(FO_COUNT - FO_ADD));
    return op == FO_NOT ? f_not(&a) : f_bin(op, &a, &b);
}

static bool same(const struct formula *a, const struct formula *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->step[i].op != b->step[i].op || a->step[i].imm != b->step[i].imm)
            return false;
    return true;
}

Test(formula, printing_reads_back_step_by_step)
{
    const struct formula_env env = environment();
    for (int i = 0; i < 20000; i++) {
        const struct formula f = random_formula(1 + (int)rnd(5));
        if (f.n < 0)
            continue;
        const struct formula_names *names_used = i % 2 ? &all_names : NULL;
        struct str s = { 0 };
        struct formula back;
        int at = -1;
        formula_print(&f, names_used, &s);
        const char *error = formula_parse(s.text, names_used, &back, &at);
        cr_assert(error == NULL && same(&f, &back), "%s: %s at %d", s.text, error ? error : "another tree", at);
        cr_assert_eq(formula_eval(&f, &env), formula_eval(&back, &env));
        str_finish(&s);
    }
}

Test(formula, building_has_limits)
{
    struct formula wide = f_const(1), deep = f_const(1);
    for (int i = 0; i < FORMULA_MAX; i++)
        wide = f_add(wide, 1);
    cr_expect_eq(wide.n, -1);
    cr_expect_eq(formula_eval(&wide, &(struct formula_env){ 0 }), 0);
    for (int i = 1; i < FORMULA_STACK; i++)
        deep = f_add(1, deep);
    cr_expect_eq(formula_eval(&deep, &(struct formula_env){ 0 }), FORMULA_STACK);
    deep = f_add(1, deep);
    cr_expect_eq(deep.n, -1);
    const struct formula absent = { 0 }, guard = f_le(f_size(0), 4);
    cr_expect(same(F_(f_and(absent, guard)), &guard) && same(F_(f_and(guard, absent)), &guard));
}

Test(formula, known_without_a_launch)
{
    const struct formula few = f_le(100, 16), large = f_ge(f_size(0), 8), aligned = f_eq(f_misalign(f_pointer(0)), 0);
    static const unsigned char aligned_to_16[] = { 16 };
    const int64_t size = 9;
    int64_t holds;
    cr_expect(formula_known(F_(f_and(large, few)), &(struct formula_facts){ 0 }, &holds) && !holds);
    cr_expect(!formula_known(&large, &(struct formula_facts){ 0 }, &holds) &&
              !formula_known(&aligned, &(struct formula_facts){ 0 }, &holds));
    const struct formula_facts sized = { .size = &size };
    cr_expect(formula_known(F_(f_and(large, aligned)),
                            &(struct formula_facts){ .size = &size, .alignment = aligned_to_16 }, &holds) &&
              holds);
    cr_expect(!formula_known(F_(f_and(large, aligned)), &sized, &holds), "sizes say nothing of addresses");
    cr_expect(!formula_known(F_(f_le(f_sms(), f_size(0))), &sized, &holds));
    cr_expect(formula_known(F_(f_le(f_sms(), f_size(0))), &(struct formula_facts){ .size = &size, .sms = 9 }, &holds) &&
              holds);
}

struct known_row {
    const char *text;
    int known; /* the value; -1: it is not */
};

static void known_rows(const struct known_row *rows, size_t n, const struct formula_names *names,
                       const struct formula_facts *facts)
{
    for (size_t i = 0; i < n; i++) {
        struct formula f;
        int64_t value;
        cr_assert_null(formula_parse(rows[i].text, names, &f, NULL));
        const bool known = formula_known(&f, facts, &value);
        cr_expect_eq(known ? value : -1, rows[i].known, "%s", rows[i].text);
    }
}

/* n is a multiple of 4, m of 6; x is aligned to 16 bytes, y to 4. */
Test(formula, divisors_decide_remainders)
{
    static const struct known_row rows[] = {
        { "n % 4 == 0", 1 },
        { "n % 2 == 0", 1 },
        { "n % 8 == 0", -1 },
        { "n % 0 == 0", 1 },
        { "n * m % 24 == 0", 1 },
        { "n * 2 % 8 == 0", 1 },
        { "n * m % 16 == 0", -1 },
        { "(n + m) % 2 == 0", -1 },
        { "4 % n == 0", -1 },
        { "misalign(x) == 0", 1 },
        { "misalign(x, y) % 4 == 0", 1 },
        { "misalign(x, y) % 8 == 0", -1 },
        { "apart(x, y) % 4 / 2 == 0", 1 },
        { "misalign(y) == 0", -1 },
        { "not (misalign(x) % 16 == 0)", 0 },
    };
    static const char *const size[] = { "n", "m" }, *const pointer[] = { "x", "y" };
    static const int64_t divisor[] = { 4, 6 };
    static const unsigned char alignment[] = { 16, 4 };
    const struct formula_names names = { .nsizes = 2, .size = size, .npointers = 2, .pointer = pointer };
    known_rows(rows, sizeof rows / sizeof *rows, &names,
               &(struct formula_facts){ .divisor = divisor, .alignment = alignment });
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) { /* without these facts */
        struct formula f;
        int64_t value;
        cr_assert_null(formula_parse(rows[i].text, &names, &f, NULL));
        cr_expect(!formula_known(&f, &(struct formula_facts){ 0 }, &value) || i == 3, "%s", rows[i].text);
    }
}

/* n is between 10 and 20, m any size, sms any device's. */
Test(formula, ranges_decide_conditions)
{
    static const struct known_row rows[] = {
        { "n <= 20", 1 },
        { "n < 20", -1 },
        { "20 < n", 0 },
        { "n == 21", 0 },
        { "n != 9", 1 },
        { "n == 15", -1 },
        { "m >= 0", 1 },
        { "m * 12 < sms * (n - 20)", 0 },
        { "m * 12 < sms * (n - 19)", -1 },
        { "sms >= 1 and cdiv(n, 4) * 8 <= 40", 1 },
        { "sms <= 5000", 1 },
        { "cdiv(n, 4) <= 4", -1 },
        { "40 / n <= 4 and 40 / n >= 2", 1 },
        { "40 / m <= 40", -1 }, /* of nothing known: m may be 0 */
        { "(0 - n) / 4 <= 0 - 2", 1 },
        { "n % 8 <= 7 and n % 30 >= 10", 1 },
        { "n % 16 >= 1", -1 },
        { "(5 - n) % 4 >= 0", -1 },
        { "pow2(n, 1) >= 16 and pow2(n, 1) <= 32", 1 },
        { "min(n, m) <= 20 and max(n, m) >= 10", 1 },
        { "m * m >= 0 and n * (m + 1) >= 10", 1 }, /* saturates */
        { "not (n < 10)", 1 },
        { "n < 10 or m == 3", -1 },
        { "param(k) * 0 == 0", 1 },
        { "param(k) <= n", -1 },
        { "misalign(x) <= 12", 1 },
        { "misalign(x) <= 11", -1 },
    };
    static const char *const size[] = { "n", "m" }, *const pointer[] = { "x" }, *const param[] = { "k" };
    static const int64_t least[] = { 10, 0 }, most[] = { 20, INT64_MAX };
    static const unsigned char alignment[] = { 4 };
    const struct formula_names names = {
        .nsizes = 2, .size = size, .nparams = 1, .param = param, .npointers = 1, .pointer = pointer
    };
    known_rows(rows, sizeof rows / sizeof *rows, &names,
               &(struct formula_facts){ .least = least, .most = most, .alignment = alignment });
}

Test(formula, what_follows_from_another)
{
    static const struct {
        const char *f, *g;
        bool alone, at_nine; /* nothing is known; n = 9 */
    } rows[] = {
        { "true", "n <= 8", true, true },
        { "n <= 16", "true", false, true },
        { "misalign(x) == 0", "misalign(x) == 0", true, true },
        { "misalign(x) == 0", "n > 4 and (sms == 1 and misalign(x) == 0)", true, true },
        { "n <= 16 and misalign(x) == 0", "misalign(x) == 0 and n > 8", false, true },
        { "n <= 8 and misalign(x) == 0", "misalign(x) == 0 and n > 8", false, false },
        { "misalign(x) == 0 and sms == 1", "misalign(x) == 0", false, false },
        { "misalign(x) == 0", "misalign(y) == 0", false, false },
        { "sms == 1", "sms == 1 or n == 9", false, false },
        { "not (sms == 1)", "min(n, 4) <= cdiv(n, 2) and not (sms == 1)", true, true },
    };
    static const char *const size[] = { "n" }, *const pointer[] = { "x", "y" };
    const struct formula_names names = { .nsizes = 1, .size = size, .npointers = 2, .pointer = pointer };
    const int64_t nine = 9;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct formula f = { 0 }, g = { 0 };
        cr_assert(!strcmp(rows[i].f, "true") || !formula_parse(rows[i].f, &names, &f, NULL));
        cr_assert(!strcmp(rows[i].g, "true") || !formula_parse(rows[i].g, &names, &g, NULL));
        cr_expect_eq(formula_follows(&f, &g, &(struct formula_facts){ 0 }), rows[i].alone, "row %zu", i);
        cr_expect_eq(formula_follows(&f, &g, &(struct formula_facts){ .size = &nine }), rows[i].at_nine, "row %zu", i);
    }
}

Test(formula, unmet_conditions_with_what_they_see)
{
    static const char *const rows[][2] = {
        { "n <= 1000 and m == 7", "" },
        { "n <= 128", "n <= 128 (n = 1000)" },
        { "m == 7 and (n <= 128 and n * n > sms) and apart(x, out) == 0",
          "n <= 128 (n = 1000) and apart(x, out) == 0 (apart(x, out) = 8)" },
        { "m == 8 and n > 1 and (misalign(x) % 16 == 0 and misalign(y) == 3)",
          "m == 8 (m = 7) and misalign(x) % 16 == 0 (misalign(x) = 4)" },
        { "(m == 8 or m * n <= param(steps) * m) and 1 == 2",
          "(m == 8 or m * n <= param(steps) * m) (m = 7, n = 1000, param(steps) = 4) and 1 == 2" },
    };
    const struct formula_env env = environment();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct formula f;
        struct str s = { 0 };
        cr_assert_null(formula_parse(rows[i][0], &all_names, &f, NULL));
        formula_print_unmet(&f, &all_names, &env, &s);
        cr_expect_str_eq(s.text ? s.text : "", rows[i][1]);
        str_finish(&s);
    }
}

Test(formula, json_is_postfix)
{
    struct formula f;
    struct str s = { 0 };
    struct json j;
    cr_assert_null(formula_parse("cdiv(n, 256) <= sms * resident(main) and size(min) == -1", &all_names, &f, NULL));
    json_init(&j, &s, false);
    formula_json(&f, &all_names, &j);
    cr_expect_str_eq(s.text,
                     "[\"n\",256,\"cdiv\",\"sms\",\"resident(main)\",\"*\",\"<=\",\"size(min)\",-1,\"==\",\"and\"]");
    str_finish(&s);
}
