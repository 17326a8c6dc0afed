/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_steps.c - time steps on ranks: several of them after each exchange, with every boundary and uneven parts. */
#include <criterion/criterion.h>

#include "support/ranks.h"

static const struct {
    const char *spec;
    int most; /* messages of a rank, with several steps after each exchange; 0: an exchange for each of 12 steps */
} stencils[] = {
    { "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: clamp\niterate: {steps: 37, feedback: {x: y}}\n"
      "outputs: {y: {type: 'f32[n]', value: '0.25 * x[-1] + 0.5 * x + 0.25 * x[1]'}}\n",
      10 },
    { "kind: stencil\ninputs: {x: 'i32[n, 3]'}\nboundary: wrap\niterate: {steps: 33, feedback: {x: y}}\n"
      "outputs: {y: {type: 'i32[n, 3]', value: 'x[-2, 0] - x[1, 1] + x[0, -1]'}}\n",
      18 },
    { "kind: stencil\ninputs: {x: 'f32[n, 3]'}\nboundary: {constant: 2}\niterate: {steps: 16, feedback: {x: y}}\n"
      "outputs: {y: {type: 'f32[n, 3]', value: '0.25 * (x[-1, 0] + x[1, 0] + x[0, -1] + x[0, 1])'}}\n",
      4 },
    { "kind: stencil\ninputs: {x: 'i32[n]'}\nboundary: reflect\niterate: {steps: 21, feedback: {x: y}}\n"
      "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[3] + i32(index(n))'}}\n",
      12 },
    { "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: interior\niterate: {steps: 20, feedback: {x: y}}\n"
      "outputs: {y: {type: 'f32[n]', value: '0.5 * (x[-1] + x[1])'}}\n",
      6 },
    { "kind: stencil\ninputs: {x: 'f32[4, n]'}\nboundary: mirror\niterate: {steps: 9, feedback: {x: y}}\n"
      "outputs: {y: {type: 'f32[4, n]', value: '0.5 * (x[0, -1] + x[1, 1])'}}\n",
      4 },
    /* An input that is read where it is, one whose neighbours are read, and two that are fed back. */
    { "kind: stencil\ninputs: {a: 'i32[n]', b: 'i32[n]', s: 'i32[n]', t: 'i32[n]'}\nboundary: clamp\n"
      "iterate: {steps: 25, feedback: {a: p, b: q}}\noutputs:\n"
      "  p: {type: 'i32[n]', value: 'a[-1] + b + s'}\n  q: {type: 'i32[n]', value: 'a - b[1] + t[-1] - t[1]'}\n"
      "  r: {type: 'i32[n]', value: 'a + b'}\n",
      32 },
    { "kind: stencil\ninputs: {a: 'i32[n]', s: 'i32[n]'}\nboundary: wrap\niterate: {steps: 12, feedback: {a: p}}\n"
      "outputs: {p: {type: 'i32[n]', value: 'a[-1] + a[1] + s'}}\n",
      8 },
    /* Columns at the ends keep what is fed back: with steps after one exchange, and one that remains. */
    { "kind: stencil\ninputs: {x: 'i32[n, m]'}\nboundary: {x: {n: clamp, m: interior}}\n"
      "iterate: {steps: 9, feedback: {x: y}}\n"
      "outputs: {y: {type: 'i32[n, m]', value: 'x[-1, 0] + x[1, 1] - x[0, -1]'}}\n",
      4 },
    /* Positions beyond the whole are none of its own; mixed boundaries; a sum of all points. */
    { "kind: stencil\ninputs: {a: 'i32[n]'}\nboundary: wrap\niterate: {steps: 12, feedback: {a: p}}\n"
      "outputs: {p: {type: 'i32[n]', value: 'a[-1] + a[1] + i32(index(n))'}}\n",
      0 },
    { "kind: stencil\ninputs: {a: 'i32[n]', b: 'i32[n]'}\nboundary: {a: wrap, b: clamp}\n"
      "iterate: {steps: 12, feedback: {a: p}}\noutputs: {p: {type: 'i32[n]', value: 'a[-1] + b[1]'}}\n",
      0 },
    { "kind: stencil\ninputs: {x: 'i32[n]'}\nboundary: clamp\niterate: {steps: 12, feedback: {x: y}}\n"
      "reductions: {all: {map: x, operator: add}}\n"
      "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1]'}, sum: {type: i32, value: all}}\n",
      0 },
};

/* Parts of uneven length, none of which is thin. */
static void cut(struct rank *rank, int ranks, int64_t n)
{
    int64_t first = 0;
    for (int r = 0; r < ranks; r++) {
        rank[r].first = first;
        rank[r].count = r == ranks - 1 ? n - first : n / ranks + (r % 2 ? -7 : 5);
        first += rank[r].count;
    }
}

static void check(int i, int ranks)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    cr_assert(harness_open(&h, "whole", stencils[i].spec, "sm_80", NULL), "%s", h.text);
    w = (struct world){ .whole = &h, .name = "whole", .spec = stencils[i].spec, .split = "n", .ranks = ranks };
    world_open(&w, rank);
    harness_data_at(&h, (int64_t[8]){ 260 * ranks + 11, 6 }, (uint64_t)i + 1, 0, 0);
    cr_assert(harness_expect(&h), "%s", h.text);
    cut(rank, ranks, h.size[0]);
    world_all(&w, rank, rank_runs);
    for (int r = 0; r < ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "stencil %d, rank %d: %s", i, r, rank[r].text);
    cr_expect_null(world_collect(&w, rank), "stencil %d, %d ranks", i, ranks);
    cr_expect(harness_compare(&h), "stencil %d, %d ranks: %s", i, ranks, h.text);
    const int sent = w.hub.messages / ranks;
    if (ranks > 2)
        cr_expect(stencils[i].most ? sent <= stencils[i].most : sent >= 22,
                  "stencil %d: each of %d ranks sends %d messages", i, ranks, sent);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

Test(dist_steps, several_after_one_exchange)
{
    static const int ranks[] = { 1, 2, 3, 7 };
    for (size_t i = 0; i < sizeof stencils / sizeof *stencils; i++)
        for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++)
            check((int)i, ranks[k]);
}

/* What is gathered is whole on each rank, and the operator sees the sizes and indices of the whole. */
Test(dist_steps, gathers_along_another_dimension)
{
    static const char spec[] =
        "kind: map\ninputs: {x: 'i32[n]', off: 'i32[p]', z: 'i32[m, n]'}\n"
        "operators: {o: {state: {v: i32, c: i64}, identity: {v: 0, c: m}, let: {e: m - 1}, combine: {v: 'max(a.v, "
        "b.v)', "
        "c: a.c + b.c + e}}}\nlet: {g: 'gather(x, off, k, o, k + i32(index(m)), index(m))'}\n"
        "outputs: {y: {type: 'i32[m, n]', value: z + g.v}, c: {type: 'i64[m, n]', value: g.c}}\n";
    for (int rows = 0; rows < 4; rows += 3) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        cr_assert(harness_open(&h, "whole", spec, "sm_80", NULL), "%s", h.text);
        w = (struct world){ .whole = &h, .name = "whole", .spec = spec, .split = "m", .ranks = 3 };
        world_open(&w, rank);
        harness_data_at(&h, (int64_t[8]){ 40, rows, 50 }, 1, 0, 0);
        cr_assert(harness_expect(&h), "%s", h.text);
        cut(rank, 3, 50);
        world_all(&w, rank, rank_runs);
        for (int r = 0; r < 3; r++)
            cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
        cr_expect_null(world_collect(&w, rank));
        cr_expect(harness_compare(&h), "%d rows: %s", rows, h.text);
        world_free(&w, rank);
        world_close(&w, rank);
        harness_close(&h);
    }
}
