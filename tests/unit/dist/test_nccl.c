/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl.c - launches over NCCL: they only enqueue, are captured, need a preparation, and fail in bounded time. */
#include <criterion/criterion.h>

#include "support/nccl_ranks.h"

static const char sum_spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n";
static const char scan_spec[] = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n";
static const char heat_spec[] =
    "kind: stencil\ninputs: {x: 'f32[n, m]'}\nboundary: wrap\niterate: {steps: 3, feedback: {x: y}}\n"
    "outputs: {y: {type: 'f32[n, m]', value: 'x[-1, 0] + x[1, 0] + x[0, -1]'}}\n";

static const char softmax_spec[] =
    "inputs: {x: 'f32[n]'}\nstages:\n  top: {kind: reduce, map: x, operator: max, outputs: {most: f32}}\n"
    "  sum: {kind: reduce, map: exp(x - most), operator: add, outputs: {all: f32}}\n"
    "  scale: {kind: map, outputs: {y: {type: 'f32[n]', value: exp(x - most) / all}}}\noutputs: [y]\n";
static const char until_spec[] =
    "inputs: {x: 'f32[n, m]'}\nstages:\n  sweep:\n    kind: stencil\n    boundary: clamp\n"
    "    reductions: {r: {map: abs(next - x), operator: max}}\n    outputs:\n"
    "      next: {type: 'f32[n, m]', value: '0.5 * (x[-1, 0] + x[1, 0])'}\n      moved: {type: f32, value: r}\n"
    "outputs: [next]\niterate: {steps: 9, feedback: {x: next}, until: moved < 0.01}\n";

/* Each test is a process of its own, with one world. */
static struct world w;
static struct harness h;
static struct rank rank[RANKS_MAX];

static void begin(const char *spec, int ranks, bool kernels)
{
    setenv("PTXGEN_CACHE", "off", 1);
    nccl_kernels = kernels;
    cr_assert(harness_open(&h, "whole", spec, "sm_80", NULL), "%s", h.text);
    w = (struct world){ .whole = &h, .name = "whole", .spec = spec, .split = "n", .ranks = ranks, .over = &over_nccl };
    nccl_open_ranks(&w, rank);
}

static void end(void) { nccl_close_ranks(&w, rank, &h); }

static void expect(ptxgen_status status, const char *words)
{
    for (int r = 0; r < w.ranks; r++) {
        cr_expect_eq(rank[r].status, status, "rank %d: %s: %s", r, ptxgen_status_text(rank[r].status), rank[r].text);
        cr_expect(strstr(rank[r].text, words), "rank %d: '%s' is not in: %s", r, words, rank[r].text);
    }
}

/* The arguments of a rank's part, n x 5 elements at most. */
static float x_memory[RANKS_MAX][400], y_memory[RANKS_MAX][400];
static ptxgen_status call(struct rank *r,
                          ptxgen_status (*f)(ptxgen_session *, ptxgen_dist *, const ptxgen_arguments *, ptxgen_stream))
{
    const int64_t size[2] = { r->count, 5 };
    const void *in[] = { x_memory[r->end.rank] };
    void *out[] = { y_memory[r->end.rank] };
    ptxgen_diagnostics_clear(r->s);
    r->status = f(r->s, r->dist, &(ptxgen_arguments){ size, in, out, NULL }, r->stream);
    rank_text(r);
    return r->status;
}
static void *prepares(void *user)
{
    call(user, ptxgen_dist_prepare);
    return NULL;
}
static void *launches(void *user)
{
    call(user, ptxgen_dist_launch_on);
    return NULL;
}
static void *checks(void *user)
{
    struct rank *r = user;
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_check(r->s, r->dist);
    rank_text(r);
    return NULL;
}
static void all(void *(*work)(void *)) { world_all(&w, rank, work); }
static void parts(int64_t first, int64_t second)
{
    rank[0].count = first;
    rank[1].count = second;
}

/* ---- what a launch asks for -------------------------------------------------------------------------------------- */

/* Nothing of it waits, loads or allocates. */
static void only_enqueues(int from)
{
    static const char *const may[] = { "cuLaunchKernel",  "cuLaunchKernelEx", "cuMemsetD8Async",  "cuMemcpyDtoDAsync",
                                       "cuMemcpy2DAsync", "cuEventRecord",    "cuStreamWaitEvent" };
    for (int i = from; i < fake_gpu->ncalls; i++) {
        bool good = false;
        for (size_t k = 0; k < sizeof may / sizeof *may; k++)
            good |= !strcmp(fake_gpu->call[i].name, may[k]);
        cr_expect(good, "a launch calls %s", fake_gpu->call[i].name);
    }
}

static int kernels(int from, const struct rank *r)
{
    int n = 0;
    for (int i = from; i < fake_gpu->ncalls; i++)
        n += !strncmp(fake_gpu->call[i].name, "cuLaunch", 8) && fake_gpu->call[i].stream == r->stream;
    return n;
}

/* Captured on both ranks after a preparation; the NCCL calls of rank 0 as letters.  beside: they are on a stream of their
 * own. */
static void captured(const char *spec, const char *exchanges, unsigned long bytes, int least, bool beside)
{
    char seen[100] = "";
    begin(spec, 2, true);
    parts(7, 20);
    all(prepares);
    expect(PTXGEN_OK, "");
    fake_gpu->capturing = 1;
    const int before = fake_gpu->ncalls, exchanged = fake_nccl->ncalls;
    all(launches);
    expect(PTXGEN_OK, "");
    fake_gpu->capturing = 0;
    cr_expect_eq(fake_gpu->capture_spoiled, 0);
    only_enqueues(before);
    for (int r = 0; r < 2; r++)
        cr_expect_geq(kernels(before, &rank[r]), least, "rank %d", r);
    for (int i = exchanged; i < fake_nccl->ncalls; i++) {
        const struct fake_nccl_call *c = &fake_nccl->call[i];
        cr_expect_eq(c->stream == rank[c->rank].stream, !beside);
        cr_expect_eq(c->bytes, bytes);
        if (c->rank == 0)
            strncat(seen, &c->what, 1);
    }
    cr_expect_str_eq(seen, exchanges);
    end();
}

/* The partial and the fold. */
Test(nccl, sum_is_one_exchange_of_a_state) { captured(sum_spec, "g", 4, 2, false); }
/* The partial, and on rank 1 the carry; the scan. */
Test(nccl, scan_is_one_exchange_of_a_state) { captured(scan_spec, "g", 4, 2, false); }
/* Both neighbours of rank 0 are rank 1: two rows, in one message. */
Test(nccl, stencil_is_one_exchange_per_step) { captured(heat_spec, "srsrsr", 40, 3, true); }

/* ---- a single time step: ghosts travel beside the part's kernel ---------------------------------------------------- */

/* The calls of a rank with the driver, as letters, one for several alike: r and w record and wait, k kernels, c copies; in
 * capitals on the second stream. */
static void letters(int from, int behind, const void *stream, const void *beside, char *out)
{
    int n = 0;
    for (int i = from; i < behind; i++) {
        const struct fake_call *c = &fake_gpu->call[i];
        const char letter = !strcmp(c->name, "cuEventRecord")         ? 'r'
                            : !strcmp(c->name, "cuStreamWaitEvent")   ? 'w'
                            : !strncmp(c->name, "cuLaunchKernel", 14) ? 'k'
                                                                      : 'c';
        const char here = c->stream == beside ? (char)(letter - 'a' + 'A') : letter;
        if ((c->stream == stream || c->stream == beside) && (n == 0 || out[n - 1] != here))
            out[n++] = here;
    }
    out[n] = 0;
}

/* The stream that first waits for what this one recorded. */
static const struct fake_call *waits_for(int from, const void *stream)
{
    for (int i = from; i < fake_gpu->ncalls; i++)
        for (int k = i + 1; fake_gpu->call[i].stream == stream && k < fake_gpu->ncalls; k++)
            if (!strcmp(fake_gpu->call[i].name, "cuEventRecord") &&
                !strcmp(fake_gpu->call[k].name, "cuStreamWaitEvent") && fake_gpu->call[k].a == fake_gpu->call[i].a)
                return &fake_gpu->call[k];
    return NULL;
}

static void step_beside(int capturing)
{
    static const char step_spec[] = "kind: stencil\ninputs: {x: 'f32[n, m]'}\nboundary: wrap\n"
                                    "outputs: {y: {type: 'f32[n, m]', value: 'x[-1, 0] + x[1, 0] + x[0, -1]'}}\n";
    begin(step_spec, 2, true);
    parts(7, 20);
    all(prepares);
    expect(PTXGEN_OK, "");
    fake_gpu->capturing = capturing;
    const int before = fake_gpu->ncalls, exchanged = fake_nccl->ncalls;
    all(launches);
    expect(PTXGEN_OK, "");
    fake_gpu->capturing = 0;
    cr_expect_eq(fake_gpu->capture_spoiled, 0);
    only_enqueues(before);
    for (int r = 0; r < 2; r++) {
        char seen[100];
        const struct fake_call *first = waits_for(before, rank[r].stream);
        cr_assert_not_null(first);
        const struct fake_call *last = waits_for(before, first->stream);
        cr_assert(last && last->stream == rank[r].stream && last->a != first->a);
        letters(before, fake_gpu->ncalls, rank[r].stream, first->stream, seen);
        cr_expect_str_eq(seen, "rWCKkRw"); /* the sides' memory and their kernels; the part's */
        for (int i = exchanged; i < fake_nccl->ncalls; i++)
            if (fake_nccl->call[i].rank == r)
                cr_expect_eq(fake_nccl->call[i].stream, first->stream);
    }
    end();
}
Test(nccl, ghosts_travel_beside_the_part) { step_beside(0); }
Test(nccl, ghosts_travel_beside_the_part_in_a_capture) { step_beside(1); }

/* A program: the partial and the fold of each sum, and the map. */
Test(nccl, program_is_an_exchange_per_sum) { captured(softmax_spec, "gg", 4, 5, false); }

/* The ranks tell each other whether the loop ends, which waits. */
Test(nccl, condition_in_a_capture)
{
    begin(until_spec, 2, false);
    parts(7, 20);
    all(prepares);
    expect(PTXGEN_OK, "");
    fake_gpu->capturing = 1;
    const int exchanged = fake_nccl->ncalls;
    all(launches);
    expect(PTXGEN_USAGE, "the loop has `until`");
    cr_expect_eq(fake_gpu->capture_spoiled, 0);
    cr_expect_eq(fake_nccl->ncalls, exchanged);
    fake_gpu->capturing = 0;
    all(launches);
    expect(PTXGEN_OK, "");
    end();
}

/* Fixed times: what was prepared for sizes serves further launches with them. */
Test(nccl, sizes_must_be_prepared)
{
    begin(sum_spec, 2, false);
    parts(7, 20);
    all(launches);
    expect(PTXGEN_USAGE, "'whole' was not prepared for these sizes on this stream");
    expect(PTXGEN_USAGE, "ptxgen_dist_prepare()");
    all(prepares);
    for (int i = 0; i < 3; i++) {
        all(launches);
        expect(PTXGEN_OK, "");
    }
    end();
}

/* Rank 0 has 7 elements among both pairs of parts: by its sizes it cannot tell them apart, so the older pair is gone, on
 * both ranks. */
Test(nccl, parts_that_are_partly_the_same, .timeout = 60)
{
    begin(sum_spec, 2, false);
    parts(7, 20);
    all(prepares);
    parts(8, 21);
    all(prepares);
    parts(7, 30);
    all(prepares);
    expect(PTXGEN_OK, "");
    parts(8, 21);
    all(launches);
    expect(PTXGEN_OK, "");
    parts(7, 30);
    all(launches);
    expect(PTXGEN_OK, "");
    cr_expect_eq(call((parts(7, 20), &rank[1]), ptxgen_dist_launch_on), PTXGEN_USAGE);
    end();
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

Test(nccl, no_preparation_in_a_capture)
{
    begin(sum_spec, 2, false);
    parts(7, 20);
    fake_gpu->capturing = 1;
    all(prepares);
    expect(PTXGEN_USAGE, "which a stream capture does not allow");
    fake_gpu->capturing = 0;
    all(prepares);
    expect(PTXGEN_OK, "");
    end();
}

static int (*fake_gather)(const void *, void *, size_t, int, void *, void *);
static void *prepares_alone(void *user)
{
    struct rank *r = user;
    if (r->end.rank != 1)
        return prepares(user);
    r->status = PTXGEN_RANKS;
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    fake_nccl->dead = 1;
    fake_gather(NULL, NULL, 0, 0, fake_comm(1), NULL); /* wakes the others */
    strcpy(r->text, "remote error");
    return NULL;
}

Test(nccl, dead_rank, .timeout = 60)
{
    begin(sum_spec, 3, false);
    rank[2].count = 1;
    parts(7, 20);
    *(void **)&fake_gather = fake_open(FAKE_NCCL, "ncclAllGather", "PTXGEN_LIBNCCL");
    all(prepares_alone);
    expect(PTXGEN_RANKS, "remote error");
    cr_expect(strstr(rank[0].text, "ncclCommAbort()"), "%s", rank[0].text);
    rank[1].status = call(&rank[0], ptxgen_dist_launch_on);
    cr_expect(strstr(rank[0].text, "the communicator cannot be used any more"), "%s", rank[0].text);
    cr_expect_eq(rank[1].status, PTXGEN_RANKS);
    cr_expect_eq(ptxgen_dist_reset(rank[0].s, rank[0].dist), PTXGEN_UNSUPPORTED);
    end();
}

/* A device that never ends what it was given: the wait is bounded. */
Test(nccl, limit_of_waits, .timeout = 60)
{
    nccl_seconds = 0.1;
    begin(sum_spec, 2, false);
    parts(7, 20);
    fake_gpu->busy = 1;
    all(prepares);
    expect(PTXGEN_RANKS, "not all ranks came within 0.1 s");
    fake_gpu->busy = 0;
    end();
}

Test(nccl, errors_that_come_later)
{
    begin(sum_spec, 2, false);
    all(checks);
    expect(PTXGEN_OK, "");
    fake_nccl->error = 2;
    all(checks);
    expect(PTXGEN_RANKS, "NCCL reports an error: NCCL: the words of NCCL");
    end();
}

/* Of a communicator that does not block. */
Test(nccl, calls_that_are_done_later)
{
    begin(heat_spec, 2, false);
    parts(7, 20);
    fake_nccl->in_flight = 1;
    all(prepares);
    all(launches);
    expect(PTXGEN_OK, "");
    end();
}

/* Rank 1 has too little memory: all learn it, and go on. */
Test(nccl, one_rank_cannot_prepare, .timeout = 60)
{
    begin(sum_spec, 2, false);
    parts(7, 20);
    nccl_poor = 1;
    all(prepares);
    cr_expect_eq(rank[1].status, PTXGEN_NO_MEMORY);
    cr_expect(rank[0].status == PTXGEN_RANKS && strstr(rank[0].text, "rank 1 failed"), "%s", rank[0].text);
    nccl_poor = -1;
    all(prepares);
    all(launches);
    expect(PTXGEN_OK, "");
    end();
}

Test(nccl, no_library)
{
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    ptxgen_comm *comm;
    nccl_begin(1);
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_gpu_open(s, 0, &gpu), PTXGEN_OK);
    setenv("PTXGEN_LIBNCCL", "/nonexistent/libnccl.so", 1);
    cr_expect_eq(ptxgen_comm_from_nccl(s, gpu, fake_comm(0), NULL, &comm), PTXGEN_NO_DEVICE);
    char *text = ptxgen_diagnostics_text(s, 0);
    cr_expect(strstr(text, "no NCCL: "), "%s", text);
    ptxgen_free(text);
    setenv("PTXGEN_LIBNCCL", FAKE_CUDA, 1);
    cr_expect_eq(ptxgen_comm_from_nccl(s, gpu, fake_comm(0), NULL, &comm), PTXGEN_NO_DEVICE);
    ptxgen_gpu_close(gpu);
    ptxgen_session_destroy(s);
    cr_expect_eq(fake_gpu->live, 0);
}
