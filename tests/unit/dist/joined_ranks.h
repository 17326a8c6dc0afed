/* SPDX-License-Identifier: Apache-2.0 */
/* joined_ranks.h - ranks whose kernels take rows of each other while they run.
 *
 * The devices are those of fake_cuda.c, and the kernels those of the host executor, with the threads of a rank in any order:
 * so ranks meet at any place of their kernels.
 */
#ifndef PTXGEN_TEST_JOINED_RANKS_H
#define PTXGEN_TEST_JOINED_RANKS_H

#include "support/emit_fixture.h"
#include "support/nccl_ranks.h"

static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];
static _Atomic int exchanges;
static int64_t short_parts; /* all parts but the last one have so many elements; 0: parts are nearly equal */
static bool replayed;       /* what agrees() runs is launched once more, and from a graph */

static inline void launched(const char *kernel, const unsigned grid[2], unsigned threads, void *const *params)
{
    (void)grid, (void)threads, (void)params;
    exchanges += !strncmp(kernel, "ptxgen_exchange", 15);
}

static inline void begin(const char *spec, int ranks, const char *modes)
{
    w.modes = modes;
    nccl_open_peers(&w, rank, &h, spec, ranks, launched);
}

static inline void end(void) { nccl_close_ranks(&w, rank, &h); }

static inline void *launches_again(void *user)
{
    nccl_launch(user, &h);
    return NULL;
}

static inline void *launches_graph(void *user)
{
    nccl_launch_graph(user, &h);
    return NULL;
}

/* Against the oracle, where no kernel is there for an exchange alone; or some are. */
static inline void agrees(const char *spec, int ranks, const int64_t *size, bool joined, const char *modes)
{
    int64_t here[8];
    begin(spec, ranks, modes);
    memcpy(here, size, sizeof here);
    harness_data_at(&h, here, 7, 0, 0);
    cr_assert(harness_expect(&h), "%s", h.text);
    const int64_t total = size[world_split(&w)];
    for (int r = 0; r < ranks; r++) {
        rank[r].first = total * r / ranks + (r % 2 ? 2 : 0);
        rank[r].count = total * (r + 1) / ranks + ((r + 1) % 2 && r + 1 < ranks ? 2 : 0) - rank[r].first;
        if (short_parts) {
            rank[r].first = short_parts * r;
            rank[r].count = r + 1 < ranks ? short_parts : total - short_parts * r;
        }
    }
    exchanges = 0;
    for (int i = 0; i < (replayed ? 3 : 1); i++) {
        void *(*const how[])(void *user) = { rank_runs, launches_again, launches_graph };
        world_all(&w, rank, how[i]);
        for (int r = 0; r < ranks; r++)
            cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
        cr_expect_eq(exchanges == 0, joined, "%d exchanges by kernels of their own:\n%s", exchanges, spec);
        if (joined) { /* the others' kernels are not here: test_peers.c */
            cr_expect_null(world_collect(&w, rank), "%s", spec);
            cr_expect(harness_compare(&h), "%d ranks, %lld elements, %s, launch %d: %s\n%s", ranks, (long long)total,
                      modes ? modes : "", i, h.text, spec);
        }
    }
    end();
}

#define ONE(type, boundary, value)                                                                                     \
    "kind: stencil\ninputs: {x: '" type "'}\nboundary: " boundary "\noutputs: {y: {type: '" type "', value: '" value   \
    "'}}\n"

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* NULL: memory is exhausted. */
static inline char *ptx_of(enum dist_stage of, const char *spec, const char *arch)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *whole = NULL;
    const ptxgen_problem *stage = NULL;
    ptxgen_plan *plan = NULL;
    ptxgen_program *program = NULL;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    const struct dist_split *split = NULL;
    o.arch = arch;
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, spec, strlen(spec), "spec", &whole), PTXGEN_OK);
    WITH_MEMORY_OR(s, NULL, split = dist_derive(s, whole->problem, "n", 0));
    cr_assert(split && split->stage[of].problem);
    WITH_MEMORY_OR(s, NULL, stage = api_problem_handle(s, split->stage[of].problem));
    cr_assert_eq(ptxgen_plan_create(s, stage, &o, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_compile(s, plan, NULL, &program), PTXGEN_OK);
    char *text = ptxgen_program_ptx(program);
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return text;
}

#endif
