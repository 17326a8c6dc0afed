/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist.c - what ranks promise: the same bits for any number of them, `init` once, parts of any length; and that
 * nothing hangs or passes unnoticed where a rank fails, dies, or does something else than the others.
 */
#include <criterion/criterion.h>

#include "support/ranks.h"

static const char sum_spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n";

/* Opens the whole and the ranks. */
static void begin(struct world *w, struct harness *h, struct rank *rank, const char *spec, int ranks)
{
    cr_assert(harness_open(h, "whole", spec, "sm_80", NULL), "%s", h->text);
    *w = (struct world){ .whole = h, .name = "whole", .spec = spec, .split = "n", .ranks = ranks };
    world_open(w, rank);
}

static void end(struct world *w, struct rank *rank)
{
    world_free(w, rank);
    world_close(w, rank);
    harness_close(w->whole);
}

static void run(struct world *w, struct rank *rank)
{
    world_free(w, rank);
    world_all(w, rank, rank_runs);
}

static void all_ok(const struct world *w, const struct rank *rank)
{
    for (int r = 0; r < w->ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* The results of a spec on so many ranks, whose parts are the shares, in `to`. */
static void bits(const char *spec, int ranks, int64_t n, void *to, size_t bytes)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, spec, ranks);
    harness_data(&h, n, 5, 0, 0);
    for (int r = 0; r < ranks; r++) {
        cr_assert_eq(rank[r].status, PTXGEN_OK, "%s", rank[r].text);
        ptxgen_dist_share(rank[r].s, rank[r].dist, n, r, &rank[r].first, &rank[r].count);
    }
    run(&w, rank);
    all_ok(&w, rank);
    cr_assert_null(world_collect(&w, rank));
    memcpy(to, h.output[0], bytes);
    end(&w, rank);
}

/* Beside neighbours: what a rank has of others' parts does not win against NaN, as an infinity would. */
Test(dist, least_of_nan_alone)
{
    float least = 0;
    bits("kind: reduce\ninputs: {x: 'f32[n]'}\nmap: sqrt(x[-1] * 0 - 1)\noperator: min\noutputs: {least: f32}\n", 3, 20,
         &least, sizeof least);
    cr_expect(isnan(least), "%g", (double)least);
}

/* … and is not seen where there is nothing before the first element. */
Test(dist, nothing_before_is_the_identity)
{
    float before[20] = { 0 };
    bits("kind: scan\ninputs: {x: 'f32[n]'}\nmap: x[-1] + x[1]\nmode: exclusive\noperator: max\n"
         "outputs: {before: 'f32[n]'}\n",
         3, 20, before, sizeof before);
    cr_expect(isinf(before[0]) && before[0] < 0 && isfinite(before[1]), "%g, %g", (double)before[0], (double)before[1]);
}

/* At both levels, sums of floats have the same bits on any number of ranks. */
static void same_bits(const char *spec, int64_t n, size_t bytes)
{
    static const int ranks[] = { 2, 3, 4, 7, 8 };
    char *one = malloc(bytes), *many = malloc(bytes);
    bits(spec, 1, n, one, bytes);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        bits(spec, ranks[i], n, many, bytes);
        cr_expect(!memcmp(one, many, bytes), "%d ranks give other bits than one: %s", ranks[i], spec);
    }
    free(one);
    free(many);
}

Test(dist, sum_has_the_same_bits_on_any_number_of_ranks)
{
    same_bits("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\ndeterminism: run\n", 5003, 4);
    same_bits("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\ndeterminism: device\n", 5003,
              4);
}

Test(dist, columns_have_the_same_bits_on_any_number_of_ranks)
{
    same_bits("kind: reduce\ninputs: {x: 'f32[n, 3]'}\nmap: x * x\nover: n\noperator: add\noutputs: {sum: 'f32[3]'}\n"
              "determinism: run\n",
              2003, 12);
}

Test(dist, scan_has_the_same_bits_on_any_number_of_ranks)
{
    same_bits("kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\ndeterminism: run\n", 3001,
              3001 * 4);
    same_bits("kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\ndirection: reverse\nmode: exclusive\n"
              "outputs: {y: 'f32[n]'}\ndeterminism: device\n",
              3001, 3001 * 4);
}

/* 2 x 2 matrices over integers: order matters, nothing rounds; and `init` comes in once. */
Test(dist, ordered_operator_with_init)
{
    static const char spec[] = "kind: reduce\ninputs: {a: 'i32[n]', b: 'i32[n]'}\nmap: {p: a, q: b, r: 1, s: b - a}\n"
                               "operator:\n  state: {p: i32, q: i32, r: i32, s: i32}\n  combine:\n"
                               "    p: a.p * b.p + a.q * b.r\n    q: a.p * b.q + a.q * b.s\n"
                               "    r: a.r * b.p + a.s * b.r\n    s: a.r * b.q + a.s * b.s\n"
                               "init: {p: 3, q: -1, r: 2, s: 5}\n"
                               "outputs:\n  m: {type: {p: i32, q: i32, r: i32, s: i32}}\n  n: {type: i64, value: n}\n";
    for (int ranks = 1; ranks <= 7; ranks++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            struct world w;
            struct harness h;
            struct rank rank[RANKS_MAX];
            begin(&w, &h, rank, spec, ranks);
            harness_data(&h, seed == 3 ? 0 : 100 + ranks, seed, 0, 0); /* none: `init` alone */
            cr_assert(harness_expect(&h), "%s", h.text);
            world_parts(&w, rank, h.size[0], seed);
            w.hub.late_rank = (int)seed % ranks;
            run(&w, rank);
            all_ok(&w, rank);
            cr_assert_null(world_collect(&w, rank));
            cr_assert(harness_compare(&h), "%d ranks: %s", ranks, h.text);
            end(&w, rank);
        }
}

/* ---- shares and parts -------------------------------------------------------------------------------------------- */

Test(dist, shares_cover_everything)
{
    static const char *const level[] = { "any", "device" };
    for (int k = 0; k < 2; k++) {
        char spec[200];
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        snprintf(spec, sizeof spec, "%sdeterminism: %s\n", sum_spec, level[k]);
        begin(&w, &h, rank, spec, 7);
        for (int64_t n = 0; n < 3000; n += 1 + n / 3) {
            int64_t at = 0;
            for (int r = 0; r < 7; r++) {
                int64_t first, count;
                cr_assert_eq(ptxgen_dist_share(rank[r].s, rank[r].dist, n, r, &first, &count), PTXGEN_OK);
                cr_assert(first == at && count >= 0 && (k || count <= n / 7 + 1), "n = %lld", (long long)n);
                at += count;
            }
            cr_assert_eq(at, n);
        }
        cr_assert_eq(ptxgen_dist_share(rank[0].s, rank[0].dist, -1, 0, &rank[0].first, &rank[0].count), PTXGEN_USAGE);
        cr_assert_eq(ptxgen_dist_share(rank[0].s, rank[0].dist, 1, 7, &rank[0].first, &rank[0].count), PTXGEN_USAGE);
        end(&w, rank);
    }
}

static void expect(const struct world *w, const struct rank *rank, ptxgen_status status, const char *words)
{
    for (int r = 0; r < w->ranks; r++) {
        cr_expect_eq(rank[r].status, status, "rank %d: %s: %s", r, ptxgen_status_text(rank[r].status), rank[r].text);
        cr_expect(strstr(rank[r].text, words), "rank %d: '%s' is not in: %s", r, words, rank[r].text);
    }
}

Test(dist, parts_at_odd_places_are_refused_where_bits_depend_on_them)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\ndeterminism: device\n",
          3);
    harness_data(&h, 100, 1, 0, 0);
    rank[0].count = 10, rank[1].first = 10, rank[1].count = 50, rank[2].first = 60, rank[2].count = 40;
    run(&w, rank);
    expect(&w, rank, PTXGEN_INVALID,
           "rank 1 begins at n = 10; with `determinism: device` parts begin at multiples of 16");
    end(&w, rank);
}

Test(dist, assumptions_are_about_the_whole)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank,
          "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\nassume: {n: {min: 32, multiple_of: "
          "8}}\n",
          3);
    harness_data(&h, 40, 1, 0, 0);
    rank[0].count = 13, rank[1].first = 13, rank[1].count = 27, rank[2].first = 40;
    run(&w, rank);
    all_ok(&w, rank);
    rank[1].count = 26;
    run(&w, rank);
    expect(&w, rank, PTXGEN_INVALID, "n = 39 of all ranks is not what `assume` promises");
    end(&w, rank);
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

static void *rank_checks(void *user)
{
    struct rank *r = user;
    r->status = ptxgen_dist_check(r->s, r->dist);
    rank_text(r);
    return NULL;
}
static void *rank_resets(void *user)
{
    struct rank *r = user;
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_reset(r->s, r->dist);
    rank_text(r);
    return NULL;
}

/* Rank 1 dies in one exchange after the other: the others end in bounded time, say so, refuse further launches, and work
 * again after a reset. */
Test(dist, dead_rank)
{
    for (int call = 0; call < 2; call++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, sum_spec, 3);
        harness_data(&h, 64, 1, 0, 0);
        world_parts(&w, rank, 64, 4);
        w.hub.limit_ms = 200;
        w.hub.fails_rank = 1;
        w.hub.fails_call = w.hub.calls[1] + call;
        run(&w, rank);
        expect(&w, rank, PTXGEN_RANKS, "an exchange with the other ranks failed");
        run(&w, rank);
        expect(&w, rank, PTXGEN_RANKS, "all ranks must call ptxgen_dist_reset() first");
        world_all(&w, rank, rank_checks);
        expect(&w, rank, PTXGEN_RANKS, "an earlier exchange failed");
        w.hub.dead = false;
        w.hub.arrived = 0;
        world_all(&w, rank, rank_resets);
        all_ok(&w, rank);
        cr_assert(harness_expect(&h), "%s", h.text);
        run(&w, rank);
        all_ok(&w, rank);
        world_collect(&w, rank);
        cr_assert(harness_compare(&h), "%s", h.text);
        end(&w, rank);
    }
}

/* A neighbour that dies. */
Test(dist, dead_neighbour)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(
        &w, &h, rank,
        "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: wrap\noutputs: {y: {type: 'f32[n]', value: 'x[-1] + x[1]'}}\n",
        3);
    harness_data(&h, 64, 1, 0, 0);
    world_parts(&w, rank, 64, 4);
    w.hub.limit_ms = 200;
    w.hub.fails_rank = 1;
    w.hub.fails_call = w.hub.calls[1] + 1;
    run(&w, rank);
    for (int r = 0; r < w.ranks; r++)
        cr_expect(rank[r].status == PTXGEN_RANKS && strstr(rank[r].text, "failed"), "rank %d: %s", r, rank[r].text);
    end(&w, rank);
}

/* Rank 1's own arguments are wrong: it says what, the others say who; the communicator goes on. */
static void *rank_misses(void *user)
{
    struct rank *r = user;
    const int64_t size[8] = { r->count };
    const void *const none[HARNESS_ARRAYS] = { NULL };
    if (r->end.rank != 1)
        return rank_runs(user);
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_launch(r->s, r->dist, &(ptxgen_arguments){ size, none, r->output, NULL });
    rank_text(r);
    return NULL;
}

Test(dist, one_rank_refuses_its_arguments)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, sum_spec, 3);
    harness_data(&h, 60, 1, 0, 0);
    rank[0].count = rank[1].count = rank[2].count = 20;
    rank[1].first = 20, rank[2].first = 40;
    world_all(&w, rank, rank_misses);
    cr_assert(rank[1].status == PTXGEN_USAGE && strstr(rank[1].text, "'x' is missing"), "%s", rank[1].text);
    cr_assert(rank[0].status == PTXGEN_RANKS && strstr(rank[0].text, "rank 1 failed: an argument is wrong"), "%s",
              rank[0].text);
    run(&w, rank);
    all_ok(&w, rank);
    end(&w, rank);
}

static void *rank_differs(void *user)
{
    struct rank *r = user;
    const int64_t size[2] = { r->count, r->end.rank == 1 ? 3 : 2 };
    float x[64] = { 0 }, y[64];
    ptxgen_diagnostics_clear(r->s);
    r->status =
        ptxgen_dist_launch(r->s, r->dist, &(ptxgen_arguments){ size, (const void *[]){ x }, (void *[]){ y }, NULL });
    rank_text(r);
    return NULL;
}

Test(dist, other_sizes_are_alike)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, "kind: reduce\ninputs: {x: 'f32[n, m]'}\nover: n\noperator: add\noutputs: {y: 'f32[m]'}\n", 3);
    rank[0].count = rank[1].count = rank[2].count = 4;
    world_all(&w, rank, rank_differs);
    cr_expect(strstr(rank[0].text, "rank 1 has another size 'm' than this rank"), "%s", rank[0].text);
    cr_expect(strstr(rank[1].text, "rank 0 has another size 'm' than this rank"), "%s", rank[1].text);
    expect(&w, rank, PTXGEN_RANKS, "another size");
    end(&w, rank);
}

/* Another order of collectives: rank 1 loads while the others launch. */
static void *rank_strays(void *user)
{
    struct rank *r = user;
    ptxgen_dist *other = NULL;
    if (r->end.rank != 1)
        return rank_runs(user);
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_load(r->s, r->comm, r->problem, NULL, &other);
    cr_assert_null(other);
    rank_text(r);
    return NULL;
}

Test(dist, another_order_of_calls)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(&w, &h, rank, sum_spec, 3);
    harness_data(&h, 64, 1, 0, 0);
    world_parts(&w, rank, 64, 4);
    world_all(&w, rank, rank_strays);
    expect(&w, rank, PTXGEN_RANKS, "all ranks make the same calls in the same order");
    cr_expect(strstr(rank[0].text, "rank 1 loads 'whole' as call 1, this rank launches 'whole' as call 1"), "%s",
              rank[0].text);
    world_all(&w, rank, rank_resets);
    all_ok(&w, rank);
    run(&w, rank);
    all_ok(&w, rank);
    end(&w, rank);
}

/* Another spec of the same name. */
static void *rank_opens_other(void *user)
{
    struct rank *r = user;
    struct world other = *r->world;
    if (r->end.rank != 1)
        return rank_opens(user);
    struct world *mine = r->world;
    other.spec = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: max\noutputs: {sum: f32}\n";
    r->world = &other;
    rank_opens(r);
    r->world = mine;
    return NULL;
}

Test(dist, another_spec)
{
    struct harness h;
    struct rank rank[RANKS_MAX];
    struct world w = { .whole = &h, .name = "whole", .spec = sum_spec, .split = "n", .ranks = 3 };
    cr_assert(harness_open(&h, "whole", sum_spec, "sm_80", NULL), "%s", h.text);
    hub_open(&w.hub, w.ranks);
    for (int r = 0; r < w.ranks; r++)
        rank[r] = (struct rank){ .world = &w, .end = { &w.hub, r } };
    world_all(&w, rank, rank_opens_other);
    expect(&w, rank, PTXGEN_RANKS, "has another spec of the name 'whole'");
    end(&w, rank);
}

/* What results read at places, and in sums, is there where states are folded: tables, and arrays whose own dimension is
 * combined as well. */
Test(dist, results_read_tables)
{
    static const char *const specs[] = {
        "kind: reduce\ninputs: {x: 'i32[n]', w: 'i32[k]'}\noperator: add\noutputs: {y: {type: i32, value: 'r + at(w, "
        "2)'}}\n",
        "kind: reduce\nover: n\ninputs: {x: 'i32[n, m]', w: 'i32[k]'}\noperator: add\n"
        "outputs: {y: {type: 'i32[m]', value: 'r + at(w, index(m)) + sum(k, w)'}}\n",
        "kind: reduce\ninputs: {x: 'i32[n, m]', w: 'i32[m]'}\nlet: {z: w * 2}\nmap: x * z\noperator: add\n"
        "outputs: {y: {type: i32, value: 'r + at(w, 1)'}}\n",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct world w;
        struct harness h;
        struct rank rank[RANKS_MAX];
        begin(&w, &h, rank, specs[i], 3);
        harness_data_at(&h, (const int64_t[8]){ 50, 4, 6, 6 }, 1, 0, 0);
        cr_assert(harness_expect(&h), "%s", h.text);
        world_parts(&w, rank, 50, 9);
        run(&w, rank);
        all_ok(&w, rank);
        cr_expect_null(world_collect(&w, rank));
        cr_expect(harness_compare(&h), "%s", h.text);
        end(&w, rank);
    }
}

/* Nothing reads what other ranks have: `index` and `n` are those of the whole. */
Test(dist, positions_are_those_in_the_whole)
{
    struct world w;
    struct harness h;
    struct rank rank[RANKS_MAX];
    begin(
        &w, &h, rank,
        "kind: stencil\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'i64[n]', value: 'index(n) * 1000 + n + i64(x)'}}\n",
        4);
    harness_data(&h, 50, 1, 0, 0);
    cr_assert(harness_expect(&h), "%s", h.text);
    world_parts(&w, rank, 50, 9);
    run(&w, rank);
    all_ok(&w, rank);
    world_collect(&w, rank);
    cr_assert(harness_compare(&h), "%s", h.text);
    end(&w, rank);
}
