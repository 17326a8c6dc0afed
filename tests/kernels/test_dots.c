/* SPDX-License-Identifier: Apache-2.0 */
/* test_dots.c - sums of bytes, each times a constant of its own, by products of words of four bytes: their covers, and
 * windows of them at every boundary, on rows that begin at vectors and rows that begin anywhere, against the oracle.
 */
#include "api/api_impl.h"
#include "base/str.h"
#include "lower/stencil/dots.h"
#include "support/harness.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- covers ------------------------------------------------------------------------------------------------------ */

/* All terms of a box, or of a star, with constants that tell them apart; some are left out. */
static struct taps terms(int rank, int reach, bool star, int out)
{
    struct taps t = { 0 };
    for (int z = rank > 2 ? -reach : 0; z <= (rank > 2 ? reach : 0); z++)
        for (int y = -reach; y <= reach; y++)
            for (int x = -reach; x <= reach; x++) {
                const int axes = (z != 0) + (y != 0) + (x != 0);
                const bool left_out = out && (7 * z + 3 * y + x) % out == 0;
                if (t.n == TAPS_MAX || (star && axes > 1) || left_out)
                    continue;
                t.tap[t.n] = (struct tap){ .at = { rank > 2 ? z : y, rank > 2 ? y : x, rank > 2 ? x : 0 },
                                           .times = (uint8_t)(t.n % 255 + 1) };
                t.n++;
            }
    return t;
}

/* Each term is in one word, with its constant, and nothing else is. */
static void covered(const struct taps *t, int rank, int row, int words)
{
    struct dots d;
    stencil_dots(t, rank, row, &d);
    int bytes = 0;
    for (int i = 0; i < d.n; i++)
        for (int b = 0; b < 4; b++) {
            struct tap like = { .input = d.dot[i].input, .times = (uint8_t)(d.dot[i].times >> 8 * b) };
            memcpy(like.at, d.dot[i].at, sizeof like.at);
            like.at[d.dot[i].down ? rank - 2 : rank - 1] += b;
            bool known = false;
            for (int k = 0; k < t->n; k++)
                known |= !memcmp(t->tap[k].at, like.at, sizeof like.at) && t->tap[k].times == like.times;
            cr_expect(known || like.times == 0, "word %d, byte %d", i, b);
            bytes += like.times != 0;
        }
    cr_expect_eq(bytes, t->n, "%d bytes of %d terms", bytes, t->n);
    if (words)
        cr_expect_eq(d.n, words, "%d words, not %d", d.n, words);
}

Test(dots, covers)
{
    const struct taps box = terms(3, 2, false, 0), plane = terms(2, 3, false, 0), star = terms(3, 3, true, 0);
    for (int row = 0; row < 3; row++) {
        covered(&box, 3, row, 35);
        covered(&plane, 2, row, 13);
        covered(&star, 3, row, 10);
        for (int out = 2; out < 6; out++)
            for (int reach = 1; reach < 4; reach++) {
                const struct taps some = terms(3, reach, false, out), less = terms(2, reach, false, out);
                covered(&some, 3, row, 0);
                covered(&less, 2, row, 0);
            }
    }
    cr_expect(stencil_dots_pay(&box, 3));
    cr_expect(stencil_dots_pay(&plane, 2));
    cr_expect_not(stencil_dots_pay(&star, 3), "most words of a star have one term");
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Some are negative, and without `full` some are 0: the words at the ends of rows are made of others if none is. */
static int number(int i, bool full)
{
    const int n = (7 * i + i / 5) % 13 - 3;
    return full && n == 0 ? 100 : n;
}

static void add_box(struct str *spec, const char *name, int reach, int across, int out)
{
    const int wide = 2 * across + 1, tall = 2 * reach + 1;
    for (int i = 0; i < tall * tall * wide; i++)
        if (out == 0 || i % out)
            str_printf(spec, " %c %d * %s[%d, %d, %d]", number(i, !out) < 0 ? '-' : '+', abs(number(i, !out)), name,
                       i / (tall * wide) - reach, i / wide % tall - reach, i % wide - across);
}

static void run(const char *type, const char *mode, int shape, const int64_t *size)
{
    static const int reach[] = { 2, 1, 2, 1 }, across[] = { 2, 3, 2, 1 };
    const char *set[] = { "strategy", "stencil.multi_write", NULL, NULL };
    struct str spec = { 0 };
    struct harness h;
    str_printf(&spec,
               "kind: stencil\ninputs: {u: '%s[d, m, n]', v: '%s[d, m, n]'}\nboundary: %s\n"
               "outputs:\n  y: {type: '%s[d, m, n]', value: '(5 - 3 * v",
               type, type, mode, type);
    add_box(&spec, "u", reach[shape], across[shape], shape == 2 ? 3 : 0);
    if (shape == 1)
        add_box(&spec, "v", 1, 1, 0);
    str_printf(&spec, ") %s'}\n", shape == 2 ? "" : ">> 2");
    cr_assert(harness_open(&h, "dots", spec.text, "sm_90", set), "%s\n%s", h.text, spec.text);
    cr_expect(stencil_by_dots(h.plan->plan->problem), "%s", spec.text);
    harness_data_at(&h, size, (uint64_t)size[2], 0, 0);
    cr_expect(harness_check(&h, "seed:2,race,uninit,guard"), "%s, %s, shape %d, %d columns: %s", type, mode, shape,
              (int)size[2], h.text);
    harness_close(&h);
    str_finish(&spec);
}

Test(dots, every_boundary)
{
    static const char *const boundary[] = { "clamp", "{constant: 3}", "mirror", "reflect", "wrap", "interior" };
    for (int64_t i = 0; i < 24; i++) {
        const int64_t size[8] = { 11, 17 + i % 2, 133 + (i + i / 6) % 4 };
        run(i % 2 ? "u8" : "i8", boundary[i % 6], (int)(i / 6 + i) % 4, size);
    }
}
