/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_blocks.c - the cyclic layout: blocks of elements that 1 to 7 ranks have in turn, against the oracle. */
#include <criterion/criterion.h>

#include "support/nccl_ranks.h"

enum { BLOCK = 16, N_MOST = 501 };
static const int some_ranks[] = { 1, 2, 3, 5, 7 };
enum { SOME = sizeof some_ranks / sizeof *some_ranks };

static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];

static void begin(const char *spec, int ranks, int64_t block, const struct world_over *over)
{
    setenv("PTXGEN_CACHE", "off", 1);
    cr_assert(harness_open(&h, "whole", spec, "sm_80", NULL), "%s", h.text);
    w = (struct world){
        .over = over, .whole = &h, .name = "whole", .spec = spec, .split = "n", .ranks = ranks, .block = block
    };
    world_open(&w, rank);
}

static void end(void)
{
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

static void all(ptxgen_status status, const char *words)
{
    for (int r = 0; r < w.ranks; r++) {
        cr_assert_eq(rank[r].status, status, "%s\nrank %d of %d: %s", w.spec, r, w.ranks, rank[r].text);
        cr_assert(strstr(rank[r].text, words), "%s", rank[r].text);
    }
}

/* One run, whose results are then in the whole. */
static void run(const char *spec, int ranks, const int64_t *size, int64_t block, const struct world_over *over)
{
    begin(spec, ranks, block, over);
    all(PTXGEN_OK, "");
    harness_data_at(&h, size, 3, 0, 0);
    for (int r = 0; r < ranks; r++)
        ptxgen_dist_share(rank[r].s, rank[r].dist, size[world_split(&w)], r, &rank[r].first, &rank[r].count);
    w.hub.late_rank = ranks / 2;
    world_all(&w, rank, rank_runs);
    all(PTXGEN_OK, "");
    const char *odd = world_collect(&w, rank);
    cr_expect_null(odd, "'%s' has other bits on some rank of %d:\n%s", odd, ranks, spec);
}

static void check(const char *spec, int ranks, int64_t n, int64_t block, const struct world_over *over)
{
    run(spec, ranks, (const int64_t[8]){ n, 5, 4 }, block, over);
    cr_assert(harness_expect(&h), "%s", h.text);
    cr_expect(harness_compare(&h), "%d ranks, n = %lld: %s\n%s", ranks, (long long)n, h.text, spec);
    end();
}

/* No element, less than a block, blocks for some ranks only, several for each of them, and a short last one or none. */
static void check_all(const char *const *spec, size_t count)
{
    static const int64_t n[] = { 0, 9, 3 * BLOCK - 1, 14 * BLOCK, 31 * BLOCK + 5 };
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < SOME; k++) {
            check(spec[i], some_ranks[k], n[k], BLOCK, &over_nccl);
            check(spec[i], some_ranks[k], n[4 - k % 4], k % 2 ? 3 * BLOCK : BLOCK, NULL);
        }
}
#define CHECK_ALL(...)                                                                                                 \
    check_all((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* Affine maps, whose order matters: x -> p x + q over integers. */
#define AFFINE                                                                                                         \
    "kind: scan\ninputs: {u: 'i32[n]', v: 'i32[n]'}\nmap: {p: u, q: v}\noperator:\n  state: {p: i32, q: i32}\n"        \
    "  identity: {p: 1, q: 0}\n  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n"

Test(dist_blocks, scans)
{
    CHECK_ALL("kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n",
              "kind: scan\ninputs: {x: 'i32[n]'}\nmap: x + i32(index(n)) + i32(n)\noperator: add\nmode: exclusive\n"
              "init: 7\noutputs: {y: 'i32[n]', end: i32}\n",
              "kind: scan\ninputs: {x: 'i32[n, m]'}\nover: n\noperator: add\ndirection: reverse\nmode: exclusive\n"
              "outputs: {y: 'i32[n, m]'}\n");
}

Test(dist_blocks, ordered_scans)
{
    CHECK_ALL(AFFINE "init: {p: 3, q: -1}\noutputs: {y: {type: 'i32[n]', value: s.p * 2 + s.q}}\n",
              AFFINE "direction: reverse\nmode: exclusive\n"
                     "outputs: {y: {type: 'i32[n]', value: s.q}, end: {type: i32, value: s.total.q}}\n");
}

/* The largest sums at both ends; no identity. */
#define LARGEST                                                                                                        \
    "inputs: {x: 'i32[n, m]'}\nover: n\nmap: {tail: x, sum: x, best: x}\noperator:\n"                                  \
    "  state: {tail: i32, sum: i32, best: i32}\n  combine: {tail: 'max(b.tail, b.sum + a.tail)', sum: a.sum + b.sum, " \
    "best: 'max(a.best, a.sum + b.best)'}\n"                                                                           \
    "init: {tail: 3, sum: 0, best: 2}\n"

Test(dist_blocks, columns_and_totals)
{
    CHECK_ALL("kind: reduce\n" LARGEST "outputs: {best: {type: 'i32[m]', value: r.best}}\n",
              "kind: scan\n" LARGEST "direction: reverse\n"
              "outputs: {y: {type: 'i32[n, m]', value: s.best}, end: {type: 'i32[m]', value: s.total.tail}}\n",
              "kind: scan\ninputs: {x: 'f32[n, m]'}\nover: [n, m]\noperator: min\ninit: 0.5\ndirection: reverse\n"
              "assume: {y: {aligned: 16}}\noutputs: {y: 'f32[n, m]', least: f32}\n",
              AFFINE "direction: reverse\noutputs: {end: {type: i32, value: s.total.q}}\n");
}

Test(dist_blocks, reductions_and_maps)
{
    CHECK_ALL(
        "kind: reduce\ninputs: {x: 'i32[n, m]', key: 'i32[n]'}\nover: n\nmap: x + i32(index(n))\noperator: add\n"
        "init: 5\nby: key & 3\noutputs: {s: 'i32[k, m]'}\n",
        "kind: map\ninputs: {x: 'i32[n]'}\noutputs: {y: {type: 'i32[n]', value: 'x + i32(index(n) * n)'}}\n",
        "kind: reduce\ninputs: {x: 'i32[n, m]'}\nover: m\noperator: add\n"
        "outputs: {s: {type: 'i32[n]', value: 'r + i32(index(n))'}}\n",
        "kind: scan\ninputs: {x: 'i32[n, m]', t: 'i32[m]'}\nover: m\nmap: 'x * at(t, (index(n) + index(m)) % m)'\n"
        "operator: add\noutputs: {y: 'i32[n, m]', s: 'i32[n]'}\n",
        "kind: map\ninputs: {x: 'i32[n, m]'}\niterate: {steps: 3, feedback: {x: y}}\n"
        "outputs: {y: {type: 'i32[n, m]', value: 'x * 3 + i32(index(n))'}}\n");
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static int launches[RANKS_MAX]; /* kernels and copies of each rank */

static ptxgen_status counted_run(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    launches[l->d->comm->rank] += !l->prepares;
    return nccl_run(l, stage, args);
}

static ptxgen_status counted_copy(struct launch *l, const struct dist_copy *c)
{
    launches[l->d->comm->rank] += !l->prepares;
    return dist_machine_gpu.copy(l, c);
}

static void counted_begin(int ranks)
{
    nccl_begin(ranks);
    nccl_machine.run = counted_run;
    nccl_machine.copy = counted_copy;
    memset(launches, 0, sizeof launches);
}

/* Each rank has 20 blocks, and at most `most` launches. */
static void launches_are(const char *spec, int most)
{
    static const struct world_over over = { counted_begin, nccl_comm, nccl_code };
    check(spec, 3, 60 * BLOCK + 5, BLOCK, &over);
    for (int r = 0; r < 3; r++)
        cr_expect(launches[r] > 0 && launches[r] <= most, "rank %d: %d launches:\n%s", r, launches[r], spec);
}

/* States of rows and of a short block, three copies of states, the fold; of a scan also a copy of carries, the rows, the
 * short block, and a block that has no carry. */
Test(dist_blocks, launches_do_not_grow_with_blocks)
{
    launches_are("kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]', end: i32}\n", 10);
    launches_are("kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\ndirection: reverse\noutputs: {y: 'i32[n]'}\n", 9);
    launches_are("kind: reduce\ninputs: {x: 'f32[n, m]'}\nover: n\noperator: add\noutputs: {s: 'f32[m]'}\n", 6);
    launches_are("kind: map\ninputs: {x: 'i32[n]'}\noutputs: {y: {type: 'i32[n]', value: x + i32(index(n))}}\n", 2);
}

/* The first result, of four bytes each: on one rank, where a block has `alone` elements, as on others. */
static void same_bits(const char *spec, int64_t alone, int64_t n, const struct world_over *over)
{
    int32_t one[N_MOST], many[N_MOST];
    for (int k = 0; k < SOME; k++) {
        run(spec, some_ranks[k], (const int64_t[8]){ n }, k ? 2 * BLOCK : alone, over);
        memcpy(k ? many : one, h.output[0], (size_t)n * sizeof *one);
        end();
        cr_expect(!k || !memcmp(one, many, (size_t)n * sizeof *one), "%d ranks give other bits than one:\n%s",
                  some_ranks[k], spec);
    }
}

/* Stages share the blocks, and the loop ends after the same step as in one part. */
Test(dist_blocks, programs)
{
    static const char spec[] = "inputs: {x: 'i32[n]'}\nstages:\n"
                               "  twice: {kind: map, outputs: {t: {type: 'i32[n]', value: x * 2 + 1}}}\n"
                               "  sums: {kind: scan, map: t, operator: add, outputs: {y: 'i32[n]'}}\n"
                               "  last: {kind: reduce, inputs: [t], map: t, operator: max, outputs: {most: i32}}\n"
                               "outputs: [y, most]\niterate: {steps: 4, feedback: {x: y}, until: most > 100000}\n";
    same_bits(spec, 0, 501, NULL);
    same_bits(spec, 0, 60, &over_nccl);
}

/* Where operators round, the blocks alone decide how elements are grouped. */
Test(dist_blocks, bits_do_not_depend_on_the_number_of_ranks)
{
    same_bits("kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\ndeterminism: device\n",
              2 * BLOCK, 501, NULL);
    same_bits("kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\ndirection: reverse\noutputs: {y: 'f32[n]'}\n"
              "determinism: run\n",
              2 * BLOCK, 501, &over_nccl);
}

static void rows_are(const char *spec, bool expected)
{
    begin(spec, 2, BLOCK, NULL);
    all(PTXGEN_OK, "");
    cr_expect_eq(rank[0].dist->split->rows, expected, "%s", spec);
    end();
}

/* Where the bits of a row could depend on the number of rows, and what rows cannot express. */
Test(dist_blocks, what_has_rows)
{
#define SUM "inputs: {x: 'f32[n]'}\noperator: add\noutputs: "
    rows_are("kind: scan\n" SUM "{y: 'f32[n]'}\n", true);
    rows_are("kind: scan\n" SUM "{y: 'f32[n]'}\ndeterminism: run\n", false);
    rows_are("kind: reduce\n" SUM "{s: f32}\nstrategy: {name: reduce.block}\n", false);
    rows_are("kind: reduce\n" SUM "{s: 'f32[k]'}\nby: i32(x)\n", false);
    rows_are("kind: scan\ninputs: {x: 'i32[n, m, k]'}\nover: n\noperator: add\noutputs: {y: 'i32[n, m, k]'}\n", false);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static const char sums[] = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n";

static void refused(const char *spec, int64_t block, ptxgen_status status, const char *words)
{
    begin(spec, 2, block, NULL);
    all(status, words);
    end();
}

Test(dist_blocks, refused)
{
    refused("kind: stencil\ninputs: {x: 'i32[n]'}\nboundary: clamp\n"
            "outputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1]'}}\n",
            BLOCK, PTXGEN_UNSUPPORTED, "neighbours along 'n' are on other ranks for each block");
    refused("kind: scan\ninputs: {x: 'i32[m, n]'}\nover: n\noperator: add\noutputs: {y: 'i32[m, n]'}\n", BLOCK,
            PTXGEN_UNSUPPORTED, "need 'n' to be the first dimension of every array");
    refused(sums, 24, PTXGEN_USAGE, "block: 24 is not a multiple of 16");
    refused(sums, -16, PTXGEN_USAGE, "block");
}

static void *with_its_own_block(void *user)
{
    struct rank *r = user;
    ptxgen_dist_options o = PTXGEN_DIST_OPTIONS_INIT;
    o.block = BLOCK * (1 + r->end.rank);
    ptxgen_dist_destroy(r->dist);
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_load(r->s, r->comm, r->problem, &o, &r->dist);
    rank_text(r);
    return NULL;
}

Test(dist_blocks, ranks_with_other_blocks)
{
    begin(sums, 2, BLOCK, NULL);
    world_all(&w, rank, with_its_own_block);
    all(PTXGEN_RANKS, "has another spec of the name");
    end();
}

Test(dist_blocks, other_parts_than_the_blocks)
{
    begin(sums, 2, BLOCK, NULL);
    harness_data(&h, 40, 1, 0, 0);
    rank[0].count = 20, rank[1].first = BLOCK, rank[1].count = 20;
    w.block = 0;
    world_all(&w, rank, rank_runs);
    all(PTXGEN_INVALID, "rank 0 has 20 elements of n, but of 40 elements in blocks of 16 its share is 24");
    end();
}
