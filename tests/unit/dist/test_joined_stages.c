/* SPDX-License-Identifier: Apache-2.0 */
/* test_joined_stages.c - programs whose stages take rows of other ranks while they run: several of them in one window, beside
 * stages that exchange otherwise; in loops, with and without a condition; and one that is refused.
 *
 * As in test_joined.c, with the exchanges of peer_kernels.h.
 */
#include <criterion/criterion.h>

#include "launch/launch_impl.h"
#include "support/nccl_ranks.h"
#include "peer_kernels.h"

static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];

/* Words of one and of two per element, of two and of three rows; the sum's exchange is between those of the stencils. */
#define STAGES                                                                                                         \
    "inputs: {u: 'i32[n, m]', taken: 'i32[k]'}\nparams: {steps: {type: i32, value: 6}, last: {type: i32, value: 4}}\n" \
    "stages:\n"                                                                                                        \
    "  first: {kind: stencil, boundary: clamp, inputs: [u], fuse: false,\n"                                            \
    "    outputs: {a: {type: 'i32[n, m]', value: 'u[-1, 0] + 3 * u[1, 1]'}}}\n"                                        \
    "  sum: {kind: reduce, inputs: [a], map: a, operator: add, outputs: {s: i32}, fuse: false}\n"                      \
    "  second: {kind: stencil, boundary: wrap, inputs: [a], fuse: false,\n"                                            \
    "    outputs: {b: {type: 'i64[n, m]', value: 'i64(a[-2, 0]) - 5 * i64(a[1, -1])'}}}\n"                             \
    "  third: {kind: stencil, boundary: mirror, inputs: [b, s], fuse: false,\n"                                        \
    "    outputs: {next: {type: 'i32[n, m]', value: 'i32(b[-1, 1] + 7 * b[1, 0]) + s'}}}\n"                            \
    "  count: {kind: map, inputs: [taken], outputs: {next_taken: {type: 'i32[k]', value: taken + 1}}}\n"               \
    "  most: {kind: reduce, map: next_taken, operator: max, outputs: {top: i32}}\n"                                    \
    "outputs: [next, s, next_taken]\n"
#define FED "feedback: {u: next, taken: next_taken}"
static const char once[] = STAGES;
static const char steps[] = STAGES "iterate: {steps: steps, " FED "}\n";
static const char until[] = STAGES "iterate: {steps: steps, " FED ", until: top >= last}\n";
static const char seldom[] = STAGES "iterate: {steps: steps, " FED ", until: top >= last, check_every: 3}\n";
static const int stencils[] = { 0, 2, 3 };

static void begin(const char *spec, int ranks) { nccl_open_peers(&w, rank, &h, spec, ranks, peer_launched); }

/* Data of 64 rows, and what one process gives.  thin: one rank has two rows, which is enough for two of the stencils. */
static void data(uint64_t seed, bool thin)
{
    const int64_t n = 64;
    harness_data_at(&h, (const int64_t[8]){ n, 7, 2 }, seed, 0, 0);
    memset(h.input[1], 0, 2 * sizeof(int32_t));
    const ptxgen_arguments args = { h.size, (const void *const *)h.input, h.expected, h.param };
    cr_assert_eq(ptxgen_host_run(h.s, h.host, &args, NULL), PTXGEN_OK);
    for (int r = 0; r < w.ranks; r++) {
        const int64_t end = thin && r == 0 ? 2 : n * (r + 1) / w.ranks;
        rank[r].first = r ? rank[r - 1].first + rank[r - 1].count : 0;
        rank[r].count = end - rank[r].first;
    }
    fake_gpu->nnodes = 0;
}

static void check(const char *how, bool thin)
{
    for (int r = 0; r < w.ranks; r++) {
        const struct program_room *of = rank[r].dist->rooms->program;
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s, rank %d: %s", how, r, rank[r].text);
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_OK);
        for (int i = 0; i < 3; i++)
            cr_expect_eq(of->of[stencils[i]]->joined, !thin || stencils[i] != 2, "stage %d", stencils[i]);
    }
    cr_expect_null(world_collect(&w, rank), "%s", how);
    for (int i = 0; i < ptxgen_problem_output_count(h.problem); i++) {
        ptxgen_array_info a;
        ptxgen_problem_output(h.problem, i, &a);
        cr_expect(!memcmp(h.output[i], h.expected[i], (size_t)h.count[i] * a.element_size), "%s, %d ranks: %s\n%s", how,
                  w.ranks, a.name, w.spec);
    }
    cr_expect_eq(nccl_faults, 0);
}

static void *launches(void *user)
{
    nccl_launch(user, &h);
    return NULL;
}

/* The first step is before the loop of the graph, where stages may join. */
static void *replays(void *user)
{
    nccl_launch_graph(user, &h);
    return NULL;
}

static void runs(const char *spec, int ranks, bool thin, bool graphs)
{
    begin(spec, ranks);
    for (uint64_t seed = 1; seed <= 2; seed++) {
        data(seed, thin);
        world_all(&w, rank, rank_runs);
        check("first launch", thin);
        world_all(&w, rank, launches);
        check("second launch", thin);
        if (graphs) {
            world_all(&w, rank, replays);
            check("graph", thin);
        }
        world_free(&w, rank);
    }
    nccl_close_ranks(&w, rank, &h);
}

static void on_ranks(const char *spec)
{
    for (int ranks = 2; ranks <= 4; ranks++)
        for (int late = 0; late < 2; late++) {
            nccl_late = late;
            runs(spec, ranks, false, true);
        }
}

Test(joined_stages, once) { on_ranks(once); }
Test(joined_stages, steps) { on_ranks(steps); }
Test(joined_stages, until) { on_ranks(until); }
Test(joined_stages, until_and_read_seldom) { on_ranks(seldom); }
/* The stage whose reach is longer than a part has exchanges of its own; the others keep their words. */
Test(joined_stages, one_part_is_short_for_a_stage)
{
    runs(once, 2, true, true);
    runs(steps, 3, true, true);
    runs(until, 3, true, true);
}

/* ---- the host decides -------------------------------------------------------------------------------------------- */

static int refused = -1; /* this kernel of rank 1 that joins; -1: none */
static _Thread_local int kernel_of_rank;

static ptxgen_status may_refuse(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (l->d->comm->rank == 1 && !l->prepares && stage == STAGE_JOINED && kernel_of_rank++ == refused)
        return PTXGEN_FINDING;
    return nccl_run(l, stage, args);
}

/* One driver knows no loops in graphs. */
static void host_decides(const char *spec, int refuses)
{
    begin(spec, 4);
    nccl_machine.run = may_refuse;
    nccl_seconds = 120; /* compiling takes its time, too */
    refused = refuses;
    data(5, false);
    rank[2].gpu->cu.version = 12030;
    const double begun = peer_seconds();
    world_all(&w, rank, rank_runs);
    cr_expect_lt(peer_seconds() - begun, nccl_seconds / 4);
    if (refuses < 0)
        check("the host decides", false);
    for (int r = 0; r < w.ranks && refuses >= 0; r++)
        cr_expect_eq(rank[r].status, r == 1 ? PTXGEN_FINDING : PTXGEN_RANKS, "rank %d: %s", r, rank[r].text);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

Test(joined_stages, the_host_decides)
{
    host_decides(until, -1);
    host_decides(seldom, -1);
}

/* No rank waits as long as it may, and all calls tell that the loop has failed. */
Test(joined_stages, a_kernel_of_a_loop_is_refused)
{
    for (int at = 0; at < 6; at++)
        host_decides(at % 2 ? until : seldom, at);
}
