/* SPDX-License-Identifier: Apache-2.0 */
/* test_strategies.c - every strategy row on every spec that it says it fits, at the edge sizes, in several modes; so a
 * new row is tested the moment it exists.
 */
#include <criterion/criterion.h>
#include <glob.h>

#include "harness.h"
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

static void check_sizes(struct harness *h, const char *path, const char *strategy, int tile)
{
    const int sizes[] = { 0, 1, 31, 0, 32, 33, 0, 255, 256, 257, tile - 1, tile, tile + 1, 2 * tile + 77 };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0,weak", "seed:5,stale,late" };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t size[8];
        spread(h, sizes[i], (int)i, size);
        harness_data_at(h, size, 3 + i, (int)(i % 4), i % 3 == 2);
        if (sizes[i] == 0 && refused_when_empty(h))
            continue;
        const char *mode = modes[i % 3];
        /* A strategy for a range of sizes refuses the others when it is pinned. */
        cr_assert(harness_check(h, mode) || strstr(h->text, "no case of "), "%s, %s, n = %d, --simt=%s: %s", path,
                  strategy, sizes[i], mode, h->text);
    }
}

static void check_spec(const char *path, const char *strategy, const char *arch, int *fitting)
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
    if (harness_open(&h, strrchr(path, '/') + 1, spec, arch, set)) {
        ++*fitting;
        check_sizes(&h, path, strategy, 64 * 16 * 2);
    } else {
        cr_assert(strstr(h.text, "plan: ") == h.text, "%s, %s: %s", path, strategy, h.text);
    }
    harness_close(&h);
    free(spec);
}

static void check_strategy(const struct strategy *row)
{
    glob_t specs;
    int fitting = 0;
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/*.yaml", 0, NULL, &specs), 0);
    for (size_t i = 0; i < specs.gl_pathc; i++)
        check_spec(specs.gl_pathv[i], row->name, "sm_90", &fitting);
    globfree(&specs);
    cr_assert_gt(fitting, 0, "%s fits no spec", row->name);
}

#define STRATEGY(id, kind, name, reference, tunables)                                                                  \
    Test(strategies, id) { check_strategy(strategy_by_name(name)); }
#include "lower/strategies.def"
