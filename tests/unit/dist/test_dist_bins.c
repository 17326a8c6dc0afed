/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_bins.c - reductions by a key on 1 to 7 ranks against the oracle: a table on each, folded on all; and what is
 * read at the element's own place along the split dimension.
 */
#include <criterion/criterion.h>

#include "support/nccl_ranks.h"

/* One run on `ranks` ranks; the parts are unequal, and some are empty. */
static void check(const char *spec, int ranks, const int64_t *size, uint64_t seed, const struct world_over *over)
{
    struct harness h;
    struct rank rank[RANKS_MAX];
    cr_assert(harness_open(&h, "whole", spec, "sm_80", NULL), "%s", h.text);
    struct world w = { .over = over, .whole = &h, .name = "whole", .spec = spec, .split = "n", .ranks = ranks };
    world_open(&w, rank);
    for (int r = 0; r < ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s\n%s", spec, rank[r].text);
    harness_data_at(&h, size, seed, 0, 0);
    cr_assert(harness_expect(&h), "%s", h.text);
    world_parts(&w, rank, size[world_split(&w)], seed);
    world_all(&w, rank, rank_runs);
    for (int r = 0; r < ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s\n%s", spec, rank[r].text);
    const char *odd = world_collect(&w, rank);
    cr_expect_null(odd, "'%s' has other bits on some rank of %d:\n%s", odd, ranks, spec);
    cr_expect(harness_compare(&h), "%d ranks: %s\n%s", ranks, h.text, spec);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

static void check_all(const char *const *spec, size_t count)
{
    static const int ranks[] = { 1, 2, 3, 7 };
    setenv("PTXGEN_CACHE", "off", 1);
    for (size_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < 4; k++) {
            const int64_t size[8] = { k == 3 ? 0 : 90 + ranks[k], 5, 4, 6, 3 };
            check(spec[i], ranks[k], size, k + 1, NULL);
            check(spec[i], ranks[3 - k], size, k + 7, &over_nccl);
        }
}
#define CHECK_ALL(...)                                                                                                 \
    check_all((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* `init` comes once into each bin, also where a rank or all have no element of it; values see results, indices of kept
 * dimensions, tables, and the whole size; indices see positions in the whole. */
Test(dist_bins, integers)
{
    CHECK_ALL("kind: reduce\ninputs: {key: 'i32[n]'}\nmap: 1\noperator: add\ninit: 100\nby: key % 7\n"
              "outputs: {many: 'i32[9]'}\n",
              "kind: reduce\ninputs: {x: 'i32[n]'}\nmap: x + i32(n) * 10 + i32(index(n))\noperator: add\n"
              "by: (index(n) + n) % 5\noutputs: {s: {type: 'i32[k]', value: 'r * 2 + i32(n + k)'}}\n",
              "kind: reduce\ninputs: {x: 'i32[n, m]', key: 'i32[n]', w: 'i32[m]'}\nover: n\n"
              "reductions: {s: {map: x, operator: add}, most: {map: x, operator: max}}\nby: key & 3\n"
              "outputs:\n  s: {type: 'i32[k, m]', value: 's + w + at(w, 0) + i32(index(m))'}\n  most: 'i32[k, m]'\n",
              "kind: reduce\ninputs: {x: 'i32[m, n]'}\nmap: x\noperator: add\nby: ['index(m) % 3', x & 1]\n"
              "outputs: {s: 'i32[3, k]'}\ndeterminism: device\n");
}

/* At `any`, a table of floats meets in any order on each rank.  All ranks fold the same tables in the same order. */
Test(dist_bins, floats_have_the_same_bits_on_all_ranks)
{
    CHECK_ALL("kind: reduce\ninputs: {x: 'f32[n]', key: 'i32[n]'}\nmap: x\noperator: add\nby: key & 3\n"
              "outputs: {s: 'f32[k]'}\n",
              "kind: reduce\ninputs: {x: 'f32[n, m]', key: 'i32[n]'}\nover: n\n"
              "reductions: {s: {map: x, operator: add}, many: {map: 1, operator: add}}\nby: key & 3\n"
              "outputs: {mean: {type: 'f32[k, m]', value: if many > 0 then s / f32(many) else 0}}\n");
}

/* The split dimension is kept: each rank has its own columns of the table. */
Test(dist_bins, kept_dimensions)
{
    CHECK_ALL("kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: m\nmap: x + i32(index(n))\noperator: add\nby: x & 3\n"
              "outputs: {s: {type: 'i32[k, n]', value: 'r * i32(n) + i32(index(n))'}}\n",
              "kind: reduce\ninputs: {x: 'i32[n, m]', key: 'i32[m]'}\nover: m\nmap: x\noperator: add\n"
              "by: [key & 1, 'index(n) & 1', 'index(m) % 3']\noutputs: {s: 'i32[2, 2, 3, n]'}\n");
}

/* at() and sums read the rank's own row where the place along the split dimension is the element's. */
Test(dist_bins, own_rows)
{
    CHECK_ALL(
        "kind: reduce\nover: k\ninputs: {x: 'i32[n, f]', c: 'i32[k, f]'}\n"
        "map: {value: 'sum(f, (x - c) * (x - c))', index: i32(index(k))}\noperator: argmin\n"
        "outputs: {member: {type: 'i32[n]', value: r.index}}\nassume: {k: {min: 1}}\n",
        "kind: reduce\ninputs: {x: 'i32[n, f]', w: 'i32[n]'}\nlet: {row: 'sum(f, x)'}\nmap: row * w\noperator: add\n"
        "outputs: {y: i32}\n",
        "kind: scan\ninputs: {x: 'i32[f, n]'}\nlet: {row: 'sum(f, x)'}\nmap: row\noperator: add\n"
        "outputs: {y: {type: 'i32[n]', value: 's + row'}}\n",
        "kind: map\ninputs: {x: 'i32[n, m]', p: 'i32[n]'}\n"
        "outputs: {y: {type: 'i32[n]', value: 'at(x, index(n), p & 1) + i32(index(n))'}}\n"
        "assume: {m: {min: 2}}\n",
        "kind: stencil\nboundary: wrap\ninputs: {x: 'i32[n]', t: 'i32[n, f]'}\n"
        "reductions: {all: {map: 'y', operator: add}}\n"
        "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[2] + sum(f, t)'}, all: i32}\n",
        "kind: stencil\nboundary: clamp\ninputs: {x: 'i32[n]', t: 'i32[n, f]'}\n"
        "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[2] + sum(f, t)'}}\n");
}

/* Several time steps at once need such rows of neighbours, too. */
Test(dist_bins, own_rows_in_time_steps)
{
    CHECK_ALL("kind: stencil\nboundary: clamp\ninputs: {x: 'i32[n]', t: 'i32[n, f]'}\n"
              "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1] + sum(f, t) * i32(index(n))'}}\n"
              "iterate: {steps: 9, feedback: {x: y}}\n",
              "kind: stencil\nboundary: wrap\ninputs: {x: 'i32[n]', t: 'i32[n, f]'}\n"
              "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1] + sum(f, t)'}}\n"
              "iterate: {steps: 9, feedback: {x: y}}\n",
              "kind: stencil\nboundary: wrap\ninputs: {x: 'i32[n]'}\n"
              "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1] + i32(index(n))'}}\n"
              "iterate: {steps: 9, feedback: {x: y}}\n");
}

/* Conditions and places of kept elements see positions in the whole. */
Test(dist_bins, kept_elements_of_rows)
{
    CHECK_ALL("kind: scan\nover: m\ninputs: {x: 'i32[n, m]'}\nmap: x\noperator: add\n"
              "outputs: {y: {type: 'i32[n, m]', where: 'index(n) % 3 == 0 || index(n) + 2 > n', value: 's'}}\n");
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void check_refused(const char *spec, const char *why)
{
    struct harness h;
    struct rank rank[RANKS_MAX];
    cr_assert(harness_open(&h, "whole", spec, "sm_80", NULL), "%s", h.text);
    struct world w = { .whole = &h, .name = "whole", .spec = spec, .split = "n", .ranks = 2 };
    world_open(&w, rank);
    for (int r = 0; r < 2; r++)
        cr_expect(rank[r].status == PTXGEN_UNSUPPORTED && strstr(rank[r].text, why) && strstr(rank[r].text, "^"),
                  "'%s' is not in: %s\n%s", why, rank[r].text, spec);
    world_close(&w, rank);
    harness_close(&h);
}

Test(dist_bins, refused)
{
    check_refused("kind: reduce\ninputs: {key: 'i32[n]'}\nmap: 1\noperator: add\nby: key\noutputs: {many: 'i32[n]'}\n",
                  "the bins are along 'n'");
    check_refused("kind: reduce\nover: n\ninputs: {x: 'i32[n, m]'}\nmap: 1\noperator: add\nby: [x & 1, x & 2]\n"
                  "outputs: {many: 'i32[2, 3, m]'}\n",
                  "more than 2 dimensions of results with `by`");
    check_refused("kind: reduce\ninputs: {key: 'i32[n]', t: 'i32[n]'}\nmap: 1\noperator: add\nby: 'at(t, key)'\n"
                  "outputs: {many: 'i32[4]'}\nassume: {n: {min: 1}}\n",
                  "'t' is read at places that may lie on any rank");
    check_refused("kind: map\ninputs: {x: 'i32[n]', t: 'i32[n]'}\n"
                  "outputs: {y: {type: 'i32[n]', value: 'x + at(t, index(n) + 0)'}}\n",
                  "'t' is read at places that may lie on any rank");
}
