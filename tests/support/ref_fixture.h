/* SPDX-License-Identifier: Apache-2.0 */
/* ref_fixture.h - a problem from its text, arrays from rows of numbers, and the oracle on them, plainly and with
 * bounds. */
#ifndef PTXGEN_TESTS_REF_FIXTURE_H
#define PTXGEN_TESTS_REF_FIXTURE_H

#include <criterion/criterion.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/problem/problem.h"
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

static inline void begin(void)
{
    memset(&session, 0, sizeof session);
    arena_init(&session.arena);
    session.arena.oom = &exhausted;
    diags_init(&session.diags, &session.arena);
}

static inline void end(void) { arena_finish(&session.arena); }

static inline const struct problem *build(const char *name, const char *spec)
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

static inline union value as_value(enum ty t, double x)
{
    if (ty_is_float(t)) {
        return (union value){ .f = x };
    }
    return x < 0 || ty_is_signed(t) ? (union value){ .i = (int64_t)x } : (union value){ .u = (uint64_t)x };
}

static inline double as_double(enum ty t, union value v)
{
    return ty_is_float(t) ? v.f : ty_is_signed(t) ? (double)v.i : (double)v.u;
}

static inline char *make_array(const struct prog_array *a, const int64_t *size, const struct numbers *from,
                               const char *name)
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

static inline void compare(const struct row *row, const struct prog_array *a, const char *data,
                           const struct numbers *expected, const double *bound)
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

static inline void run_row(const struct row *row, bool tracked)
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
        input[i] = make_array(problem_array(p, i), row->size, &row->input[i], row->name);
    }
    for (int i = 0; i < p->noutputs; i++) {
        const struct prog_array *a = problem_array(p, p->ninputs + i);
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
        const struct prog_array *a = problem_array(p, p->ninputs + i);
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

static inline void run_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run_row(&rows[i], false);
        run_row(&rows[i], true);
    }
}
#define RUN(rows) run_rows(rows, sizeof(rows) / sizeof *(rows))

#endif
