/* SPDX-License-Identifier: Apache-2.0 */
/* test_strategies.c - every strategy row on every spec that it says it fits, at the edge sizes, in several modes; so a
 * new row is tested the moment it exists.
 *
 * A strategy for a range of sizes, or for aligned arrays, refuses the others; runs are counted apart from refusals, by
 * how large the problem is, and a row must have run at about one tile, and far below or beyond.
 *
 * PTXGEN_TEST_SPECS=N: a row runs on one in N of the specs that it fits.
 */
#include <criterion/criterion.h>
#include <glob.h>

#include "support/harness.h"
#include "lower/plan.h"

/* Does the spec accept no elements?  An identity-free one must refuse them. */
static bool refused_when_empty(struct harness *h)
{
    ptxgen_arguments args = { h->size, (const void *const *)h->input, h->expected, h->param };
    ptxgen_diagnostics_clear(h->s);
    if (ptxgen_evaluate(h->s, h->problem, &args) == PTXGEN_OK)
        return false;
    args.output = h->output;
    cr_assert_eq(ptxgen_host_run(h->s, h->host, &args, NULL), PTXGEN_INVALID,
                 "the oracle refuses what the kernels accept");
    return true;
}

/* One size is n, a different one from time to time; the others are small, so that a problem of several dimensions has
 * few elements. */
static void spread(struct harness *h, int n, int round, int64_t *size)
{
    const int count = ptxgen_problem_size_count(h->problem);
    for (int i = 0; i < count; i++)
        size[i] = 2 + (i + round) % 4;
    size[(count - 1 + round / 3) % count] = n;
}

enum { TILE = 64 * 16 * 2 };
enum class { SMALL, TILES, BEYOND, CLASSES };

/* Every class has a size with arrays that are aligned, and others. */
static const struct edge {
    int n, skew;
    enum class class;
} edges[] = {
    { 0, 0, SMALL },
    { 1, 1, SMALL },
    { 31, 2, SMALL },
    { 0, 0, SMALL }, /* of another dimension, as the third one below */
    { 32, 3, SMALL },
    { 33, 0, SMALL },
    { 0, 1, SMALL },
    { 255, 1, SMALL },
    { 256, 0, SMALL },
    { 257, 3, SMALL },
    { TILE - 1, 1, TILES },
    { TILE, 0, TILES },
    { TILE + 1, 2, TILES },
    { 2 * TILE + 77, 3, BEYOND },
    { 2 * TILE + 80, 0, BEYOND },
};

/* What became of a row: specs that it fits, runs that were compared, sizes that it refused. */
struct tally {
    int fitting, ran[CLASSES], refused;
};

static void check_sizes(struct harness *h, const char *path, const char *strategy, struct tally *tally)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0,weak", "seed:5,stale,late" };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const struct edge *e = &edges[i];
        int64_t size[8];
        spread(h, e->n, (int)i, size);
        /* aligned on the first spec of a row, turned by one from spec to spec */
        harness_data_at(h, size, 3 + i, (e->skew + tally->fitting - 1) % 4, i % 3 == 2 && e->skew);
        if (e->n == 0 && refused_when_empty(h))
            continue;
        const char *mode = modes[i % 3];
        const bool ran = harness_check(h, mode);
        cr_assert(ran || strstr(h->text, "no case of "), "%s, %s, n = %d, --simt=%s: %s", path, strategy, e->n, mode,
                  h->text);
        tally->ran[e->class] += ran;
        tally->refused += !ran;
    }
}

/* At about one tile, and at another size: one for short rows alone runs at no size beyond. */
static bool ran_enough(const struct tally *tally)
{
    return tally->ran[TILES] && (tally->ran[SMALL] || tally->ran[BEYOND]);
}

static void check_spec(const char *path, const char *strategy, const char *arch, struct tally *tally)
{
    const char *set[] = { "strategy", strategy, "threads", "64", NULL, NULL };
    char *spec = harness_read(path);
    struct harness h;
    cr_assert(spec, "%s", path);
    const char *pin = strstr(spec, "\nstrategy:"); /* a spec that asks for one is for that one alone */
    if (pin && !strstr(pin, strategy)) {
        free(spec);
        return;
    }
    if (!harness_plan(&h, strrchr(path, '/') + 1, spec, arch, set)) {
        cr_assert(strstr(h.text, "plan: ") == h.text, "%s, %s: %s", path, strategy, h.text);
    } else if (tally->fitting++ % harness_one_in("PTXGEN_TEST_SPECS") == 0 || !ran_enough(tally)) {
        cr_assert(harness_compile(&h), "%s, %s: %s", path, strategy, h.text);
        check_sizes(&h, path, strategy, tally);
    }
    harness_close(&h);
    free(spec);
}

static void check_strategy(const struct strategy *row)
{
    glob_t specs;
    struct tally tally = { .fitting = 0 };
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/*.yaml", 0, NULL, &specs), 0);
    for (size_t i = 0; i < specs.gl_pathc; i++)
        check_spec(specs.gl_pathv[i], row->name, "sm_90", &tally);
    globfree(&specs);
    cr_assert_gt(tally.fitting, 0, "%s fits no spec", row->name);
    cr_log_info("%s: %d specs, ran %d + %d + %d, refused %d", row->name, tally.fitting, tally.ran[SMALL],
                tally.ran[TILES], tally.ran[BEYOND], tally.refused);
    /* One for short rows alone runs at no size beyond. */
    cr_assert_gt(tally.ran[TILES], 0, "%s never ran at about one tile", row->name);
    cr_assert(tally.ran[SMALL] || tally.ran[BEYOND], "%s ran at about one tile only", row->name);
}

#define STRATEGY(id, kind, name, reference, tunables, chain)                                                           \
    Test(strategies, id) { check_strategy(strategy_by_name(name)); }
#include "lower/strategies.def"
