/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_merge.c - values of specs with more than three dimensions, where neighbours are one to everything behind the
 * frontend: written by hand from the language's page. */
#include "support/ref_fixture.h"

Test(ref_merge, values)
{
#define MAP "kind: map\ninputs: {x: 'i32[a, b, c, d]'}\n"
    const struct row rows[] = {
        { .name = "indices of dimensions that are one",
          .size = { 2, 1, 2, 2 },
          .input = { V(0, 0, 0, 0, 0, 0, 0, 0) },
          .output = { V(0, 1, 10, 11, 1000, 1001, 1010, 1011) },
          .spec = MAP "outputs: {y: {type: 'i32[a, b, c, d]', value: 'i32(1000 * index(a) + 100 * index(b) + 10 * "
                      "index(c) + index(d))'}}\n" },
        { .name = "an array with some of them",
          .size = { 2, 2, 1, 2 },
          .input = { V(1, 2, 3, 4, 5, 6, 7, 8), V(10, 20) },
          .output = { V(11, 12, 23, 24, 15, 16, 27, 28) },
          .spec = "kind: map\ninputs: {x: 'i32[a, b, c, d]', v: 'i32[b]'}\noutputs: {y: {type: 'i32[a, b, c, d]', "
                  "value: x + v}}\n" },
        { .name = "what is combined lies on both sides",
          .size = { 2, 2, 1, 2 },
          .input = { V(1, 2, 3, 4, 5, 6, 7, 8) },
          .output = { V(14, 22) },
          .spec = "kind: reduce\ninputs: {x: 'i32[a, b, c, d]'}\noperator: add\nover: [a, c, d]\noutputs: {s: "
                  "'i32[b]'}\n" },
        { .name = "neighbours along the last two",
          .size = { 1, 2, 2, 2 },
          .input = { V(1, 2, 3, 4, 5, 6, 7, 8) },
          .output = { V(3, 4, 0, 0, 7, 8, 0, 0), V(1, 1, 3, 3, 5, 5, 7, 7) },
          .spec = "kind: stencil\ninputs: {x: 'i32[a, b, c, d]'}\nboundary: {x: {a: wrap, c: {constant: 0}}}\noutputs: "
                  "{y: {type: 'i32[a, b, c, d]', value: 'x[0, 0, 1, 0]'}, z: {type: 'i32[a, b, c, d]', value: 'x[0, 0, "
                  "0, -1]'}}\n" },
        { .name = "a transposition",
          .size = { 1, 2, 1, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(1, 4, 2, 5, 3, 6) },
          .spec = MAP "outputs: {y: {type: 'i32[d, a, b, c]', at: [index(d), index(a), index(b), index(c)], value: "
                      "x}}\n" },
        { .name = "rows",
          .size = { 1, 2, 1, 3 },
          .input = { V(1, 2, 3, 4, 5, 6) },
          .output = { V(1, 3, 6, 4, 9, 15), V(6, 15) },
          .spec = "kind: scan\ninputs: {x: 'i32[a, b, c, d]'}\noperator: add\noutputs: {s: 'i32[a, b, c, d]', t: "
                  "'i32[a, b, c]'}\n" },
        { .name = "an element of a table of four dimensions",
          .size = { 2, 2, 1, 2 },
          .input = { V(0, 1), V(1, 2, 3, 4) },
          .output = { V(1, 4) },
          .spec = "kind: map\ninputs: {i: 'i32[n]', t: 'i32[a, b, c, 1]'}\noutputs: {y: {type: 'i32[n]', value: "
                  "'at(t, i, 0, i, 0)'}}\n" },
        { .name = "nothing, where one of them is empty",
          .size = { 3, 0, 4, 5 },
          .output = { V(7) },
          .spec = "kind: reduce\ninputs: {x: 'i32[a, b, c, d]'}\noperator: add\ninit: 7\noutputs: {s: i32}\n" },
    };
    RUN(rows);
}
