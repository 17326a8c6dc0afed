/* SPDX-License-Identifier: Apache-2.0 */
/* test_peers.c - exchanges by kernels that write into the memory of other devices.
 *
 * The devices are those of fake_cuda.c, and the kernels those of peer_kernels.h: so everything but the PTX is tested, which
 * `run-gpu-tests ranks` runs.  Folds that exchange states themselves are those of the host executor.
 */
#include <criterion/criterion.h>

#include "support/nccl_ranks.h"
#include "peer_kernels.h"

static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void begin(const char *spec, int ranks) { nccl_open_peers(&w, rank, &h, spec, ranks, peer_launched); }

static void end(void) { nccl_close_ranks(&w, rank, &h); }

static const char *const specs[] = {
    /* a state of whole words: the fold exchanges it itself, and no kernel of its own */
    "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n",
    "kind: reduce\ninputs: {x: 'u8[n]'}\noperator: max\noutputs: {most: u8}\n", /* fewer bytes than a word */
    /* states of one piece and of several, as words and with flags; rows that are not aligned */
    "kind: reduce\ninputs: {x: 'f32[n, 2500]'}\nover: n\noperator: add\noutputs: {sums: 'f32[2500]'}\n",
    "kind: reduce\ninputs: {x: 'u8[n, 70001]'}\nover: n\noperator: max\noutputs: {most: 'u8[70001]'}\n",
    "kind: reduce\ninputs: {x: 'u8[n, 150001]'}\nover: n\noperator: max\noutputs: {most: 'u8[150001]'}\n",
    "kind: scan\ninputs: {x: 'i64[n]'}\noperator: add\noutputs: {y: 'i64[n]'}\n",
    "kind: stencil\ninputs: {x: 'f32[n, 2001]'}\nboundary: clamp\niterate: {steps: 3, feedback: {x: y}}\n"
    "outputs: {y: {type: 'f32[n, 2001]', value: '0.5 * (x[-1, 0] + x[1, 0])'}}\n",
    /* own rows are short, and longer than what other ranks send; they are three times as long, and cut into fewer pieces */
    "kind: stencil\ninputs: {x: 'f32[n, 256]'}\nboundary: clamp\n"
    "outputs: {y: {type: 'f32[n, 256]', value: '0.5 * (x[-1, 0] + x[1, 0])'}}\n",
    "kind: stencil\ninputs: {x: 'f32[n, 17100]'}\nboundary: clamp\n"
    "outputs: {y: {type: 'f32[n, 17100]', value: '0.5 * (x[-1, 0] + x[2, 0])'}}\n",
    "kind: stencil\ninputs: {x: 'i32[n, 5]'}\nboundary: wrap\niterate: {steps: 3, feedback: {x: y}}\n"
    "reductions: {r: {map: x, operator: add}}\n"
    "outputs: {y: {type: 'i32[n, 5]', value: 'x[-1, 0] + x[1, 0]'}, sum: {type: i32, value: r}}\n",
};

/* Every exchange is one of the kernels above. */
static void ends_apart(void) { nccl_ends = 1; }

static bool first_has_all; /* the first rank, all elements */

/* Three runs with different data, over `transport`. */
static void agrees(const char *spec, int ranks, int64_t n, int peers, const char *transport)
{
    begin(spec, ranks);
    fake_gpu->peers = peers;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        harness_data(&h, n, seed, 0, 0);
        cr_assert(harness_expect(&h), "%s", h.text);
        for (int r = 0; r < ranks; r++) {
            rank[r].first = first_has_all && r ? n : n * r / ranks;
            rank[r].count = (first_has_all ? n : n * (r + 1) / ranks) - rank[r].first;
        }
        world_free(&w, rank);
        const int before = peer_exchanges;
        world_all(&w, rank, rank_runs);
        for (int r = 0; r < ranks; r++) {
            cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
            cr_expect_str_eq(ptxgen_dist_transport(rank[r].dist), transport);
        }
        cr_expect_eq(peer_exchanges > before, !strcmp(transport, "peers") && spec != specs[0], "%d exchanges: %s",
                     peer_exchanges - before, spec);
        cr_expect_null(world_collect(&w, rank), "%s", spec);
        cr_expect(harness_compare(&h), "%d ranks: %s\n%s", ranks, h.text, spec);
    }
    end();
}

/* Rows whose ghosts and own rows are around what one block exchanges, what travels as words, and what pieces hold; more rows
 * from one side. */
Test(peers, rows_of_all_lengths, .init = ends_apart)
{
    static const int width[] = { 1, 64, 129, 171, 256, 257, 512, 513, 1024, 17067, 17194, 32769 };
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        for (int after = 1; after <= 2; after++) {
            char spec[300];
            snprintf(spec, sizeof spec,
                     "kind: stencil\ninputs: {x: 'i32[n, %d]'}\nboundary: clamp\n"
                     "outputs: {y: {type: 'i32[n, %d]', value: 'x[-1, 0] + 3 * x[%d, 0]'}}\n",
                     width[i], width[i], after);
            agrees(spec, 2 + after % 2, 19, true, "peers");
        }
}
Test(peers, two_ranks, .init = ends_apart)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        agrees(specs[i], 2, 40, true, "peers");
}
Test(peers, three_ranks, .init = ends_apart)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        agrees(specs[i], 3, 45, true, "peers");
}
/* Nothing travels, so there are no windows. */
Test(peers, a_rank_has_everything)
{
    first_has_all = true;
    agrees("kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: clamp\n"
           "outputs: {y: {type: 'f32[n]', value: '0.5 * (x[-1] + x[1])'}}\n",
           2, 40, true, "nccl");
}
Test(peers, devices_that_do_not_reach_each_other) { agrees(specs[0], 2, 40, false, "nccl"); }
Test(peers, one_device_that_does_not_reach_the_others) { agrees(specs[0], 3, 40, FAKE_FIRST_ALONE, "nccl"); }
Test(peers, nccl_alone_is_wanted)
{
    nccl_only = true;
    agrees(specs[0], 2, 40, true, "nccl");
}

/* ---- the number of steps is a param -------------------------------------------------------------------------------- */

enum { PART = 300 };
static int64_t steps_of[] = { 1, 20, 17, 1, 0, 64 }; /* the first ones are prepared */
static struct {
    int32_t x[PART], y[PART];
    int wrong;
} doubled[2];

static ptxgen_status with_steps(struct rank *r, int64_t steps,
                                ptxgen_status (*f)(ptxgen_session *, ptxgen_dist *, const ptxgen_arguments *,
                                                   ptxgen_stream))
{
    const void *in[] = { doubled[r->end.rank].x };
    void *out[] = { doubled[r->end.rank].y };
    return f(r->s, r->dist, &(ptxgen_arguments){ (int64_t[]){ PART }, in, out, &(ptxgen_value){ .i = steps } },
             r->stream);
}

static void *launches_other_steps(void *user)
{
    struct rank *r = user;
    int *wrong = &doubled[r->end.rank].wrong;
    for (int i = 0; i < PART; i++)
        doubled[r->end.rank].x[i] = 1;
    *wrong += with_steps(r, steps_of[0], ptxgen_dist_prepare) != PTXGEN_OK;
    for (size_t k = 0; k < sizeof steps_of / sizeof *steps_of; k++) {
        *wrong += with_steps(r, steps_of[k], ptxgen_dist_launch_on) != PTXGEN_OK;
        for (int i = 0; i < PART; i++)
            *wrong += doubled[r->end.rank].y[i] != (steps_of[k] < 32 ? (int32_t)1 << steps_of[k] : 0);
    }
    rank_text(r);
    return NULL;
}

static void prepared_with(int64_t steps)
{
    steps_of[0] = steps;
    begin("kind: stencil\ninputs: {x: 'i32[n]'}\nparams: {steps: {type: i64, value: 1}}\nboundary: wrap\n"
          "iterate: {steps: steps, feedback: {x: y}}\noutputs: {y: {type: 'i32[n]', value: 'x[-1] + x[1]'}}\n",
          2);
    world_all(&w, rank, launches_other_steps);
    for (int r = 0; r < 2; r++)
        cr_expect_eq(doubled[r].wrong, 0, "rank %d: %d are wrong; %s", r, doubled[r].wrong, rank[r].text);
    for (int i = 0; i < fake_gpu->ncalls; i++)
        cr_expect(strcmp(fake_gpu->call[i].name, "cuEventRecord") != 0 || fake_gpu->call[i].a, "an event was not made");
    end();
}
Test(peers, steps_are_not_those_that_were_prepared) { prepared_with(1); }
Test(peers, many_steps_were_prepared) { prepared_with(32); }
Test(peers, no_step_was_prepared) { prepared_with(0); }

/* ---- ranks that are ahead ------------------------------------------------------------------------------------------ */

enum { TURNS = 40, BYTES = EXCHANGE_WORDS + 9000 };
struct turner {
    struct exchange *x;
    int number, wrong;
    char send[BYTES], get[BYTES];
};

/* Message 0 comes from another rank in each exchange.  The ranks are late in turn: what the next sender has written by then
 * must not pass for what is waited for. */
static void *takes_turns(void *user)
{
    struct turner *t = user;
    for (int i = 0; i < TURNS; i++) {
        const int shift = 1 + i % 2, from = (t->number + 3 - shift) % 3;
        const size_t bytes = (const size_t[]){ BYTES, BYTES, 40, 9001 }[i % 4];
        const struct exchange_message m = { t->send, t->get, bytes, bytes, (t->number + shift) % 3, from };
        memset(t->send, 3 * i + t->number, bytes);
        if (i % 3 == t->number)
            nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
        t->wrong += exchange_launch(NULL, t->x, &m, 1, NULL) != PTXGEN_OK;
        for (size_t k = 0; k < bytes; k++)
            t->wrong += t->get[k] != (char)(3 * i + from);
    }
    return NULL;
}

Test(peers, ranks_are_late_in_turn)
{
    static struct turner turner[3];
    struct exchange_card card[3];
    ptxgen_gpu *gpu[3];
    pthread_t thread[3];
    fake_gpu = (*(fake_cuda_state_fn **)(void *[]){ fake_open(FAKE_CUDA, "fake_cuda_state", "PTXGEN_LIBCUDA") })();
    fake_gpu->launched = peer_launched;
    fake_gpu->devices = 3;
    fake_gpu->peers = 1;
    for (int r = 0; r < 3; r++) {
        cr_assert_eq(ptxgen_gpu_open(NULL, r, &gpu[r]), PTXGEN_OK);
        exchange_open(gpu[r], r, 3, 1, BYTES, 0, 20, &card[r], &turner[r].x);
        cr_assert_not_null(turner[r].x);
        turner[r].number = r;
    }
    for (int r = 0; r < 3; r++)
        cr_assert(exchange_reach(turner[r].x, card));
    for (int r = 0; r < 3; r++)
        pthread_create(&thread[r], NULL, takes_turns, &turner[r]);
    for (int r = 0; r < 3; r++)
        pthread_join(thread[r], NULL);
    for (int r = 0; r < 3; r++) {
        cr_expect_eq(turner[r].wrong, 0, "rank %d: %d bytes are wrong", r, turner[r].wrong);
        cr_expect(!exchange_failed(turner[r].x));
    }
    for (int r = 0; r < 3; r++)
        exchange_close(turner[r].x);
    for (int r = 0; r < 3; r++)
        ptxgen_gpu_close(gpu[r]);
    cr_expect_eq(fake_gpu->live, 0);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void *launches_first(void *user)
{
    struct rank *r = user;
    static float x[10], sum[RANKS_MAX];
    const void *in[] = { x };
    void *out[] = { &sum[r->end.rank] };
    const ptxgen_arguments args = { (int64_t[]){ 10 }, in, out, NULL };
    r->status = ptxgen_dist_prepare(r->s, r->dist, &args, r->stream);
    if (r->status == PTXGEN_OK && r->end.rank == 0)
        r->status = ptxgen_dist_launch_on(r->s, r->dist, &args, r->stream);
    return NULL;
}

Test(peers, a_rank_that_does_not_come)
{
    nccl_seconds = 0.3;
    begin(specs[0], 2);
    world_all(&w, rank, launches_first);
    for (int r = 0; r < 2; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s", rank[r].text);
    cr_expect_eq(ptxgen_dist_check(rank[1].s, rank[1].dist), PTXGEN_OK);
    cr_expect_eq(ptxgen_dist_check(rank[0].s, rank[0].dist), PTXGEN_RANKS);
    rank_text(&rank[0]);
    cr_expect(strstr(rank[0].text, "waited too long"), "%s", rank[0].text);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}
