/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_placed.c - the oracle on outputs at computed places. */
#include "support/ref_fixture.h"

Test(ref_placed, places)
{
#define MAP "kind: map\ninputs: {x: 'i32[n]', i: 'i16[n]'}\n"
    const struct row rows[] = {
        { .name = "one writer a place, some out of range",
          .size = { 4, 3 },
          .input = { V(10, 20, 30, 40), V(2, -1, 0, 3) },
          .output = { V(30, 0, 10) },
          .spec = MAP "outputs: {y: {type: 'i32[k]', at: i, value: x}}\n" },
        { .name = "two dimensions",
          .size = { 2, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(1, 4, 2, 5, 3, 6) },
          .spec = "kind: map\ninputs: {x: 'f32[m, n]'}\noutputs: {y: {type: 'f32[n, m]', at: [index(n), index(m)], "
                  "value: x}}\n" },
        { .name = "three dimensions, and structures",
          .size = { 1, 2, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(1, 4, 2, 5, 3, 6), V(1, 0, 2, 0, 3, 0, 4, 1, 5, 1, 6, 1) },
          .spec = "kind: map\ninputs: {x: 'i32[a, b, c]'}\noutputs: {y: {type: 'i32[c, a, b]', at: [index(c), "
                  "index(a), index(b)], value: x}, z: {type: {v: i32, b: i64}, shape: [b, a, c], at: [index(b), "
                  "index(a), index(c)], value: {v: x, b: index(b)}}}\n" },
        { .name = "elements meet, and what is there before",
          .size = { 5, 3 },
          .input = { V(10, 20, 30, 40, -50), V(2, 2, 0, 0, 9) },
          .output = { V(70, 0, 30), V(0, 0, 0), V(54, 0, 30) },
          .spec = MAP "outputs: {y: {type: 'i32[k]', at: i, value: x, combine: add}, l: {type: 'i32[k]', at: i, value: "
                      "x, combine: min}, o: {type: 'i32[k]', at: i, value: x, combine: {state: i32, let: {t: a ^ b}, "
                      "combine: t}}}\n" },
        { .name = "float sums",
          .size = { 4, 1 },
          .input = { V(1e9, 0.5, 0.25, -1e9), V(0, 0, 0, 0) },
          .output = { V(0.75), V(1e9) },
          .spec = "kind: map\ninputs: {x: 'f64[n]', i: 'i16[n]'}\noutputs: {y: {type: 'f64[k]', at: i, value: x, "
                  "combine: add}, h: {type: 'f64[k]', at: i, value: x, combine: max}}\n" },
        { .name = "structures meet",
          .size = { 5, 3 },
          .input = { V(10, 40, 30, 40, -50), V(2, 2, 0, 2, 9) },
          .output = { V(30, 2, 0, 0, 40, 1), V(30, 1, 0, 0, 90, 3) },
          .spec =
              MAP "outputs: {y: {type: {value: i32, index: i32}, shape: [k], at: i, value: {value: x, index: "
                  "i32(index(n))}, combine: argmax}, s: {type: {s: i32, c: i32}, shape: [k], at: i, value: {s: x, c: "
                  "1}, combine: {state: {s: i32, c: i32}, combine: {s: a.s + b.s, c: a.c + b.c}}}}\n" },
        { .name = "the running state",
          .size = { 5 },
          .input = { V(4, 7, 2, 9, 6) },
          .output = { V(4, 2, 6, 9, 7) },
          .spec =
              "kind: scan\ninputs: {x: 'i32[n]'}\nmap: i64(x % 2 == 0)\noperator: add\nmode: exclusive\noutputs: {y: "
              "{type: 'i32[n]', at: if x % 2 == 0 then s else n - 1 - (index(n) - s), value: x}}\n" },
        { .name = "running states of rows, as columns",
          .size = { 2, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(1, 4, 3, 9, 6, 15), V(6, 15) },
          .spec = "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\noutputs: {y: {type: 'i32[n, m]', at: "
                  "[index(n), index(m)], value: s}, t: 'i32[m]'}\n" },
        { .name = "results",
          .size = { 2, 3 },
          .input = { V(0, 2, 1, 5, 5, 4) },
          .output = { V(1, 2, 1, 1, 1, 0) },
          .spec =
              "kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: n\noperator: max\noutputs: {y: {type: 'i32[n, m]', at: "
              "[r - x, index(m)], value: 1, combine: add}}\n" },
        { .name = "two elements at one place",
          .size = { 3, 2 },
          .input = { V(10, 20, 30), V(1, 0, 1) },
          .output = { V(0, 0) },
          .error = "the elements [0] and [2] both have their place at element 1 of 'y'",
          .spec = MAP "outputs: {y: {type: 'i32[k]', at: i, value: x}}\n" },
    };
    RUN(rows);
}

/* Where a place is not certain, nothing is known of the output. */
Test(ref_placed, uncertain)
{
    const float x[] = { 0.25f, 0.5f };
    float y[] = { 0, 0, 0 };
    double bound[] = { 0, 0, 0 };
    begin();
    const struct problem *p = build("uncertain", "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: "
                                                 "{type: 'f32[k]', at: i32(s * 4 / 3), value: x}}\n");
    const struct run_args args = { (int64_t[]){ 2, 3 }, (const void *[]){ x }, (void *[]){ y }, NULL };
    cr_assert_null(ref_bound(&session, p, &args, (double *[]){ bound }));
    cr_expect(isinf(bound[0]) && isinf(bound[2]), "%g %g %g", bound[0], bound[1], bound[2]);
    end();
}

/* The bound covers orders in which small terms are lost beside large ones that cancel here at once. */
Test(ref_placed, any_order)
{
    enum { SMALL = 100 };
    float x[SMALL + 2] = { 1e8f, -1e8f }, y[] = { 0 }, lost = 1e8f;
    double bound[] = { 0 };
    begin();
    for (int i = 2; i < SMALL + 2; i++) {
        x[i] = 1;
        lost += x[i];
    }
    const struct problem *p =
        build("any_order", "kind: map\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'f32[k]', at: 0, "
                           "value: x, combine: add}}\n");
    const struct run_args args = { (int64_t[]){ SMALL + 2, 1 }, (const void *[]){ x }, (void *[]){ y }, NULL };
    cr_assert_null(ref_bound(&session, p, &args, (double *[]){ bound }));
    cr_expect(y[0] == SMALL && lost + x[1] == 0 && bound[0] >= SMALL && isfinite(bound[0]), "%g, %g", y[0], bound[0]);
    end();
}
