/* SPDX-License-Identifier: Apache-2.0 */
/* segment_sum.c - the largest sum of neighbours in an array that the ranks share: mpirun -n 4 segment_sum
 *
 * The operator is not commutative, and its state has four fields.  ptxgen combines the states of the ranks in the order
 * of the ranks, so the best stretch may cross any number of seams.
 */
#include "ranks.h"

enum { N = 1000003 };

/* The same numbers for any number of ranks: a small generator that starts anywhere. */
static int32_t number(int64_t i)
{
    const uint64_t x = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    return (int32_t)((x ^ x >> 29) * 0xBF58476D1CE4E5B9u >> 52) % 201 - 100;
}

int main(void)
{
    struct ranks r = { 0 };
    int64_t first = 0, count = 0;
    int32_t best = 0;
    int ok = ranks_open(&r, "../../specs/mss.yaml") &&
             ptxgen_dist_share(r.s, r.dist, N, r.rank, &first, &count) == PTXGEN_OK;
    int32_t *x = malloc(sizeof *x * (size_t)(count + 1));
    for (int64_t i = 0; ok && x && i < count; i++)
        x[i] = number(first + i);
    const ptxgen_arguments args = { &count, (const void *[]){ x }, (void *[]){ &best }, NULL };
    ok = ok && x && ptxgen_dist_launch(r.s, r.dist, &args) == PTXGEN_OK;
    if (ok && r.rank == 0)
        printf("largest sum of neighbours: %d\n", best);
    free(x);
    return ranks_close(&r, ok);
}
