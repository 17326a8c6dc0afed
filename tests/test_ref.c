/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref.c - the oracle against results worked out by hand, row by row, plainly and with bounds. */
#include <criterion/criterion.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/problem.h"
#include "ref/ref.h"

/* Numbers of an array, fields of an element one after the other. */
struct numbers {
    int n;
    const double *x;
};
#define V(...)                                                                                                         \
    {                                                                                                                  \
        sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), (const double[]) { __VA_ARGS__ }                     \
    }
#define NOTHING                                                                                                        \
    {                                                                                                                  \
        0, NULL                                                                                                        \
    }

struct row {
    const char *name, *spec;
    int64_t size[4];
    struct numbers input[3], output[3];
    double param[3];
    const char *error; /* part of the message */
};

static struct ptxgen_session session;
static jmp_buf exhausted;

static void begin(void)
{
    memset(&session, 0, sizeof session);
    arena_init(&session.arena);
    session.arena.oom = &exhausted;
    diags_init(&session.diags, &session.arena);
}

static void end(void) { arena_finish(&session.arena); }

static const struct problem *build(const char *name, const char *spec)
{
    struct str out = { 0 };
    const struct problem *p = problem_build(&session, name, spec, strlen(spec), "test");
    if (!p) {
        diags_render_text(&session.diags, &out, false);
    }
    cr_assert(p, "%s: %s", name, out.text);
    str_finish(&out);
    return p;
}

static union value as_value(enum ty t, double x)
{
    if (ty_is_float(t)) {
        return (union value){ .f = x };
    }
    return x < 0 || ty_is_signed(t) ? (union value){ .i = (int64_t)x } : (union value){ .u = (uint64_t)x };
}

static double as_double(enum ty t, union value v)
{
    return ty_is_float(t) ? v.f : ty_is_signed(t) ? (double)v.i : (double)v.u;
}

static char *make_array(const struct prog_array *a, const int64_t *size, const struct numbers *from, const char *name)
{
    int64_t n = prog_array_elements(a, size);
    cr_assert(n >= 0, "%s: shape of %s", name, a->name);
    char *data = calloc((size_t)n + 1, (size_t)a->stride);
    cr_assert(!from || from->n == n * a->nfields, "%s: %s has %lld elements, the row gives %d numbers", name, a->name,
              (long long)n, from ? from->n : 0);
    for (int64_t i = 0; from && i < n * a->nfields; i++) {
        const struct prog_field *f = &a->field[i % a->nfields];
        value_store(f->type, data + i / a->nfields * a->stride + f->offset, as_value(f->type, from->x[i]));
    }
    return data;
}

static void compare(const struct row *row, const struct prog_array *a, const char *data, const struct numbers *expected,
                    const double *bound)
{
    for (int i = 0; i < expected->n; i++) {
        const struct prog_field *f = &a->field[i % a->nfields];
        double got = as_double(f->type, value_load(f->type, data + i / a->nfields * a->stride + f->offset));
        double want = expected->x[i];
        bool same = got == want || (isnan(got) && isnan(want));
        if (bound) {
            cr_expect(!isnan(bound[i]) && bound[i] >= 0, "%s: bound of %s, number %d: %g", row->name, a->name, i,
                      bound[i]);
            same = same || fabs(got - want) <= bound[i];
        }
        cr_expect(same, "%s%s: %s, number %d: %.17g instead of %.17g", row->name, bound ? " (with bounds)" : "",
                  a->name, i, got, want);
    }
}

static void run_row(const struct row *row, bool tracked)
{
    begin();
    const struct problem *p = build(row->name, row->spec);
    const void *input[3] = { NULL };
    void *output[3] = { NULL };
    double *bound[3] = { NULL };
    union value param[3] = { { 0 } };
    for (int i = 0; i < p->nparams; i++) {
        param[i] = as_value(p->param[i].type, row->param[i]);
    }
    for (int i = 0; i < p->ninputs; i++) {
        input[i] = make_array(&p->input[i].array, row->size, &row->input[i], row->name);
    }
    for (int i = 0; i < p->noutputs; i++) {
        const struct prog_array *a = &p->output[i].array;
        output[i] = make_array(a, row->size, NULL, row->name);
        bound[i] = calloc((size_t)(prog_array_elements(a, row->size) * a->nfields + 1), sizeof **bound);
    }
    struct run_args args = { row->size, input, output, param };
    const char *message = tracked ? ref_bound(&session, p, &args, bound) : ref_run(&session, p, &args);
    if (row->error) {
        cr_expect(message && strstr(message, row->error), "%s: message '%s'", row->name, message ? message : "none");
    } else {
        cr_expect(!message, "%s: %s", row->name, message ? message : "");
    }
    for (int i = 0; i < p->noutputs && !message; i++) {
        const struct prog_array *a = &p->output[i].array;
        cr_expect_eq(row->output[i].n, prog_array_elements(a, row->size) * a->nfields, "%s: the row has %d results",
                     row->name, row->output[i].n);
        compare(row, a, output[i], &row->output[i], tracked ? bound[i] : NULL);
    }
    for (int i = 0; i < 3; i++) {
        free((void *)input[i]);
        free(output[i]);
        free(bound[i]);
    }
    end();
}

static void run_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run_row(&rows[i], false);
        run_row(&rows[i], true);
    }
}
#define RUN(rows) run_rows(rows, sizeof(rows) / sizeof *(rows))

Test(ref, reduce)
{
    const struct row rows[] = {
        { .name = "sum",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {s: i32}\n",
          .size = { 4 },
          .input = { V(1, 2, 3, -10) },
          .output = { V(-4) } },
        { .name = "nothing: the identity",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: mul\noutputs: {s: i32}\n",
          .input = { NOTHING },
          .output = { V(1) } },
        { .name = "wraps",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {s: i32}\n",
          .size = { 2 },
          .input = { V(2147483647, 1) },
          .output = { V(-2147483648.0) } },
        { .name = "i8 accumulates in i32",
          .spec = "kind: reduce\ninputs: {x: 'i8[n]'}\noperator: add\noutputs: {s: i32}\n",
          .size = { 3 },
          .input = { V(127, 127, 127) },
          .output = { V(381) } },
        { .name = "dot",
          .spec = "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\noutputs: {s: f32}\n",
          .size = { 3 },
          .input = { V(1, 2, 3), V(4, 5, 6) },
          .output = { V(32) } },
        { .name = "init on the left",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\nparams: {p: i32}\ninit: p\noperator: add\noutputs: {s: i32}\n",
          .size = { 2 },
          .param = { 100 },
          .input = { V(1, 2) },
          .output = { V(103) } },
        { .name = "nothing: init",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\nparams: {p: i32}\ninit: p\noperator: add\noutputs: {s: i32}\n",
          .param = { 100 },
          .input = { NOTHING },
          .output = { V(100) } },
        { .name = "no identity",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: {state: i32, combine: a + b}\noutputs: {s: i32}\n",
          .input = { NOTHING },
          .error = "identity" },
        { .name = "order",
          .spec =
              "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: {state: i32, combine: 10 * a + b}\noutputs: {s: i32}\n",
          .size = { 2 },
          .input = { V(1, 2) },
          .output = { V(12) } },
        { .name = "argmin ties",
          .spec = "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: {value: x, index: index(n)}\noperator: argmin\noutputs: "
                  "{i: {type: i64, value: r.index}}\n",
          .size = { 5 },
          .input = { V(3, 1, 2, 1, 1) },
          .output = { V(1) } },
        { .name = "min passes over nan",
          .spec = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: min\noutputs: {s: f32}\n",
          .size = { 3 },
          .input = { V(NAN, 2, NAN) },
          .output = { V(2) } },
        { .name = "min of nan",
          .spec = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: min\noutputs: {s: f32}\n",
          .size = { 2 },
          .input = { V(NAN, NAN) },
          .output = { V(NAN) } },
        { .name = "min of nothing",
          .spec = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: min\noutputs: {s: f32}\n",
          .input = { NOTHING },
          .output = { V(INFINITY) } },
        { .name = "matrix times vector",
          .spec = "kind: reduce\ninputs: {x: 'f32[m, n]', v: 'f32[n]'}\nmap: x * v\noperator: add\nover: n\noutputs: "
                  "{y: 'f32[m]'}\n",
          .size = { 2, 3 },
          .input = { V(1, 2, 3, 4, 5, 6), V(1, 0, -1) },
          .output = { V(-2, -2) } },
        { .name = "columns",
          .spec = "kind: reduce\ninputs: {x: 'i32[m, n]'}\noperator: add\nover: m\noutputs: {y: 'i32[n]'}\n",
          .size = { 2, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(5, 7, 9) } },
        { .name = "permuted result",
          .spec = "kind: reduce\ninputs: {x: 'i32[d, m, n]'}\noperator: add\nover: n\noutputs: {y: 'i32[m, d]'}\n",
          .size = { 2, 2, 1 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 3, 2, 4) } },
        { .name = "row-major whatever the set",
          .spec = "kind: reduce\ninputs: {x: 'i32[m, n]'}\n"
                  "operator: {state: {v: i32, p: i32}, combine: {v: a.v * b.p + b.v, p: a.p * b.p}}\n"
                  "map: {v: x, p: 10}\nover: [n, m]\noutputs: {y: {type: i32, value: r.v}}\n",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1234) } },
        { .name = "irregular segments",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]', off: 'i32[k]'}\noperator: add\nsegments: {offsets: "
                  "off}\noutputs: {y: 'i32[k-1]'}\n",
          .size = { 5, 4 },
          .input = { V(1, 2, 3, 4, 5), V(1, 3, 3, 4) },
          .output = { V(5, 0, 4) } },
        { .name = "offsets that do not ascend",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]', off: 'i32[k]'}\noperator: add\nsegments: {offsets: "
                  "off}\noutputs: {y: 'i32[k-1]'}\n",
          .size = { 5, 3 },
          .input = { V(1, 2, 3, 4, 5), V(0, 4, 3) },
          .error = "ascend" },
        { .name = "several",
          .size = { 3 },
          .input = { V(5, -1, 2) },
          .output = { V(6) },
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\nreductions:\n  lo: {map: x, operator: min}\n  hi: {map: x, "
                  "operator: max}\n"
                  "outputs: {range: {type: i32, value: hi - lo}}\n" },
        { .name = "redomap",
          .size = { 3 },
          .input = { V(1, 2, 5) },
          .output = { V(2, 4, 10), V(8) },
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: {type: 'i32[n]', value: x * 2}, s: "
                  "i32}\n" },
        { .name = "structures",
          .size = { 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(-5, 10) },
          .spec = "kind: reduce\ninputs: {x: {type: {re: f32, im: f32}, shape: [n]}}\n"
                  "operator:\n  state: {re: f32, im: f32}\n  identity: {re: 1, im: 0}\n"
                  "  combine: {re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re}\n"
                  "map: {re: x.re, im: x.im}\noutputs: {p: {type: {re: f32, im: f32}, shape: [], value: {re: r.re, im: "
                  "r.im}}}\n" },
        { .name = "neighbours",
          .size = { 3 },
          .input = { V(1, 4, 9) },
          .output = { V(8) },
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\nmap: x - x[-1]\noperator: add\noutputs: {s: i32}\n" },
        { .name = "welford variance",
          .size = { 4 },
          .input = { V(1, 3, 5, 7) },
          .output = { V(5) },
          .spec = "kind: reduce\ninputs: {x: 'f64[n]'}\nmap: x\noperator: welford\noutputs: {v: {type: f64, value: "
                  "r.m2 / r.n}}\n" },
        { .name = "first and last",
          .size = { 3 },
          .input = { V(7, 8, 9) },
          .output = { V(79) },
          .spec = "kind: reduce\ninputs: {x: 'i32[n]'}\nreductions: {f: {map: x, operator: first}, l: {map: x, "
                  "operator: last}}\n"
                  "outputs: {s: {type: i32, value: 10 * f + l}}\n" },
        { .name = "f16 rounds after every operation",
          .size = { 2 },
          .input = { V(2048, 1) },
          .output = { V(2048) },
          .spec = "kind: reduce\ninputs: {x: 'f16[n]'}\naccumulator: f16\noperator: add\noutputs: {s: f16}\n" },
    };
    RUN(rows);
}

Test(ref, scan)
{
#define SCAN(more) "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n" more
    const struct row rows[] = {
        { .name = "inclusive", .spec = SCAN(""), .size = { 3 }, .input = { V(1, 2, 3) }, .output = { V(1, 3, 6) } },
        { .name = "exclusive",
          .spec = SCAN("mode: exclusive\n"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(0, 1, 3) } },
        { .name = "reverse",
          .spec = SCAN("direction: reverse\n"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(6, 5, 3) } },
        { .name = "exclusive reverse with init",
          .spec = SCAN("direction: reverse\nmode: exclusive\ninit: 10\n"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(15, 13, 10) } },
        { .name = "nothing", .spec = SCAN(""), .input = { NOTHING }, .output = { NOTHING } },
        { .name = "reverse: a came earlier in the scan",
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(321, 32, 3) },
          .spec = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: {state: i32, combine: 10 * a + b}\ndirection: "
                  "reverse\noutputs: {y: 'i32[n]'}\n" },
        { .name = "total",
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(5, 6, 8), V(11) },
          .spec = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\ninit: 5\nmode: exclusive\noutputs: {y: 'i32[n]', "
                  "t: i32}\n" },
        { .name = "flags",
          .size = { 5 },
          .input = { V(1, 2, 3, 4, 5), V(0, 0, 1, 0, 1) },
          .output = { V(1, 3, 3, 7, 5) },
          .spec = "kind: scan\ninputs: {x: 'i32[n]', f: 'bool[n]'}\noperator: add\nsegments: {flags: f}\noutputs: {y: "
                  "'i32[n]'}\n" },
        { .name = "flags, reverse",
          .size = { 5 },
          .input = { V(1, 2, 3, 4, 5), V(0, 0, 1, 0, 1) },
          .output = { V(3, 2, 7, 4, 5) },
          .spec = "kind: scan\ninputs: {x: 'i32[n]', f: 'bool[n]'}\noperator: add\nsegments: {flags: f}\ndirection: "
                  "reverse\noutputs: {y: 'i32[n]'}\n" },
        { .name = "offsets",
          .size = { 5, 3 },
          .input = { V(1, 2, 3, 4, 5), V(1, 3, 4) },
          .output = { V(0, 2, 5, 4, 0) },
          .spec = "kind: scan\ninputs: {x: 'i32[n]', o: 'i32[k]'}\noperator: add\nsegments: {offsets: o}\noutputs: {y: "
                  "'i32[n]'}\n" },
        { .name = "along the first dimension",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 2, 4, 6) },
          .spec = "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\nover: m\noutputs: {y: 'i32[m, n]'}\n" },
        { .name = "several",
          .size = { 3 },
          .input = { V(1, 3, 2) },
          .output = { V(2, 7, 9) },
          .spec =
              "kind: scan\ninputs: {x: 'i32[n]'}\nscans: {s1: {map: x, operator: add}, m1: {map: x, operator: max}}\n"
              "outputs: {y: {type: 'i32[n]', value: s1 + m1}}\n" },
        { .name = "affine",
          .size = { 3 },
          .input = { V(2, 3, 1), V(1, 0, 5) },
          .output = { V(1, 3, 8) },
          .spec = "kind: scan\ninputs: {p: 'f32[n]', q: 'f32[n]'}\nmap: {a: p, b: q}\noperator: affine\n"
                  "outputs: {y: {type: 'f32[n]', value: s.b}}\n" },
    };
    RUN(rows);
}

Test(ref, boundary)
{
#define EDGE(mode, offset)                                                                                             \
    "kind: stencil\ninputs: {x: 'i32[n]'}\nboundary: " mode "\noutputs: {y: {type: 'i32[n]', value: 'x[" offset "]'}}" \
                                                                                                                "\n"
    const struct row rows[] = {
        { .name = "clamp",
          .spec = EDGE("clamp", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 1, 1, 2) } },
        { .name = "wrap",
          .spec = EDGE("wrap", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 4, 1, 2) } },
        { .name = "reflect",
          .spec = EDGE("reflect", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(2, 1, 1, 2) } },
        { .name = "mirror",
          .spec = EDGE("mirror", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 2, 1, 2) } },
        { .name = "constant",
          .spec = EDGE("{constant: 9}", "2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 4, 9, 9) } },
        { .name = "interior",
          .spec = EDGE("interior", "1"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(2, 3, 0) } },
        { .name = "wrap, one point", .spec = EDGE("wrap", "-3"), .size = { 1 }, .input = { V(7) }, .output = { V(7) } },
        { .name = "mirror, one point",
          .spec = EDGE("mirror", "5"),
          .size = { 1 },
          .input = { V(7) },
          .output = { V(7) } },
        { .name = "mirror, two points",
          .spec = EDGE("mirror", "5"),
          .size = { 2 },
          .input = { V(7, 8) },
          .output = { V(8, 7) } },
        { .name = "reflect, halo beyond twice the extent",
          .spec = EDGE("reflect", "5"),
          .size = { 2 },
          .input = { V(7, 8) },
          .output = { V(8, 8) } },
        { .name = "per dimension",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(2, 1, 2, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[m, n]'}\nboundary: {x: {m: clamp, n: wrap}}\n"
                  "outputs: {y: {type: 'i32[m, n]', value: 'x[-1, 1]'}}\n" },
        { .name = "outside in any constant dimension",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(-1, -1, 2, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[m, n]'}\nboundary: {x: {m: {constant: -1}, n: wrap}}\n"
                  "outputs: {y: {type: 'i32[m, n]', value: 'x[-1, 1]'}}\n" },
    };
    RUN(rows);
}

Test(ref, stencil)
{
#define HEAT(steps, boundary)                                                                                          \
    "kind: stencil\ninputs: {u: 'i32[n]'}\nparams: {t: i32}\nboundary: " boundary "\n"                                 \
    "outputs: {v: {type: 'i32[n]', value: 'u[-1] + u[1]'}}\niterate: {steps: " steps ", feedback: {u: v}}\n"
    const struct row rows[] = {
        { .name = "one step",
          .spec = HEAT("1", "clamp"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(3, 4, 5) } },
        { .name = "two steps",
          .spec = HEAT("2", "clamp"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(7, 8, 9) } },
        { .name = "three steps of a param",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(15, 16, 17) } },
        { .name = "no step",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { 0 },
          .input = { V(1, 2, 3) },
          .output = { V(1, 2, 3) } },
        { .name = "negative steps",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { -1 },
          .input = { V(1, 2, 3) },
          .error = "negative" },
        { .name = "interior keeps what is fed back",
          .spec = HEAT("2", "interior"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 7, 8, 4) } },
        { .name = "no points", .spec = HEAT("2", "clamp"), .input = { NOTHING }, .output = { NOTHING } },
        { .name = "two pairs that swap",
          .size = { 2 },
          .input = { V(1, 2), V(10, 20) },
          .output = { V(10, 20), V(1, 2) },
          .spec = "kind: stencil\ninputs: {p: 'i32[n]', q: 'i32[n]'}\n"
                  "outputs: {r1: {type: 'i32[n]', value: q}, r2: {type: 'i32[n]', value: p}}\niterate: {steps: 3, "
                  "feedback: {p: r1, q: r2}}\n" },
        { .name = "residual of the last step",
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(7, 8, 9), V(12) },
          .spec = "kind: stencil\ninputs: {u: 'i32[n]'}\nboundary: clamp\nreductions: {d: {map: abs(v - u), operator: "
                  "add}}\n"
                  "outputs: {v: {type: 'i32[n]', value: 'u[-1] + u[1]'}, d: i32}\niterate: {steps: 2, feedback: {u: "
                  "v}}\n" },
        { .name = "gather",
          .size = { 4, 2 },
          .input = { V(1, 2, 3, 4), V(-1, 2) },
          .output = { V(4, 5, 6, 7) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p, 1]'}\nboundary: clamp\n"
                  "outputs: {y: {type: 'i32[n]', value: 'gather(x, off, k, add, k)'}}\n" },
        { .name = "gather the largest",
          .size = { 3, 2 },
          .input = { V(3, 1, 2), V(0, 1) },
          .output = { V(3, 2, 2) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p, 1]'}\nboundary: clamp\n"
                  "outputs: {y: {type: 'i32[n]', value: 'gather(x, off, k, max, k)'}}\n" },
        { .name = "three dimensions",
          .size = { 2, 1, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(4, 4, 4, 4) },
          .spec = "kind: stencil\ninputs: {x: 'i32[d, m, n]'}\nboundary: clamp\noutputs: {y: {type: 'i32[d, m, n]', "
                  "value: 'x[1, 0, 1]'}}\n" },
    };
    RUN(rows);
}

/* One expression on one element. */
struct expression {
    const char *type, *result, *text;
    double x, y, expected;
};

Test(ref, expressions)
{
    static const struct expression rows[] = {
        { "i32", "i32", "x / y", 7, 0, 0 },
        { "i32", "i32", "x % y", 7, 0, 0 },
        { "i32", "i32", "x / y", -7, 2, -3 },
        { "i32", "i32", "x % y", -7, 2, -1 },
        { "i32", "i32", "x / y", -2147483648.0, -1, -2147483648.0 },
        { "i32", "i32", "x % y", -2147483648.0, -1, 0 },
        { "i8", "i8", "x / y", -128, -1, -128 },
        { "i8", "i8", "x + y", 127, 1, -128 },
        { "u8", "u8", "x - y", 0, 1, 255 },
        { "i8", "i8", "x * y", 100, 3, 44 },
        { "i32", "i32", "x << y", 1, 32, 0 },
        { "i32", "i32", "x << y", 1, 31, -2147483648.0 },
        { "i32", "i32", "x << y", 1, -1, 0 },
        { "i32", "i32", "x >> y", -8, 40, -1 },
        { "i32", "i32", "x >> y", -8, 1, -4 },
        { "u32", "u32", "x >> y", 4294967288.0, 1, 2147483644 },
        { "u32", "u32", "x >> y", 8, 32, 0 },
        { "i32", "i32", "abs(x)", -2147483648.0, 0, -2147483648.0 },
        { "i32", "i32", "sign(x) + sign(y)", -5, 0, -1 },
        { "i32", "i32", "clamp(x, y, 10)", 50, 1, 10 },
        { "i8", "i8", "popcount(x) + clz(y)", -1, 1, 15 },
        { "i32", "i32", "ctz(x) + clz(y)", 0, 0, 64 },
        { "u16", "u16", "~x", 1, 0, 65534 },
        { "i32", "i32", "if x < y then x else y", 4, 3, 3 },
        { "f32", "i32", "i32(x)", 3e9, 0, 2147483647 },
        { "f32", "i32", "i32(x)", -3e9, 0, -2147483648.0 },
        { "f32", "i32", "i32(x)", NAN, 0, 0 },
        { "f32", "i32", "i32(x)", -1.9, 0, -1 },
        { "f32", "u8", "u8(x)", -5, 0, 0 },
        { "f32", "u8", "u8(x)", 300, 0, 255 },
        { "f32", "f32", "min(x, y)", NAN, 2, 2 },
        { "f32", "f32", "max(x, y)", 2, NAN, 2 },
        { "f32", "f32", "min(x, y)", NAN, NAN, NAN },
        { "f32", "f32", "round(x)", 2.5, 0, 2 },
        { "f32", "f32", "round(x)", -3.5, 0, -4 },
        { "f32", "f32", "round(x)", 0.49999997, 0, 0 },
        { "f32", "f32", "x % y", -7.5, 2, -1.5 },
        { "f32", "f32", "x + y", 16777216, 1, 16777216 },
        { "f32", "f32", "x / y", 1, 0, INFINITY },
        { "f32", "f32", "sqrt(x)", -1, 0, NAN },
        { "f16", "f16", "x + y", 2048, 1, 2048 },
        { "f16", "f16", "x + y", 2048, 3, 2052 },
        { "f16", "f16", "x * y", 300, 300, INFINITY },
        { "bf16", "bf16", "x + y", 256, 1, 256 },
        { "f32", "bool", "isnan(x) and not isinf(y)", NAN, 1, 1 },
        { "f32", "bool", "x != y", NAN, NAN, 1 },
        { "f32", "bool", "x <= y", NAN, 1, 0 },
        /* (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: once rounded the last term stays, after a rounded product it is gone. */
        { "f32", "f32", "fma(x, x, y)", 1.000244140625, -1, 0x1p-11 + 0x1p-24 },
        { "f32", "f32", "x * x + y", 1.000244140625, -1, 0x1p-11 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char spec[512];
        const struct expression *e = &rows[i];
        snprintf(
            spec, sizeof spec,
            "kind: stencil\ninputs: {x: '%s[n]', y: '%s[n]'}\noutputs:\n  z:\n    type: '%s[n]'\n    value: '%s'\n",
            e->type, e->type, e->result, e->text);
        struct row row = { .name = e->text,
                           .spec = spec,
                           .size = { 1 },
                           .input = { { 1, &e->x }, { 1, &e->y } },
                           .output = { { 1, &e->expected } } };
        row.input[1].n = strchr(e->text, 'y') ? 1 : row.input[1].n;
        run_row(&row, false);
        run_row(&row, true);
    }
}

/* A sum of n numbers in f32 in several orders must lie within the bound, and the bound must notice a number that is
 * missing. */
Test(ref, bounds_hold_and_bite)
{
    enum { N = 1000 };
    static float x[N];
    begin();
    const struct problem *p = build("sum", "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n");
    uint32_t state = 1;
    float forward = 0, backward = 0, strided = 0;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
        forward += x[i];
    }
    for (int i = N - 1; i >= 0; i--) {
        backward += x[i];
    }
    for (int lane = 0; lane < 32; lane++) {
        float part = 0;
        for (int i = lane; i < N; i += 32) {
            part += x[i];
        }
        strided += part;
    }
    float sum;
    double bound;
    int64_t size = N;
    const void *input = x;
    void *output = &sum;
    double *bounds = &bound;
    struct run_args args = { &size, &input, &output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, &bounds));
    cr_expect_leq(fabs((double)forward - (double)sum), bound);
    cr_expect_leq(fabs((double)backward - (double)sum), bound);
    cr_expect_leq(fabs((double)strided - (double)sum), bound);
    cr_expect_gt(bound, 0);
    cr_expect_lt(bound, 0.05, "the bound %g would not see a missing element", bound);
    end();
}

/* A minimum is exact whatever the order, so its index is too. */
Test(ref, bounds_of_exact_operators_are_zero)
{
    static const float x[] = { 3, 0.1f, 7, 0.1f };
    begin();
    const struct problem *p =
        build("argmin", "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: {value: x * x, index: index(n)}\noperator: argmin\n"
                        "outputs: {i: {type: i64, value: r.index}, v: {type: f32, value: r.value}}\n");
    int64_t size = 4, index;
    float value;
    double bound[2] = { -1, -1 };
    const void *input = x;
    void *output[] = { &index, &value };
    double *bounds[] = { &bound[0], &bound[1] };
    struct run_args args = { &size, &input, output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, bounds));
    cr_expect_eq(index, 1);
    cr_expect_eq(value, 0.1f * 0.1f);
    cr_expect(bound[0] == 0 && bound[1] == 0, "%g %g", bound[0], bound[1]);
    end();
}

/* The rounding of a mean is not doubled at every level of the tree. */
Test(ref, bounds_of_welford_stay_small)
{
    enum { N = 4096 };
    static float x[N];
    begin();
    const struct problem *p =
        build("welford", "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: x\noperator: welford\n"
                         "outputs: {mean: {type: f32, value: r.mean}, v: {type: f32, value: r.m2 / r.n}}\n");
    uint32_t state = 7;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    float mean, variance;
    double bound[2];
    int64_t size = N;
    const void *input = x;
    void *output[] = { &mean, &variance };
    double *bounds[] = { &bound[0], &bound[1] };
    struct run_args args = { &size, &input, output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, bounds));
    cr_expect(bound[0] > 0 && bound[0] < 1e-3, "mean %g within %g", (double)mean, bound[0]);
    cr_expect(bound[1] > 0 && bound[1] < 1e-2, "variance %g within %g", (double)variance, bound[1]);
    end();
}
