/* SPDX-License-Identifier: Apache-2.0 */
/* test_planes.c - stencil.stream: blocks that stream along the outermost dimension, with planes in shared memory. */
#include <criterion/criterion.h>

#include "api/api_impl.h"
#include "base/str.h"
#include "kernels/once.h"
#include "lower/plan.h"
#include "lower/stencil/stencil.h"

/* They keep their own value, which no expression reads; planes in rings must last that long. */
Test(planes, interior_keeps_what_is_not_read)
{
    static const char *const value[] = { "x[1, 1]", "x[-1, 1] + x[1, -1]", "x[2, 0] * x[1, 0]" };
    const char *set[] = { "strategy", "stencil.stream", "stages", "3", NULL, NULL };
    const int64_t size[8] = { 21, 37 };
    for (int i = 0; i < 3; i++) {
        char spec[512];
        snprintf(spec, sizeof spec,
                 "kind: stencil\ninputs: {x: 'f32[m, n]'}\nboundary: interior\n"
                 "outputs: {y: {type: 'f32[m, n]', value: '%s'}}\niterate: {steps: 2, feedback: {x: y}}\n",
                 value[i]);
        run_once(spec, set, size, 0, "seed:1,race", NULL);
    }
}

/* A box of 125 reads: of 6 rows registers hold what the next place reads too, of 8 rows not even that. */
Test(planes, values_that_registers_do_not_hold)
{
    static const char *const rows[] = { "2", "6", "8" };
    const int64_t size[8] = { 19, 11, 37 };
    for (int i = 0; i < 6; i++) {
        const char *set[] = { "strategy", "stencil.stream", "threads", "32",       "block_x",   "32", "block_y",
                              "1",        "points_x",       "1",       "points_y", rows[i / 2], NULL, NULL };
        struct str spec = { 0 };
        struct harness h;
        str_printf(&spec,
                   "kind: stencil\ninputs: {u: 'f32[d, m, n]', c: 'f32[d, m, n]'}\nboundary: %s\noutputs:\n"
                   "  y: {type: 'f32[d, m, n]', value: '0.01 * (c",
                   i % 2 ? "interior" : "wrap");
        for (int k = 0; k < 125; k++)
            str_printf(&spec, " + u[%d, %d, %d]", k / 25 - 2, k / 5 % 5 - 2, k % 5 - 2);
        str_add(&spec, ")'}\niterate: {steps: 2, feedback: {u: y}}\n");
        cr_assert(harness_open(&h, "crowded", spec.text, "sm_90", set), "%s", h.text);
        const struct plan_case *c = h.plan->plan->cases;
        cr_expect_eq(stencil_crowded(h.plan->plan->problem, c), i >= 2);
        cr_expect_eq(stencil_keeps(h.plan->plan->problem, c), i < 4);
        harness_data_at(&h, size, 7, 0, 0);
        cr_expect(harness_check(&h, "seed:1,race"), "%s rows: %s", rows[i / 2], h.text);
        harness_close(&h);
        str_finish(&spec);
    }
}

/* Sums over many planes whose order is that of the planes grow as these arrive, by columns and by vectors, also with factors,
 * products that are fused, planes that are left out, and arrays at the point; other orders do not. */
Test(planes, values_that_grow)
{
    static const struct {
        const char *head, *term, *tail;
        bool reverse, grows;
    } form[] = { { "0.5 * (", "%su[%d, %d, %d]", ")", false, true },
                 { "0.5 * (c", "%s3 * u[%d, %d, %d]", " + c)", false, true },
                 { "k + c * (", "%su[%d, %d, %d] * c", ")", false, true },
                 { "(", "%su[%d, %d, %d]", ")", true, false } };
    static const char *const boundary[] = { "wrap", "interior", "{u: {d: {constant: 2}, m: clamp, n: mirror}}" };
    const char *columns[] = { "strategy", "stencil.stream", "threads", "32", "block_x", "32", "points_x",
                              "1",        "points_y",       "10",      NULL, NULL };
    const char *vectors[] = {
        "strategy", "stencil.stream", "threads", "32", "block_x", "8", "points_y", "8", NULL, NULL
    };
    for (int i = 0; i < 12; i++) {
        struct str spec = { 0 };
        struct harness h;
        str_printf(&spec,
                   "kind: stencil\ninputs: {u: 'f32[d, m, n]', c: 'f32[d, m, n]'}\nboundary: %s\ncontract: %s\n"
                   "params: {k: f32}\noutputs:\n  y: {type: 'f32[d, m, n]', value: '%s",
                   boundary[i % 3], i % 2 ? "true" : "false", form[i / 3].head);
        for (int n = 0, terms = 0; n < 150; n++) {
            const int at = form[i / 3].reverse ? 149 - n : n, plane = at / 25 - 3;
            if (plane != -1)
                str_printf(&spec, form[i / 3].term, terms++ || i / 3 == 1 ? " + " : "", plane, at / 5 % 5 - 2,
                           at % 5 - 2);
        }
        str_printf(&spec, "%s'}\n", form[i / 3].tail);
        const int64_t size[8] = { 19, 11, i % 2 ? 36 : 37 };
        cr_assert(harness_open(&h, "grow", spec.text, "sm_90", i % 2 ? vectors : columns), "%s", h.text);
        cr_expect_eq(stencil_partial(h.plan->plan->problem, h.plan->plan->cases), form[i / 3].grows);
        harness_data_at(&h, size, 7, 0, 0);
        cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%d: %s", i, h.text);
        harness_close(&h);
        str_finish(&spec);
    }
}

/* What stands for elements beyond the array is copied as zeros or stored beside the copies; points at the edge are skipped,
 * alone and with their whole window. */
Test(planes, planes_of_constants)
{
    static const char *const boundary[] = { "{constant: 0}", "{constant: 3}",
                                            "{u: {d: {constant: 2}, m: wrap, n: {constant: 5}}}", "interior",
                                            "{u: {d: interior, m: clamp, n: interior}}" };
    const int64_t size[8] = { 9, 11, 37 };
    for (size_t i = 0; i < 2 * (sizeof boundary / sizeof *boundary); i++) {
        const char *set[] = { "strategy", "stencil.stream", "threads", "64",       "block_x", "32", "block_y",
                              "2",        "points_x",       "1",       "points_y", "3",       NULL, NULL };
        char spec[512];
        snprintf(
            spec, sizeof spec,
            "kind: stencil\ninputs: {u: '%s[d, m, n]'}\nboundary: %s\noutputs:\n"
            "  y: {type: '%s[d, m, n]', value: 'u[-1, 0, 0] + 2 * u[0, -1, 0] + 4 * u[0, 0, -1] + 8 * u[0, 0, 2] + "
            "16 * u[1, 2, 0]'}\n",
            i % 2 ? "i16" : "i32", boundary[i / 2], i % 2 ? "i16" : "i32");
        run_once(spec, set, size, 0, "seed:1,race,uninit", NULL);
    }
}

/* Vectors of rows come at once, and what stands for elements beyond either end of a row on its own: in blocks that have both
 * ends, one, or none; in rows that are shorter than what points read. */
Test(planes, planes_of_vectors)
{
    static const char *const boundary[] = { "clamp",
                                            "reflect",
                                            "mirror",
                                            "wrap",
                                            "interior",
                                            "{constant: 0}",
                                            "{u: {d: clamp, m: {constant: 2}, n: {constant: 5}}}" };
    static const char *const type[] = { "f32", "i16", "f64" };
    static const int vector[] = { 4, 8, 2 };
    const char *set[] = { "strategy", "stencil.stream", "threads", "32",       "block_x", "8",  "block_y",
                          "4",        "stages",         "4",       "points_y", "1",       NULL, NULL };
    for (int i = 0; i < 3 * 7; i++) {
        char spec[512];
        snprintf(
            spec, sizeof spec,
            "kind: stencil\ninputs: {u: '%s[d, m, n]'}\nboundary: %s\noutputs:\n"
            "  y: {type: '%s[d, m, n]', value: 'u[-1, 0, 0] + 2 * u[0, -1, 0] + 4 * u[0, 0, -5] + 8 * u[0, 0, 3] + "
            "16 * u[1, 2, 0]'}\n",
            type[i / 7], boundary[i % 7], type[i / 7]);
        struct harness h;
        cr_assert(harness_open(&h, "vectors", spec, "sm_90", set), "%s", h.text);
        const struct plan_case *c = h.plan->plan->cases;
        for (int n = 1; n <= vector[i / 7]; n *= 2, c++)
            cr_expect_eq(stencil_ring_vector(h.plan->plan->problem, c, 0, true), vector[i / 7] / n);
        for (int vectors = 1; vectors <= 21; vectors += 5) {
            const int64_t size[8] = { 5, 11, vectors * vector[i / 7] / 2 };
            harness_data_at(&h, size, 7, 0, 0);
            cr_expect(harness_check(&h, "seed:1,race,uninit"), "%s, %s, %d halves: %s", type[i / 7], boundary[i % 7],
                      vectors, h.text);
        }
        harness_close(&h);
    }
}

/* A pinned length of vectors takes no rows that begin at the boundaries of shorter ones alone. */
Test(planes, vectors_of_a_pinned_length)
{
    static const char *const points[] = { "2", "4", "8" };
    for (int i = 0; i < 3; i++) {
        const char *set[] = { "strategy", "stencil.stream", "points_x", points[i], "threads",
                              "32",       "block_x",        "16",       NULL,      NULL };
        for (int n = 30; n <= 32; n++) {
            const int64_t size[8] = { 5, 9, n };
            run_once("kind: stencil\ninputs: {u: 'i16[d, m, n]'}\noutputs:\n"
                     "  y: {type: 'i16[d, m, n]', value: 'u[-1, 0, 1] + u[0, 1, -1] + u[1, 0, 0]'}\n",
                     set, size, 0, "seed:1,race,uninit", NULL);
        }
    }
}

/* Does a launch of these sizes take a case of blocks that stream? */
static bool streams(struct harness *h, const int64_t *size)
{
    const struct plan *plan = h->plan->plan;
    const void *pointer[2] = { NULL, NULL };
    const struct formula_env env = { .size = size, .sms = 132, .arch = 90, .smem = 232448, .pointer = pointer };
    for (int i = 0; i < plan->nchecks; i++)
        if (!formula_eval(&plan->check[i].condition, &env))
            return false;
    for (int i = 0; i < plan->ncases; i++)
        if (formula_eval(&plan->cases[i].code.guard, &env))
            return stencil_streams(&plan->cases[i]);
    return false;
}

/* Planes whose elements 32 bits do not count: refused where they are asked for, else left to windows. */
Test(planes, planes_of_too_many_elements)
{
    static const char spec[] = "kind: stencil\ninputs: {u: 'f32[d, m, n]'}\n"
                               "outputs: {y: {type: 'f32[d, m, n]', value: 'u[-2, 0, 0] + u[0, 2, 0] + u[2, 0, 1]'}}\n";
    const int64_t most[8] = { 32, 23170, 23169 }, more[8] = { 32, 23171, 23171 };
    const char *pinned[] = { "strategy", "stencil.stream", NULL, NULL }, *none[] = { NULL, NULL };
    for (int i = 0; i < 2; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "large", spec, "sm_90", i ? pinned : none), "%s", h.text);
        cr_expect(streams(&h, most));
        cr_expect(!streams(&h, more));
        harness_close(&h);
    }
}

/* A tile of which a thread would copy more pieces than it has room for is refused: it must not be half copied. */
Test(planes, planes_are_copied_whole)
{
    static const char spec[] = "kind: stencil\ninputs: {x: 'f16[d, m, n]'}\nboundary: mirror\n"
                               "outputs: {y: {type: 'f16[d, m, n]', value: 'x[-1, 0, 0] + x[0, 2, 1]'}}\n";
    const int64_t size[8] = { 3, 40, 7 };
    for (int rows = 4; rows <= 16; rows++) {
        char points[8];
        snprintf(points, sizeof points, "%d", rows);
        const char *set[] = { "strategy", "stencil.stream", "threads", "128",      "block_x", "128", "block_y",
                              "1",        "points_x",       "4",       "points_y", points,    NULL,  NULL };
        struct harness h;
        const bool open = harness_open(&h, "tall", spec, "sm_90", set);
        cr_expect(open ? rows < 14 : strstr(h.text, "pieces of a plane") != NULL, "%d rows: %s", rows, h.text);
        if (open) {
            harness_data_at(&h, size, 7, 0, 0);
            cr_expect(harness_check(&h, "seed:1"), "%d rows: %s", rows, h.text);
        }
        harness_close(&h);
    }
}
