/* SPDX-License-Identifier: Apache-2.0 */
/* test_joined.c - stencils whose kernels take rows of other ranks while they run, one time step at a time: joined_ranks.h. */
#include <criterion/criterion.h>

#include "dist/nccl.h"
#include "joined_ranks.h"

#define STEPS(type, boundary, value) ONE(type, boundary, value) "iterate: {steps: 9, feedback: {x: y}}\n"

static const char *const specs[] = {
    STEPS("i32[n, m]", "clamp", "x[-1, 0] + 3 * x[1, 0] - x[0, 1] + x[0, -1]"),
    STEPS("i32[n, m]", "wrap", "x[-1, -1] - x[1, 1]"),
    ONE("f32[n, m]", "{constant: 2}", "0.25 * (x[-1, 0] + x[1, 0] + x[0, -1] + x[0, 1])"),
    STEPS("i64[n, m]", "mirror", "x[-2, 1] + 5 * x[1, 0] - x[3, -1]"),
    ONE("f64[n, m]", "reflect", "x[-2, 0] + x[1, -1] * x[1, 2]"),
    ONE("i32[n, m]", "{x: {n: wrap, m: clamp}}", "x[-3, 0] - x[2, 1] + i32(index(n)) + i32(n)"),
    STEPS("i32[n, m, 5]", "clamp", "x[-1, 0, 0] - x[1, 0, 1] + x[0, -1, 0] - x[0, 0, -1]"),
    /* Which input is joined: neither one that is read sideways alone, nor one without the first dimension. */
    "kind: stencil\ninputs: {c: 'f32[n, m]', x: 'f64[n, m]'}\nboundary: clamp\n"
    "outputs: {y: {type: 'f64[n, m]', value: 'x[-1, 0] + x[1, 0] + f64(c[0, 1])'}}\n",
    "kind: stencil\ninputs: {x: 'i32[n, m]', t: 'i32[m]'}\nboundary: clamp\n"
    "outputs: {y: {type: 'i32[n, m]', value: 'x[-2, 0] + 3 * x[1, 0] - t[-1]'}}\n",
    "kind: stencil\ninputs: {k: 'i32[n, m]', t: 'i32[m]', x: 'i32[n, m]'}\nboundary: clamp\n"
    "outputs: {y: {type: 'i32[n, m]', value: 'x[-2, 0] + 3 * x[2, 0] - t[-1] + k'}}\n",
    "kind: stencil\ninputs: {x: 'i32[n, m]', c: 'i32[n, m]', t: 'i32[m]'}\nboundary: clamp\n"
    "iterate: {steps: 5, feedback: {x: y}}\n"
    "outputs: {y: {type: 'i32[n, m]', value: 'x[-1, 0] + c * x[1, 0] - t'}, z: {type: 'i32[n, m]', value: 'x + c'}}\n",
};

/* Parts of a few rows of boxes and of many; rows of one vector, of several boxes, and of odd length. */
static void check_all(int ranks, const char *modes)
{
    static const int64_t sizes[][8] = { { 40, 4 }, { 55, 131 }, { 124, 24 }, { 24, 300 } };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            agrees(specs[i], ranks, sizes[k], true, modes);
}

Test(joined, two_ranks) { check_all(2, NULL); }
Test(joined, three_ranks) { check_all(3, "seed:3"); }
Test(joined, ranks_are_late_in_turn)
{
    nccl_late = true;
    check_all(2, "seed:5,race,uninit,sms:1");
}

/* Rows of planes begin anywhere, and their boxes with them: each waits for just what its points read. */
Test(joined, planes_of_odd_rows)
{
    char spec[400];
    for (int columns = 133; columns <= 139; columns++)
        for (int rows = 3; rows <= 6; rows++) {
            snprintf(spec, sizeof spec,
                     ONE("i32[n, m, %d]", "wrap", "x[-1, 0, -1] + 3 * x[1, -1, 1] - x[-1, 1, 2] + 5 * x[1, 0, -2]"),
                     columns, columns);
            agrees(spec, 2, (int64_t[8]){ 21, rows }, true, columns % 2 ? "seed:4" : NULL);
        }
}

/* An exchange of its own where one side is read, elements are no words, or rows are not the outer dimension. */
Test(joined, others_are_not)
{
    static const char *const others[] = {
        ONE("i32[n, m]", "clamp", "x[-1, 0] + x[0, 1]"),
        ONE("i8[n, m]", "clamp", "x[-1, 0] + x[1, 0]"),
        ONE("i32[m, n]", "clamp", "x[0, -1] + x[0, 1]"),
        ONE("i32[n]", "clamp", "x[-1] + x[1]"),
        "kind: stencil\ninputs: {x: 'i32[n, m]', z: 'i32[n, m]'}\nboundary: clamp\n"
        "outputs: {y: {type: 'i32[n, m]', value: 'x[-1, 0] + z[1, 0]'}}\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        agrees(others[i], 2, (int64_t[8]){ 40, 40 }, false, NULL);
    nccl_ends = 1;
    agrees(specs[0], 2, (int64_t[8]){ 40, 4 }, false, NULL);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static ptxgen_status made(struct rank *r,
                          ptxgen_status (*f)(ptxgen_session *, ptxgen_dist *, const ptxgen_arguments *, ptxgen_stream))
{
    static int32_t x[RANKS_MAX][40], y[RANKS_MAX][40];
    const void *in[] = { x[r->end.rank] };
    void *out[] = { y[r->end.rank] };
    return f(r->s, r->dist, &(ptxgen_arguments){ (int64_t[]){ 10, 4 }, in, out, NULL }, r->stream);
}

/* The first one twice, the second one once, and later. */
static void *launches_apart(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    if (r->end.rank)
        nanosleep(&(struct timespec){ .tv_nsec = 600000000 }, NULL);
    for (int i = r->end.rank; i < 2 && r->status == PTXGEN_OK; i++)
        r->status = made(r, ptxgen_dist_launch_on);
    return NULL;
}

/* Nothing of its second launch passes for what the other one waits for, and that one does not wait without end. */
Test(joined, a_rank_that_comes_too_late)
{
    nccl_seconds = 0.3;
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 2, NULL);
    world_all(&w, rank, launches_apart);
    cr_expect_eq(ptxgen_dist_check(rank[0].s, rank[0].dist), PTXGEN_RANKS);
    cr_expect_eq(rank[0].status, PTXGEN_OK);
    const struct dist_room *m = rank[0].dist->rooms;
    const struct halo_head *head = (const struct halo_head *)(uintptr_t)m->halo[0];
    cr_expect(m->joined);
    cr_expect_eq(head->last, 0, "an exchange that failed is over");
    cr_expect_eq(head->fault, 1);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

enum { ALL_RANKS = 4 };
static int refused_step;               /* of the launch: this kernel of rank 1 is refused */
static _Thread_local int step_of_rank; /* of the last launch */
static bool first_comes_late;          /* the ranks but rank 1: then it is over when they begin */

static ptxgen_status refuses(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (!l->prepares && stage == STAGE_JOINED && step_of_rank++ == refused_step && l->d->comm->rank == 1)
        return PTXGEN_FINDING;
    return nccl_run(l, stage, args);
}

static void *launches_refused(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    step_of_rank = 0;
    if (first_comes_late != (r->end.rank == 1))
        nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    if (r->status == PTXGEN_OK)
        r->status = made(r, ptxgen_dist_launch_on);
    cr_expect_eq(made(r, ptxgen_dist_launch_on), PTXGEN_OK); /* a rank whose rows had come learns it now */
    return NULL;
}

/* The other ranks know it soon, also those that are not beside it, and none waits as long as it may. */
static void all_know(const char *spec, int at)
{
    refused_step = at;
    nccl_seconds = 120; /* compiling takes its time, too */
    begin(spec, ALL_RANKS, NULL);
    nccl_machine.run = refuses;
    const double begun = seconds();
    world_all(&w, rank, launches_refused);
    cr_expect_lt(seconds() - begun, nccl_seconds / 4);
    for (int r = 0; r < ALL_RANKS; r++) {
        cr_expect_eq(rank[r].status, r == 1 ? PTXGEN_FINDING : PTXGEN_OK, "rank %d", r);
        cr_expect(rank[r].dist->rooms->joined);
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_RANKS, "rank %d", r);
    }
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

Test(joined, a_launch_that_is_refused)
{
    for (int late = 0; late < 2; late++) {
        first_comes_late = late;
        all_know(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 0);
        for (int at = 0; at < 9; at += 4)
            all_know(STEPS("i32[n, m]", "wrap", "x[-1, 0] - x[1, 0]"), at);
    }
}

/* Does the driver get the memory back that this address is in? */
static bool given_back(uint64_t address)
{
    bool given = false;
    for (int i = 0; i < fake_gpu->ncalls; i++) {
        const struct fake_call *c = &fake_gpu->call[i];
        if (strcmp(c->name, "cuMemAlloc") != 0 || address - c->a >= c->b)
            continue;
        given = false;
        for (int k = i + 1; k < fake_gpu->ncalls; k++)
            given |= !strcmp(fake_gpu->call[k].name, "cuMemFree") && fake_gpu->call[k].a == c->a;
    }
    cr_expect_lt(fake_gpu->ncalls, FAKE_CALLS);
    return given;
}

/* What a rank has launched may write to one whose kernel was refused, and which is closed at once. */
Test(joined, memory_that_others_may_write_to_is_kept)
{
    uint64_t halo[2];
    refused_step = 0;
    nccl_seconds = 0.2;
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 2, NULL);
    nccl_machine.run = refuses;
    world_all(&w, rank, launches_refused);
    for (int r = 0; r < 2; r++)
        halo[r] = rank[r].dist->rooms->halo[0];
    world_free(&w, rank);
    world_close(&w, rank);
    for (int r = 0; r < 2; r++)
        cr_expect_not(given_back(halo[r]), "rank %d", r);
    harness_close(&h);
}

enum { FAR = 5 };
static uint64_t far_halo;
static bool far_freed; /* before the last rank to launch does so */
static pthread_barrier_t all_closed;

/* The last rank has all that it wants of the others and is closed before the launch of rank 1 is refused. */
static void *launches_far(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    step_of_rank = 0;
    if (r->end.rank == 1)
        pthread_barrier_wait(&all_closed);
    r->status = made(r, ptxgen_dist_launch_on);
    if (r->end.rank == FAR - 1) {
        far_halo = r->dist->rooms->halo[0];
        ptxgen_dist_destroy(r->dist);
        r->dist = NULL;
        far_freed = given_back(far_halo);
        pthread_barrier_wait(&all_closed);
    }
    return NULL;
}

/* It is told of the fault all the same, so its memory must be there. */
Test(joined, a_rank_that_is_far_is_closed_before_another_one_fails)
{
    refused_step = 0;
    nccl_seconds = 20;
    pthread_barrier_init(&all_closed, NULL, 2);
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), FAR, NULL);
    nccl_machine.run = refuses;
    world_all(&w, rank, launches_far);
    cr_expect_eq(rank[FAR - 1].status, PTXGEN_OK);
    cr_expect_not(far_freed);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

static ptxgen_status again; /* what rank 1 gets for its next launch */

static void *launches_untold(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    step_of_rank = 0;
    fake_gpu->fail_result = 1;
    fake_gpu->fail = r->end.rank == 1 ? "cuMemcpyDtoDAsync" : fake_gpu->fail;
    if (r->status == PTXGEN_OK)
        r->status = made(r, ptxgen_dist_launch_on);
    if (r->end.rank == 1)
        again = made(r, ptxgen_dist_launch_on);
    return NULL;
}

/* Else its next kernel would pass for the one that was refused, and all ranks would go on with wrong rows. */
Test(joined, a_launch_that_is_refused_and_nobody_can_be_told)
{
    refused_step = 0;
    nccl_seconds = 0.5;
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 2, NULL);
    nccl_machine.run = refuses;
    world_all(&w, rank, launches_untold);
    fake_gpu->fail = NULL;
    cr_expect_eq(rank[1].status, PTXGEN_FINDING);
    cr_expect_eq(again, PTXGEN_RANKS);
    for (int r = 0; r < 2; r++)
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_RANKS, "rank %d", r);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

/* ---- two streams ------------------------------------------------------------------------------------------------- */

static ptxgen_stream second[2];

static void *prepares(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    return NULL;
}

static void *launches(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_launch_on);
    return NULL;
}

/* On the second streams. */
static void elsewhere(void *(*f)(void *rank))
{
    for (int r = 0; r < 2; r++) {
        const ptxgen_stream first = rank[r].stream;
        rank[r].stream = second[r];
        second[r] = first;
    }
    world_all(&w, rank, f);
    for (int r = 0; r < 2; r++) {
        const ptxgen_stream other = rank[r].stream;
        rank[r].stream = second[r];
        second[r] = other;
    }
}

/* What the rank has asked of the driver since the last time: kernels, and waits for its event and records of it, in order;
 * in capitals on the second stream. */
static const char *asked(int r)
{
    static char text[100];
    int n = 0;
    uint64_t event = 0;
    for (int i = 0; i < fake_gpu->ncalls; i++) {
        const struct fake_call *c = &fake_gpu->call[i];
        const bool waits = !strcmp(c->name, "cuStreamWaitEvent"), records = !strcmp(c->name, "cuEventRecord");
        if ((c->stream != rank[r].stream && c->stream != second[r]) ||
            !(waits || records || !strncmp(c->name, "cuLaunchKernel", 14)))
            continue;
        text[n++] = (char)((waits ? 'w' : records ? 'r' : 'k') - (c->stream == second[r] ? 'a' - 'A' : 0));
        if (waits || records) {
            cr_expect(!event || event == c->a, "the rank has one event");
            event = c->a;
        }
    }
    text[n] = 0;
    return text;
}

static void asks(const char *calls)
{
    for (int r = 0; r < 2; r++) {
        cr_expect_eq(rank[r].status, PTXGEN_OK);
        cr_expect_str_eq(asked(r), calls);
    }
    fake_gpu->ncalls = 0;
}

/* Kernels that wait for rows may fill the device, so they follow each other; but with one stream that costs no call. */
Test(joined, streams_take_turns)
{
    nccl_kernels = true;
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 2, NULL);
    for (int r = 0; r < 2; r++)
        cr_assert_eq(ptxgen_stream_create(rank[r].s, rank[r].gpu, &second[r]), PTXGEN_OK);
    world_all(&w, rank, prepares);
    fake_gpu->ncalls = 0;
    world_all(&w, rank, launches);
    asks("k");
    elsewhere(prepares);
    int settled = 0;
    for (int i = 0; i < fake_gpu->ncalls; i++)
        settled += !strcmp(fake_gpu->call[i].name, "cuCtxSynchronize");
    cr_expect_eq(settled, 2, "the launches so far have no event");
    fake_gpu->ncalls = 0;
    world_all(&w, rank, launches);
    asks("wkr");
    elsewhere(launches);
    elsewhere(launches);
    asks("WKRWKR");
    fake_gpu->capturing = 1;
    world_all(&w, rank, launches);
    fake_gpu->capturing = 0;
    asks("k");
    for (int r = 0; r < 2; r++)
        ptxgen_stream_destroy(rank[r].gpu, second[r]);
    end();
}

/* Where one rank's device fails meanwhile, preparing fails on all ranks, and soon. */
Test(joined, a_second_stream_cannot_be_prepared_on_one_rank)
{
    nccl_kernels = true;
    nccl_seconds = 60;
    begin(ONE("i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]"), 2, NULL);
    for (int r = 0; r < 2; r++)
        cr_assert_eq(ptxgen_stream_create(rank[r].s, rank[r].gpu, &second[r]), PTXGEN_OK);
    world_all(&w, rank, prepares);
    ((struct nccl *)rank[0].comm->self)->joins = false; /* it alone has nothing to wait for */
    fake_gpu->fail = "cuCtxSynchronize";
    fake_gpu->fail_result = 700;
    const double begun = seconds();
    elsewhere(prepares);
    fake_gpu->fail = NULL;
    cr_expect_lt(seconds() - begun, nccl_seconds / 2);
    cr_expect_eq(rank[0].status, PTXGEN_RANKS);
    cr_expect(rank[1].status != PTXGEN_OK && rank[1].status != PTXGEN_RANKS);
    for (int r = 0; r < 2; r++) {
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_OK, "the communicator is as before");
        ptxgen_stream_destroy(rank[r].gpu, second[r]);
    }
    end();
}

/* ---- code for GPUs ----------------------------------------------------------------------------------------------- */

Test(joined, ptxas_takes_it)
{
    static const char *const arch[] = { "sm_75", "sm_80", "sm_90", "sm_100", "sm_120" };
    for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
        for (size_t k = 0; k < sizeof specs / sizeof *specs; k += 3) {
            char *ptx = ptx_of(STAGE_JOINED, specs[k], arch[i]);
            cr_expect_str_empty(assemble(ptx, arch[i]), "%s: %s", arch[i], assemble(ptx, arch[i]));
            cr_expect(occurrences(ptx, "st.relaxed.sys.global.u64") > 0);
            cr_expect(occurrences(ptx, "ld.relaxed.sys.global.u64") > 0);
            ptxgen_free(ptx);
        }
}
