/* SPDX-License-Identifier: Apache-2.0 */
/* test_variants.c - the space of variants as data, and ids that pin. */
#include "lower/lower_impl.h"
#include "explore/variants.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>

/* ---- the space ---- */

struct seen {
    struct ptxgen_session *s;
    const struct problem *p;
    const struct device *d;
    int legal, illegal, strategies, pinned, strategies_legal;
    bool strategy_legal;
    char last[512], strategy[64];
};

/* Every strategy's 37th legal id, pinned, gives a plan whose own id is the same. */
static void check_pin(struct seen *seen, const ptxgen_variant *v)
{
    const struct tunable *set;
    int n;
    struct str again = { 0 };
    cr_assert(variant_parse(seen->s, v->id, &set, &n));
    const struct plan_options o = { .nset = n, .set = set };
    const struct plan *plan = plan_create(seen->s, seen->p, seen->d, &o);
    cr_assert_not_null(plan, "%s is legal but cannot be pinned", v->id);
    variant_print(plan, &again);
    cr_expect_str_eq(again.text, v->id);
    for (int i = 0; i < v->tunable_count; i++)
        for (int t = 0; t < TN_COUNT; t++)
            if (!strcmp(tunable_name((enum tunable_id)t), v->tunable[i]))
                cr_expect_eq(plan->cases[0].tunable[t], v->value[i], "%s: %s", v->id, v->tunable[i]);
    str_finish(&again);
    seen->pinned++;
}

static int look(const ptxgen_variant *v, void *user)
{
    struct seen *seen = user;
    cr_expect_neq(strcmp(seen->last, v->id), 0, "%s comes twice", v->id);
    snprintf(seen->last, sizeof seen->last, "%s", v->id);
    if (strcmp(seen->strategy, v->strategy) != 0) {
        seen->strategies++;
        seen->strategy_legal = false;
    }
    snprintf(seen->strategy, sizeof seen->strategy, "%s", v->strategy);
    seen->strategies_legal += !v->why_not && !seen->strategy_legal;
    seen->strategy_legal |= !v->why_not;
    if (v->why_not) {
        seen->illegal++;
        cr_expect_gt(strlen(v->why_not), 5);
    } else if (seen->legal++ % 37 == 0) {
        check_pin(seen, v);
    }
    return 0;
}

/* PTXGEN_TEST_SEEDS=N, above 1: of few numbers of threads and items, where sanitizers take their time. */
static void check_space(const char *text, int least)
{
    static const struct tunable few[] = { { "threads", "96,256", { 0 } }, { "items", "2,4", { 0 } } };
    const char *one_in = getenv("PTXGEN_TEST_SEEDS");
    SPEC_BEGIN(f);
    spec_build(&f, text);
    cr_assert_not_null(f.p, "%s", spec_text(&f));
    const struct device d = device_of("sm_90");
    const struct plan_options options = { .set = few, .nset = one_in && atoi(one_in) > 1 ? 2 : 0 };
    struct seen seen = { .s = &f.s, .p = f.p, .d = &d };
    const struct variants_request main = { .options = &options, .illegal = true, .main_only = true };
    cr_assert(variants_each(&f.s, f.p, &d, &main, look, &seen));
    int rows = 0, fitting = 0;
    for (int i = 0; i < strategy_count(); i++) {
        const char *why;
        const bool kind = strategy_row(i)->kind == f.p->kind;
        rows += kind;
        fitting += kind && strategy_row(i)->fits(f.p, &d, &f.s.arena, &why);
    }
    cr_expect_eq(seen.strategies_legal, fitting, "%d of %d strategies that fit have a legal variant",
                 seen.strategies_legal, fitting);
    cr_expect_eq(seen.strategies, rows, "every strategy of the kind appears, legal or not");
    cr_expect_gt(seen.legal, least);
    cr_expect_gt(seen.illegal, 0);
    cr_expect_gt(seen.pinned, least / 37);
    spec_end(&f);
}

Test(variants, reductions) { check_space(SUM, 500); }
Test(variants, scans) { check_space(AFFINE, 200); }
Test(variants, stencils) { check_space(STENCIL, 200); }

static int legal_only(const ptxgen_variant *v, void *user)
{
    cr_expect_null(v->why_not);
    return ++*(int *)user == 10;
}

Test(variants, lists_restrict_and_visits_stop)
{
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct device d = device_of("sm_90");
    const struct tunable set[] = { { "strategy", "reduce.block,reduce.gather", span_none() },
                                   { "threads", "96,128", span_none() },
                                   { "items", "2", span_none() },
                                   { "vector", "4", span_none() } };
    const struct plan_options o = { .nset = 4, .set = set };
    struct seen seen = { .s = &f.s, .p = f.p, .d = &d };
    cr_assert(variants_each(&f.s, f.p, &d, &(struct variants_request){ .options = &o, .illegal = true }, look, &seen));
    cr_expect_eq(seen.strategies, 2);
    const struct tunable wrong = { "thread", "96", span_none() }, words = { "threads", "many", span_none() };
    const struct plan_options none = { 0 }, unknown = { .nset = 1, .set = &wrong }, text = { .nset = 1, .set = &words };
    int n = 0;
    cr_assert(variants_each(&f.s, f.p, &d, &(struct variants_request){ .options = &none }, legal_only, &n));
    cr_expect_eq(n, 10);
    cr_expect_not(variants_each(&f.s, f.p, &d, &(struct variants_request){ .options = &unknown }, look, &seen));
    cr_expect_not(variants_each(&f.s, f.p, &d, &(struct variants_request){ .options = &text }, look, &seen));
    spec_end(&f);
}

Test(variants, candidates_are_those_of_the_table_and_the_usual_one)
{
    int value[CANDIDATES_MAX];
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    for (int t = 0; t < TN_COUNT; t++) {
        const int *listed, n = tunable_values((enum tunable_id)t, &listed);
        int lo, hi;
        tunable_limits((enum tunable_id)t, &lo, &hi);
        cr_expect_geq(n, 2, "%s has one candidate", tunable_name((enum tunable_id)t));
        for (int i = 0; i < n; i++) {
            cr_expect(listed[i] >= lo && listed[i] <= hi, "%s=%d", tunable_name((enum tunable_id)t), listed[i]);
            cr_expect(i == 0 || listed[i] > listed[i - 1], "%s=%d", tunable_name((enum tunable_id)t), listed[i]);
        }
    }
    cr_expect_eq(tunable_candidates(TN_ROWS, f.p, 3, value), 8); /* 1, 2, 3, 4 ... 64 */
    cr_expect_eq(value[2], 3);
    cr_expect_eq(tunable_candidates(TN_EVICT_FIRST, f.p, 1, value), 2);
    cr_expect_eq(tunable_candidates(TN_POINTS_Z, f.p, 1, value), 1, "there is no third dimension");
    spec_end(&f);
}

/* ---- counting and drawing ---- */

struct tally {
    int64_t legal, illegal;
    int strategies, distinct;
    char id[400][256];
};

static int tally_each(const ptxgen_variant *v, void *user)
{
    struct tally *t = user;
    if (v->tunable_count == 0)
        return 0;
    t->legal += !v->why_not;
    t->illegal += v->why_not != NULL;
    bool again = false;
    for (int i = 0; i < t->distinct; i++)
        again |= !strcmp(t->id[i], v->id);
    if (!again && t->distinct < 400)
        snprintf(t->id[t->distinct++], sizeof t->id[0], "%s", v->id);
    return 0;
}

static int tally_count(const ptxgen_variant_count *c, void *user)
{
    struct tally *t = user;
    t->strategies += !c->why_not;
    t->legal += c->legal;
    t->illegal += c->illegal;
    return 0;
}

/* Most FREE tunables take several values here, and a launch bound does not fit all numbers of threads: what is counted
 * without them, and without planning what is known to be illegal, is what is met with them, one by one.  Values that
 * are illegal with few others come before those that are legal with more of them. */
static void check_count(const char *text, const char *strategies, const char *arch)
{
    SPEC_BEGIN(f);
    spec_build(&f, text);
    const struct device d = device_of(arch);
    const struct tunable set[] = { { "strategy", strategies, span_none() },  { "threads", "100,1024,256", span_none() },
                                   { "items", "32,2", span_none() },         { "vector", "4,1,3", span_none() },
                                   { "blocks_per_sm", "1,8", span_none() },  { "cluster", "1,2,16", span_none() },
                                   { "evict_first", "0", span_none() },      { "smem_transpose", "0,1", span_none() },
                                   { "max_grid", "0,256", span_none() },     { "copy_stages", "0,3", span_none() },
                                   { "combine", "tree,redux", span_none() }, { "over_threads", "0", span_none() },
                                   { "block_x", "32,64", span_none() },      { "points_x", "1,2", span_none() },
                                   { "points_y", "1,4", span_none() },       { "steps", "1,3", span_none() } };
    const struct plan_options o = { .nset = sizeof set / sizeof *set, .set = set };
    struct variants_request request = { .options = &o, .illegal = true };
    static struct tally met, counted, parts;
    memset(&met, 0, sizeof met);
    memset(&counted, 0, sizeof counted);
    memset(&parts, 0, sizeof parts);
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &met));
    request.draw = 3; /* which counting takes no notice of */
    cr_assert(variants_count(&f.s, f.p, &d, &request, tally_count, &counted));
    request.draw = 0;
    for (request.part = 0, request.parts = 3; request.part < request.parts; request.part++)
        cr_assert(variants_count(&f.s, f.p, &d, &request, tally_count, &parts));
    cr_expect_gt(met.legal, 0);
    cr_expect_gt(met.illegal, 0);
    cr_expect_eq(counted.legal, met.legal, "%lld counted, %lld met", (long long)counted.legal, (long long)met.legal);
    cr_expect_eq(counted.illegal, met.illegal);
    cr_expect(parts.legal == met.legal && parts.illegal == met.illegal, "parts make %lld", (long long)parts.legal);
    spec_end(&f);
}

/* A state of 48 bytes, so that not all threads of a large block have room for theirs in a tree in shared memory. */
#define SIX                                                                                                            \
    "kind: reduce\ninputs: {x: 'f64[n]'}\nreductions:\n  a: {operator: min}\n  b: {operator: max}\n"                   \
    "  c: {operator: add}\n  d: {map: x * x, operator: add}\n  e: {map: -x, operator: max}\n"                          \
    "  f: {map: abs(x), operator: max}\n"                                                                              \
    "outputs: {a: f64, b: f64, c: f64, d: f64, e: f64, f: f64}\n"

Test(variants, counts_are_what_is_met)
{
    check_count(SUM, "reduce.gather,reduce.last_block", "sm_90");
    check_count(SIX, "reduce.atomic,reduce.block", "sm_90");
    check_count(SUM, "reduce.two_kernel", "sm_80");
    check_count("kind: reduce\ninputs: {x: 'i32[n]'}\noperator: {state: i32, combine: a * b + b}\noutputs: {y: i32}\n",
                "reduce.gather", "sm_90");
    check_count(AFFINE, "scan.resident,scan.lookback,scan.pipeline", "sm_90");
    check_count(STENCIL, "stencil.multi_write,stencil.stream,stencil.temporal", "sm_86");
}

Test(variants, a_drawing_is_random_without_repetition_and_shared)
{
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct device d = device_of("sm_90");
    const struct plan_options none = { 0 };
    struct variants_request request = { .options = &none, .draw = 300, .seed = 7 };
    static struct tally first, again, other;
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &first));
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &again));
    request.seed = 8;
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &other));
    cr_expect(first.legal == 300 && first.distinct == 300 && first.illegal == 0, "%d distinct of %lld", first.distinct,
              (long long)first.legal);
    int same = 0, per_strategy[2] = { 0 };
    for (int i = 0; i < first.distinct; i++) {
        same += !strcmp(first.id[i], other.id[i]);
        cr_expect_str_eq(first.id[i], again.id[i]);
        per_strategy[0] += !strncmp(first.id[i], "reduce.block@", 13);
        per_strategy[1] += !strncmp(first.id[i], "reduce.last_block@", 18);
    }
    cr_expect_lt(same, 10);
    cr_expect(per_strategy[0] == 60 && per_strategy[1] == 60, "%d, %d", per_strategy[0], per_strategy[1]);
    /* A small space is drawn as a whole. */
    const struct tunable set[] = { { "strategy", "reduce.block", span_none() },
                                   { "threads", "128", span_none() },
                                   { "vector", "4", span_none() } };
    const struct plan_options small = { .nset = 3, .set = set };
    static struct tally drawn, whole;
    request = (struct variants_request){ .options = &small, .main_only = true };
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &whole));
    request.draw = 300;
    cr_assert(variants_each(&f.s, f.p, &d, &request, tally_each, &drawn));
    cr_expect(whole.legal > 5 && drawn.legal == whole.legal && drawn.distinct == whole.distinct);
    spec_end(&f);
}

Test(variants, what_the_device_does_not_allow_is_refused)
{
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct device d = device_of("sm_86"); /* 1536 threads */
    const struct tunable set[] = { { "strategy", "reduce.block", span_none() },
                                   { "threads", "512", span_none() },
                                   { "min_blocks", "3", span_none() } };
    struct tunable more[3] = { set[0], set[1], { "min_blocks", "4", span_none() } };
    cr_expect_not_null(plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 3, .set = set }));
    cr_expect_null(plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 3, .set = more }));
    cr_expect_not_null(strstr(f.s.diags.last->text, "min_blocks: 4 blocks"));
    more[2] = (struct tunable){ "pdl", "1", span_none() };
    cr_expect_null(plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 3, .set = more }));
    cr_expect_not_null(strstr(f.s.diags.last->text, "dependent launch needs sm_90"));
    spec_end(&f);
}

/* ---- ids ---- */

Test(variants, ids_are_checked)
{
    static const char *const wrong[] = { "", "@threads=32", "reduce.block@threads", "reduce.block@threads,items=4",
                                         "reduce.block@=4" };
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct tunable *set;
    const struct device d = device_of("sm_90");
    int n;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const bool parsed = variant_parse(&f.s, wrong[i], &set, &n);
        cr_expect(!parsed || !plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = n, .set = set }), "'%s'",
                  wrong[i]);
    }
    cr_expect(variant_parse(&f.s, "default", &set, &n) && n == 0);
    cr_expect(variant_parse(&f.s, "reduce.block", &set, &n) && n == 1);
    spec_end(&f);
}

static int count_ids_without_cluster(const ptxgen_variant *v, void *user)
{
    int *counts = user; /* of ids that name no cluster, and of those that list one of one block */
    for (int t = 0; t < v->tunable_count; t++)
        counts[1] += !strcmp(v->tunable[t], "cluster") && v->value[t] == 1;
    counts[0] += !strstr(v->id, "cluster=");
    return 0;
}

/* Ids from before grids had clusters mean what they meant, and are what such variants are called. */
Test(variants, ids_without_a_cluster_mean_blocks_alone)
{
    static const char *const grids[] = { "reduce.last_block", "reduce.atomic", "reduce.two_kernel" };
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct device d = device_of("sm_90");
    for (int i = 0; i < 3; i++)
        for (int cluster = 1; cluster <= 4; cluster += 3) {
            const struct tunable set[] = { { "strategy", grids[i], span_none() },
                                           { "cluster", cluster == 1 ? "1" : "4", span_none() } };
            struct str id = { 0 };
            const struct tunable *from_id;
            int n;
            const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 2, .set = set });
            cr_assert(plan);
            variant_print(plan, &id);
            cr_expect_eq(strstr(id.text, ",cluster=4") != NULL, cluster == 4, "%s", id.text);
            cr_expect_eq(strstr(id.text, "cluster") != NULL, cluster == 4, "%s", id.text);
            cr_assert(variant_parse(&f.s, id.text, &from_id, &n));
            plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = n, .set = from_id });
            cr_expect(plan && plan->cases[0].tunable[TN_CLUSTER] == cluster, "%s", id.text);
            str_finish(&id);
        }
    const struct tunable few[] = { { "strategy", "reduce.atomic", span_none() } };
    const struct plan_options o = { .nset = 1, .set = few };
    const struct variants_request request = { .options = &o, .main_only = true };
    int counts[2] = { 0 };
    cr_assert(variants_each(&f.s, f.p, &d, &request, count_ids_without_cluster, counts));
    cr_expect_gt(counts[0], 0);
    cr_expect_eq(counts[1], 0, "%d", counts[1]);
    spec_end(&f);
}

Test(variants, a_variant_replaces_the_pin_of_the_spec)
{
    static const char text[] = SUM "strategy: {name: reduce.gather, blocks_per_sm: 3}\n";
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, text, strlen(text), "t", &p), PTXGEN_OK);
    o.variant = "reduce.block@threads=64,items=2";
    cr_assert_eq(ptxgen_plan_create(s, p, &o, &plan), PTXGEN_OK);
    char *id = ptxgen_plan_variant(plan);
    cr_expect(strstr(id, "reduce.block@threads=64,items=2,") == id, "%s", id);
    ptxgen_free(id);
    o.variant = "reduce.block@cluster=2";
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &plan), PTXGEN_USAGE);
    ptxgen_session_destroy(s);
}
