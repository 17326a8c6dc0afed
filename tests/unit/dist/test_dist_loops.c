/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_loops.c - loops that end on a condition, as a graph on each rank: the ranks decide alike, and the host takes no
 * part.
 *
 * The driver is fake_cuda.c, whose graphs call the host executor's kernels and the exchanges of peer_kernels.h; ranks are
 * threads.  In most runs the flag of all ranks but the first is turned, so a rank that decided alone would be found.
 */
#include <criterion/criterion.h>

#include "launch/launch_impl.h"
#include "support/nccl_ranks.h"
#include "peer_kernels.h"

static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];

/* Its first stage combines; how many steps there were is an output. */
#define COUNT "  count: {kind: map, inputs: [taken], outputs: {next_taken: {type: 'i32[k]', value: taken + 1}}}\n"
#define HEAD(eps)                                                                                                      \
    "inputs: {u: 'f32[n, m]', taken: 'i32[k]'}\nparams: {steps: {type: i32, value: 40}, eps: {type: f32, value: " eps  \
    "}}\nstages:\n"
#define LOOP(every)                                                                                                    \
    "outputs: [next, moved, next_taken]\niterate: {steps: steps, feedback: {u: next, taken: next_taken}, "             \
    "until: moved < eps, check_every: " every "}\n"
#define HEAT(eps, every)                                                                                               \
    HEAD(eps)                                                                                                          \
    "  sweep:\n    kind: stencil\n    boundary: clamp\n    reductions: {r: {map: abs(next - u), operator: max}}\n"     \
    "    outputs:\n      next: {type: 'f32[n, m]', value: 'u + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * "  \
    "u)'}\n      moved: {type: f32, value: r}\n" COUNT                                                                 \
    LOOP(every)
/* The stencil alone, whose ends are beside it on another stream; states that the fold exchanges itself. */
#define APART(eps, every)                                                                                              \
    HEAD(eps)                                                                                                          \
    "  sweep: {kind: stencil, boundary: clamp, outputs: {next: {type: 'f32[n, m]', value: '0.25 * (u[-1, 0] + "        \
    "2 * u + u[1, 0])'}}}\n"                                                                                           \
    "  far: {kind: reduce, inputs: [u, next], map: abs(next - u), operator: max, outputs: {moved: f32}, fuse: "        \
    "false}\n" COUNT                                                                                                   \
    LOOP(every)

/* Counts up to `last`; the array grows by what all ranks have. */
#define COUNTED(every)                                                                                                 \
    "inputs: {x: 'i32[n]', taken: 'i32[k]'}\nparams: {steps: {type: i32, value: 40}, last: {type: i32, value: 5}}\n"   \
    "stages:\n  all: {kind: reduce, map: x, operator: add, outputs: {s: i32}}\n"                                       \
    "  one: {kind: map, inputs: [x, s], outputs: {y: {type: 'i32[n]', value: x + s}}}\n"                               \
    "  count: {kind: map, inputs: [taken], outputs: {next: {type: 'i32[k]', value: taken + 1}}}\n"                     \
    "  most: {kind: reduce, map: next, operator: max, outputs: {top: i32}}\noutputs: [y, s, next]\n"                   \
    "iterate: {steps: steps, feedback: {x: y, taken: next}, until: top >= last, check_every: " every "}\n"

/* ---- one world --------------------------------------------------------------------------------------------------- */

static bool turned; /* the flags of all ranks but the first */
static void turn(const struct launch *l, const struct run_args *args)
{
    const struct rank *r = &rank[l->d->comm->rank];
    if (turned && r->end.rank > 0 && l->d == r->dist->of[r->dist->program->nstages - 1])
        *(char *)args->output[0] ^= 1;
}

static void begin(const char *spec, int ranks)
{
    nccl_ran = turn;
    turned = true;
    nccl_open_peers(&w, rank, &h, spec, ranks, peer_launched);
}

/* The device may still run graphs when they are given up. */
static void waited_first(void)
{
    int graphs = 0;
    for (int i = 0; i < fake_gpu->ncalls; i++) {
        const struct fake_call *c = &fake_gpu->call[i];
        bool waited = false;
        for (int k = 0; k < i; k++)
            waited |= !strcmp(fake_gpu->call[k].name, "cuCtxSynchronize") && fake_gpu->call[k].context == c->context;
        if (!strcmp(c->name, "cuGraphExecDestroy")) {
            cr_expect(waited, "a graph is destroyed before the device has done its work");
            graphs++;
        }
    }
    cr_expect_geq(graphs, w.ranks);
}

static void end(bool graphs)
{
    fake_gpu->ncalls = 0;
    nccl_close_ranks(&w, rank, &h);
    if (graphs)
        waited_first();
}

static int64_t last; /* of COUNTED: its last step */

/* Data, parts of which some are empty, and what one process gives. */
static void data(int64_t n, int64_t steps, uint64_t seed)
{
    harness_data_at(&h, (const int64_t[8]){ n, 5, 2 }, seed, 0, 0);
    h.param[0].i = steps;
    if (!strncmp(w.spec, COUNTED(""), 20)) {
        memset(h.input[1], 0, 5 * sizeof(int32_t)); /* k = 5 */
        h.param[1].i = last;
    }
    const ptxgen_arguments args = { h.size, (const void *const *)h.input, h.expected, h.param };
    cr_assert_eq(ptxgen_host_run(h.s, h.host, &args, NULL), PTXGEN_OK);
    world_parts(&w, rank, n, seed);
    if (seed % 2)
        for (int r = 0; r < w.ranks; r++)
            rank[r].first = n * r / w.ranks, rank[r].count = n * (r + 1) / w.ranks - rank[r].first;
    fake_gpu->nnodes = 0; /* the graphs that used them are over */
}

static int calls_of(const char *name)
{
    int count = 0;
    for (int i = 0; i < fake_gpu->ncalls; i++)
        count += !strcmp(fake_gpu->call[i].name, name);
    return count;
}

static void same(const char *how)
{
    for (int r = 0; r < w.ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s, rank %d: %s", how, r, rank[r].text);
    const char *odd = world_collect(&w, rank);
    cr_expect_null(odd, "%s: '%s' differs between ranks", how, odd);
    for (int i = 0; i < ptxgen_problem_output_count(h.problem); i++) {
        ptxgen_array_info a;
        ptxgen_problem_output(h.problem, i, &a);
        cr_expect(!memcmp(h.output[i], h.expected[i], (size_t)h.count[i] * a.element_size), "%s, %d ranks: %s\n%s", how,
                  w.ranks, a.name, w.spec);
    }
    cr_expect_eq(nccl_faults, 0);
    cr_assert_lt(fake_gpu->nnodes, FAKE_NODES);
}

static void check(const char *how)
{
    for (int r = 0; r < w.ranks; r++) {
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s, rank %d: %s", how, r, rank[r].text);
        cr_assert_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_OK);
        cr_expect_str_eq(ptxgen_dist_transport(rank[r].dist), "peers");
    }
    same(how);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* As it was prepared. */
static void *launches(void *user)
{
    nccl_launch(user, &h);
    return NULL;
}

static void *replays(void *user)
{
    nccl_launch_graph(user, &h);
    return NULL;
}

/* A launch that prepares, another one, and graphs of the caller; by graphs if there is something to decide. */
static void runs(int64_t n, int64_t steps, int every, uint64_t seed)
{
    data(n, steps, seed);
    world_all(&w, rank, rank_runs);
    check("first launch");
    const int before = fake_gpu->ncalls, graphs = calls_of("cuGraphLaunch");
    world_all(&w, rank, launches);
    check("second launch");
    cr_expect_eq(calls_of("cuGraphLaunch") - graphs, steps > every ? w.ranks : 0);
    for (int i = before; i < fake_gpu->ncalls; i++)
        cr_expect(strcmp(fake_gpu->call[i].name, "cuStreamSynchronize") != 0 &&
                      strcmp(fake_gpu->call[i].name, "cuMemAlloc") != 0,
                  "a launch calls %s", fake_gpu->call[i].name);
    world_all(&w, rank, replays);
    check("graph");
    world_free(&w, rank);
    fake_gpu->ncalls = 0;
}

static void on_ranks(const char *spec, int every)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        begin(spec, ranks);
        int most = 0;
        for (uint64_t seed = 1; seed <= 2; seed++)
            for (int64_t steps = 1; steps <= 40; steps = 3 * steps + 1) {
                runs(30 + 13 * (int64_t)seed, steps, every, seed);
                const int taken = ((int32_t *)h.output[2])[0] - ((int32_t *)h.input[1])[0];
                cr_expect(taken == steps || taken % every == 0, "%d steps", taken);
                most = taken > most ? taken : most;
            }
        cr_expect(most > 4 && most < 40, "%d steps at most", most);
        end(true);
    }
}

Test(dist_loops, after_each_step) { on_ranks(HEAT("0.05", "1"), 1); }
Test(dist_loops, after_two_steps) { on_ranks(HEAT("0.05", "2"), 2); }
Test(dist_loops, after_three_steps) { on_ranks(HEAT("0.05", "3"), 3); }
Test(dist_loops, ends_of_the_part_are_beside_it) { on_ranks(APART("0.05", "1"), 1); }
/* Preparing a loop does not join what the ranks agreed not to join. */
Test(dist_loops, ends_stay_apart)
{
    nccl_ends = 1;
    on_ranks(APART("0.05", "1"), 1);
}
Test(dist_loops, ends_of_the_part_are_beside_it_and_read_seldom) { on_ranks(APART("0.05", "3"), 3); }

/* Whether that step is the first or the second between two decisions, or there is none. */
static void ends_anywhere(const char *spec, int every)
{
    begin(spec, 2 + every % 2);
    for (last = 1; last < 8; last++) {
        const int64_t steps = (last + every - 1) / every * every;
        runs(20 + last, 7, every, 1 + (uint64_t)last);
        cr_expect_eq(((int32_t *)h.output[2])[0], steps < 7 ? steps : 7);
    }
    end(true);
}
Test(dist_loops, ends_after_any_step)
{
    ends_anywhere(COUNTED("1"), 1);
    ends_anywhere(COUNTED("2"), 2);
    ends_anywhere(COUNTED("3"), 3);
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

enum { MANY = 1000000 };
static int fails_in = -1; /* the run of rank 1 outside of graphs that fails, from now on; -1: none */

static ptxgen_status may_fail(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (l->d->comm->rank == 1 && !l->prepares && fails_in >= 0 && fails_in-- == 0)
        return PTXGEN_FINDING;
    return nccl_run(l, stage, args);
}

static void *launches_but_rank_1(void *user)
{
    const struct rank *r = user;
    return r->end.rank == 1 ? NULL : launches(user);
}

/* A loop that would go on for long, where rank 1 fails or does not come: it ends, and who waited knows. */
static void all_end(const char *spec, int fails)
{
    begin(spec, 3);
    nccl_machine.run = may_fail;
    data(60, 20, 3);
    world_all(&w, rank, rank_runs);
    check("first launch");
    const ptxgen_value steps = h.param[0], eps = h.param[1];
    h.param[0].i = MANY;
    h.param[1].f = 0;
    turned = false;
    fails_in = fails;
    const double begun = peer_seconds();
    world_all(&w, rank, fails < 0 ? launches_but_rank_1 : launches);
    cr_expect_lt(peer_seconds() - begun, 60); /* compiling takes its time, too */
    for (int r = 0; r < w.ranks; r++) {
        cr_expect_eq(rank[r].status, r == 1 && fails >= 0 ? PTXGEN_FINDING : PTXGEN_OK, "rank %d: %s", r, rank[r].text);
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), r == 1 ? PTXGEN_OK : PTXGEN_RANKS, "rank %d", r);
        rank[r].comm->broken = false;
    }
    h.param[0] = steps;
    h.param[1] = eps;
    if (fails >= 0) {
        world_all(&w, rank, launches);
        same("the next launch is in order");
    }
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

Test(dist_loops, a_rank_does_not_come)
{
    nccl_seconds = 0.4;
    all_end(HEAT("0.05", "1"), -1);
    all_end(APART("0.05", "2"), -1);
}

/* It takes part in the exchanges up to the first decision, and says so there: nobody waits in vain. */
Test(dist_loops, a_rank_cannot_launch)
{
    for (int at = 0; at < 6; at++)
        all_end(at % 2 ? HEAT("0.05", "1") : HEAT("0.05", "3"), at / 2);
}
/* Nor do its kernels wait for rows that the loops of the others, which are graphs, send otherwise. */
Test(dist_loops, a_rank_cannot_launch_stencils_that_join)
{
    nccl_seconds = 120;
    for (int at = 0; at < 4; at++)
        all_end(at % 2 ? APART("0.05", "1") : APART("0.05", "3"), at / 2);
}

/* Where one rank has no graph, the host decides on all of them. */
static void host_decides(int version, int fails)
{
    begin(HEAT("0.05", "1"), 3);
    nccl_machine.run = may_fail;
    data(60, 40, 3);
    fails_in = fails;
    for (int r = 0; r < 3; r++)
        rank[r].gpu->cu.version = r == 1 ? version : 13000;
    world_all(&w, rank, rank_runs);
    check("the host decides");
    cr_expect_eq(calls_of("cuGraphLaunch"), 0);
    for (int r = 0; r < 3; r++) {
        int64_t size[8];
        rank_sizes(&rank[r], size);
        const ptxgen_arguments args = { size, (const void *const *)rank[r].input, rank[r].output, h.param };
        fake_gpu->capturing = 1;
        cr_expect_eq(ptxgen_dist_launch_on(rank[r].s, rank[r].dist, &args, rank[r].stream), PTXGEN_USAGE);
        rank_text(&rank[r]);
        cr_expect(strstr(rank[r].text, "has `until`"), "%s", rank[r].text);
        fake_gpu->capturing = 0;
    }
    end(false);
}
Test(dist_loops, one_driver_is_too_old) { host_decides(12030, -1); }
Test(dist_loops, one_rank_could_not_make_its_graph) { host_decides(13000, 0); }
