/* SPDX-License-Identifier: Apache-2.0 */
/* test_joined_steps.c - stencils of several time steps, whose kernels compute some of them and take the rows of other ranks that
 * these need while they run: joined_ranks.h.
 */
#include <criterion/criterion.h>

#include "dist/nccl.h"
#include "joined_ranks.h"

#define SEVERAL(n, type, boundary, value) ONE(type, boundary, value) "iterate: {steps: " #n ", feedback: {x: y}}\n"

/* Kernels of eight, four and two steps and of one; of fewer where offsets or elements are long; one dimension more. */
static const char *const several[] = {
    SEVERAL(15, "i32[n, m]", "clamp", "x[-1, 0] + 3 * x[1, 0] - x[0, 1] + x[0, -1]"),
    SEVERAL(24, "i32[n, m]", "wrap", "x[-1, -1] - x[1, 1] + 5 * x"),
    SEVERAL(9, "f32[n, m]", "{constant: 2}", "0.25 * (x[-1, 0] + x[1, 0] + x[0, -1] + x[0, 1])"),
    SEVERAL(8, "i64[n, m]", "mirror", "x[-2, 1] + 5 * x[1, 0] - x[2, -1]"),
    SEVERAL(7, "f64[n, m]", "reflect", "0.5 * x[-1, 0] + 0.25 * x[1, -1] + 0.125 * x[1, 1]"),
    SEVERAL(11, "i32[n, m]", "{x: {n: clamp, m: wrap}}", "x[-1, 0] - x[1, 1] + i32(index(n)) + i32(n)"),
    SEVERAL(6, "i32[n, m]", "{x: {n: wrap, m: clamp}}", "x[-2, 0] - 3 * x[1, 0] + x[0, 2]"),
};

/* Rows narrower than a strip, of several strips, and of a number of vectors or not; more parts of the rows and fewer. */
static void check_several(int ranks, const char *modes)
{
    static const int64_t sizes[][2] = { { 70, 4 }, { 66, 131 }, { 81, 256 } };
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            agrees(several[i], ranks, (int64_t[8]){ sizes[k][0] * ranks, sizes[k][1] }, true, modes);
}

Test(joined_steps, two_ranks)
{
    replayed = true;
    check_several(2, NULL);
}
Test(joined_steps, three_ranks) { check_several(3, "seed:3"); }
Test(joined_steps, ranks_are_late_in_turn)
{
    nccl_late = true;
    check_several(2, "seed:5,race,uninit,sms:1");
}

/* In parts of so few rows that each block may read rows of other ranks, one block sends, and all take part in the exchange. */
Test(joined_steps, parts_of_few_rows)
{
    short_parts = 18;
    nccl_seconds = 20;
    agrees(several[0], 3, (int64_t[8]){ 212, 900 }, true, "sms:1,resident:1");
    agrees(several[1], 3, (int64_t[8]){ 212, 900 }, true, "seed:1,sms:1,resident:1");
}

/* Blocks that send come before those that compute, however few find room. */
Test(joined_steps, planes)
{
    nccl_seconds = 20;
    static const char *const modes[] = { NULL, "seed:4", "seed:2,race,uninit,sms:1" };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        agrees(SEVERAL(7, "i32[n, m, 128]", "clamp", "x[-1, 0, 0] - x[1, 0, 0] + x[0, -1, 0] - x[0, 0, -1] + 3 * x"), 2,
               (int64_t[8]){ 132, 40 }, true, modes[i]);
        agrees(SEVERAL(5, "i32[n, m, 131]", "wrap", "x[-1, 0, 0] + x[1, 0, 0] - x[0, 1, 0] - x[0, 0, 1] + 3 * x"), 2,
               (int64_t[8]){ 132, 33 }, true, modes[i]);
        agrees(SEVERAL(3, "i32[n, m, 131]", "clamp", "x[-1, 0, 0] + x[1, 0, 0] - x[0, 1, 0] - x[0, 0, 1] + 3 * x"), 2,
               (int64_t[8]){ 132, 33 }, true, modes[i]);
        agrees(SEVERAL(3, "i32[n, m, 7]", "mirror", "x[-1, 0, 0] - x[1, 0, 0]"), 3, (int64_t[8]){ 200, 5 }, true,
               modes[i]);
    }
}

/* Each step, or several, have an exchange of their own where other arrays have rows that are needed, or the caller wants it; or
 * where parts have too few rows. */
Test(joined_steps, others_are_not)
{
    static const char *const others[] = {
        "kind: stencil\ninputs: {x: 'i32[n, m]', c: 'i32[n, m]'}\nboundary: clamp\n"
        "iterate: {steps: 8, feedback: {x: y}}\noutputs: {y: {type: 'i32[n, m]', value: 'x[-1, 0] + c * x[1, 0]'}}\n",
        SEVERAL(8, "i32[n, m]", "clamp", "x[-3, 0] + x[1, 0]"),
        SEVERAL(8, "i8[n, m]", "clamp", "x[-1, 0] + x[1, 0]"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        agrees(others[i], 2, (int64_t[8]){ 260, 40 }, false, NULL);
    nccl_ends = 1;
    agrees(several[0], 2, (int64_t[8]){ 140, 131 }, false, NULL);
    nccl_ends = -1; /* single steps alone */
    agrees(several[0], 2, (int64_t[8]){ 140, 131 }, false, NULL);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 70, COLUMNS = 131 };
#define FAILS SEVERAL(15, "i32[n, m]", "clamp", "x[-1, 0] + x[1, 0]")

static ptxgen_status made(struct rank *r,
                          ptxgen_status (*f)(ptxgen_session *, ptxgen_dist *, const ptxgen_arguments *, ptxgen_stream))
{
    static int32_t x[RANKS_MAX][ROWS * COLUMNS], y[RANKS_MAX][ROWS * COLUMNS];
    const void *in[] = { x[r->end.rank] };
    void *out[] = { y[r->end.rank] };
    return f(r->s, r->dist, &(ptxgen_arguments){ (int64_t[]){ ROWS, COLUMNS }, in, out, NULL }, r->stream);
}

static long late; /* nanoseconds that the ranks after the first let the others wait */

static void *launches_once(void *user)
{
    struct rank *r = user;
    r->status = made(r, ptxgen_dist_prepare);
    if (r->end.rank)
        nanosleep(&(struct timespec){ .tv_nsec = late }, NULL);
    if (r->status == PTXGEN_OK)
        r->status = made(r, ptxgen_dist_launch_on);
    return NULL;
}

/* What the other one sends after all does not pass for the rows that were waited for; later kernels wait for nothing. */
Test(joined_steps, a_rank_that_comes_too_late)
{
    nccl_seconds = 0.4;
    late = 800000000;
    begin(FAILS, 2, NULL);
    const double begun = seconds();
    world_all(&w, rank, launches_once);
    cr_expect_lt(seconds() - begun, 10);
    cr_expect_eq(ptxgen_dist_check(rank[0].s, rank[0].dist), PTXGEN_RANKS);
    const struct dist_room *m = rank[0].dist->rooms->deep;
    cr_assert(m && m->joined);
    const struct halo_head *head = (const struct halo_head *)(uintptr_t)m->halo[0];
    cr_expect_eq(head->last, 0, "an exchange that failed is over");
    cr_expect_eq(head->fault, 1);
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

static ptxgen_status refuses(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (!l->prepares && stage == STAGE_JOINED_STEPS && l->d->comm->rank == 1)
        return PTXGEN_FINDING;
    return nccl_run(l, stage, args);
}

/* The others know it soon. */
Test(joined_steps, a_launch_that_is_refused)
{
    nccl_seconds = 120; /* compiling takes its time, too */
    begin(FAILS, 3, NULL);
    nccl_machine.run = refuses;
    const double begun = seconds();
    world_all(&w, rank, launches_once);
    cr_expect_lt(seconds() - begun, nccl_seconds / 4);
    for (int r = 0; r < 3; r++) {
        cr_expect_eq(rank[r].status, r == 1 ? PTXGEN_FINDING : PTXGEN_OK, "rank %d", r);
        cr_expect_eq(ptxgen_dist_check(rank[r].s, rank[r].dist), PTXGEN_RANKS, "rank %d", r);
    }
    world_free(&w, rank);
    world_close(&w, rank);
    harness_close(&h);
}

/* ---- plans and code ---------------------------------------------------------------------------------------------- */

/* Ranks whose parts differ take the same kernels, each as often. */
Test(joined_steps, kernels_do_not_depend_on_the_part)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *whole = NULL;
    const struct plan_options usual = { 0 };
    struct device device;
    const struct dist_split *split = NULL;
    const struct plan *plan = NULL;
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, several[0], strlen(several[0]), "spec", &whole), PTXGEN_OK);
    WITH_MEMORY_OR(s, , split = dist_derive(s, whole->problem, "n", 0));
    const struct problem *p = split->stage[STAGE_JOINED_STEPS].problem;
    cr_assert(p && device_by_name("sm_90", 0, &device));
    WITH_MEMORY_OR(s, , plan = plan_create(s, p, &device, &usual));
    const int64_t few[3] = { 100, 200 }, many[3] = { 100000, 20000 };
    int64_t param[PROBLEM_ARGS_MAX];
    for (int i = 0; i < p->nparams; i++)
        param[i] = 29;
    struct formula_env env = { .size = few, .param = param, .sms = 132, .arch = 90 };
    int several_steps = 0;
    for (int c = 0; c < plan->ncases; c++)
        for (int i = 0; i < plan->cases[c].code.nsteps; i++) {
            const struct formula *times = &plan->cases[c].code.step[i].repeat;
            env.size = few;
            const int64_t first = formula_eval(times, &env);
            env.size = many;
            cr_expect_eq(first, formula_eval(times, &env), "case %d, step %d", c, i);
            several_steps += times->n > 0 && first == 3;
        }
    cr_expect_gt(several_steps, 0, "29 steps are three times eight and five");
    ptxgen_session_destroy(s);
}

Test(joined_steps, ptxas_takes_it)
{
    static const char *const arch[] = { "sm_75", "sm_90", "sm_120" };
    for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
        for (size_t k = i; k < sizeof several / sizeof *several; k += 3) {
            char *ptx = ptx_of(STAGE_JOINED_STEPS, several[k], arch[i]);
            const char *said = assemble(ptx, arch[i]);
            cr_expect_str_empty(said, "%s: %s", arch[i], said);
            ptxgen_free(ptx);
        }
}
