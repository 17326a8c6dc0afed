/* SPDX-License-Identifier: Apache-2.0 */
/* test_dist_specs.c - every spec of specs/, split along each of its dimensions, on 1, 2, 3, 4 and 7 ranks against the
 * oracle; and the list of those that are refused, which must neither grow nor shrink unnoticed.  On 1, 4 and 7 ranks the
 * exchange is that of GPUs, between memories of a driver that is not there.
 */
#include <criterion/criterion.h>
#include <glob.h>

#include "refusals.h"
#include "support/nccl_ranks.h"

static const struct refusal refusals[] = {
#include "refused.def"
    { NULL, NULL, NULL },
};

static void check_run(struct world *w, struct rank *rank, const int64_t *size, uint64_t seed)
{
    struct harness *h = w->whole;
    int64_t here[8];
    memcpy(here, size, sizeof here);
    harness_data_at(h, here, seed, 0, 0);
    const int64_t total = h->size[world_split(w)];
    const bool valid = harness_expect(h); /* an operator without an identity refuses no elements */
    world_parts(w, rank, total, seed);
    if (ptxgen_problem_determinism(h->problem) == PTXGEN_DETERMINISM_DEVICE || seed % 2) /* shares that it asks for */
        for (int r = 0; r < w->ranks; r++)
            ptxgen_dist_share(rank[r].s, rank[r].dist, total, r, &rank[r].first, &rank[r].count);
    world_all(w, rank, rank_runs);
    for (int r = 0; r < w->ranks; r++) /* a spec's own pin may be for short rows */
        if (strstr(w->spec, "\nstrategy:") && strstr(rank[r].text, "no case of")) {
            world_free(w, rank);
            return;
        }
    for (int r = 0; r < w->ranks; r++)
        cr_assert_eq(rank[r].status, valid ? PTXGEN_OK : PTXGEN_INVALID, "%s, %s = %lld, rank %d of %d: %s", w->name,
                     w->split, (long long)total, r, w->ranks, rank[r].text);
    const char *odd = valid ? world_collect(w, rank) : NULL;
    cr_assert_null(odd, "%s: '%s' differs between ranks", w->name, odd);
    cr_assert(!valid || harness_compare(h), "%s, %s = %lld on %d ranks: %s", w->name, w->split, (long long)total,
              w->ranks, h->text);
    world_free(w, rank);
}

static void check_sizes(struct world *w, struct rank *rank)
{
    static const int64_t along[] = { 37, 300, 3, 1000, 0 };
    for (int round = 0; round < 5; round++) {
        int64_t size[8];
        for (int i = 0; i < 8; i++)
            size[i] = 2 + (i + round) % 4;
        const int split = world_split(w);
        size[split] = along[round];
        check_run(w, rank, size, (uint64_t)round + 11);
    }
}

static void check_spec(const char *path, int number, int *supported)
{
    static const int more[] = { 1, 4, 7 };
    const char *name = strrchr(path, '/') + 1;
    char *spec = harness_read(path);
    struct harness h;
    cr_assert(spec && harness_open(&h, name, spec, "sm_80", NULL), "%s: %s", path, h.text);
    for (int i = 0; i < ptxgen_problem_size_count(h.problem); i++) {
        const char *split = ptxgen_problem_size_name(h.problem, i);
        struct world w = { .whole = &h, .name = name, .spec = spec, .split = split, .ranks = 2 + number % 2 };
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

/* A fourth of the specs; PTXGEN_TEST_SPECS=N: one in N of these. */
static void check_part(int part)
{
    const int one_in = harness_one_in("PTXGEN_TEST_SPECS");
    glob_t specs;
    int supported = 0;
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/*.yaml", 0, NULL, &specs), 0);
    for (size_t i = (size_t)part; i < specs.gl_pathc; i += 4 * (size_t)one_in)
        check_spec(specs.gl_pathv[i], (int)i / 4, &supported);
    globfree(&specs);
    cr_assert_gt(supported, 10 / one_in);
}

Test(dist_specs, first) { check_part(0); }
Test(dist_specs, second) { check_part(1); }
Test(dist_specs, third) { check_part(2); }
Test(dist_specs, fourth) { check_part(3); }
