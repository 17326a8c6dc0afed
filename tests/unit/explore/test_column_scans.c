/* SPDX-License-Identifier: Apache-2.0 */
/* test_column_scans.c - which way scans down long columns go. */
#include "lower/lower_impl.h"
#include "explore/variants.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>

Test(column_scans, by_state_and_size)
{
    static const struct {
        const char *operator, * type, *map, *value;
        int64_t n[2];
        const char *name;
        int items;
    } row[] = {
        { "welford", "f32", "x", "s.mean", { 1 << 18, 100 }, "chunks", 8 }, /* wide states */
        { "welford", "f32", "x", "s.mean", { 1 << 12, 100 }, "shared_strips", 0 },
        { "welford", "f32", "x", "s.mean", { 1 << 14, 2000 }, "shared_strips", 0 },
        { "add", "i64", "x - x[0, -1]", "s", { 1 << 20, 21 }, "chunks", 0 }, /* few columns */
        { "add", "f32", "x", "s", { 1 << 18, 100 }, "medium_strips", 28 },
        { "add", "f32", "x", "s", { 1 << 14, 100 }, "shared_strips", 0 },
        { "add", "f32", "x", "s", { 1 << 18, 200 }, "shared_strips", 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[300];
        snprintf(spec, sizeof spec,
                 "kind: scan\ninputs: {x: '%s[m, n]'}\nover: m\noperator: %s\nmap: %s\n"
                 "outputs: {y: {type: '%s[m, n]', value: %s}}\n",
                 row[i].type, row[i].operator, row[i].map, row[i].type, row[i].value);
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, spec, row[i].n);
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect(!row[i].items || c->tunable[TN_ITEMS] == row[i].items, "row %zu: %d items", i, c->tunable[TN_ITEMS]);
        spec_end(&f);
    }
}
