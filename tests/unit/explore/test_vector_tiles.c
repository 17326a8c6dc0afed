/* SPDX-License-Identifier: Apache-2.0 */
/* test_vector_tiles.c - which stencils stream through tiles of vectors, and which tiles these are. */
#include "lower/lower_impl.h"
#include "explore/variants.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>

/* A sum over the points that lie at most so far away: of a star, or of a box, by weights. */
static void spread(char *text, size_t size, int radius, bool star, bool weights)
{
    size_t n = 0;
    for (int z = -radius; z <= radius; z++)
        for (int y = -radius; y <= radius; y++)
            for (int x = -radius; x <= radius; x++)
                if (!star || (z != 0) + (y != 0) + (x != 0) <= 1)
                    n += (size_t)snprintf(text + n, size - n, "%s%su[%d, %d, %d]", n ? " + " : "",
                                          weights ? "0.3 * " : "", z, y, x);
}

/* Tiles of vectors are as wide as fits the rows best, and need chunks several times as long as what is read around them; half
 * vectors stand alone, and spill beside an array; tiles of single elements stay where they fill the rows.  With weights chunks are
 * longer, and no columns may be idle. */
Test(vector_tiles, of_stencils_and_sizes)
{
    static const struct {
        const char *type;
        int radius;
        bool star, beside;
        int64_t n[3];
        const char *name;
        int threads, points_y;
        bool weights;
    } row[] = {
        { "f32", 3, true, false, { 400, 400, 400 }, "vectors_4_112", 224, 2, false },
        { "f32", 3, true, false, { 320, 1280, 240 }, "vectors_4_128", 256, 2, false },
        { "f32", 3, true, false, { 384, 384, 384 }, "planes_narrow", 512, 7, false },
        { "f32", 3, true, false, { 400, 399, 399 }, "planes_208", 416, 4, false },
        { "f32", 3, true, false, { 128, 192, 192 }, "vectors", 128, 1, false },
        { "f32", 4, true, false, { 512, 512, 512 }, "vectors_4_128", 256, 2, false },
        { "f32", 4, true, false, { 400, 399, 398 }, "vectors_2_112", 224, 3, false },
        { "f32", 4, true, false, { 400, 399, 399 }, "planes_208", 416, 8, false },
        { "f32", 4, true, true, { 400, 400, 400 }, "vectors_4_96", 192, 2, false },
        { "f32", 1, true, false, { 400, 400, 400 }, "vectors", 128, 2, false },
        { "f32", 2, false, false, { 400, 400, 400 }, "vectors_4_80", 320, 2, false },
        { "f32", 2, false, false, { 160, 160, 192 }, "vectors_4_64", 320, 2, false },
        { "f64", 3, true, false, { 400, 400, 398 }, "vectors_2_64", 256, 2, false },
        { "f16", 3, true, false, { 256, 256, 256 }, "vectors", 128, 2, false },
        { "f16", 3, true, false, { 400, 399, 396 }, "vectors_4_224", 224, 4, false },
        { "f32", 2, false, false, { 400, 400, 400 }, "vectors_4_80", 320, 2, true },
        { "f32", 2, false, false, { 192, 192, 192 }, "planes_96", 192, 4, true },
        { "f32", 2, false, false, { 288, 288, 288 }, "planes_96", 192, 4, true },
        { "f32", 2, false, false, { 400, 399, 399 }, "planes_208", 416, 4, true },
        { "f32", 2, false, true, { 288, 288, 288 }, "vectors_4_80", 320, 2, true },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char sum[4000], spec[4600];
        spread(sum, sizeof sum, row[i].radius, row[i].star, row[i].weights);
        snprintf(spec, sizeof spec,
                 "kind: stencil\ninputs: {u: '%s[d, m, n]'%s}\nboundary: clamp\n"
                 "outputs: {y: {type: '%s[d, m, n]', value: '%s%s'}}\n",
                 row[i].type, row[i].beside ? ", c: 'f32[d, m, n]'" : "", row[i].type, sum,
                 row[i].beside ? " + c" : "");
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, spec, row[i].n);
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect(c->tunable[TN_THREADS] == row[i].threads && c->tunable[TN_POINTS_Y] == row[i].points_y,
                  "row %zu: %d threads, %d rows", i, c->tunable[TN_THREADS], c->tunable[TN_POINTS_Y]);
        spec_end(&f);
    }
}
