/* SPDX-License-Identifier: Apache-2.0 */
/* test_operators.c - the rows of operators.def obey the laws that kernels rely on, at every type they accept: identity
 * and padding are neutral, grouping does not matter, order does not where the row says so.  Evaluated by the oracle.
 */
#include "frontend/frontend_impl.h"
#include "ref/ref_internal.h"
#include "support/spec_fixture.h"

#include <math.h>
#include <stdio.h>

/* Elements that every operator must get right; indices make argmin's elements distinct. */
static const double elements[] = { 0, 1, 2, 3, 5, 2, -1, -4, 1, 0.5, 7, INFINITY, -INFINITY, NAN };
enum { ELEMENTS = sizeof elements / sizeof *elements, INTEGERS = 9 };

static union value element(enum ty t, double x)
{
    union value v = { .i = 0 };
    if (ty_is_float(t))
        v.f = ref_round(t, x);
    else if (t == TY_BOOL)
        v.i = x > 1;
    else if (ty_is_signed(t))
        v.i = (int64_t)x;
    else
        v.u = (uint64_t)fabs(x);
    return v;
}

/* The state that element number i contributes. */
static struct tuple state_of(const struct op *op, int i)
{
    struct tuple s = { 0 };
    bool is_welford = !strcmp(op->name, "welford"), is_lse = !strcmp(op->name, "logsumexp");
    for (int f = 0; f < op->nfields; f++) {
        enum ty t = op->field[f];
        double x = elements[i];
        if (is_welford)
            x = f == 0 ? 1 : f == 1 ? x : 0;
        else if (is_lse)
            x = f == 0 ? x : 1;
        else if (!strcmp(op->field_name[f], "index"))
            x = 10 + i * 5 % ELEMENTS; /* in another order than the elements */
        else if (!strcmp(op->field_name[f], "b"))
            x = elements[(i * 5 + 3) % INTEGERS];
        s.field[f].v = element(t, x);
    }
    return s;
}

/* A NaN among the elements is a NaN in the result, in whatever field the state carries it. */
static bool both_nan(const struct op *op, const struct tuple *x, const struct tuple *y)
{
    bool nan_x = false, nan_y = false;
    for (int f = 0; f < op->nfields; f++) {
        nan_x |= ty_is_float(op->field[f]) && isnan(x->field[f].v.f);
        nan_y |= ty_is_float(op->field[f]) && isnan(y->field[f].v.f);
    }
    return nan_x && nan_y;
}

static bool same(const struct op *op, const struct tuple *x, const struct tuple *y, bool bits)
{
    if (!strcmp(op->name, "logsumexp") && both_nan(op, x, y))
        return true;
    for (int f = 0; f < op->nfields; f++) {
        union value a = x->field[f].v, b = y->field[f].v;
        if (!ty_is_float(op->field[f])) {
            if (a.i != b.i)
                return false;
            continue;
        }
        if ((isnan(a.f) && isnan(b.f)) || a.f == b.f)
            continue;
        double tolerance = bits ? 0 : (op->field[f] == TY_F64 ? 1e-13 : op->field[f] == TY_F32 ? 1e-5 : 0.1);
        if (!(fabs(a.f - b.f) <= tolerance * (1 + fabs(a.f) + fabs(b.f))))
            return false;
    }
    return true;
}

/* Infinities cancel to NaN in sums and products of some groupings only where the operator is honest about it: they are
 * tried where the row promises a result for them. */
static int element_count(const struct op *op)
{
    if (!ty_is_float(op->field[0]))
        return INTEGERS;
    bool total = op->exact || !strcmp(op->name, "first") || !strcmp(op->name, "last") || !strcmp(op->name, "logsumexp");
    return total ? ELEMENTS : ELEMENTS - 3;
}

struct bench {
    struct ref ref;
    const struct op *op;
};

static struct tuple combine(struct bench *w, struct tuple a, struct tuple b)
{
    struct tuple out;
    ref_combine(&w->ref, w->op, &a, &b, &out);
    return out;
}

static void check_neutral(struct bench *w, const struct expr *const *value, const char *what, bool nan_too)
{
    struct tuple neutral;
    if (!value[0])
        return;
    ref_eval_tuple(&w->ref, value, w->op->nfields, &neutral);
    for (int i = 0; i < element_count(w->op); i++) {
        struct tuple x = state_of(w->op, i), left = combine(w, neutral, x), right = combine(w, x, neutral);
        if (isnan(elements[i]) && !nan_too && ty_is_float(w->op->field[0]))
            continue;
        cr_expect(same(w->op, &left, &x, true) && same(w->op, &right, &x, true), "%s of %s at %s, element %g", what,
                  w->op->name, ty_name(w->op->field[0]), elements[i]);
    }
}

static void check_laws(struct bench *w)
{
    const struct op *op = w->op;
    int n = element_count(op);
    /* an infinity is neutral for numbers only, which is why kernels pad with NaN */
    bool infinite = strcmp(op->name, "min") && strcmp(op->name, "max") && strncmp(op->name, "arg", 3);
    check_neutral(w, op->identity, "identity", infinite);
    check_neutral(w, op->pad, "pad", true);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            struct tuple x = state_of(op, i), y = state_of(op, j), xy = combine(w, x, y), yx = combine(w, y, x);
            if (op->commutative)
                cr_expect(same(op, &xy, &yx, op->exact), "%s at %s does not commute: %g, %g", op->name,
                          ty_name(op->field[0]), elements[i], elements[j]);
            for (int k = 0; k < n; k++) {
                struct tuple z = state_of(op, k), left = combine(w, xy, z), right = combine(w, x, combine(w, y, z));
                cr_expect(same(op, &left, &right, op->exact), "%s at %s does not associate: %g, %g, %g", op->name,
                          ty_name(op->field[0]), elements[i], elements[j], elements[k]);
            }
        }
}

static void build_row(struct spec *f, const struct op_row *row, enum ty t)
{
    char text[512], map[128] = "x", acc[64] = "";
    bool argument = row->state && strstr(row->state, "index"), affine = row->state && !row->lift && !argument;
    if (argument)
        snprintf(map, sizeof map, "{value: x, index: index(n)}");
    if (affine)
        snprintf(map, sizeof map, "{a: x, b: x}");
    snprintf(acc, sizeof acc, "accumulator: %s\n", ty_name(t));
    snprintf(text, sizeof text,
             "kind: reduce\ninputs:\n  x: %s[n]\nmap: %s\noperator: %s\n%soutputs:\n  o: {type: bool, value: true}\n",
             ty_name(t), map, row->name, acc);
    spec_build(f, text);
}

/* Every row × every type: its laws hold, or the type is refused with PTXG-2304. */
Test(operators, laws)
{
    int built = 0;
    for (int i = 0; i < op_row_count(); i++)
        for (int t = 0; t < TY_COUNT; t++) {
            const struct op_row *row = op_row(i);
            SPEC_BEGIN(f);
            build_row(&f, row, (enum ty)t);
            bool accepted = strchr(row->types, ty_kind((enum ty)t)) != NULL;
            cr_assert_eq(f.p != NULL, accepted, "%s at %s: %s", row->name, ty_name((enum ty)t), spec_text(&f));
            if (!accepted)
                cr_expect_eq((int)f.s.diags.first->code, 2304);
            if (accepted) {
                struct num lets[16];
                struct bench w = { .ref = { .session = &f.s, .p = f.p, .op_let = lets }, .op = f.p->reduction[0].op };
                check_laws(&w);
                built++;
            }
            spec_end(&f);
        }
    cr_expect_gt(built, 100);
}

/* Values by hand: what a row computes, not only that it is lawful. */
Test(operators, results)
{
    static const struct {
        const char *name;
        enum ty t;
        int i, j; /* elements */
        double expected[3];
    } rows[] = {
        { "add", TY_I8, 4, 5, { 7 } },
        { "mul", TY_F32, 3, 4, { 15 } },
        { "min", TY_F32, 2, 13, { 2 } },
        { "max", TY_F64, 13, 6, { -1 } },
        { "and", TY_U8, 3, 4, { 1 } },
        { "or", TY_U8, 2, 4, { 7 } },
        { "xor", TY_U8, 3, 4, { 6 } },
        { "argmin", TY_F32, 5, 2, { 2, 20 } },
        { "argmax", TY_F32, 4, 3, { 5, 16 } },
        { "argmin", TY_F32, 13, 2, { 2, 20 } },
        { "argmin", TY_I32, 6, 7, { -4, 17 } },
        { "logsumexp", TY_F64, 1, 12, { 1, 1 } },
        { "logsumexp", TY_F64, 12, 12, { -INFINITY, 2 } },
        { "logsumexp", TY_F64, 1, 1, { 1, 2 } },
        { "welford", TY_F64, 1, 3, { 2, 2, 2 } },
        { "first", TY_I32, 3, 4, { 3 } },
        { "last", TY_I32, 3, 4, { 5 } },
        { "affine", TY_F64, 2, 3, { 6, 3 * -4 + 0.0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        build_row(&f, op_row_by_name(rows[i].name), rows[i].t);
        cr_assert(f.p != NULL, "%s", spec_text(&f));
        struct num lets[16];
        const struct op *op = f.p->reduction[0].op;
        struct bench w = { .ref = { .session = &f.s, .p = f.p, .op_let = lets }, .op = op };
        struct tuple x = state_of(op, rows[i].i), y = state_of(op, rows[i].j), got = combine(&w, x, y);
        if (!strcmp(op->name, "affine")) { /* x -> 2x + b, then x -> 3x + b' */
            x.field[1].v.f = 1;
            y.field[1].v.f = -15;
            got = combine(&w, x, y);
        }
        for (int k = 0; k < op->nfields; k++) {
            double value = ty_is_float(op->field[k]) ? got.field[k].v.f : (double)got.field[k].v.i;
            cr_expect_eq(value, rows[i].expected[k], "row %zu, field %d: %g", i, k, value);
        }
        spec_end(&f);
    }
}

/* Large and infinite values stay finite where the mathematics is. */
Test(operators, no_element_leaves_the_other_alone)
{
    SPEC_BEGIN(f);
    build_row(&f, op_row_by_name("welford"), TY_F32);
    struct num lets[16];
    const struct op *op = f.p->reduction[0].op;
    struct bench w = { .ref = { .session = &f.s, .p = f.p, .op_let = lets }, .op = op };
    struct tuple none = { 0 }, huge = { 0 };
    huge.field[0].v.f = 1;
    huge.field[1].v.f = 3e38;
    struct tuple left = combine(&w, none, huge), right = combine(&w, huge, none), both = combine(&w, none, none);
    cr_expect(same(op, &left, &huge, true) && same(op, &right, &huge, true) && same(op, &both, &none, true));
    spec_end(&f);
}

/* Commutativity and exactness of operators of the user, from their text. */
Test(operators, normal_form)
{
    static const struct {
        const char *state, *combine;
        bool commutative, exact;
    } rows[] = {
        { "f32", "a + b", true, false },
        { "i32", "b + a", true, true },
        { "f32", "max(a, b)", true, true },
        { "f32", "a - b", false, false },
        { "i32", "a + b + 1", true, false },
        { "f32", "(a + b) + 1", true, false },
        { "f32", "a + (b + 1)", false, false },
        { "i32", "a + (b + 1)", true, false },
        { "bool", "a and b", true, true },
        { "f32", "if a < b then a else b", false, false },
        { "i32", "max(i32(a > b), i32(b > a))", true, false },
        { "i32", "if a > b or b > a then a * b else 0", true, false },
        { "i32", "i32(a >= b) - i32(b <= a)", false, false },
        { "i32", "i32(a >= b) * i32(b >= a)", true, false },
        { "f32", "a * b + b * a", true, false },
        { "f32", "sqrt(a * a + b * b)", true, false },
        { "f32", "hypot(a, b)", true, false },
        { "f32", "hypot(a, -b)", false, false },
        { "f32", "c * (a + b)", true, false },
        { "f32", "c * a + b", false, false },
        { "i32", "(a << 1) ^ (b << 1)", true, false },
        { "i32", "a", false, false },
        { "f32", "sum_let * c", true, false },
        { "f32", "less_let", false, false },
        { "f32", "sum_let + less_let", false, false },
        { "{u: i32, v: i32}", "{u: a.u + b.u, v: \"max(b.v, a.v)\"}", true, true },
        { "{u: i32, v: i32}", "{u: a.u + b.v, v: a.v + b.u}", false, false },
        { "{u: i32, v: i32}", "{u: a.v + b.v, v: a.u + b.u}", true, false },
        { "{u: f32, v: f32}", "{u: a.u * b.u - a.v * b.v, v: a.u * b.v + a.v * b.u}", true, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        SPEC_BEGIN(f);
        bool tuple = *rows[i].state == '{', is_bool = !strcmp(rows[i].state, "bool");
        const char *map = tuple ? "{u: 1, v: 2}" : is_bool ? "x" : "1", *quote = tuple ? "" : "\"";
        bool uses_let = strstr(rows[i].combine, "_let") != NULL;
        snprintf(text, sizeof text,
                 "kind: reduce\ninputs: {x: \"bool[n]\"}\nparams: {c: f32}\nmap: %s\n"
                 "operator:\n  state: %s\n%s  combine: %s%s%s\n"
                 "outputs:\n  o: {type: bool, value: true}\n",
                 map, rows[i].state, uses_let ? "  let: {sum_let: a + b, less_let: a - b}\n" : "", quote,
                 rows[i].combine, quote);
        spec_build(&f, text);
        cr_assert(f.p != NULL, "%s\n%s", text, spec_text(&f));
        cr_expect_eq(f.p->reduction[0].op->commutative, rows[i].commutative, "%s", rows[i].combine);
        cr_expect_eq(f.p->reduction[0].op->exact, rows[i].exact, "%s", rows[i].combine);
        spec_end(&f);
    }
}

/* The order of the iteration space: by the inputs, or pinned; and lists that are none. */
Test(space, order)
{
    static const char *const row[][2] = {
        { "", "space [n, f, 4] over f\n" },
        { "space: [n, 4, f]\n", "space [n, 4, f] over f\n" },
        { "space: [4, f, n]\n", "space [4, f, n] over f\n" },
        { "space: [n, 4, g]\n", "t.yaml:7:15: error: no input has a dimension 'g' [PTXG-2301]" },
        { "space: [n, 4, 4]\n", "t.yaml:7:15: error: '4' stands here twice [PTXG-2301]" },
        { "space: [n, f]\n", "t.yaml:7:8: error: the inputs have the dimension '4', too" },
        { "space: [n, f, 4, n]\n", "t.yaml:7:18: error: 'n' stands here twice" },
        { "space: n\n", "t.yaml:7:8: error: 'space' is a list of dimensions [PTXG-2003]" },
        { "space: [[n], f, 4]\n", "t.yaml:7:9: error: a dimension is expected here [PTXG-2003]" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "kind: reduce\ninputs: {p: 'f32[n, f]', c: 'f32[4, f]'}\nover: f\nmap: p * c\noperator: add\n"
                 "outputs: {d: 'f32[n, 4]'}\n%s",
                 row[i][0]);
        SPEC_BEGIN(f);
        spec_build(&f, text);
        cr_expect(strstr(spec_text(&f), row[i][1]) && f.s.diags.errors == (strstr(row[i][1], "error") != NULL),
                  "%s: %s", row[i][0], spec_text(&f));
        spec_end(&f);
    }
}

#define LOOK "kind: map\ninputs: {t: 'i32[b]', w: 'f32[v, h]'}\n"
#define ROW  "outputs: {y: {type: 'f32[b, h]', value: 'at(w, t, index(h))'}}\n"
#define SUMS "kind: reduce\ninputs: {t: 'i32[b]', w: 'f32[v, h]'}\nmap: at(w, t, index(h))\noperator: add\nover: h\n"

/* A dimension of an input that is read with at() alone is one of the space where `space` names it. */
static const struct spec_row tables[] = {
    { LOOK "space: [b, h]\n" ROW,
      "size v min 1\nsize h\nspace [b, h]\ninput t: i32[b]\ninput w: f32[v, h] read with at()" },
    { LOOK "space: [h, b]\n" ROW, "space [h, b]\n" },
    { SUMS "space: [b, h]\noutputs: {s: 'f32[b]'}\n", "space [b, h] over h\n" },
    { "kind: map\ninputs: {x: 'f32[n, 4]'}\nspace: [4, n]\noutputs: {y: {type: 'f32[n, 4]', value: 'at(x, 0, 0)'}}\n",
      "space [4, n]\n" },
    { LOOK ROW, "hint: 'w', which is read with at() alone, has the dimension 'h': write space: [b, h]\n" },
    { SUMS "outputs: {s: 'f32[b]'}\n", "'h' is not a dimension of the iteration space" },
    { SUMS "outputs: {s: 'f32[b]'}\n", "hint: 'w', which is read with at() alone, has the dimension 'h'" },
    { LOOK "space: [b, h, w]\n" ROW, "no input has a dimension 'w'" },
    { LOOK "space: [h]\n" ROW, "the inputs have the dimension 'b', too" },
    { "kind: map\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'f32[n]', value: 'at(x, 0)'}}\n", "as in space: [n]" },
    { "kind: reduce\ninputs: {x: 'f32[n]', o: 'i32[k]'}\nsegments: {offsets: o}\nspace: [n, k]\noperator: add\n"
      "outputs: {s: 'f32[k-1]'}\n",
      "'k' is a dimension of 'o' alone, which gives segments or positions" },
    { "kind: map\ninputs: {a: 'f32[m, f]'}\nspace: [m, f]\noutputs: {y: {type: 'f32[m]', value: 'sum(f, a)'}}\n",
      "sums inside expressions go over 'f'" },
};

Test(space, tables) { spec_rows(tables, sizeof tables / sizeof *tables); }
