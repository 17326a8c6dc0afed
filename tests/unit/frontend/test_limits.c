/* SPDX-License-Identifier: Apache-2.0 */
/* test_limits.c - how many inputs, lets and fields a problem may have. */
#include "support/spec_fixture.h"

/* What would not fit a kernel is refused here, with a place. */
Test(limits, of_a_problem)
{
    static const struct {
        int inputs, lets, reductions;
        bool good;
    } rows[] = { { 1, 256, 1, true }, { 1, 257, 1, false }, { 23, 0, 16, true },
                 { 1, 0, 17, false }, { 39, 0, 1, false },  { 38, 0, 1, true } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = { 0 };
        SPEC_BEGIN(f);
        str_add(&text, "kind: reduce\ninputs:\n");
        for (int k = 0; k < rows[i].inputs; k++)
            str_printf(&text, "  x%d: f32[n]\n", k);
        str_add(&text, rows[i].lets ? "let:\n" : "");
        for (int k = 0; k < rows[i].lets; k++)
            str_printf(&text, "  l%d: x0 + %d\n", k, k);
        str_add(&text, "outputs:\n  s: {type: f32, value: s0}\nreductions:\n");
        for (int k = 0; k < rows[i].reductions; k++)
            str_printf(&text, "  s%d: {map: x0, operator: add}\n", k);
        spec_build(&f, text.text);
        cr_expect_eq(f.p != NULL, rows[i].good, "row %zu: %s", i, spec_text(&f));
        cr_expect(rows[i].good || (int)f.s.diags.first->code == 2012, "row %zu", i);
        str_finish(&text);
        spec_end(&f);
    }
}
