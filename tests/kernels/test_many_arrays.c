/* SPDX-License-Identifier: Apache-2.0 */
/* test_many_arrays.c - as many arrays as the language allows have a default plan, and a plan of every strategy that
 * fits: guards and tiles grow with the arrays, and must not outgrow their room.
 *
 * For each kind, operators that commute or not, each number of dimensions, dimensions to combine over, and numbers of
 * inputs up to the limit: inputs of one type, of all types in turn, and structures among them; with an output per
 * element where the form has one.
 */
#include "lower/lower_impl.h"
#include "support/spec_fixture.h"

#include <stdio.h>

enum inputs { SAME, MIXED, STRUCTURES, INPUT_FORMS };

static const char *const types[] = { "f32", "i8", "f64", "u16", "bf16", "i64", "bool", "u8" };
static const char *const dimensions[] = { "d", "m", "n" };

struct form {
    enum problem_kind kind;
    int rank, over; /* over: a bit per dimension of the space */
    bool offsets;
    const char *op;
};

static void shape(struct str *out, int rank, int without)
{
    const char *comma = "[";
    for (int d = 0; d < rank; d++)
        if (!(without >> d & 1)) {
            str_printf(out, "%s%s", comma, dimensions[3 - rank + d]);
            comma = ", ";
        }
    if (*comma == ',')
        str_addc(out, ']');
}

static const char *field(enum inputs inputs, int i) { return inputs == STRUCTURES && i % 3 == 0 ? ".a" : ""; }

static void inputs_of(struct str *out, const struct form *f, int n, enum inputs inputs)
{
    str_add(out, "inputs:\n");
    for (int i = 0; i < n; i++) {
        const char *type = inputs == SAME ? "f32" : types[i % 8];
        str_printf(out, *field(inputs, i) ? "  x%d: {type: {a: %s, b: f32}, shape: " : "  x%d: \"%s", i, type);
        shape(out, f->rank, 0);
        str_add(out, *field(inputs, i) ? "}\n" : "\"\n");
    }
    if (f->offsets)
        str_add(out, "  off: \"i32[k]\"\nsegments: {offsets: off}\n");
}

/* The sum over all inputs; of neighbours where the kind has them. */
static void sum_of(struct str *out, const struct form *f, int n, enum inputs inputs)
{
    static const char *const near[] = { "", "[1]", "[1, -1]", "[1, 0, -1]" };
    for (int i = 0; i < n; i++)
        str_printf(out, "%sf64(x%d%s%s)", i ? " + " : "", i, f->kind == KIND_STENCIL ? near[f->rank] : "",
                   field(inputs, i));
}

static void spec_of(struct str *out, const struct form *f, int n, enum inputs inputs)
{
    static const char *const kinds[] = { "reduce", "scan", "stencil" };
    const bool elements = f->kind != KIND_REDUCE || (n % 2 == 0 && inputs != SAME);
    str_printf(out, "kind: %s\n", kinds[f->kind]);
    inputs_of(out, f, n, inputs);
    if (f->kind != KIND_STENCIL) {
        str_printf(out, "operator: %s\nmap: ", f->op);
        sum_of(out, f, n, inputs);
        str_add(out, "\nover: ");
        shape(out, f->rank, ~f->over);
        str_add(out, "\n");
    }
    str_add(out, "outputs:\n");
    if (f->kind == KIND_REDUCE) {
        str_add(out, "  total: \"f64");
        if (f->offsets)
            str_add(out, "[k-1]");
        else
            shape(out, f->rank, f->over);
        str_add(out, "\"\n");
    }
    if (elements) {
        str_add(out, "  each: {type: \"f64");
        shape(out, f->rank, 0);
        str_add(out, "\", value: \"");
        if (f->kind == KIND_SCAN)
            str_add(out, "s");
        else
            sum_of(out, f, n, inputs);
        str_add(out, "\"}\n");
    }
}

/* `strategy`: NULL for the default. */
static void planned(struct spec *f, const struct device *d, const char *strategy, const char *text)
{
    struct str said = { 0 };
    const struct plan_options o = { .strategy = strategy };
    const bool made = plan_create(&f->s, f->p, d, &o) != NULL;
    diags_render_text(&f->s.diags, &said, false);
    cr_expect(made, "%s, %s: %s\n%s", d->arch, strategy ? strategy : "default", text, said.text);
    str_finish(&said);
}

/* The default plan, and one of every strategy that fits. */
static void plans_of(const char *text, const char *arch)
{
    SPEC_BEGIN(f);
    spec_build(&f, text);
    cr_assert_not_null(f.p, "%s\n%s", text, spec_text(&f));
    struct device d;
    cr_assert(device_by_name(arch, 0, &d));
    planned(&f, &d, NULL, text);
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (row->kind == f.p->kind && row->fits(f.p, &d, &f.s.arena, &why))
            planned(&f, &d, row->name, text);
    }
    spec_end(&f);
}

static void form(const struct form *f)
{
    static const int counts[] = { 1, 2, 3, 4, 6, 7, 12, 20, 34 };
    static const char *const archs[] = { "sm_75", "sm_90" };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int inputs = SAME; inputs < INPUT_FORMS; inputs++) {
            struct str text = { 0 };
            spec_of(&text, f, counts[i], (enum inputs)inputs);
            for (int a = 0; a < 2; a++)
                plans_of(text.text, archs[a]);
            str_finish(&text);
        }
}

/* Every rank, and every choice of dimensions to combine over. */
static void folded(enum problem_kind kind, const char *op)
{
    for (int rank = 1; rank <= 3; rank++)
        for (int over = 1; over < 1 << rank; over++)
            form(&(struct form){ kind, rank, over, false, op });
    form(&(struct form){ kind, 1, 1, true, op });
}

Test(many_arrays, reductions) { folded(KIND_REDUCE, "add"); }
Test(many_arrays, scans) { folded(KIND_SCAN, "add"); }

/* Operators that do not commute have strategies of their own. */
#define ORDERED "first\ninit: 1"
Test(many_arrays, ordered_reductions) { folded(KIND_REDUCE, ORDERED); }
Test(many_arrays, ordered_scans) { folded(KIND_SCAN, ORDERED); }

Test(many_arrays, stencils)
{
    for (int rank = 1; rank <= 3; rank++)
        form(&(struct form){ KIND_STENCIL, rank, 0, false, NULL });
}
