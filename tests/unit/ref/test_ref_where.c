/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_where.c - the oracle on outputs that some elements write. */
#include "support/ref_fixture.h"

Test(ref_where, where)
{
#define IN "kind: scan\ninputs: {x: 'i32[n]'}\n"
    const struct row rows[] = {
        { .name = "select",
          .size = { 5 },
          .input = { V(1, -2, 3, -4, 5) },
          .output = { V(1, 3, 5, 0, 0), V(3) },
          .spec = IN "outputs: {y: {type: 'i32[n]', where: x > 0, value: x}, many: {type: i64, count: y}}\n" },
        { .name = "in the order of the scan",
          .size = { 5 },
          .input = { V(1, -2, 3, -4, 5) },
          .output = { V(5, 3, 1, 0, 0), V(3) },
          .spec = IN "direction: reverse\noutputs: {y: {type: 'i32[n]', where: x > 0, value: x}, many: {type: i64, "
                     "count: y}}\n" },
        { .name = "from the end, exclusive",
          .size = { 5 },
          .input = { V(1, -2, 3, -4, 5) },
          .output = { V(0, 0, 5, 3, 1), V(0, 0, 1, 2, 4) },
          .spec = IN "mode: exclusive\nmap: abs(x) / 2\noperator: add\noutputs: {y: {type: 'i32[n]', where: x > 0, "
                     "value: x, from: end}, s: 'i32[n]'}\n" },
        { .name = "run lengths",
          .size = { 6 },
          .input = { V(7, 7, 7, 2, 2, 9) },
          .output = { V(7, 2, 9, 0, 0, 0), V(3, 2, 1, 0, 0, 0), V(3) },
          .spec = IN "segments: {starts: \"x != x[-1]\"}\nmap: 1\noperator: add\noutputs: {y: {type: 'i32[n]', where: "
                     "last, value: x}, l: {type: 'i32[n]', where: last, value: s}, many: {type: i32, count: y}}\n" },
        { .name = "rows",
          .size = { 2, 3 },
          .input = { V(1, -2, 3, -4, 5, -6) },
          .output = { V(1, 3, 0, 5, 0, 0), V(2, 1) },
          .spec = "kind: scan\ninputs: {x: 'i32[m, n]'}\noutputs: {y: {type: 'i32[m, n]', where: x > 0, value: x}, "
                  "many: {type: 'i64[m]', count: y}}\n" },
        { .name = "columns",
          .size = { 3, 2 },
          .input = { V(-1, 2, 3, 4, 5, -6) },
          .output = { V(3, 2, 5, 4, 0, 0), V(2, 2) },
          .spec = "kind: scan\ninputs: {x: 'i32[m, n]'}\nover: m\noutputs: {y: {type: 'i32[m, n]', where: x > 0, "
                  "value: x}, many: {type: 'i64[n]', count: y}}\n" },
        { .name = "a whole array of two dimensions",
          .size = { 2, 2 },
          .input = { V(-1, 2, 3, 4) },
          .output = { V(0, 4, 3, 2), V(3) },
          .spec = "kind: scan\ninputs: {x: 'i32[m, n]'}\nover: [m, n]\noutputs: {y: {type: 'i32[m, n]', where: x > 0, "
                  "value: x, from: end}, many: {type: i64, count: y}}\n" },
        { .name = "nothing",
          .input = { NOTHING },
          .output = { NOTHING, V(0) },
          .spec = IN "outputs: {y: {type: 'i32[n]', where: x > 0, value: x}, many: {type: i64, count: y}}\n" },
    };
    RUN(rows);
}
