/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - where the time from spec text to PTX goes.
 *
 *     stages [--reps N] [--arch sm_90] [--cases] SPEC.yaml...
 *
 * One thread, its CPU time in ms, the least of all repetitions stage by stage, so that other work on the machine counts
 * little.  A row is all cases of a spec, or of a stage where the spec has stages (the column `spec` is the whole then);
 * with --cases there is a row for each case besides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api_impl.h"
#include "llvmgen/llvmgen.h"
#include "ptxgen/stages.h"

enum { SPEC = LLVMGEN_STAGES, PLAN, COLUMNS };

struct settings {
    int reps;
    bool cases;
    const char *arch;
};

struct row {
    double ms[COLUMNS], total;
    size_t bytes;
    int cases;
};

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Code of a plan's cases [first, end), added to the row. */
static bool compile(ptxgen_session *s, const struct plan *plan, int first, int end, struct row *row)
{
    struct plan part = *plan;
    const struct llvmgen_options options = { .threads = 1, .stage = row->ms };
    part.cases = plan->cases + first;
    part.ncases = row->cases = end - first;
    struct program *program = program_from_plan(&part);
    const bool ok = program && llvmgen_fill(s, &part, &options, program, -1);
    for (int m = 0; ok && m < program->nmodules; m++)
        row->bytes += program->module[m].length;
    program_destroy(program);
    return ok;
}

struct subject {
    const char *path;
    int stage, stages, cases; /* of the stage, or of the spec; stages: 0 where it has none */
    char name[64];
};

/* One repetition; sets what the subject has. */
static bool repetition(struct subject *of, const struct settings *set, int first, struct row *row)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *whole;
    ptxgen_plan *plan = NULL;
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    options.arch = set->arch;
    const double begin = cpu_ms();
    bool ok = ptxgen_session_create(&s) == PTXGEN_OK && ptxgen_problem_from_file(s, of->path, &whole) == PTXGEN_OK;
    row->ms[SPEC] = cpu_ms() - begin;
    of->stages = ok ? ptxgen_stage_count(whole) : 0;
    const ptxgen_problem *problem = of->stages ? ptxgen_stage_problem(whole, of->stage) : whole;
    ok = ok && ptxgen_plan_create(s, problem, &options, &plan) == PTXGEN_OK;
    row->ms[PLAN] = cpu_ms() - begin - row->ms[SPEC];
    if (ok) {
        of->cases = plan->plan->ncases;
        snprintf(of->name, sizeof of->name, "%s",
                 first < 0 ? plan->plan->problem->name : plan->plan->cases[first].code.name);
        ok = compile(s, plan->plan, first < 0 ? 0 : first, first < 0 ? of->cases : first + 1, row);
    }
    row->total = cpu_ms() - begin;
    ptxgen_session_destroy(s);
    return ok;
}

/* The least time of each stage; the row of case `first`, or of all cases where it is negative. */
static bool measure(struct subject *of, const struct settings *set, int first)
{
    struct row least = { .total = 1e9 };
    for (int r = 0; r <= set->reps; r++) { /* the first one is cold */
        struct row row = { .bytes = 0 };
        if (!repetition(of, set, first, &row))
            return false;
        for (int i = 0; r > 0 && i < COLUMNS; i++)
            least.ms[i] = r > 1 && least.ms[i] < row.ms[i] ? least.ms[i] : row.ms[i];
        least.total = r > 0 && row.total < least.total ? row.total : least.total;
        least.bytes = row.bytes;
        least.cases = row.cases;
    }
    printf("| %s%s | %d | %.2f | %.2f |", first < 0 ? "" : "– ", of->name, least.cases, least.ms[SPEC], least.ms[PLAN]);
    for (int i = 0; i < LLVMGEN_STAGES; i++)
        printf(" %.2f |", least.ms[i]);
    printf(" %.2f | %zu |\n", least.total, least.bytes);
    return true;
}

int main(int argc, char **argv)
{
    struct settings set = { .reps = 11, .arch = "sm_90" };
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++)
        if (!strcmp(argv[i], "--cases"))
            set.cases = true;
        else if (!strcmp(argv[i], "--reps") && i + 1 < argc)
            set.reps = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--arch") && i + 1 < argc)
            set.arch = argv[++i];
        else
            return 2;
    if (i == argc || set.reps < 1)
        return 2;
    printf("| spec | cases | spec | plan | target | IR | passes | code | text | end | total ms | bytes |\n");
    printf("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool ok = true;
    for (; ok && i < argc; i++) {
        struct subject of = { .path = argv[i] };
        do {
            ok = measure(&of, &set, -1);
            for (int c = 0; ok && set.cases && c < of.cases; c++)
                ok = measure(&of, &set, c);
        } while (ok && ++of.stage < of.stages);
        if (!ok)
            fprintf(stderr, "stages: %s failed\n", argv[i]);
    }
    return !ok;
}
