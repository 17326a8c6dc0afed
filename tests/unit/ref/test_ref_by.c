/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_by.c - the oracle on reductions and scans by computed indices. */
#include "support/ref_fixture.h"

#define IN "kind: reduce\ninputs: {x: 'i32[n]', key: 'i32[n]'}\n"

Test(ref_by, bins)
{
    const struct row rows[] = {
        { .name = "indices out of range are ignored, and empty bins have the identity",
          .size = { 6, 4 },
          .input = { V(1, 2, 4, 8, 16, 32), V(3, 0, -1, 3, 4, 1) },
          .output = { V(2, 32, 0, 9) },
          .spec = IN "map: x\noperator: add\nby: key\noutputs: {y: 'i32[k]'}\n" },
        { .name = "several reductions, and values of them",
          .size = { 5, 3 },
          .input = { V(5, -7, 9, 2, 4), V(0, 0, 2, 2, 2) },
          .output = { V(-7, 2147483647, 2), V(2, 0, 3), V(-1, 0, 5) },
          .spec = IN "reductions: {lo: {map: x, operator: min}, sum: {map: x, operator: add}, many: {map: 1, operator: "
                     "add}}\nby: key\noutputs: {lo: 'i32[k]', many: 'i32[k]', mean: {type: 'i32[k]', value: if many > "
                     "0 then sum / many else 0}}\n" },
        { .name = "two indices",
          .size = { 4 },
          .input = { V(0, 1, 1, 1), V(2, 0, 0, 3) },
          .output = { V(0, 0, 1, 2, 0, 0) },
          .spec = IN "map: 1\noperator: add\nby: [x, key]\noutputs: {y: 'i32[2, 3]'}\n" },
        { .name = "init once per bin",
          .size = { 3, 2 },
          .input = { V(3, 5, 7), V(1, 1, 9) },
          .output = { V(10, 150) },
          .spec = IN "map: x\noperator: mul\ninit: 10\nby: key\noutputs: {y: 'i32[k]'}\n" },
        { .name = "kept dimensions behind the new one",
          .size = { 3, 2, 2 },
          .input = { V(1, 2, 4, 8, 16, 32), V(1, 0, 1) },
          .output = { V(4, 8, 17, 34) },
          .spec = "kind: reduce\ninputs: {x: 'i32[n, f]', key: 'i32[n]'}\nmap: x\noperator: add\nover: n\nby: key\n"
                  "outputs: {y: 'i32[k, f]'}\n" },
        { .name = "nothing",
          .size = { 0, 2 },
          .input = { NOTHING, NOTHING },
          .output = { V(0, 0) },
          .spec = IN "map: x\noperator: add\nby: key\noutputs: {y: 'i32[k]'}\n" },
        { .name = "no bins",
          .size = { 2, 0 },
          .input = { V(1, 2), V(0, 0) },
          .output = { NOTHING },
          .spec = IN "map: x\noperator: add\nby: key\noutputs: {y: 'i32[k]'}\n" },
    };
    RUN(rows);
}

#define ROWS "kind: scan\ninputs: {x: 'i32[m, n]', key: 'i32[m, n]'}\n"

Test(ref_by, scans)
{
    const struct row rows[] = {
        { .name = "each bin of each row by itself, elements of none alone",
          .size = { 2, 5, 3 },
          .input = { V(1, 2, 4, 8, 16, 1, 2, 4, 8, 16), V(0, 1, 0, 1, 3, -1, 2, 2, -1, 2) },
          .output = { V(1, 2, 5, 10, 16, 1, 2, 6, 8, 22), V(5, 10, 0, 0, 0, 22) },
          .spec = ROWS "map: x\noperator: add\nby: key\noutputs: {y: 'i32[m, n]', all: 'i32[m, k]'}\n" },
        { .name = "exclusive, from the right, with an init",
          .size = { 1, 5, 2 },
          .input = { V(1, 2, 4, 8, 16), V(0, 1, 0, 0, 9) },
          .output = { V(112, 100, 108, 100, 100), V(113, 102) },
          .spec = ROWS "map: x\noperator: add\nmode: exclusive\ndirection: reverse\ninit: 100\nby: key\n"
                       "outputs: {y: 'i32[m, n]', all: 'i32[k, m]'}\n" },
        { .name = "an order, along columns",
          .size = { 3, 2 },
          .input = { V(1, 2, 3, 4, 5, 6), V(0, 0, 0, 1, 0, 0) },
          .output = { V(1, 2, 1, 4, 1, 2) },
          .spec = ROWS "map: x\noperator: first\nover: m\nby: key\nbins: 2\noutputs: {y: 'i32[m, n]'}\n" },
        { .name = "the least of none",
          .size = { 1, 2, 2 },
          .input = { V(5, 7), V(1, 1) },
          .output = { V(2147483647, 5), V(2147483647, 5) },
          .spec = ROWS "map: x\noperator: min\nmode: exclusive\nby: key\noutputs: {y: 'i32[m, n]', z: 'i32[m, k]'}\n" },
        { .name = "no elements",
          .size = { 2, 0, 2 },
          .input = { NOTHING, NOTHING },
          .output = { V(0, 0, 0, 0) },
          .spec = ROWS "map: x\noperator: add\nby: key\noutputs: {all: 'i32[m, k]'}\n" },
    };
    RUN(rows);
}
