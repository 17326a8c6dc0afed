/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_ends.c - windows of which only columns leave the array: values beyond the ends of rows, by every boundary.
 *
 * Warps in the middle of planes load whole vectors across the ends of their rows (src/llvmgen/stencil/ends.c).  Rows begin at
 * vectors and anywhere in one, values lie alone and in words, and one window may have both ends.
 */
#include "support/harness.h"

#include <criterion/criterion.h>
#include <stdio.h>

static const char *const boundary[] = { "interior", "clamp",         "wrap",         "reflect",
                                        "mirror",   "{constant: 3}", "{constant: 0}" };
enum { BOUNDARIES = sizeof boundary / sizeof *boundary };

static void run(const char *type, const char *mode, const char *value, const int64_t *size)
{
    const char *set[] = { "strategy", "stencil.multi_write", NULL, NULL };
    char spec[600];
    struct harness h;
    snprintf(spec, sizeof spec,
             "kind: stencil\ninputs: {u: '%s[d, m, n]', v: '%s[d, m, n]'}\nboundary: {u: %s, v: %s}\n"
             "outputs: {y: {type: '%s[d, m, n]', value: '%s'}}\n",
             type, type, mode, boundary[size[2] % BOUNDARIES], type, value);
    cr_assert(harness_open(&h, "ends", spec, "sm_90", set), "%s\n%s", h.text, spec);
    harness_data_at(&h, size, (uint64_t)size[2], 0, 0);
    cr_expect(harness_check(&h, "seed:2,race,uninit,guard"), "%d columns: %s\n%s", (int)size[2], h.text, spec);
    harness_close(&h);
}

Test(row_ends, every_boundary)
{
    static const char *const types[] = { "f32", "i8", "f16", "f64", "u8" };
    static const char *const values[] = {
        "u[0, 0, -2] + 3 * u[0, -1, 1] - u[1, 0, 1] + u[0, 0, 3] + v[-1, 0, -1]",
        "u[-1, 0, 1] - 5 * u[0, 0, -1] + u + v[0, 1, 2]",
    };
    for (int i = 0; i < BOUNDARIES; i++)
        for (int t = 0; t < 5; t++) {
            const int64_t wide[8] = { 11, 37, 97 + (i + t) % 4 }, narrow[8] = { 11, 37, 65 + (i + t) % 3 };
            run(types[t], boundary[i], values[(i + t) % 2], wide);
            run(types[t], boundary[i], values[(i + t) % 2], narrow);
        }
}

/* Windows read farther than a row is long. */
Test(row_ends, far_columns)
{
    for (int64_t columns = 66; columns <= 150; columns += 21) {
        const int64_t size[8] = { 7, 36, columns };
        run("f32", "wrap", "u[0, 0, -100] + u[1, 0, 91] + v[0, -1, 1]", size);
    }
}
