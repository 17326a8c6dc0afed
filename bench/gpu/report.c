/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - results as a table per problem, and as CSV. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

void report_add(struct report *r, const struct result *row)
{
    if (r->count == r->capacity) {
        int capacity = r->capacity ? 2 * r->capacity : 64;
        struct result *grown = realloc(r->row, (size_t)capacity * sizeof *grown);

        if (grown == NULL)
            return;
        r->row = grown;
        r->capacity = capacity;
    }
    r->row[r->count++] = *row;
}

/* ---- table ----------------------------------------------------------------------------------- */
static bool same_run(const struct result *a, const struct result *b)
{
    return strcmp(a->problem, b->problem) == 0 && strcmp(a->mode, b->mode) == 0 && a->size.n == b->size.n &&
           a->size.segment == b->size.segment && memcmp(a->size.extent, b->size.extent, sizeof a->size.extent) == 0;
}

/* The time of "ptxgen" in the same run, 0: none. */
static double own_time(const struct report *r, const struct result *row)
{
    for (int i = 0; i < r->count; i++)
        if (same_run(&r->row[i], row) && strcmp(r->row[i].impl, "ptxgen") == 0)
            return r->row[i].time.samples ? r->row[i].time.median : 0;
    return 0;
}

void size_text(const struct peer_size *size, char *text, size_t length)
{
    const int64_t *e = size->extent;
    int exponent = 0;

    if (e[2]) {
        if (e[0] > 1)
            snprintf(text, length, "%lldx%lldx%lld", (long long)e[0], (long long)e[1], (long long)e[2]);
        else
            snprintf(text, length, "%lldx%lld", (long long)e[1], (long long)e[2]);
        return;
    }
    while ((int64_t)1 << exponent < size->n)
        exponent++;
    if ((int64_t)1 << exponent == size->n)
        snprintf(text, length, "2^%d", exponent);
    else
        snprintf(text, length, "%lld", (long long)size->n);
    if (size->segment)
        snprintf(text + strlen(text), length - strlen(text), "/%lld", (long long)size->segment);
}

static void table_row(const struct report *r, const struct result *row, FILE *to)
{
    double own = own_time(r, row);
    char size[48];

    size_text(&row->size, size, sizeof size);
    fprintf(to, "%-10s %-6s %-13s %-22s", row->problem, row->mode, size, row->impl);
    if (row->time.samples == 0) {
        fprintf(to, " failed %s\n", row->why);
        return;
    }
    fprintf(to, " %10.2f %9.2f %9.2f %8.0f", row->time.median * 1e6, row->time.p10 * 1e6, row->time.p90 * 1e6,
            row->bytes / row->time.median * 1e-9);
    if (row->limit > 0)
        fprintf(to, " %6.1f", 100 * row->limit / row->time.median);
    else
        fprintf(to, " %6s", "-");
    if (own > 0)
        fprintf(to, " %6.2f", row->time.median / own);
    else
        fprintf(to, " %6s", "-");
    fprintf(to, " %8.2f  %s%s\n", row->time.host * 1e6,
            row->is_limit   ? "limit"
            : row->verified ? "ok"
                            : "WRONG ",
            row->why);
}

void report_tables(const struct report *r, FILE *to)
{
    const char *problem = "";

    for (int i = 0; i < r->count; i++) {
        if (strcmp(problem, r->row[i].problem) != 0)
            fprintf(to, "\n%-10s %-6s %-13s %-22s %10s %9s %9s %8s %6s %6s %8s\n", "problem", "mode", "n",
                    "implementation", "us", "p10", "p90", "GB/s", "%limit", "ratio", "host us");
        problem = r->row[i].problem;
        table_row(r, &r->row[i], to);
    }
}

/* ---- CSV ------------------------------------------------------------------------------------- */
void report_csv(const struct report *r, const ptxgen_gpu_info *gpu, const char *commit, FILE *to)
{
    fprintf(to, "# %s, driver for CUDA %d.%d, commit %s\n", gpu->name, gpu->driver / 1000, gpu->driver % 1000 / 10,
            commit);
    fputs("problem,mode,n,segment,implementation,us,p10,p90,host_us,bytes,limit_us,verified,extent\n", to);
    for (int i = 0; i < r->count; i++) {
        const struct result *x = &r->row[i];

        char shape[48] = "";

        if (x->size.extent[2])
            size_text(&x->size, shape, sizeof shape);
        if (x->time.samples)
            fprintf(to, "%s,%s,%lld,%lld,%s,%.4f,%.4f,%.4f,%.4f,%.0f,%.4f,%d,%s\n", x->problem, x->mode,
                    (long long)x->size.n, (long long)x->size.segment, x->impl, x->time.median * 1e6, x->time.p10 * 1e6,
                    x->time.p90 * 1e6, x->time.host * 1e6, x->bytes, x->limit * 1e6, x->verified, shape);
    }
}
