/* SPDX-License-Identifier: Apache-2.0 */
/* test_laws.c - verdicts about operators, with and without a prover, and the arithmetic they come from. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "laws/terms.h"
#include "support/spec_fixture.h"

/* ---- verdicts ---- */

struct checked {
    struct spec f;
    struct law_report report;
};

static void check_with(struct checked *c, const char *text, const char *prover)
{
    const struct laws_options o = { .prover = prover, .time_limit = prover && !strcmp(prover, FAKE_Z3) ? 50 : 0 };
    c->f = (struct spec){ 0 };
    arena_init(&c->f.s.arena);
    c->f.s.arena.oom = &c->f.oom;
    diags_init(&c->f.s.diags, &c->f.s.arena);
    spec_build(&c->f, text);
    cr_assert_not_null(c->f.p, "%s", spec_text(&c->f));
    cr_assert_eq(c->f.p->nreductions, 1);
    if (setjmp(c->f.oom) != 0)
        cr_assert_fail("out of memory");
    laws_check(&c->f.s, c->f.p, &o, &c->report);
}

/* An operator on scalars of a type, whose elements are arbitrary. */
static void check_scalar(struct checked *c, const char *type, const char *rest, const char *prover)
{
    char text[512];
    snprintf(text, sizeof text, "kind: reduce\ninputs: {x: \"%s[n]\"}\noperator: {state: %s, %s}\noutputs: {r: %s}\n",
             type, type, rest, type);
    check_with(c, text, prover);
}

static enum law_verdict verdict(const struct checked *c, enum law law) { return c->report.law[law].verdict; }

/* The error with this code, or NULL. */
static const struct diag *error(const struct checked *c, int code)
{
    for (const struct diag *d = c->f.s.diags.first; d; d = d->next)
        if ((int)d->code == code && d->severity == SEV_ERROR)
            return d;
    return NULL;
}

static bool has_prover(void)
{
    struct checked c;
    check_scalar(&c, "i64", "combine: a + b", NULL);
    const bool has = c.report.prover;
    spec_end(&c.f);
    return has;
}

Test(laws, trials_refute_without_a_prover)
{
    struct checked c;
    check_scalar(&c, "f32", "combine: a - b", "off");
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_eq(verdict(&c, LAW_COMMUTATIVE), LAW_REFUTED);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].example, "a = 0, b = 0, c = 1: (ab)c = -1, a(bc) = 1");
    cr_expect_null(c.report.law[LAW_ASSOCIATIVE].cause);
    cr_expect_not_null(error(&c, D_NOT_ASSOCIATIVE));
    cr_expect_null(error(&c, D_NOT_COMMUTATIVE), "nobody said that it was");
    spec_end(&c.f);
}

Test(laws, overflow_and_rounding_refute_nothing)
{
    struct checked c;
    check_scalar(&c, "f32", "identity: 0, combine: a + b", "off");
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_PROVED_IDEAL);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].cause, "rounding");
    cr_expect_str_eq(c.report.law[LAW_IDENTITY].cause, "the sign of zero");
    cr_expect_eq(c.f.s.diags.errors, 0);
    spec_end(&c.f);

    check_scalar(&c, "i16", "combine: \"max(a + b, a)\"", "off");
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED,
                 "not because of overflow, though that makes a difference, too");
    spec_end(&c.f);

    /* Both halves of the range are right, their sums are not; in exact arithmetic the clamps do nothing. */
    check_scalar(&c, "i8", "combine: \"if a > 0 and b > 0 and a + b < 0 then 127 else a + b\"", "off");
    cr_expect_neq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].cause, "overflow");
    spec_end(&c.f);

    check_scalar(&c, "i8", "combine: \"i8(min(max(i32(a) + i32(b), -128), 127))\"", "off");
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED, "here nothing leaves its type");
    spec_end(&c.f);
}

Test(laws, nan_is_named)
{
    struct checked c;
    check_scalar(&c, "f32", "combine: \"if a > b then a else b\"", NULL);
    cr_expect_neq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].cause, "NaN");
    cr_expect(strstr(c.report.law[LAW_ASSOCIATIVE].example, "nan") != NULL);
    if (c.report.prover)
        cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_PROVED_IDEAL);
    spec_end(&c.f);
}

Test(laws, narrow_types_are_tried_out)
{
    struct checked c;
    check_scalar(&c, "bool", "identity: false, combine: \"a != b\"", "off");
    for (int law = 0; law <= LAW_IDENTITY; law++) {
        cr_expect_eq(verdict(&c, (enum law)law), LAW_PROVED);
        cr_expect_str_eq(c.report.law[law].method, "all values");
    }
    cr_expect_eq(verdict(&c, LAW_IDEMPOTENT), LAW_REFUTED);
    spec_end(&c.f);
}

static const char mss[] =
    "kind: reduce\ninputs: {x: \"i32[n]\"}\n"
    "map: {best: \"max(x, 0)\", left: \"max(x, 0)\", right: \"max(x, 0)\", total: x}\n"
    "operator:\n  state: {best: i32, left: i32, right: i32, total: i32}\n"
    "  identity: {best: 0, left: 0, right: 0, total: 0}\n"
    "  combine:\n    best: max(max(a.best, b.best), a.right + b.left)\n    left: max(a.left, a.total + b.left)\n"
    "    right: max(b.right, a.right + b.total)\n    total: a.total + b.total\n"
    "outputs: {m: {type: i32, value: r.best}}\n";

/* The identity holds for states that occur, not for all: {best: -1} is none that occurs. */
Test(laws, states_that_occur)
{
    struct checked c;
    check_with(&c, mss, NULL);
    cr_expect_eq(c.f.s.diags.errors, 0);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].cause, "overflow");
    cr_expect_eq(verdict(&c, LAW_COMMUTATIVE), LAW_REFUTED);
    if (c.report.prover) {
        cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_PROVED_IDEAL);
        cr_expect_eq(verdict(&c, LAW_IDENTITY), LAW_PROVED_IDEAL);
    }
    spec_end(&c.f);
}

/* lo and hi of neighbouring ranges fit together; those of arbitrary elements would not. */
Test(laws, elements_follow_each_other)
{
    struct checked c;
    check_with(&c,
               "kind: reduce\ninputs: {x: \"i8[n]\"}\nassume: {n: {min: 1}}\nmap: {lo: index(n), hi: index(n), n: 1}\n"
               "operator:\n  state: {lo: i64, hi: i64, n: i64}\n"
               "  combine: {lo: a.lo, hi: b.hi, n: \"if b.lo == a.hi + 1 then a.n + b.n else 0\"}\n"
               "outputs: {n: {type: i64, value: r.n}}\n",
               "off");
    cr_expect_neq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    spec_end(&c.f);
}

Test(laws, what_trials_miss_a_proof_finds)
{
    struct checked c;
    if (!has_prover())
        cr_skip("no prover");
    check_scalar(&c, "u32", "combine: \"if a == 123456789 then 5 else b\"", NULL);
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_str_eq(c.report.law[LAW_ASSOCIATIVE].method, "proof");
    cr_expect(strstr(c.report.law[LAW_ASSOCIATIVE].example, "123456789") != NULL);
    spec_end(&c.f);
}

Test(laws, identities_are_found)
{
    static const struct {
        const char *type, *combine, *identity;
    } row[] = { { "i32", "max(a, b)", "-2147483648" },     { "f32", "a * b", "1" },        { "u8", "a & b", "255" },
                { "i64", "if a != 0 then a else b", "0" }, { "f32", "(a + b) / 2", NULL }, { "i32", "b", NULL } };
    struct checked c;
    if (!has_prover())
        cr_skip("no prover");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[128];
        snprintf(text, sizeof text, "combine: \"%s\"", row[i].combine);
        check_scalar(&c, row[i].type, text, NULL);
        cr_expect_eq(verdict(&c, LAW_IDENTITY), LAW_ABSENT);
        if (row[i].identity)
            cr_expect_str_eq(c.report.identity, row[i].identity, "%s", row[i].combine);
        else
            cr_expect_null(c.report.identity, "%s", row[i].combine);
        spec_end(&c.f);
    }
}

Test(laws, a_wrong_identity_gets_a_better_one)
{
    struct checked c;
    check_scalar(&c, "i32", "identity: 0, combine: \"max(a, b)\"", NULL);
    const struct diag *m = error(&c, D_NOT_IDENTITY);
    cr_assert_not_null(m);
    cr_expect_str_eq(m->text, "the identity changes a state: a = -1: ea = 0");
    if (c.report.prover)
        cr_expect_str_eq(m->hint, "the identity is -2147483648");
    spec_end(&c.f);
}

Test(laws, params_are_arbitrary_and_shown)
{
    struct checked c;
    check_with(&c,
               "kind: reduce\ninputs: {x: \"i32[n]\"}\nparams: {k: i32}\n"
               "operator: {state: i32, combine: a * k + b}\noutputs: {r: i32}\n",
               "off");
    cr_assert_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_eq(strncmp(c.report.law[LAW_ASSOCIATIVE].example, "k = ", 4), 0);
    spec_end(&c.f);
}

/* ---- use ---- */

Test(laws, what_is_proved_is_used)
{
    struct checked c;
    if (!has_prover())
        cr_skip("no prover");
    check_scalar(&c, "i32", "combine: \"if a > b then a else b\"", NULL);
    cr_assert_not(c.f.p->reduction[0].op->commutative);
    const struct problem *better = laws_apply(&c.f.s, c.f.p, &c.report);
    cr_expect(better->reduction[0].op->commutative && better->reduction[0].op->exact);
    cr_expect_not(c.f.p->reduction[0].op->commutative, "the problem itself is not changed");
    spec_end(&c.f);
    /* But for NaN is not bit for bit. */
    check_scalar(&c, "f32", "combine: \"if a > b then a else b\"", NULL);
    cr_expect_eq(laws_apply(&c.f.s, c.f.p, &c.report), c.f.p);
    spec_end(&c.f);
}

Test(laws, a_report_can_be_kept)
{
    struct checked c;
    struct law_report back;
    struct str text = { 0 }, again = { 0 };
    check_with(&c, mss, "off");
    laws_write(&c.report, &text);
    cr_assert(laws_read(&c.f.s.arena, text.text, &back));
    laws_write(&back, &again);
    cr_expect_str_eq(text.text, again.text);
    text.text[text.length - 1] = '\0'; /* a line is not complete */
    cr_expect_not(laws_read(&c.f.s.arena, text.text, &back));
    cr_expect_not(laws_read(&c.f.s.arena, "", &back));
    str_finish(&text);
    str_finish(&again);
    spec_end(&c.f);
}

/* ---- a prover that misbehaves ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Test(laws, a_prover_may_do_what_it_likes)
{
    static const char *const how[] = { "hang", "crash", "quit", "lie" };
    for (int i = 0; i < 4; i++) {
        struct checked c;
        const double begin = seconds();
        setenv("FAKE_Z3", how[i], 1);
        check_scalar(&c, "i32", "identity: 0, combine: \"a | b\"", FAKE_Z3);
        cr_expect(c.report.prover, "%s", FAKE_Z3);
        cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_UNKNOWN, "%s", how[i]);
        cr_expect_null(c.report.law[LAW_ASSOCIATIVE].example, "%s: the oracle confirms nothing", how[i]);
        cr_expect_eq(c.f.s.diags.errors, 0, "%s", how[i]);
        cr_expect_lt(seconds() - begin, 120, "%s", how[i]);
        spec_end(&c.f);
    }
}

Test(laws, a_prover_that_is_not_there)
{
    struct checked c;
    check_scalar(&c, "i32", "combine: \"a * 2 + b * 2\"", "/nonexistent/libz3.so");
    cr_expect_not(c.report.prover);
    cr_expect_eq(verdict(&c, LAW_ASSOCIATIVE), LAW_REFUTED);
    cr_expect_eq(verdict(&c, LAW_COMMUTATIVE), LAW_PROVED, "both sides are one term");
    spec_end(&c.f);
}

/* ---- arithmetic ---- */

static struct arena arena;
static jmp_buf oom;
static struct terms t;
static term x, y, z;

static void algebra_begin(void)
{
    arena_init(&arena);
    arena.oom = &oom;
    terms_begin(&t, &arena, LEVEL_IDEAL);
    x = term_variable(&t, "x", TY_F32);
    y = term_variable(&t, "y", TY_F32);
    z = term_variable(&t, "z", TY_F32);
}
static void algebra_end(void) { arena_finish(&arena); }

static term of(enum expr_kind kind, int op, enum ty type, term a, term b)
{
    struct expr left = { .type = a->type },
                e = { .kind = kind, .op = op, .type = type, .nargs = b ? 2 : 1, .arg = { &left, &left } };
    return ideal_term(&t, &e, (const term[]){ a, b, NULL });
}
static term add(term a, term b) { return of(EX_BINARY, BIN_ADD, TY_F32, a, b); }
static term mul(term a, term b) { return of(EX_BINARY, BIN_MUL, TY_F32, a, b); }
static term sub(term a, term b) { return of(EX_BINARY, BIN_SUB, TY_F32, a, b); }
static term over(term a, term b) { return of(EX_BINARY, BIN_DIV, TY_F32, a, b); }
static term most(term a, term b) { return of(EX_CALL, FN_MAX, TY_F32, a, b); }
static term power(term a) { return of(EX_CALL, FN_EXP, TY_F32, a, NULL); }
static bool same(term a, term b) { return algebra_proves(&t, NULL, term_equal(&t, a, b), NULL, 0); }

Test(algebra, fractions_and_choices, .init = algebra_begin, .fini = algebra_end)
{
    cr_expect(same(mul(add(x, y), sub(x, y)), sub(mul(x, x), mul(y, y))));
    cr_expect_not(same(mul(add(x, y), add(x, y)), add(mul(x, x), mul(y, y))));
    cr_expect(same(add(over(x, y), over(z, y)), over(add(x, z), y)));
    cr_expect_not(same(over(x, add(y, z)), add(over(x, y), over(x, z))));
    cr_expect(same(add(most(x, y), z), most(add(x, z), add(y, z))) == false,
              "takes knowledge of order, which is the prover's");
    cr_expect(same(mul(most(x, y), z), mul(z, most(y, x))));
    cr_expect_not(same(most(x, y), x));
    cr_expect(same(power(add(x, sub(y, z))), over(mul(power(y), power(x)), power(z))));
    cr_expect_not(same(power(mul(x, y)), mul(power(x), power(y))));
    cr_expect(same(power(most(x, y)), power(most(y, x))));
    cr_expect(same(over(mul(x, add(y, term_value(&t, TY_F32, (union value){ .f = 0.25 }))), x),
                   add(y, over(term_value(&t, TY_F32, (union value){ .f = 2.5 }),
                               term_value(&t, TY_F32, (union value){ .f = 10 })))));
}

static struct cell number(double f)
{
    struct cell c = { .bits = { .i = 0 } };
    cr_assert(ideal_from_bits(TY_F64, (union value){ .f = f }, &c));
    return c;
}

static bool apply(enum expr_kind kind, int op, enum ty type, enum ty of_type, struct cell a, struct cell b,
                  struct cell *out)
{
    struct expr left = { .type = of_type },
                e = { .kind = kind, .op = op, .type = type, .nargs = 2, .arg = { &left, &left } };
    if (kind == EX_CAST)
        e.nargs = 1;
    return ideal_apply(&e, (const struct cell[]){ a, b, { { 0 }, { 0 } } }, out);
}

Test(ideal, what_leaves_its_type_is_refused)
{
    struct cell out, a = { .bits = { .i = 100 } }, b = { .bits = { .i = 27 } }, c = { .bits = { .i = 28 } },
                     least = { .bits = { .i = -128 } }, minus = { .bits = { .i = -1 } };
    cr_expect(apply(EX_BINARY, BIN_ADD, TY_I8, TY_I8, a, b, &out) && out.bits.i == 127);
    cr_expect_not(apply(EX_BINARY, BIN_ADD, TY_I8, TY_I8, a, c, &out));
    cr_expect_not(apply(EX_BINARY, BIN_MUL, TY_I8, TY_I8, least, minus, &out));
    cr_expect_not(apply(EX_BINARY, BIN_DIV, TY_I8, TY_I8, least, minus, &out));
    cr_expect_not(apply(EX_BINARY, BIN_SUB, TY_U8, TY_U8, b, c, &out));
    cr_expect_not(apply(EX_BINARY, BIN_SHL, TY_I8, TY_I8, a, (struct cell){ .bits = { .i = 1 } }, &out));
    cr_expect(apply(EX_CAST, 0, TY_I8, TY_F64, number(127.9), a, &out) && out.bits.i == 127);
    cr_expect_not(apply(EX_CAST, 0, TY_I8, TY_F64, number(128), a, &out));
    cr_expect_not(apply(EX_BINARY, BIN_DIV, TY_F64, TY_F64, number(1), number(0), &out));
}

Test(ideal, fractions_are_exact)
{
    struct cell third, out;
    cr_assert(apply(EX_BINARY, BIN_DIV, TY_F64, TY_F64, number(1), number(3), &third));
    cr_assert(apply(EX_BINARY, BIN_MUL, TY_F64, TY_F64, third, number(3), &out));
    struct cell one = number(1), big = number(0x1p53);
    cr_expect_eq(ideal_compare_equal(TY_F64, &out, &one), 1);
    cr_assert(apply(EX_BINARY, BIN_ADD, TY_F64, TY_F64, big, one, &out));
    cr_expect_eq(ideal_compare_equal(TY_F64, &out, &big), -1, "2^53 + 1 is not 2^53");
}

/* exp and back: an interval, which a comparison within it leaves open. */
Test(ideal, intervals_decide_nothing_too_near)
{
    struct cell e, back, one = number(1), far = number(1.001);
    cr_assert(apply(EX_CALL, FN_EXP, TY_F64, TY_F64, one, one, &e));
    struct expr x1 = { .type = TY_F64 },
                log = { .kind = EX_CALL, .op = FN_LOG, .type = TY_F64, .nargs = 1, .arg = { &x1 } };
    struct expr exp = { .kind = EX_CALL, .op = FN_EXP, .type = TY_F64, .nargs = 1, .arg = { &x1 } };
    cr_assert(ideal_apply(&exp, &one, &e));
    cr_assert(ideal_apply(&log, &e, &back));
    cr_expect_eq(ideal_compare_equal(TY_F64, &back, &one), 0);
    cr_expect_eq(ideal_compare_equal(TY_F64, &back, &far), -1);
}
