/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - search for the fastest variant of a spec at given sizes.
 *
 *   gather the space; read the journal
 *   until the limit or the budget is reached: choose a batch, compile and load it on all cores, then one by one run,
 * check against the reference, take a few samples, drop what is slow measure the best again in rounds, with more
 * samples for fewer variants, the default among them write the fastest into the tuning file
 *
 * On the host (--device cpu) the same happens with the host executor's time: a way to try the command, not to tune.
 */
#include <stdlib.h>
#include <string.h>

#include "ptxgen/stages.h"
#include "tune/tune.h"

enum { BATCH = 96, HOST_LIMIT = 20, LIMIT = 500, ORACLE_LOG = 27 };

/* ---- options ---- */
static int number(const char *option, const char *text, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    const char *wrong = text ? parse_count(text, out) : NULL;
    return wrong || *out < 0 ? fail(EXIT_USAGE, "--%s=%s: %s", option, text, wrong ? wrong : "must not be negative")
                             : EXIT_OK;
}

static int parse_numbers(struct tuner *t)
{
    const struct options *o = t->options;
    int64_t budget = 0;
    int status = number("limit", o->limit, t->on_host ? HOST_LIMIT : LIMIT, &t->limit);
    status = status ? status : number("seed", o->seed, 1, &t->seed);
    status = status ? status : number("samples", o->samples, t->on_host ? 3 : 31, &t->samples);
    status = status ? status : number("budget", o->budget, 0, &budget);
    t->budget = (double)budget;
    if (status == EXIT_OK && (t->samples < 1 || t->samples > SAMPLES_MAX)) {
        status = fail(EXIT_USAGE, "--samples=%s: expected 1 to %d", o->samples, SAMPLES_MAX);
    }
    return status;
}

/* ---- the device ---- */
static int find_device(struct tuner *t)
{
    const char *device = t->options->device ? t->options->device : "auto";
    int ordinal = 0;
    if (t->on_host) {
        snprintf(t->job.device, sizeof t->job.device, "host executor");
        int status = choose_arch(t->job.session, t->options, &t->arch);
        t->arch = t->arch ? t->arch : "sm_80";
        return status;
    }
    int status = strcmp(device, "auto") != 0 ? device_ordinal(device, &ordinal) : EXIT_OK;
    status = status ? status : device_open(&t->job, ordinal, &t->gpu);
    if (status != EXIT_OK) {
        return status;
    }
    t->arch = t->options->arch ? t->options->arch : ptxgen_gpu_arch(ptxgen_gpu_describe(t->gpu));
    return t->arch ? EXIT_OK : fail(EXIT_DEVICE, "no code can be generated for %s", t->job.device);
}

int tune_grow(struct tuner *t)
{
    if (t->trials >= t->space.n) {
        return EXIT_OK;
    }
    struct trial *grown = realloc(t->trial, sizeof *grown * (size_t)t->space.n);
    if (!grown) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    memset(grown + t->trials, 0, sizeof *grown * (size_t)(t->space.n - t->trials));
    t->trial = grown;
    t->trials = t->space.n;
    return EXIT_OK;
}

/* Arrays off their alignment take cases that a variant for aligned ones leaves out. */
struct compiling tune_compiling(const struct tuner *t)
{
    return (struct compiling){ .options = t->options,
                               .path = t->path,
                               .arch = t->arch,
                               .size = t->options->unaligned ? NULL : t->job.size,
                               .multiprocessors = t->gpu ? ptxgen_gpu_describe(t->gpu)->multiprocessors : 0,
                               .keep = true };
}

/* ---- the reference ---- */
static double eps_of(ptxgen_type type)
{
    switch (type) {
    case PTXGEN_F16: return 1.0 / 1024;
    case PTXGEN_BF16: return 1.0 / 128;
    case PTXGEN_F32: return 1.2e-7;
    case PTXGEN_F64: return 2.3e-16;
    default: return 0;
    }
}

/* The default's results are compared within what rounding in another order may do: eps x square root of the elements,
 * times the largest value (tune/trial.c). */
static int expect_default(struct tuner *t, double elements)
{
    double root = 64;
    while (root * root < elements) {
        root *= 2;
    }
    for (int i = 0; i < t->job.noutputs; i++) {
        struct array *a = &t->job.output[i];
        size_t n = (size_t)a->elements * (size_t)a->info.field_count;
        a->expected = calloc(1, a->bytes + 1);
        a->bound = calloc(n + 1, sizeof *a->bound);
        if (!a->expected || !a->bound) {
            return fail(EXIT_DEVICE, "not enough memory for the reference");
        }
        for (size_t k = 0; k < n; k++) {
            a->bound[k] = root * eps_of(a->info.field_type[k % (size_t)a->info.field_count]);
        }
    }
    return EXIT_OK;
}

static int make_reference(struct tuner *t)
{
    double elements = 0;
    for (int i = 0; i < t->job.ninputs; i++) {
        double n = (double)t->job.input[i].elements;
        elements = n > elements ? n : elements;
    }
    t->by_oracle =
        t->options->reference ? !strcmp(t->options->reference, "oracle") : elements <= (double)(1ll << ORACLE_LOG);
    if (ptxgen_problem_determinism(t->job.problem) > PTXGEN_DETERMINISM_ANY) {
        t->expected_bits = calloc((size_t)t->job.noutputs + 1, sizeof *t->expected_bits);
    }
    return t->by_oracle ? verify_evaluate(&t->job) : expect_default(t, elements);
}

/* ---- the search ---- */
static bool out_of_time(const struct tuner *t)
{
    return t->budget > 0 && progress_now() - t->begin - t->subject.waited > t->budget;
}

/* Unloads the variants that are slower than the best by this factor. */
static void drop_behind(struct tuner *t, double factor)
{
    int best = tune_best(t);
    for (int i = 1; best >= 0 && i < t->space.n; i++) {
        struct trial *x = &t->trial[i];
        bool loaded = x->loaded || x->host;
        if (loaded && (x->outcome != OUT_OK || x->seconds > factor * t->trial[best].seconds)) {
            x->outcome = x->outcome == OUT_OK ? OUT_SLOW : x->outcome;
            tune_unload(t, i);
        }
    }
}

/* What is not tried yet is not chosen any more. */
static void leave_batch(struct tuner *t)
{
    for (int i = 0; i < t->space.n; i++) {
        t->trial[i].chosen = false;
    }
}

/* The best so far goes into the tuning file at once: whatever ends the program, it is not lost. */
static int save_best(struct tuner *t)
{
    int best = tune_best(t);
    if (!t->tuning || best < 0 || best == t->saved - 1) {
        return EXIT_OK;
    }
    t->saved = best + 1;
    return tune_write_tuning(t, t->tuning);
}

static int try_batch(struct tuner *t, int all)
{
    int status = EXIT_OK;
    tune_ready(t);
    for (int i = 0; i < t->space.n && status == EXIT_OK; i++) {
        struct trial *x = &t->trial[i];
        if (!x->chosen) {
            continue;
        }
        x->chosen = false;
        if (x->outcome == OUT_NEW) {
            tune_try(t, i);
        }
        t->measured += x->outcome != OUT_SAME;
        journal_write(t, i);
        if (x->outcome != OUT_OK) {
            tune_unload(t, i);
        }
        tune_progress(t, t->measured, all);
        if (interrupted()) {
            leave_batch(t);
        }
        if (i == 0 && x->outcome != OUT_OK) {
            return fail(x->outcome == OUT_WRONG ? EXIT_DIFFERENT : EXIT_INTERNAL, "the default does not work: %s",
                        x->why ? x->why : outcome_name(x->outcome));
        }
        status = save_best(t);
    }
    drop_behind(t, 1.1);
    return status;
}

static int search(struct tuner *t)
{
    int all = t->limit < t->all ? (int)t->limit : t->space.n, status = EXIT_OK;
    interrupt_notes();
    while (status == EXIT_OK && !interrupted() && !out_of_time(t) && tune_choose(t, BATCH) > 0) {
        status = try_batch(t, all);
    }
    tune_progress(t, all, all);
    return status;
}

/* What an earlier run left among the best is loaded again for the last rounds. */
static void bring_back(struct tuner *t)
{
    int best = tune_best(t), n = 0;
    for (int i = 1; i < t->space.n; i++) {
        struct trial *x = &t->trial[i];
        if (x->outcome == OUT_OK && !x->loaded && !x->host && x->seconds < 1.05 * t->trial[best].seconds && n < BATCH) {
            x->outcome = OUT_NEW;
            x->chosen = true;
            n++;
        }
    }
    if (n > 0) {
        tune_ready(t);
    }
    for (int i = 1; i < t->space.n; i++) {
        if (t->trial[i].chosen) {
            t->trial[i].chosen = false;
            if (t->trial[i].outcome == OUT_NEW) {
                tune_try(t, i);
            }
        }
    }
}

/* Rounds: more samples for fewer variants. Thrice through the last few, so that a drift of the device meets all of
 * them. */
static int finish(struct tuner *t)
{
    static const double factor[] = { 1.05, 1.02, 1.01 };
    int status = EXIT_OK;
    if (!interrupted()) {
        bring_back(t);
    }
    for (size_t r = 0; r < sizeof factor / sizeof *factor; r++) {
        int samples = r == 0 ? (int)t->samples / 3 + 1 : (int)t->samples;
        drop_behind(t, factor[r]);
        for (int i = 0; i < t->space.n && status == EXIT_OK && !interrupted(); i++) {
            if (t->trial[i].loaded || t->trial[i].host) {
                status = tune_time(t, i, samples);
                journal_write(t, i);
            }
        }
    }
    return status;
}

/* The file, or NULL: none is written. */
static char *tuning_file(const struct tuner *t)
{
    const char *said = t->options->tuning;
    return said ? (strcmp(said, "off") != 0 ? strdup(said) : NULL) : t->on_host ? NULL : ptxgen_tuning_path();
}

static int write_results(struct tuner *t)
{
    const struct options *o = t->options;
    bool any = tune_best(t) >= 0;
    int status = t->tuning && any ? tune_write_tuning(t, t->tuning) : EXIT_OK;
    status = status ? status : tune_report(t);
    status = status || !o->emit_def || !any ? status : tune_emit_row(t, o->emit_def);
    status = status || !o->export ? status : tune_export(t, o->export);
    if (status == EXIT_OK && interrupted()) {
        status = EXIT_INTERRUPTED;
    }
    return status;
}

static int tune(struct tuner *t)
{
    ptxgen_status opened = t->on_host ? PTXGEN_OK : subject_open(&t->job, t->gpu, &t->subject);
    if (opened != PTXGEN_OK) {
        return fail_call(t->job.session, opened, "allocating");
    }
    t->tuning = tuning_file(t);
    int status = make_reference(t);
    static char words[1024]; /* for an interrupt */
    status = status ? status : journal_open(t);
    if (status == EXIT_OK) {
        snprintf(words, sizeof words,
                 "interrupted: what was measured is kept in %s; the same command goes on from there\n",
                 t->journal_path);
        interrupt_says(words);
    }
    t->begin = progress_now();
    status = status ? status : search(t);
    status = status ? status : finish(t);
    return status ? status : write_results(t);
}

static int prepare(struct tuner *t, struct options *native)
{
    t->on_host = t->options->device && !strcmp(t->options->device, "cpu");
    int status = parse_numbers(t);
    status = status ? status : load_problem(t->job.session, t->options, t->path, &t->job.problem);
    if (status == EXIT_OK && !ptxgen_problem_tunable(t->job.problem)) {
        return fail(EXIT_USAGE,
                    "%s: there is nothing to tune: determinism: device wants one combination tree whatever "
                    "is measured",
                    t->path);
    }
    status = status ? status : job_prepare(&t->job);
    status = status || !t->give ? status : t->give(&t->job, t->giver);
    status = status ? status : find_device(t);
    if (status != EXIT_OK) {
        return status;
    }
    native->arch = t->arch;
    t->native = native;
    status = tune_gather(t);
    return status ? status : tune_grow(t);
}

static void close_tuner(struct tuner *t)
{
    for (int i = 0; i < t->trials; i++) {
        tune_unload(t, i);
        free(t->trial[i].why);
    }
    for (int i = 0; t->expected_bits && i < t->job.noutputs; i++) {
        free(t->expected_bits[i]);
    }
    free(t->expected_bits);
    free(t->trial);
    free(t->tuning);
    free(t->journal_path);
    space_finish(&t->space);
    if (t->journal) {
        fclose(t->journal);
    }
    comparer_finish(&t->comparer);
    if (t->subject.gpu) {
        subject_close(&t->subject);
    }
    ptxgen_gpu_close(t->gpu);
    job_finish(&t->job);
    ptxgen_session_destroy(t->job.session);
}

int tune_spec(const struct options *o, int (*give)(struct job *j, void *giver), void *giver)
{
    struct tuner t = {
        .options = o, .job = { .options = o }, .path = o->operands.item[0], .give = give, .giver = giver
    };
    if (ptxgen_session_create(&t.job.session) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    struct options native = *o;
    int status = prepare(&t, &native);
    status = status ? status : tune(&t);
    close_tuner(&t);
    return status;
}

int cmd_tune(const struct options *o)
{
    struct job whole = { .options = o };
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "'tune' takes one spec: ptxgen tune SPEC.yaml");
    }
    if (ptxgen_session_create(&whole.session) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(whole.session, o, o->operands.item[0], &whole.problem);
    if (status == EXIT_OK) {
        status = ptxgen_stage_count(whole.problem) ? tune_program(&whole) : tune_spec(o, NULL, NULL);
    }
    job_finish(&whole);
    ptxgen_session_destroy(whole.session);
    return status;
}
