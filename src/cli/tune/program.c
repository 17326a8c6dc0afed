/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - `ptxgen tune` of a program: each stage by itself, on the arrays that it reads in the first step of the program.
 *
 *   for each stage: run the program on the device until the stage has run, keep what it has read, and tune it as a spec
 *
 * So the values are what the stage meets: where elements go, how long segments are, how many are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "ptxgen/stages.h"
#include "tune.h"

/* What one stage is to read. */
struct taking {
    struct job *whole, *to;
    int stage;
    bool seen;
    ptxgen_status status;
};

static int visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    struct job *whole = user;
    struct taking *t = whole->visitor;
    (void)step;
    if (stage != t->stage) {
        return 0;
    }
    for (int i = 0; i < t->to->ninputs && t->status == PTXGEN_OK; i++) {
        struct array *a = &t->to->input[i];
        a->source = "program";
        if (whole->gpu && a->bytes) {
            t->status = ptxgen_gpu_read(whole->session, whole->gpu, a->data, args->input[i], a->bytes);
        } else if (a->bytes) {
            memcpy(a->data, args->input[i], a->bytes);
        }
    }
    t->seen = true;
    return 1;
}

static int give(struct job *to, void *giver)
{
    struct taking *t = giver;
    t->to = to;
    t->whole->visit = visit;
    t->whole->visitor = t;
    int status = device_run(t->whole);
    if (status == EXIT_OK && t->status != PTXGEN_OK) {
        status = fail_call(t->whole->session, t->status, "reading from the GPU");
    }
    if (status == EXIT_OK && !t->seen) {
        status = fail(EXIT_WRONG, "the loop of the program has no step, so its stages read nothing");
    }
    return status;
}

static int tune_stage(struct job *whole, const struct options *o, int stage)
{
    const char *name = ptxgen_stage_name(whole->problem, stage);
    struct stage_options own;
    struct taking t = { .whole = whole, .stage = stage };
    char *journal = o->journal ? stage_journal(o->journal, name) : NULL;
    int status = stage_options(o, whole->problem, whole->size, stage, true, &own);
    own.of.journal = journal;
    if (status == EXIT_OK && o->journal && !journal) {
        status = fail(EXIT_DEVICE, "out of memory");
    }
    if (status == EXIT_OK && o->json) {
        json_text(stdout, name);
        fputs(": ", stdout);
    } else if (status == EXIT_OK) {
        printf("# stage %s, on what it reads in the first step of the program\n", name);
    }
    fflush(stdout);
    status = status ? status : tune_spec(&own.of, give, &t);
    stage_options_finish(&own);
    free(journal);
    return status;
}

/* Those that are tuned; the others are told. */
static bool wanted(const struct job *whole, int stage)
{
    if (stage_is_condition(whole->problem, stage)) {
        return false;
    }
    if (!ptxgen_problem_tunable(ptxgen_stage_problem(whole->problem, stage))) {
        say("note",
            "stage %s: there is nothing to tune: determinism: device wants one combination tree whatever is measured",
            ptxgen_stage_name(whole->problem, stage));
        return false;
    }
    return true;
}

int tune_program(struct job *whole)
{
    const struct options *o = whole->options;
    struct options plain = *o;
    if (o->strategy) {
        return fail(EXIT_USAGE, "--strategy is of one stage: --set STAGE:strategy=%s, or --stage=NAME", o->strategy);
    }
    plain.set.n = 0;
    plain.tuning = "off"; /* the file that will be written */
    plain.device = o->device && strcmp(o->device, "auto") != 0 ? o->device : "cuda";
    whole->options = &plain;
    int status = job_prepare(whole);
    if (status == EXIT_OK && o->json) {
        fputs("{\"name\": ", stdout);
        json_text(stdout, ptxgen_problem_name(whole->problem));
        fputs(", \"stages\": {", stdout);
    }
    for (int i = 0, n = 0; i < ptxgen_stage_count(whole->problem) && status == EXIT_OK; i++) {
        if (wanted(whole, i)) {
            fputs(n++ ? o->json ? ", " : "\n" : "", stdout);
            status = tune_stage(whole, o, i);
        }
    }
    if (status == EXIT_OK && o->json) {
        fputs("}}\n", stdout);
    }
    whole->options = o;
    return status;
}
