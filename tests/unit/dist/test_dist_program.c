/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_program.c - programs of stages on 1, 2, 3, 4 and 7 ranks against one process: every application split along
 * each of its dimensions, or refused as a list says; loops, and how they end; what ranks tell each other.  On some numbers
 * of ranks the exchange is that of GPUs, between memories of a driver that is not there.
 */
#include <criterion/criterion.h>
#include <glob.h>

#include "refusals.h"
#include "support/nccl_ranks.h"

static const struct refusal refusals[] = {
#include "refused_programs.def"
    { NULL, NULL, NULL },
};

/* What one process gives. */
static void expect_alone(struct harness *h, const char *modes)
{
    const ptxgen_arguments args = { h->size, (const void *const *)h->input, h->expected, h->param };
    ptxgen_diagnostics_clear(h->s);
    if (ptxgen_host_run(h->s, h->host, &args, modes) != PTXGEN_OK) {
        char *text = ptxgen_diagnostics_text(h->s, 0);
        cr_assert_fail("alone: %s", text);
    }
}

/* Sums of floats may round otherwise: this part of the greatest value of an array. */
static void allow(struct harness *h, double part)
{
    for (int o = 0; o < ptxgen_problem_output_count(h->problem); o++) {
        ptxgen_array_info a;
        double most = 1;
        ptxgen_problem_output(h->problem, o, &a);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < h->count[o] * a.field_count; i++) {
                const int f = (int)(i % a.field_count);
                const ptxgen_value v = ptxgen_value_load(
                    a.field_type[f],
                    (char *)h->expected[o] + i / a.field_count * (int64_t)a.element_size + a.field_offset[f]);
                const bool is_float = a.field_type[f] >= PTXGEN_F16;
                if (!pass && is_float && fabs(v.f) > most && !isinf(v.f))
                    most = fabs(v.f);
                h->bound[o][i] = is_float ? part * most : 0;
            }
    }
}

static void set_param(struct harness *h, const char *name, ptxgen_value value)
{
    ptxgen_param_info p;
    for (int i = 0; i < ptxgen_problem_param_count(h->problem); i++) {
        ptxgen_problem_param(h->problem, i, &p);
        if (!strcmp(p.name, name))
            h->param[i] = value;
    }
}

/* One run on the ranks, compared with `expected`. */
static void check_same(struct world *w, struct rank *rank)
{
    world_all(w, rank, rank_runs);
    for (int r = 0; r < w->ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s, %s, rank %d of %d: %s", w->name, w->split, r, w->ranks,
                     rank[r].text);
    const char *odd = world_collect(w, rank);
    cr_assert_null(odd, "%s, %s: '%s' differs between ranks", w->name, w->split, odd);
    cr_assert(harness_compare(w->whole), "%s, %s on %d ranks: %s", w->name, w->split, w->ranks, w->whole->text);
    world_free(w, rank);
}

static void check_sizes(struct world *w, struct rank *rank)
{
    static const int64_t along[] = { 37, 101, 3 };
    struct harness *h = w->whole;
    for (int round = 0; round < 3; round++) {
        int64_t size[8];
        for (int i = 0; i < 8; i++)
            size[i] = 5 + (i + round) % 4;
        size[world_split(w)] = along[round];
        harness_data_at(h, size, (uint64_t)round + 3, 0, 0);
        set_param(h, "steps", (ptxgen_value){ .i = 2 + round });
        expect_alone(h, w->modes);
        allow(h, 1e-4);
        world_parts(w, rank, along[round], (uint64_t)round + 3);
        if (round == 1)
            for (int r = 0; r < w->ranks; r++)
                ptxgen_dist_share(rank[r].s, rank[r].dist, along[round], r, &rank[r].first, &rank[r].count);
        check_same(w, rank);
    }
}

static void check_spec(const char *path, int number, int *supported)
{
    static const int ranks[] = { 2, 3, 4, 7 }, more[] = { 1, 4, 2 };
    const char *name = strrchr(path, '/') + 1;
    char *spec = harness_read(path);
    struct harness h;
    cr_assert(spec && harness_open(&h, name, spec, "sm_80", NULL), "%s: %s", path, h.text);
    for (int i = 0; i < ptxgen_problem_size_count(h.problem); i++) {
        const char *split = ptxgen_problem_size_name(h.problem, i);
        struct world w = { .whole = &h, .name = name, .spec = spec, .split = split, .ranks = ranks[(number + i) % 4] };
        const bool ok = check_split(w, refusals, check_sizes);
        *supported += ok;
        w.over = &over_nccl;
        w.ranks = more[number % 3];
        if (ok)
            check_split(w, refusals, check_sizes);
    }
    harness_close(&h);
    free(spec);
}

/* Half of the applications; PTXGEN_TEST_SPECS=N: one in N of these. */
static void check_part(int part, int least)
{
    const int one_in = harness_one_in("PTXGEN_TEST_SPECS");
    glob_t specs;
    int supported = 0;
    setenv("PTXGEN_CACHE", "off", 1);
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/apps/*.yaml", 0, NULL, &specs), 0);
    for (size_t i = (size_t)part; i < specs.gl_pathc; i += 2 * (size_t)one_in)
        check_spec(specs.gl_pathv[i], (int)i / 2, &supported);
    globfree(&specs);
    cr_assert(one_in > 1 || supported >= least, "%d", supported);
}

Test(dist_program, applications) { check_part(0, 7); }
Test(dist_program, other_applications) { check_part(1, 5); }

/* ---- programs of this file --------------------------------------------------------------------------------------- */

static const char softmax[] = "inputs: {x: 'f32[n]'}\nstages:\n"
                              "  top: {kind: reduce, map: x, operator: max, outputs: {most: f32}}\n"
                              "  sum: {kind: reduce, map: exp(x - most), operator: add, outputs: {all: f32}}\n"
                              "  scale: {kind: map, outputs: {y: {type: 'f32[n]', value: exp(x - most) / all}}}\n"
                              "outputs: [y, all]\n";
/* Sums before and behind, of what neighbours make; scalars that go through a stage of their own. */
static const char mixed[] =
    "inputs: {x: 'i32[n, m]', w: 'i32[m]'}\nlet: {here: index(n)}\nstages:\n"
    "  blur: {kind: stencil, boundary: clamp, outputs: {b: {type: 'i32[n, m]', value: 'x[-1, 0] + x[1, 0] - x[0, "
    "-1]'}}}\n"
    "  columns: {kind: reduce, over: n, map: b, operator: add, init: 7, outputs: {c: {type: 'i32[m]', value: r}}}\n"
    "  width: {kind: reduce, inputs: [w, c], map: w * c, operator: add, outputs: {k: i64}}\n"
    "  along: {kind: scan, over: n, map: b + c, operator: add, outputs: {s: {type: 'i32[n, m]', value: s + i32(k)}}}\n"
    "  mark: {kind: map, outputs: {y: {type: 'i64[n, m]', value: i64(s) * 10 + here * n + k}}}\n"
    "outputs: [y, c]\n";
static const char heat[] =
    "inputs: {u: 'f32[n, m]', taken: 'i32[k]'}\nparams: {steps: {type: i32, value: 50}, eps: {type: f32, value: "
    "0.05}}\nstages:\n"
    "  sweep:\n    kind: stencil\n    boundary: clamp\n    reductions: {r: {map: abs(next - u), operator: max}}\n"
    "    outputs:\n      next: {type: 'f32[n, m]', value: 'u + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * "
    "u)'}\n"
    "      moved: {type: f32, value: r}\n"
    "  count: {kind: map, inputs: [taken], outputs: {next_taken: {type: 'i32[k]', value: taken + 1}}}\n"
    "outputs: [next, moved, next_taken]\n"
    "iterate: {steps: steps, feedback: {u: next, taken: next_taken}, until: moved < eps}\n";

static void begin(struct world *w, struct harness *h, struct rank *rank, const char *spec, int ranks,
                  const struct world_over *over)
{
    setenv("PTXGEN_CACHE", "off", 1);
    nccl_kernels = false;
    cr_assert(harness_open(h, "whole", spec, "sm_80", NULL), "%s", h->text);
    *w = (struct world){ .whole = h, .name = "whole", .spec = spec, .split = "n", .ranks = ranks, .over = over };
    world_open(w, rank);
    for (int r = 0; r < ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
}

static void end(struct world *w, struct rank *rank)
{
    world_free(w, rank);
    world_close(w, rank);
    harness_close(w->whole);
}

static void data(struct world *w, struct rank *rank, int64_t n, double part)
{
    int64_t size[8] = { n, 5, 5, 5, 5, 5, 5, 5 };
    harness_data_at(w->whole, size, 4, 0, 0);
    expect_alone(w->whole, NULL);
    allow(w->whole, part);
    world_parts(w, rank, n, (uint64_t)n);
}

static void on_ranks(const char *spec, double part)
{
    static const int ranks[] = { 1, 2, 3, 4, 7 };
    for (int i = 0; i < 10; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, spec, ranks[i / 2], i % 2 ? &over_nccl : NULL);
        for (int n = 1; n < 200; n = n * 3 + 2) {
            data(&w, rank, n, part);
            check_same(&w, rank);
        }
        end(&w, rank);
    }
}

Test(dist_program, results_for_the_next_stage) { on_ranks(softmax, 1e-5); }
Test(dist_program, every_kind_of_stage) { on_ranks(mixed, 0); }
Test(dist_program, loop_with_neighbours) { on_ranks(heat, 0); }

/* Before its last step, on all ranks, after a multiple of `every` steps. */
static void ends_early(const char *spec, int every)
{
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, spec, 3, i ? &over_nccl : NULL);
        data(&w, rank, 40, 0);
        check_same(&w, rank);
        const int steps = ((int32_t *)h.output[2])[0] - ((int32_t *)h.input[1])[0];
        cr_expect(steps > 1 && steps < 50 && steps % every == 0, "%d steps", steps);
        end(&w, rank);
    }
}

Test(dist_program, loop_ends_by_its_condition) { ends_early(heat, 1); }

Test(dist_program, loop_whose_condition_is_read_seldom)
{
    char spec[sizeof heat + 20], *brace = strcpy(spec, heat) + strlen(heat) - strlen("}\n");
    strcpy(brace, ", check_every: 4}\n");
    ends_early(spec, 4);
}

/* Without a step, what is fed back is what was given. */
Test(dist_program, no_step)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    char *spec = strdup(heat), *moved = strstr(spec, "next, moved");
    memmove(moved, "next", 4);
    memmove(moved + 4, "       ", 7);
    begin(&w, &h, rank, spec, 3, NULL);
    data(&w, rank, 40, 0);
    set_param(&h, "steps", (ptxgen_value){ .i = 0 });
    expect_alone(&h, NULL);
    cr_assert(!memcmp(h.expected[0], h.input[0], 40 * 5 * sizeof(float)));
    check_same(&w, rank);
    set_param(&h, "steps", (ptxgen_value){ .i = -1 });
    world_all(&w, rank, rank_runs);
    for (int r = 0; r < 3; r++)
        cr_expect(rank[r].status == PTXGEN_INVALID && strstr(rank[r].text, "the number of steps is negative"), "%s",
                  rank[r].text);
    end(&w, rank);
    free(spec);
}

/* Sums of floats have the bits of one rank where `determinism` asks for that, also in stages that each rank computes. */
Test(dist_program, same_bits)
{
    static const char *const head = "determinism: run\n";
    char spec[sizeof softmax + 40];
    float one[400], many[400];
    snprintf(spec, sizeof spec, "%s%s", head, softmax);
    for (int ranks = 1; ranks < 8; ranks++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, spec, ranks, NULL);
        data(&w, rank, 400, 1e-5);
        for (int r = 0; r < ranks; r++)
            ptxgen_dist_share(rank[r].s, rank[r].dist, 400, r, &rank[r].first, &rank[r].count);
        cr_expect(ranks == 1 || rank[1].first % 16 == 0);
        check_same(&w, rank);
        memcpy(ranks == 1 ? one : many, h.output[0], sizeof one);
        cr_expect(ranks == 1 || !memcmp(one, many, sizeof one), "%d ranks", ranks);
        end(&w, rank);
    }
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

static int fails_after; /* the run of rank 1 that fails; -1: none */
static struct dist_machine host_machine;
static struct dist_transport host_transport;
static ptxgen_status may_fail(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    if (l->d->comm->rank == 1 && !l->prepares && fails_after-- == 0)
        return PTXGEN_FINDING;
    return l->d->comm->gpu ? nccl_run(l, stage, args) : dist_machine_host.run(l, stage, args);
}

/* Each run of a stage fails once on one rank: all ranks learn it, none waits in vain, and the next launch is in order. */
Test(dist_program, a_stage_fails_on_one_rank, .timeout = 900)
{
    static const char *const specs[] = { heat, mixed };
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, specs[i], 3, NULL);
        host_machine = dist_machine_host;
        host_machine.run = may_fail;
        host_transport = dist_transport_host;
        host_transport.machine = &host_machine;
        for (int r = 0; r < 3; r++)
            rank[r].comm->transport = &host_transport;
        data(&w, rank, 40, 0);
        ptxgen_status status = PTXGEN_FINDING;
        for (int run = 0; status != PTXGEN_OK; run++) {
            fails_after = run;
            world_all(&w, rank, rank_runs);
            status = rank[1].status;
            cr_assert_lt(run, 300);
            for (int r = 0; r < 3 && status != PTXGEN_OK; r++)
                cr_assert_eq(rank[r].status, r == 1 ? PTXGEN_FINDING : PTXGEN_RANKS, "run %d, rank %d: %s", run, r,
                             rank[r].text);
            world_free(&w, rank);
        }
        cr_expect_geq(fails_after, 0);
        fails_after = -1;
        check_same(&w, rank);
        end(&w, rank);
    }
}

/* On GPUs a launch without a condition tells nothing, and goes on; with one, all learn it. */
Test(dist_program, a_stage_fails_on_one_gpu, .timeout = 900)
{
    static const char *const specs[] = { heat, mixed };
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, specs[i], 3, &over_nccl);
        nccl_machine.run = may_fail;
        data(&w, rank, 40, 0);
        for (int run = 0; run < 3; run++) {
            fails_after = run;
            world_all(&w, rank, rank_runs);
            for (int r = 0; r < 3; r++)
                cr_assert_eq(rank[r].status,
                             r == 1             ? PTXGEN_FINDING
                             : specs[i] == heat ? PTXGEN_RANKS
                                                : PTXGEN_OK,
                             "run %d, rank %d: %s", run, r, rank[r].text);
            world_free(&w, rank);
        }
        fails_after = -1;
        check_same(&w, rank);
        end(&w, rank);
    }
}

/* Whichever exchange fails: all ranks learn it in bounded time. */
Test(dist_program, an_exchange_fails, .timeout = 900)
{
    for (int call = 1; call < 8; call++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, heat, 3, NULL);
        data(&w, rank, 40, 0);
        w.hub.limit_ms = 300;
        w.hub.fails_rank = 1;
        w.hub.fails_call = call;
        world_all(&w, rank, rank_runs);
        for (int r = 0; r < 3; r++)
            cr_assert(rank[r].status == PTXGEN_RANKS && strstr(rank[r].text, "an exchange with"),
                      "call %d, rank %d: %s", call, r, rank[r].text);
        end(&w, rank);
    }
}

static void *runs_with_another_param(void *user)
{
    struct rank *r = user;
    struct harness mine = *r->world->whole, *const whole = r->world->whole;
    struct world other = *r->world;
    if (r->end.rank == 1) {
        mine.param[1].f = 0.25;
        other.whole = &mine;
        r->world = &other;
    }
    rank_runs(r);
    if (r->end.rank == 1)
        other.whole = whole;
    return NULL;
}

Test(dist_program, params_differ)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, heat, 3, NULL);
    data(&w, rank, 40, 0);
    world_all(&w, rank, runs_with_another_param);
    for (int r = 0; r < 3; r++) {
        cr_expect(rank[r].status == PTXGEN_RANKS && strstr(rank[r].text, "has another param 'eps'"), "%s",
                  rank[r].text);
        rank[r].world = &w;
    }
    end(&w, rank);
}

static void refused(const char *spec, const char *split, bool sends, const char *words)
{
    struct harness h;
    struct rank r = { .end = { .rank = 0 } };
    struct world w = { .whole = &h, .name = "whole", .spec = spec, .split = split, .ranks = 1 };
    ptxgen_comm_callbacks with = PTXGEN_COMM_CALLBACKS_INIT;
    ptxgen_dist_options o = PTXGEN_DIST_OPTIONS_INIT;
    o.split = split;
    hub_open(&w.hub, 1);
    r.world = &w;
    r.end.hub = &w.hub;
    with.allgather = hub_allgather;
    with.sendrecv = sends ? hub_sendrecv : NULL;
    with.user = &r.end;
    cr_assert_eq(ptxgen_session_create(&r.s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(r.s, spec, strlen(spec), "whole", &r.problem), PTXGEN_OK);
    ptxgen_diagnostics_clear(r.s);
    cr_assert_eq(ptxgen_comm_from_host(r.s, &with, 0, 1, &r.comm), PTXGEN_OK);
    cr_expect_eq(ptxgen_dist_load(r.s, r.comm, r.problem, &o, &r.dist), PTXGEN_UNSUPPORTED);
    rank_text(&r);
    cr_expect(strstr(r.text, words) && strstr(r.text, "PTXG-3008"), "'%s' is not in: %s", words, r.text);
    rank_close(&r);
    hub_close(&w.hub);
}

Test(dist_program, refusals)
{
    refused(heat, "m2", true, "there is no dimension called m2 to split among the ranks");
    refused(heat, "n", false, "neighbours are on other ranks, and the communicator has no `sendrecv`");
    refused("inputs: {x: 'f32[n]', key: 'i32[m]', v: 'f32[m]'}\nstages:\n"
            "  bins: {kind: reduce, by: key, map: v, operator: add, outputs: {b: 'f32[k]'}}\n"
            "  scale: {kind: map, inputs: [x], outputs: {y: {type: 'f32[n]', value: x * 2}}}\noutputs: [b, y]\n",
            "n", true, "whole:3:16: error: stage bins: each rank would compute this for itself, and get other bits");
}

/* The first dimension of the first stage. */
Test(dist_program, dimension_that_is_split)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    cr_assert(harness_open(&h, "whole", heat, "sm_80", NULL), "%s", h.text);
    w = (struct world){ .whole = &h, .name = "whole", .spec = heat, .ranks = 1 };
    world_open(&w, rank);
    cr_assert_eq(rank[0].status, PTXGEN_OK, "%s", rank[0].text);
    cr_expect_str_eq(ptxgen_dist_split(rank[0].dist), "n");
    w.split = "n";
    world_close(&w, rank);
    harness_close(&h);
}
