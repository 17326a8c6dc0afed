/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - at which sizes a problem is run.
 *
 * One dimension: a list around powers of two, warps, tiles and vectors.  More: every value of a short list in every
 * dimension, in combinations that cover, not in all of them.  Two dimensions meet two partners per value (full: all);
 * from three on the combinations are an orthogonal array, where any two values of any two dimensions meet once.  The
 * sequential reference bounds how many points there are; one combination is large.
 */
#include <string.h>

#include "gpu_tests.h"

static const int64_t quick_sizes[] = { 0,    1,    31,   32,   33,    255,   256,    257,
                                       1000, 4095, 4096, 4097, 16385, 65537, 131075, 1000003 };
static const int64_t full_sizes[] = { 0,     1,     2,      3,      7,      15,      16,           17,    31,
                                      32,    33,    63,     65,     127,    128,     129,          255,   256,
                                      257,   511,   512,    513,    1000,   1023,    1025,         2047,  2049,
                                      4095,  4096,  4097,   8191,   8192,   8193,    9999,         16383, 16385,
                                      32769, 65537, 123457, 131075, 262147, 1000003, (1 << 20) + 7 };
static const int64_t sanitize_sizes[] = { 0, 1, 257, 4097, 40003 };
static const int64_t pair_sizes[] = { 1, 3, 7, 33, 100, 256, 1001, 4096, 70001 }; /* of two dimensions */
static const int64_t large_pair[] = { 1021, 997 };
static const int64_t long_pair[] = { 1, 70001 }; /* for what shares a row among blocks */
static const int64_t narrow_pairs[][2] = {       /* few columns, of which some kernels have forms of their own */
                                           { 1001, 4 }, { 9973, 8 }, { 13312, 4 }, { 7, 16 }, { 4099, 16 }, { 3001, 32 }
};
enum { NARROW_SANITIZED = 1 };
static const int64_t sanitize_pairs[] = { 1, 7, 33, 300, 1001 };
enum { SIDES = 5 }; /* a prime, which orthogonal arrays are made of */
static const int64_t side_sizes[SIDES] = { 1, 7, 33, 256, 1001 };

enum { PAIRS_MAX = 9 };
#define LENGTH(a) ((int)(sizeof(a) / sizeof *(a)))

/* The reference takes seconds for a million products of 4x4 matrices. */
static bool is_costly(const struct suite *t) { return t->fields >= 8; }

static int64_t points_max(const struct suite *t, int nsizes)
{
    if (t->sanitize || !t->gpu)
        return t->sanitize && nsizes > 2 ? 4000
                                         : 10000; /* racecheck takes minutes for six strategies of one 3-D stencil */
    return (nsizes > 2 ? (t->full ? 250000 : 60000) : t->full ? 500000 : 150000) / (is_costly(t) ? 8 : 1);
}

static void for_list(const struct suite *t, void (*visit)(void *, const int64_t *), void *context)
{
    const int64_t *list = t->sanitize ? sanitize_sizes : t->full ? full_sizes : quick_sizes;
    const int n = t->sanitize ? LENGTH(sanitize_sizes) : t->full ? LENGTH(full_sizes) : LENGTH(quick_sizes);

    for (int i = 0; i < n; i++)
        if (t->gpu || list[i] <= 4097)
            visit(context, &list[i]);
}

/* Which pairs: for each value of each dimension a small and a middling partner among those that fit, which differ from
 * value to value. */
static void choose_pairs(const struct suite *t, const int64_t *list, int n, bool chosen[PAIRS_MAX][PAIRS_MAX])
{
    for (int i = 0; i < n; i++) {
        int fit = 0;

        while (fit < n && list[i] * list[fit] <= points_max(t, 2))
            chosen[i][fit++] = t->full;
        if (fit > 0) {
            chosen[i][i % fit] = chosen[i][(i + fit / 2) % fit] = true;
            chosen[i % fit][i] = chosen[(i + fit / 2 + 1) % fit][i] = true;
        }
    }
}

static void for_pairs(const struct suite *t, void (*visit)(void *, const int64_t *), void *context)
{
    const int64_t *list = t->sanitize ? sanitize_pairs : pair_sizes;
    const int n = t->sanitize ? LENGTH(sanitize_pairs) : LENGTH(pair_sizes);
    bool chosen[PAIRS_MAX][PAIRS_MAX] = { { false } };

    choose_pairs(t, list, n, chosen);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            const int64_t size[] = { list[i], list[k] };

            if (chosen[i][k])
                visit(context, size);
        }
    for (int i = 0; i < (t->sanitize ? NARROW_SANITIZED : LENGTH(narrow_pairs)); i++)
        if (narrow_pairs[i][0] * narrow_pairs[i][1] <= points_max(t, 2))
            visit(context, narrow_pairs[i]);
    if (t->gpu && !is_costly(t))
        visit(context, t->sanitize ? long_pair : large_pair);
}

/* Rows of the orthogonal array; a row with too many points becomes smaller in its largest dimension until it fits. */
static void for_rows(const struct suite *t, int nsizes, void (*visit)(void *, const int64_t *), void *context)
{
    for (int row = 0; row < SIDES * SIDES; row++) {
        const int64_t most = row == SIDES * SIDES - 1 && !t->sanitize && t->gpu ? 1100000 : points_max(t, nsizes);
        int64_t size[SIZES_MAX], points = 1;

        for (int k = 0; k < nsizes && k < SIZES_MAX; k++) {
            const int i = row / SIDES, j = row % SIDES;

            size[k] = side_sizes[k == 0 ? i : (j + (k - 1) * i) % SIDES];
            points *= size[k];
        }
        for (int k; points > most; points /= 2) {
            k = 0;
            for (int m = 1; m < nsizes && m < SIZES_MAX; m++)
                k = size[m] > size[k] ? m : k;
            size[k] = (size[k] + 1) / 2;
        }
        visit(context, size);
    }
}

void for_sizes(const struct suite *t, int nsizes, void (*visit)(void *, const int64_t *), void *context)
{
    const int64_t none[SIZES_MAX] = { 0 };

    if (nsizes == 0)
        visit(context, none);
    else if (nsizes == 1)
        for_list(t, visit, context);
    else if (nsizes == 2)
        for_pairs(t, visit, context);
    else
        for_rows(t, nsizes, visit, context);
}
