/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_visits.c - ranks that look at each stage of a program: all see the same stages and steps, also where one fails,
 * and what they see is their part.
 */
#include <criterion/criterion.h>

#include "support/nccl_ranks.h"

static const char count_up[] =
    "inputs: {x: 'i32[n]', taken: 'i32[k]'}\nparams: {until: {type: i32, value: 5}}\nstages:\n"
    "  one: {kind: map, inputs: [x], outputs: {y: {type: 'i32[n]', value: x + 1}}}\n"
    "  all: {kind: reduce, map: y, operator: add, outputs: {s: i64}}\n"
    "  count: {kind: map, inputs: [taken], outputs: {next: {type: 'i32[k]', value: taken + 1}}}\n"
    "  most: {kind: reduce, map: next, operator: max, outputs: {top: i32}}\n"
    "outputs: [y, s, next]\n"
    "iterate: {steps: 50, feedback: {x: y, taken: next}, until: top >= until}\n";

enum { SEEN_MAX = 400, NEVER = 1000 };
static struct seen {
    int count, stage[SEEN_MAX], step[SEEN_MAX];
    int64_t elements[SEEN_MAX]; /* of the split dimension, -1: it has none */
    bool wrong;                 /* a value is not what the step makes it */
} seen[RANKS_MAX];
static int ends_at; /* the step at whose first stage all ranks end */

static int visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    const struct rank *r = user;
    const ptxgen_problem *p = ptxgen_stage_problem(r->problem, stage);
    const struct harness *h = r->world->whole;
    struct seen *s = &seen[r->end.rank];
    cr_assert_lt(s->count, SEEN_MAX);
    s->stage[s->count] = stage;
    s->step[s->count] = (int)step;
    s->elements[s->count] = -1;
    for (int i = 0; i < ptxgen_problem_size_count(p); i++)
        if (!strcmp(ptxgen_problem_size_name(p, i), "n"))
            s->elements[s->count] = args->size[i];
    s->count++;
    if (!strcmp(ptxgen_stage_name(r->problem, stage), "one") && r->count > 0)
        s->wrong |= *(const int32_t *)args->output[0] != ((const int32_t *)h->input[0])[r->first] + 1 + step;
    return step == ends_at;
}

static void begin(struct world *w, struct harness *h, struct rank *rank, const struct world_over *over)
{
    setenv("PTXGEN_CACHE", "off", 1);
    ends_at = NEVER;
    memset(seen, 0, sizeof seen);
    cr_assert(harness_open(h, "whole", count_up, "sm_80", NULL), "%s", h->text);
    *w = (struct world){
        .whole = h, .name = "whole", .spec = count_up, .split = "n", .ranks = 3, .over = over, .visit = visit
    };
    world_open(w, rank);
    for (int r = 0; r < 3; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s", rank[r].text);
    harness_data_at(h, (const int64_t[8]){ 50, 4 }, 2, 0, 0);
    for (int i = 0; i < 4; i++)
        ((int32_t *)h->input[1])[i] = 0;
    rank[0].count = 20, rank[1].first = 20, rank[1].count = 0, rank[2].first = 20, rank[2].count = 30;
}

static void end(struct world *w, struct rank *rank)
{
    world_free(w, rank);
    world_close(w, rank);
    harness_close(w->whole);
}

/* All ranks have seen all stages of so many steps, in order. */
static void check_seen(const struct rank *rank, int visits)
{
    const int stages = ptxgen_stage_count(rank[0].problem);
    for (int r = 0; r < 3; r++) {
        cr_expect_eq(seen[r].count, visits, "rank %d: %d visits and not %d", r, seen[r].count, visits);
        for (int i = 0; i < seen[r].count; i++) {
            cr_assert(seen[r].stage[i] == i % stages && seen[r].step[i] == i / stages, "rank %d, visit %d", r, i);
            cr_assert(seen[r].elements[i] == -1 || seen[r].elements[i] == rank[r].count, "rank %d, visit %d", r, i);
        }
    }
}

Test(dist_visits, all_stages_on_all_ranks)
{
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, i ? &over_nccl : NULL);
        world_all(&w, rank, rank_runs);
        for (int r = 0; r < 3; r++) {
            cr_assert_eq(rank[r].status, PTXGEN_OK, "%s", rank[r].text);
            cr_expect_not(seen[r].wrong);
        }
        check_seen(rank, 5 * ptxgen_stage_count(rank[0].problem));
        cr_expect_eq(*(int32_t *)rank[2].output[2], 5);
        end(&w, rank);
    }
}

Test(dist_visits, a_visit_ends_the_run)
{
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, i ? &over_nccl : NULL);
        ends_at = 2;
        world_all(&w, rank, rank_runs);
        for (int r = 0; r < 3; r++)
            cr_expect_eq(rank[r].status, PTXGEN_OK, "%s", rank[r].text);
        check_seen(rank, 2 * ptxgen_stage_count(rank[0].problem) + 1);
        end(&w, rank);
    }
}

static int fails_after; /* the run of rank 1 that fails */
static struct dist_machine host_machine;
static struct dist_transport host_transport;
static ptxgen_status may_fail(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (l->d->comm->rank == 1 && fails_after-- == 0)
        return PTXGEN_FINDING;
    return dist_machine_host.run(l, stage, args);
}

/* Then all ranks visit the rest of the step alike. */
Test(dist_visits, a_rank_fails)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, NULL);
    host_machine = dist_machine_host;
    host_machine.run = may_fail;
    host_transport = dist_transport_host;
    host_transport.machine = &host_machine;
    for (int r = 0; r < 3; r++)
        rank[r].comm->transport = &host_transport;
    fails_after = 0;
    world_all(&w, rank, rank_runs);
    for (int r = 0; r < 3; r++) {
        cr_expect_eq(rank[r].status, r == 1 ? PTXGEN_FINDING : PTXGEN_RANKS, "%s", rank[r].text);
        cr_expect_eq(seen[r].count, seen[0].count, "%d and %d visits", seen[r].count, seen[0].count);
    }
    cr_expect_gt(seen[0].count, 0);
    end(&w, rank);
}

Test(dist_visits, misuse)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, NULL);
    const ptxgen_arguments args = { h.size, (const void *const *)h.input, h.output, h.param };
    cr_expect_eq(ptxgen_dist_launch_stages(rank[0].s, rank[0].dist, &args, NULL, NULL, NULL), PTXGEN_USAGE);
    end(&w, rank);
}
