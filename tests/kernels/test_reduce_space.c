/* SPDX-License-Identifier: Apache-2.0 */
/* test_reduce_space.c - whole-array reductions: every distribution and every way of combining agrees with the oracle,
 * and what is not legal is refused with the reason.
 */
#include <criterion/criterion.h>

#include "support/harness.h"

#define SUM "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\n"
/* Native, by compare-and-swap of 4 and of 8 bytes, with an identity that is not zero. */
#define SEVERAL                                                                                                        \
    "kind: reduce\ninputs: {x: 'f32[n]', k: 'i16[n]'}\nreductions:\n  lo: {map: x, operator: min}\n"                   \
    "  at: {map: {value: x, index: i32(index(n))}, operator: argmax}\n  s: {map: f64(x), operator: add}\n"             \
    "  m: {map: i64(k), operator: min}\n  u: {map: u32(k), operator: max}\n  a: {map: k != 3, operator: and}\n"        \
    "  b: {map: u64(k), operator: and}\n"                                                                              \
    "outputs: {lo: {type: f32, value: lo}, at: {type: i32, value: at.index}, s: {type: f64, value: s}, "               \
    "m: {type: i64, value: m}, u: {type: u32, value: u}, a: {type: bool, value: a}, b: {type: u64, value: b}}\n"
/* Without an identity: threads and blocks that have nothing are left out. */
#define FIRST                                                                                                          \
    "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x, q: x}\noperator:\n  state: {p: u32, q: u32}\n"                   \
    "  combine: {p: 'min(a.p, b.p)', q: a.q + b.q}\n  commutative: true\noutputs: {p: {type: u32, value: r.p}, q: "    \
    "{type: u32, value: r.q}}\n"

static const char *const combines[] = { "shuffle", "tree",        "shared_atomic_all", "shared_atomic_leaders",
                                        "redux",   "tree_leaders" };
static const char *const distributions[] = { "strided", "tiled" };
enum { COMBINES = 6 };

/* cluster: NULL where it is left alone. */
static void check_clusters(const char *spec, const char *strategy, const char *combine, int over_blocks,
                           int over_threads, const char *threads, const char *cluster)
{
    static const int sizes[] = { 1, 33, 700, 3001, 20011 };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0,weak", "seed:5,stale,late" };
    const char *set[] = { "strategy",
                          strategy,
                          "combine",
                          combine,
                          "over_threads",
                          distributions[over_threads],
                          "threads",
                          threads,
                          "items",
                          "2",
                          over_blocks < 0 ? NULL : "over_blocks",
                          over_blocks < 0 ? NULL : distributions[over_blocks],
                          cluster ? "cluster" : NULL,
                          cluster,
                          NULL };
    struct harness h;
    cr_assert(harness_open(&h, "space", spec, "sm_90", set), "%s %s: %s", strategy, combine, h.text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t size[8] = { sizes[i] };
        harness_data_at(&h, size, 3 + i, (int)(i % 4), false);
        cr_assert(harness_check(&h, modes[i % 3]),
                  "%s, combine %s, over_blocks %d, over_threads %d, cluster %s, n = %d, %s: %s", strategy, combine,
                  over_blocks, over_threads, cluster ? cluster : "-", sizes[i], modes[i % 3], h.text);
    }
    harness_close(&h);
}

static void check(const char *spec, const char *strategy, const char *combine, int over_blocks, int over_threads,
                  const char *threads)
{
    check_clusters(spec, strategy, combine, over_blocks, over_threads, threads, NULL);
}

static void check_grid_strategy(const char *strategy)
{
    for (int c = 0; c < COMBINES; c++)
        for (int d = 0; d < 4; d++)
            check(SUM, strategy, combines[c], d & 1, d >> 1, "96");
}

Test(reduce_space, last_block) { check_grid_strategy("reduce.last_block"); }
Test(reduce_space, atomic) { check_grid_strategy("reduce.atomic"); }
Test(reduce_space, two_kernel) { check_grid_strategy("reduce.two_kernel"); }

Test(reduce_space, block)
{
    for (int c = 0; c < COMBINES; c++)
        for (int d = 0; d < 2; d++)
            check(SUM, "reduce.block", combines[c], -1, d, "160");
}

Test(reduce_space, one_warp)
{
    for (int c = 0; c < COMBINES; c++)
        check(SUM, "reduce.atomic", combines[c], 0, 0, "32");
}

Test(reduce_space, several_states)
{
    for (int c = 0; c < COMBINES; c++)
        if (strcmp(combines[c], "redux") != 0)
            check(SEVERAL, c % 2 ? "reduce.atomic" : "reduce.block", combines[c], c % 2 ? 1 : -1, 1, "64");
}

Test(reduce_space, no_identity)
{
    for (int d = 0; d < 4; d++) {
        check(FIRST, "reduce.last_block", "shuffle", d & 1, d >> 1, "64");
        check(FIRST, "reduce.two_kernel", "shuffle", d & 1, d >> 1, "64");
    }
}

/* ---- clusters before the grid combines --------------------------------------------------------------------------- */

static const char *const grids[] = { "reduce.last_block", "reduce.atomic", "reduce.two_kernel" };
static const char *const clusters[] = { "1", "2", "3", "4", "8" };

/* 27 tiles: all clusters but those of one and three blocks have idle ones, up to five. */
static void check_clustered_grid(const char *strategy)
{
    for (int c = 0; c < COMBINES; c++)
        for (int i = 1; i < 5; i++)
            check_clusters(SUM, strategy, combines[c], (c + i) & 1, (c + i) >> 1 & 1, "96", clusters[i]);
}

Test(reduce_space, clustered_last_block) { check_clustered_grid("reduce.last_block"); }
Test(reduce_space, clustered_atomic) { check_clustered_grid("reduce.atomic"); }
Test(reduce_space, clustered_two_kernel) { check_clustered_grid("reduce.two_kernel"); }

Test(reduce_space, clusters_of_one)
{
    for (int s = 0; s < 3; s++)
        check_clusters(SUM, grids[s], "shuffle", s & 1, 0, "32", clusters[0]);
}

Test(reduce_space, clustered_states)
{
    for (int s = 0; s < 3; s++)
        check_clusters(SEVERAL, grids[s], s ? "tree_leaders" : "tree", 1, 0, "64", clusters[2 + s]);
}

Test(reduce_space, clusters_without_identity)
{
    for (int i = 1; i < 5; i++)
        for (int d = 0; d < 2; d++)
            check_clusters(FIRST, d == (i & 1) ? "reduce.last_block" : "reduce.two_kernel", "shuffle", d, 0, "64",
                           clusters[i]);
}

/* Tiles through rings of bulk copies: two inputs, an output per element, with and without an identity. */
Test(reduce_space, rings)
{
#define DOT                                                                                                            \
    "kind: reduce\ninputs: {x: 'i32[n]', y: 'u32[n]'}\nmap: u32(x) * y\noperator: add\noutputs: {s: u32, twice: "      \
    "{type: 'u32[n]', value: y * 2}}\n"
    static const char *const specs[] = { SUM, FIRST, DOT };
    static const char *const strategies[] = { "reduce.gather", "reduce.last_block" };
    for (int i = 0; i < 6; i++) {
        const char *set[] = { "strategy",
                              strategies[i & 1],
                              "threads",
                              "64",
                              "items",
                              "3",
                              "copy_stages",
                              "2",
                              i & 1 ? "over_threads" : NULL,
                              "tiled",
                              "cluster",
                              clusters[1 + i / 2],
                              NULL };
        struct harness h;
        cr_assert(harness_open(&h, "rings", specs[i / 2], "sm_90", set), "%s", h.text);
        for (int n = 100; n < 40000; n = 3 * n + 7) {
            int64_t size[8] = { n };
            harness_data_at(&h, size, (uint64_t)n, i % 4, false);
            cr_assert(harness_check(&h, "seed:7,race,uninit,late"), "spec %d, %s, n = %d: %s", i / 2, strategies[i & 1],
                      n, h.text);
        }
        harness_close(&h);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */
Test(reduce_space, refused)
{
#define ORDERED                                                                                                        \
    "kind: reduce\ninputs: {x: 'u32[n]'}\nmap: {p: x}\noperator:\n  state: {p: u32}\n  identity: {p: 0}\n"             \
    "  combine: {p: a.p * 3 + b.p}\noutputs: {p: {type: u32, value: r.p}}\n"
#define WIDE                                                                                                           \
    "kind: reduce\ninputs: {x: 'f64[n]'}\nmap: {value: x, index: index(n)}\noperator: argmin\noutputs: {i: {type: "    \
    "i64, value: r.index}}\n"
#define MAPPED_DOWN                                                                                                    \
    "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: m\noperator: add\noutputs: {y: {type: 'f32[m, n]', value: x - "     \
    "r}}\n"
#define MAPPED                                                                                                         \
    "kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: max\nover: n\noutputs: {y: {type: 'f32[m, n]', value: r - "     \
    "x}}\n"
#define FLOATS "kind: reduce\ninputs: {x: 'f32[n]'}\ndeterminism: run\noperator: add\noutputs: {s: f32}\n"
    static const struct {
        const char *name, *spec, *arch, *set[7], *says;
    } rows[] = {
        { "atomic, ordered", ORDERED, "sm_90", { "strategy", "reduce.atomic" }, "keep no order" },
        { "atomic, wide", WIDE, "sm_90", { "strategy", "reduce.atomic" }, "wider than the 8 bytes" },
        { "atomic, no identity", FIRST, "sm_90", { "strategy", "reduce.atomic" }, "the operator has no identity" },
        { "atomic, same bits", FLOATS, "sm_90", { "strategy", "reduce.atomic" }, "asks for the same bits" },
        { "shared atomics, same bits",
          FLOATS,
          "sm_90",
          { "strategy", "reduce.last_block", "combine", "shared_atomic_all" },
          "asks for the same bits" },
        { "tree, no identity",
          FIRST,
          "sm_90",
          { "strategy", "reduce.block", "combine", "tree" },
          "without an identity only" },
        { "redux of floats",
          FLOATS,
          "sm_90",
          { "strategy", "reduce.block", "combine", "redux" },
          "redux.sync takes integers of 32 bits" },
        { "redux on sm_75",
          SUM,
          "sm_75",
          { "strategy", "reduce.block", "combine", "redux" },
          "redux.sync takes integers of 32 bits" },
        { "tiled, ordered",
          ORDERED,
          "sm_90",
          { "strategy", "reduce.last_block", "over_blocks", "tiled" },
          "one distribution and one tree" },
        { "large tree",
          SEVERAL,
          "sm_90",
          { "strategy", "reduce.block", "combine", "tree", "threads", "1024" },
          "more than 40960 bytes" },
        { "unknown way", SUM, "sm_90", { "strategy", "reduce.block", "combine", "bush" }, "combine: 'bush' is not" },
        { "bulk on sm_80",
          ORDERED,
          "sm_80",
          { "strategy", "reduce.last_block", "copy_stages", "2" },
          "bulk copies need sm_90" },
        { "bulk and transpose",
          ORDERED,
          "sm_90",
          { "strategy", "reduce.last_block", "copy_stages", "2", "smem_transpose", "1" },
          "not both" },
        { "rings too large",
          ORDERED,
          "sm_90",
          { "strategy", "reduce.last_block", "copy_stages", "16", "items", "9" },
          "of shared memory; a block of sm_90 has" },
        { "bulk, same bits",
          FLOATS,
          "sm_90",
          { "strategy", "reduce.gather", "copy_stages", "2" },
          "make the tree depend on where arrays begin" },
        { "bulk, dealt out otherwise, same bits",
          FLOATS,
          "sm_90",
          { "strategy", "reduce.last_block", "copy_stages", "2" },
          "make the tree depend on where arrays begin" },
        { "clusters on sm_80",
          SUM,
          "sm_80",
          { "strategy", "reduce.atomic", "cluster", "4" },
          "thread-block clusters need sm_90; the target is sm_80" },
        { "clusters, ordered",
          ORDERED,
          "sm_90",
          { "strategy", "reduce.last_block", "cluster", "2" },
          "the operator does not commute" },
        { "clusters, everywhere the same",
          "kind: reduce\ninputs: {x: 'f32[n]'}\ndeterminism: device\noperator: add\noutputs: {s: f32}\n",
          "sm_90",
          { "strategy", "reduce.two_kernel", "cluster", "2" },
          "that only some devices can build" },
        { "large clusters",
          SUM,
          "sm_90",
          { "strategy", "reduce.two_kernel", "cluster", "16" },
          "a cluster of more than 8 blocks" },
        { "clusters of rows on sm_80",
          MAPPED,
          "sm_80",
          { "strategy", "segreduce.resident", "cluster", "2" },
          "need sm_90" },
        { "clusters of three blocks",
          MAPPED,
          "sm_90",
          { "strategy", "segreduce.resident", "cluster", "3" },
          "1, 2, 4 or 8 blocks" },
        { "columns of half a warp",
          MAPPED_DOWN,
          "sm_90",
          { "strategy", "segreduce.resident", "threads", "96" },
          "threads must be a power of two" },
        { "columns of some lanes",
          MAPPED_DOWN,
          "sm_90",
          { "strategy", "segreduce.resident", "lanes", "8", "threads", "128" },
          "there are not so many warps" },
        { "columns of more blocks than warps",
          MAPPED_DOWN,
          "sm_90",
          { "strategy", "segreduce.resident", "cluster", "4", "threads", "64" },
          "cluster 4: threads must be at least 32 for each block of the cluster" },
        { "clusters of no grid",
          SUM,
          "sm_90",
          { "strategy", "reduce.gather", "cluster", "2" },
          "has no tunable 'cluster'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        cr_expect_not(harness_open(&h, "refused", rows[i].spec, rows[i].arch, rows[i].set), "%s: accepted",
                      rows[i].name);
        cr_expect_not_null(strstr(h.text, rows[i].says), "%s: says '%s'", rows[i].name, h.text);
        harness_close(&h);
    }
}
