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

/* In a scan by index, an operator of the user's own needs one field more, which says whether a bin has an element. */
Test(limits, fields_of_a_scan_by_index)
{
    for (int fields = 15; fields <= 16; fields++) {
        struct str text = { 0 };
        static const char *const part[] = { "\nmap: {", "}\noperator:\n  state: {", "}\n  identity: {",
                                            "}\n  combine: {" };
        static const char *const value[] = { "x", "i32", "0", "b.f" };
        SPEC_BEGIN(f);
        str_add(&text, "kind: scan\ninputs: {x: 'i32[n]'}\nby: x\nbins: k");
        for (int p = 0; p < 4; p++) {
            str_add(&text, part[p]);
            for (int k = 0; k < fields; k++) {
                str_printf(&text, "%sf%d: %s", k ? ", " : "", k, value[p]);
                if (p == 3)
                    str_printf(&text, "%d", k);
            }
        }
        str_add(&text, "}\noutputs: {y: {type: 'i32[n]', value: s.f0}}\n");
        spec_build(&f, text.text);
        cr_expect_eq(f.p != NULL, fields == 15, "%d fields: %s", fields, spec_text(&f));
        cr_expect(fields == 15 ||
                      strstr(spec_text(&f), "at most 15 fields: one more says whether the bin has an element"),
                  "%s", spec_text(&f));
        str_finish(&text);
        spec_end(&f);
    }
}
