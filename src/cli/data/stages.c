/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - a spec with stages, verified: each stage against the reference, on the stage's own inputs.
 *
 * So an error does not grow from stage to stage, and a difference is told where it begins.
 */
#include <stdlib.h>
#include <string.h>

#include "stages.h"

struct stage_checks {
    ptxgen_gpu *gpu;         /* NULL: arrays are in host memory */
    struct verdict *verdict; /* per output of the program, then that of all stages */
    int status;
};

/* The arrays of one run of one stage, on the host. */
struct stage_arrays {
    struct job part; /* sizes, and outputs as those of a job */
    void **input;
    void **expected;
    double **bound;
};

static bool is_output(const ptxgen_problem *p, int i) { return i >= ptxgen_problem_input_count(p); }

static void info_of(const ptxgen_problem *p, int i, ptxgen_array_info *out)
{
    if (is_output(p, i)) {
        ptxgen_problem_output(p, i - ptxgen_problem_input_count(p), out);
    } else {
        ptxgen_problem_input(p, i, out);
    }
}

static ptxgen_status bring(const struct stage_checks *c, ptxgen_session *s, const void *from, size_t bytes, void **to)
{
    *to = calloc(1, bytes + 1);
    if (!*to) {
        return PTXGEN_NO_MEMORY;
    }
    if (!c->gpu && bytes) {
        memcpy(*to, from, bytes);
    }
    return c->gpu && bytes ? ptxgen_gpu_read(s, c->gpu, *to, from, bytes) : PTXGEN_OK;
}

/* What the reference leaves alone is what was there. */
static ptxgen_status take_output(const struct stage_checks *c, struct stage_arrays *a, int i, const void *from)
{
    struct array *out = &a->part.output[i];
    void *data = NULL;
    ptxgen_status status = bring(c, a->part.session, from, out->bytes, &data);
    out->data = out->block = data;
    out->expected = calloc(1, out->bytes + 1);
    out->bound = calloc((size_t)out->elements * (size_t)out->info.field_count + 1, sizeof *out->bound);
    a->expected[i] = out->expected;
    a->bound[i] = out->bound;
    if (status != PTXGEN_OK || !out->expected || !out->bound) {
        return status == PTXGEN_OK ? PTXGEN_NO_MEMORY : status;
    }
    memcpy(out->expected, data, out->bytes);
    return PTXGEN_OK;
}

static ptxgen_status take_all(const struct stage_checks *c, struct stage_arrays *a, const ptxgen_arguments *args)
{
    const ptxgen_problem *p = a->part.problem;
    const int inputs = ptxgen_problem_input_count(p), outputs = ptxgen_problem_output_count(p);
    ptxgen_status status = a->input && a->expected && a->bound && a->part.output ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    for (int i = 0; i < inputs + outputs && status == PTXGEN_OK; i++) {
        ptxgen_array_info info;
        info_of(p, i, &info);
        const int64_t elements = ptxgen_array_elements(&info, args->size);
        const size_t bytes = (size_t)elements * info.element_size;
        if (i < inputs) {
            status = bring(c, a->part.session, args->input[i], bytes, &a->input[i]);
        } else {
            a->part.output[i - inputs] = (struct array){ .info = info, .elements = elements, .bytes = bytes };
            status = take_output(c, a, i - inputs, args->output[i - inputs]);
        }
    }
    return status;
}

static void finish(struct stage_arrays *a)
{
    for (int i = 0; a->input && i < ptxgen_problem_input_count(a->part.problem); i++) {
        free(a->input[i]);
    }
    for (int i = 0; a->part.output && i < a->part.noutputs; i++) {
        free(a->part.output[i].block);
        free(a->part.output[i].expected);
        free(a->part.output[i].bound);
    }
    free(a->input);
    free(a->expected);
    free(a->bound);
    free(a->part.output);
}

static void compare(const struct job *j, const struct stage_arrays *a, const char *stage, int64_t step)
{
    struct stage_checks *c = j->checks;
    for (int i = 0; i < a->part.noutputs; i++) {
        struct verdict v;
        verify_output(&a->part.output[i], &v);
        for (int o = 0; o < j->noutputs; o++) {
            if (!strcmp(j->output[o].info.name, a->part.output[i].info.name)) {
                verdict_add(&c->verdict[o], &v);
            }
        }
        verdict_add(&c->verdict[j->noutputs], &v);
        if (v.different && c->status == EXIT_OK) {
            say("note", "stage %s, step %lld:", stage, (long long)step);
            report_difference(&a->part, &a->part.output[i], &v);
            c->status = EXIT_DIFFERENT;
        }
    }
}

int stages_visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    struct job *j = user;
    struct stage_checks *c = j->checks;
    const ptxgen_problem *p = ptxgen_stage_problem(j->problem, stage);
    struct stage_arrays a = { .part = { .options = j->options,
                                        .session = j->session,
                                        .problem = (ptxgen_problem *)(uintptr_t)p,
                                        .nsizes = ptxgen_problem_size_count(p),
                                        .noutputs = ptxgen_problem_output_count(p),
                                        .size = (int64_t *)(uintptr_t)args->size } };
    a.input = calloc((size_t)ptxgen_problem_input_count(p) + 1, sizeof *a.input);
    a.expected = calloc((size_t)a.part.noutputs + 1, sizeof *a.expected);
    a.bound = calloc((size_t)a.part.noutputs + 1, sizeof *a.bound);
    a.part.output = calloc((size_t)a.part.noutputs + 1, sizeof *a.part.output);
    ptxgen_status status = take_all(c, &a, args);
    const ptxgen_arguments on_host = { args->size, (const void *const *)a.input, a.expected, args->param };
    status = status == PTXGEN_OK ? ptxgen_error_bound(j->session, p, &on_host, a.bound) : status;
    if (status == PTXGEN_OK) {
        compare(j, &a, ptxgen_stage_name(j->problem, stage), step);
    } else {
        c->status = fail_call(j->session, status, "evaluating the reference");
    }
    finish(&a);
    return c->status != EXIT_OK;
}

bool stages_checked(struct job *j, ptxgen_gpu *gpu)
{
    if (!ptxgen_stage_count(j->problem)) {
        return false;
    }
    stages_checks_free(j->checks);
    j->checks = calloc(1, sizeof *j->checks);
    if (!j->checks) {
        return false;
    }
    *j->checks =
        (struct stage_checks){ .gpu = gpu, .verdict = calloc((size_t)j->noutputs + 1, sizeof(struct verdict)) };
    if (!j->checks->verdict) {
        stages_checks_free(j->checks);
        j->checks = NULL;
        return false;
    }
    for (int i = 0; i <= j->noutputs; i++) {
        j->checks->verdict[i].first = -1;
    }
    return true;
}

void stages_checks_free(struct stage_checks *c)
{
    if (c) {
        free(c->verdict);
    }
    free(c);
}

int stages_verdict(const struct job *j, struct verdict *verdict)
{
    if (!j->checks) {
        return fail(EXIT_DEVICE, "not enough memory for the reference");
    }
    if (verdict) {
        memcpy(verdict, j->checks->verdict, ((size_t)j->noutputs + 1) * sizeof *verdict);
    }
    return j->checks->status;
}
