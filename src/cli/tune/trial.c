/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - one variant on a device: made ready, checked, timed.
 *
 * Racing: a variant whose first launches take twice as long as the best gets no samples; one whose first samples are
 * clearly slower is dropped; what is left takes part in the rounds of commands/tune.c.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"
#include "tune.h"

enum { FIRST_SAMPLES = 3 };
static const double hopeless = 2, clearly_slower = 1.1;

static void end(struct trial *x, enum outcome outcome, const char *why)
{
    x->outcome = outcome;
    free(x->why);
    x->why = why ? strdup(why) : NULL;
}

/* The first message of the session, which is cleared. */
static void end_by(struct trial *x, ptxgen_session *s, ptxgen_status status)
{
    ptxgen_diagnostic d;
    bool any = ptxgen_diagnostic_count(s) > 0 && ptxgen_diagnostic_get(s, 0, &d) == PTXGEN_OK;
    end(x, OUT_FAILED, any ? d.message : ptxgen_status_text(status));
    ptxgen_diagnostics_clear(s);
}

/* ---- ready ---- */
struct loading {
    struct tuner *t;
    const int *index;
    ptxgen_arguments args;
};

static void load_one(int k, void *user)
{
    struct loading *l = user;
    struct trial *x = &l->t->trial[l->index[k]];
    ptxgen_session *s;
    if (x->outcome != OUT_NEW || ptxgen_session_create(&s) != PTXGEN_OK) {
        return;
    }
    ptxgen_status status = ptxgen_load(s, l->t->gpu, l->t->space.item[l->index[k]].compiled.program, &x->loaded);
    status = status == PTXGEN_OK ? ptxgen_prepare(s, x->loaded, &l->args, l->t->subject.stream) : status;
    if (status != PTXGEN_OK) {
        end_by(x, s, status);
    }
    ptxgen_session_destroy(s);
}

static ptxgen_status host_create(struct tuner *t, int i)
{
    ptxgen_session *s = t->job.session;
    const struct compiling how = tune_compiling(t);
    const ptxgen_plan_options pin = space_pin(&how, t->space.item[i].id);
    ptxgen_compile_options options;
    ptxgen_plan *plan;
    compile_options(t->options, &options);
    ptxgen_status status = ptxgen_plan_create(s, t->job.problem, &pin, &plan);
    return status == PTXGEN_OK ? ptxgen_host_create(s, plan, &options, &t->trial[i].host) : status;
}

/* What compiling says about item i. ptxas takes some 10 ms for a KB of PTX, and the driver much the same: variants that
 * take seconds would leave no time for the others. */
static void judge_code(struct tuner *t, int i)
{
    enum { HEAVY = 4 };
    const struct compiled *c = &t->space.item[i].compiled;
    const size_t usual = t->space.item[0].compiled.bytes;
    char why[96];
    if (i > 0 && usual > 0 && c->bytes / HEAVY > usual) {
        snprintf(why, sizeof why, "%zu bytes of PTX, more than %d times the default's %zu", c->bytes, HEAVY, usual);
        end(&t->trial[i], OUT_FAILED, why);
    } else if (c->failure || !c->program) {
        end(&t->trial[i], OUT_FAILED, c->failure ? c->failure : "out of memory");
    } else if (c->same_as >= 0 && i > 0) {
        end(&t->trial[i], OUT_SAME, t->space.item[c->same_as].id);
    }
}

/* The largest first, so that none is left alone at the end. */
static int by_size(const void *a, const void *b, void *user)
{
    const struct tuner *t = user;
    const size_t x = t->space.item[*(const int *)a].compiled.bytes, y = t->space.item[*(const int *)b].compiled.bytes;
    return (x < y) - (x > y);
}

void tune_ready(struct tuner *t)
{
    int *index = calloc((size_t)t->space.n, sizeof *index), n = 0;
    for (int i = 0; index && i < t->space.n; i++) {
        if (t->trial[i].chosen) {
            index[n++] = i;
        }
    }
    const struct compiling how = tune_compiling(t);
    space_compile(&t->space, index, n, &how);
    space_duplicates(&t->space);
    for (int k = 0; k < n; k++) {
        judge_code(t, index[k]);
    }
    if (!t->on_host && index) {
        qsort_r(index, (size_t)n, sizeof *index, by_size, t);
        void **data = copies_at(&t->subject.copies, &t->job, 0);
        struct loading l = { t,
                             index,
                             { t->job.size, (const void *const *)data, data + t->job.ninputs, t->job.param } };
        parallel_for(n, 0, load_one, &l);
    }
    for (int k = 0; t->on_host && k < n; k++) {
        ptxgen_status status = t->trial[index[k]].outcome == OUT_NEW ? host_create(t, index[k]) : PTXGEN_OK;
        if (status != PTXGEN_OK) {
            end_by(&t->trial[index[k]], t->job.session, status);
        }
    }
    free(index);
}

void tune_unload(struct tuner *t, int i)
{
    struct trial *x = &t->trial[i];
    struct compiled *c = &t->space.item[i].compiled;
    if (x->loaded) {
        ptxgen_stream_release(NULL, x->loaded, t->subject.stream);
        ptxgen_loaded_destroy(x->loaded);
        x->loaded = NULL;
    }
    ptxgen_host_destroy(x->host);
    x->host = NULL;
    ptxgen_program_destroy(c->program);
    c->program = NULL;
}

/* ---- results ---- */
static ptxgen_status run_host(struct tuner *t, struct trial *x, double *seconds)
{
    struct job *j = &t->job;
    for (int i = 0; i < j->noutputs; i++) {
        memset(j->output[i].data, 0, j->output[i].bytes);
    }
    double begin = progress_now();
    ptxgen_status status = ptxgen_host_run(j->session, x->host, &j->args, t->options->simt);
    *seconds = progress_now() - begin;
    return status;
}

/* same: the results are the bits of the default, and were not read back. */
static ptxgen_status run_once(struct tuner *t, struct trial *x, double *seconds, bool *same)
{
    *same = false;
    if (t->on_host) {
        return run_host(t, x, seconds);
    }
    ptxgen_status status = subject_load(&t->subject, x->loaded);
    status = status == PTXGEN_OK ? subject_launch(&t->subject) : status;
    *same = status == PTXGEN_OK && comparer_same(&t->comparer);
    return status == PTXGEN_OK && !*same ? copies_read(&t->job, &t->subject.copies) : status;
}

/* The bounds of expect_default() are relative to the largest value. */
static void scale_bounds(struct array *a)
{
    double largest = 1;
    size_t fields = (size_t)a->info.field_count;
    for (size_t k = 0; k < (size_t)a->elements * fields; k++) {
        ptxgen_type type = a->info.field_type[k % fields];
        ptxgen_value v =
            ptxgen_value_load(type, a->expected + k / fields * a->info.element_size + a->info.field_offset[k % fields]);
        largest = type_is_float(type) && isfinite(v.f) ? fmax(largest, fabs(v.f)) : largest;
    }
    for (size_t k = 0; k < (size_t)a->elements * fields; k++) {
        a->bound[k] *= largest;
    }
}

/* The default's results become what others are compared with, where that is asked for. */
static bool keep_default(struct tuner *t)
{
    const struct job *j = &t->job;
    for (int i = 0; i < j->noutputs; i++) {
        struct array *a = &t->job.output[i];
        if (!t->by_oracle) {
            memcpy(a->expected, a->data, a->bytes);
            scale_bounds(a);
        }
        if (t->expected_bits && !(t->expected_bits[i] = malloc(a->bytes + 1))) {
            return false;
        }
        if (t->expected_bits) {
            memcpy(t->expected_bits[i], a->data, a->bytes);
        }
    }
    return true;
}

static void check_output(struct tuner *t, struct trial *x, int o)
{
    struct verdict v;
    char text[256];
    const struct array *a = &t->job.output[o];
    verify_output(a, &v);
    if (v.different) {
        snprintf(text, sizeof text, "%lld of %lld values of '%s' differ, first element %lld", (long long)v.different,
                 (long long)v.compared, a->info.name, (long long)v.first);
        end(x, OUT_WRONG, text);
    } else if (t->expected_bits && memcmp(a->data, t->expected_bits[o], a->bytes) != 0) {
        end(x, OUT_BITS, "other bits than the default's, which `determinism` forbids");
    }
}

static void check_results(struct tuner *t, int i)
{
    struct trial *x = &t->trial[i];
    if (i == 0 && !keep_default(t)) {
        end(x, OUT_FAILED, "out of memory");
    }
    for (int o = 0; o < t->job.noutputs && x->outcome == OUT_STARTED; o++) {
        check_output(t, x, o);
    }
    if (i == 0 && x->outcome == OUT_STARTED && !t->on_host) {
        comparer_keep(&t->comparer, &t->subject);
    }
}

/* ---- time ---- */
static ptxgen_status time_host(struct tuner *t, struct trial *x, int samples)
{
    double least = INFINITY, seconds = 0;
    ptxgen_status status = PTXGEN_OK;
    for (int k = 0; k < samples && status == PTXGEN_OK; k++) {
        status = run_host(t, x, &seconds);
        least = fmin(least, seconds);
    }
    x->seconds = least;
    x->samples = samples;
    return status;
}

int tune_time(struct tuner *t, int i, int samples)
{
    struct trial *x = &t->trial[i];
    struct timing timing = { 0 };
    ptxgen_status status = PTXGEN_OK;
    if (t->on_host) {
        status = time_host(t, x, samples);
    } else {
        t->subject.samples = samples;
        status = subject_load(&t->subject, x->loaded);
        status = status == PTXGEN_OK ? time_stream(&t->subject, &timing) : status;
        x->seconds = timing.median;
        x->samples = timing.samples * timing.launches;
    }
    return status == PTXGEN_OK ? EXIT_OK : fail_call(t->job.session, status, t->space.item[i].id);
}

void tune_try(struct tuner *t, int i)
{
    struct trial *x = &t->trial[i];
    int best = tune_best(t);
    double bar = best < 0 || i == 0 ? INFINITY : t->trial[best].seconds, seconds = 0;
    bool same;
    x->outcome = OUT_STARTED;
    x->fresh = true;
    journal_write(t, i); /* a run that ends the program is not tried again */
    ptxgen_status status = run_once(t, x, &seconds, &same);
    if (status != PTXGEN_OK) {
        end_by(x, t->job.session, status);
        return;
    }
    if (!same) {
        check_results(t, i);
    }
    if (x->outcome != OUT_STARTED) {
        return;
    }
    if (t->on_host) {
        x->seconds = seconds;
        x->samples = 1;
    } else {
        status = time_probe(&t->subject, &x->seconds);
        x->samples = 1;
        if (status == PTXGEN_OK && x->seconds < hopeless * bar) {
            struct timing timing;
            t->subject.samples = FIRST_SAMPLES;
            status = time_stream(&t->subject, &timing);
            x->seconds = timing.median;
            x->samples = timing.samples * timing.launches;
        }
    }
    status == PTXGEN_OK ? end(x, x->seconds > clearly_slower * bar ? OUT_SLOW : OUT_OK, NULL)
                        : end_by(x, t->job.session, status);
}
