/* SPDX-License-Identifier: Apache-2.0 */
/* heat.c - heat on a plate whose rows are shared by the ranks: mpirun -n 4 heat
 *
 * Every rank has its rows of the plate.  ptxgen exchanges the rows at the seams before each step, and adds up the heat of
 * all rows.  The spec asks for `determinism: device`, so the printed bits do not depend on the number of ranks.
 */
#include "ranks.h"

enum { ROWS = 300, COLUMNS = 200, STEPS = 50 };

/* A hot square in the middle of a cold plate. */
static float at_start(int64_t row, int64_t column)
{
    return row >= 120 && row < 180 && column >= 80 && column < 120 ? 100 : 20;
}

int main(void)
{
    struct ranks r = { 0 };
    int64_t first = 0, rows = 0;
    double heat = 0;
    int ok = ranks_open(&r, "heat.yaml") && ptxgen_dist_share(r.s, r.dist, ROWS, r.rank, &first, &rows) == PTXGEN_OK;
    const size_t bytes = sizeof(float) * (size_t)(rows * COLUMNS + 1);
    float *old = malloc(bytes), *new = malloc(bytes);
    for (int64_t i = 0; ok && old && i < rows * COLUMNS; i++)
        old[i] = at_start(first + i / COLUMNS, i % COLUMNS);
    const int64_t size[] = { rows, COLUMNS };
    const ptxgen_value steps = { .i = STEPS };
    const ptxgen_arguments args = { size, (const void *[]){ old }, (void *[]){ new, &heat }, &steps };
    ok = ok && old && new &&ptxgen_dist_launch(r.s, r.dist, &args) == PTXGEN_OK;
    if (ok && r.rank == 0)
        printf("heat after %d steps: %.17g\n", STEPS, heat);
    free(old);
    free(new);
    return ranks_close(&r, ok);
}
