/* SPDX-License-Identifier: Apache-2.0 */
/* execute.c - one case: the plan that its settings ask for, compiled once, launched with the data of each run.
 *
 * Settings beyond tunables: `arch`; `only` plans for the sizes of the first run alone; `known` for all of them as
 * known; `draw` SEED takes a random legal variant by its id; `pin` SEED pins some of such a variant's tunables; `tuned`
 * SEED puts one into a tuning file for sizes near (`near:SIZE`) those of the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

struct subject {
    struct device *d;
    const struct one_case *c;
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_program *program;
    ptxgen_loaded *loaded;
    ptxgen_host *host;
    char variant[512];
    bool pinned, drawn;
    int nsettings;
    ptxgen_setting setting[NAMES_MAX];
    char words[NAMES_MAX][64], values[NAMES_MAX][512];
};

static void say(const struct subject *x, const char *what, char *why)
{
    ptxgen_diagnostic g = { 0 };

    for (int i = 0; i < ptxgen_diagnostic_count(x->s); i++) {
        ptxgen_diagnostic_get(x->s, i, &g);
        if (g.severity == PTXGEN_ERROR)
            break;
    }
    snprintf(why, WHY, "%s: PTXG-%04d %s%s%s", what, g.code, g.message ? g.message : "(no message)",
             x->variant[0] ? "; variant " : "", x->variant);
}

/* ---- variants -------------------------------------------------------------------------------- */
enum { DRAWN = 40 }; /* shared among the strategies */

/* Counts variants, and keeps the one whose turn it is. */
struct choice {
    int at, turn;
    char id[512];
};

static int take_turn(const ptxgen_variant *v, void *user)
{
    struct choice *c = user;

    if (c->at++ == c->turn)
        snprintf(c->id, sizeof c->id, "%s", v->id);
    return 0;
}

/* Every strategy is about as likely as another. */
static void draw_variant(struct subject *x, const ptxgen_plan_options *plan, const char *text)
{
    const uint64_t seed = strtoull(text, NULL, 10);
    const ptxgen_variant_options o = { sizeof o, plan, NULL, 0, 0, DRAWN, seed, 0, 0 };
    struct choice c = { 0, (int)(seed % DRAWN), "" };

    ptxgen_variants(x->s, x->p, &o, take_turn, &c);
    if (c.id[0] == '\0' && c.at > 0) { /* there are fewer */
        c.turn = (int)(seed % (uint64_t)c.at);
        c.at = 0;
        ptxgen_variants(x->s, x->p, &o, take_turn, &c);
    }
    snprintf(x->variant, sizeof x->variant, "%s", c.id);
}

static void pin(struct subject *x, const char *name, const char *value)
{
    if (x->nsettings == NAMES_MAX)
        return;
    snprintf(x->words[x->nsettings], sizeof x->words[0], "%s", name);
    snprintf(x->values[x->nsettings], sizeof x->values[0], "%s", value);
    x->setting[x->nsettings] = (ptxgen_setting){ x->words[x->nsettings], x->values[x->nsettings] };
    x->nsettings++;
}

/* Some tunables of the drawn variant, by the seed; now and then with its strategy. */
static void pin_some(struct subject *x, unsigned long seed)
{
    char copy[sizeof x->variant];
    char *save = NULL, *tail;

    snprintf(copy, sizeof copy, "%s", x->variant);
    x->variant[0] = '\0';
    tail = strchr(copy, '@');
    if (tail)
        *tail++ = '\0';
    if (seed % 4 != 0)
        pin(x, "strategy", copy);
    for (char *part = strtok_r(tail, ",", &save); part; part = strtok_r(NULL, ",", &save), seed = seed * 5 + 1) {
        char *value = strchr(part, '=');

        if (value == NULL || (seed / 7) % 3 != 0)
            continue;
        *value++ = '\0';
        pin(x, part, value);
    }
    for (int i = 0; i < x->nsettings; i++)
        snprintf(x->variant + strlen(x->variant), sizeof x->variant - strlen(x->variant), "%s%s=%s", i ? " " : "pins ",
                 x->setting[i].name, x->setting[i].value);
}

/* ---- planning -------------------------------------------------------------------------------- */
static void size_values(const ptxgen_problem *p, const struct run *r, int64_t *size)
{
    for (int i = 0; i < ptxgen_problem_size_count(p); i++) {
        size[i] = -1;
        for (int k = 0; k < r->nsizes; k++)
            if (strcmp(r->size[k].name, ptxgen_problem_size_name(p, i)) == 0)
                size[i] = strtoll(r->size[k].value, NULL, 10);
    }
}

static bool write_tuning(struct subject *x, const char *arch, char *path)
{
    int64_t size[NAMES_MAX];
    ptxgen_tuning_entry entry = { NULL, arch, x->variant, size, 1e-6, 2e-6, 1 };
    char name[80], *text;
    FILE *f;

    size_values(x->p, &x->c->run[0], size);
    for (int i = 0; i < ptxgen_problem_size_count(x->p); i++) {
        snprintf(name, sizeof name, "near:%s", ptxgen_problem_size_name(x->p, i));
        const char *near = case_setting(x->c, name);
        if (near)
            size[i] = strtoll(near, NULL, 10);
    }
    entry.gpu = x->d->gpu ? ptxgen_gpu_describe(x->d->gpu)->name : "any";
    text = ptxgen_tuning_merge(x->s, x->p, NULL, &entry);
    const int fd = mkstemp(path);
    f = text && fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f)
        fputs(text, f);
    ptxgen_free(text);
    return f && fclose(f) == 0;
}

static bool make_plan(struct subject *x, char *why)
{
    const char *variant = case_setting(x->c, "variant"), *draw = case_setting(x->c, "draw"),
               *some = case_setting(x->c, "pin"), *tuned = case_setting(x->c, "tuned"),
               *arch = case_setting(x->c, "arch");
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    int64_t size[NAMES_MAX];
    char path[] = "/tmp/ptxgen-tuning-XXXXXX";

    o.arch = x->d->gpu ? ptxgen_gpu_arch(ptxgen_gpu_describe(x->d->gpu)) : arch;
    if (x->d->gpu)
        o.multiprocessors = ptxgen_gpu_describe(x->d->gpu)->multiprocessors;
    o.only_these = x->pinned = case_setting(x->c, "only") != NULL;
    size_values(x->p, &x->c->run[0], size);
    if (o.only_these || case_setting(x->c, "known"))
        o.size = size;
    if (draw || some || tuned)
        draw_variant(x, &o, draw ? draw : some ? some : tuned);
    if (variant) {
        snprintf(x->variant, sizeof x->variant, "%s", variant);
        o.variant = x->variant;
        x->pinned = true;
    } else if (x->variant[0] && draw) {
        o.variant = x->variant;
        x->pinned = x->drawn = true;
    } else if (x->variant[0] && some) {
        pin_some(x, strtoul(some, NULL, 10));
        x->pinned |= x->nsettings > 0;
    } else if (x->variant[0] && write_tuning(x, o.arch ? o.arch : "sm_80", path)) {
        o.tuning = path;
    }
    for (int i = 0; i < x->c->nsettings; i++)
        if (strncmp(x->c->setting[i].name, "set:", 4) == 0) {
            pin(x, x->c->setting[i].name + 4, x->c->setting[i].value);
            x->pinned = true;
        }
    o.setting = x->setting;
    o.setting_count = x->nsettings;
    const ptxgen_status status = ptxgen_plan_create(x->s, x->p, &o, &x->plan);
    if (o.tuning)
        unlink(path);
    if (status != PTXGEN_OK)
        say(x, "no plan", why);
    return status == PTXGEN_OK;
}

static bool prepare(struct subject *x, char *why)
{
    ptxgen_compile_options o = PTXGEN_COMPILE_OPTIONS_INIT;

    o.threads = 1;
    if (x->d->gpu == NULL) {
        if (ptxgen_host_create(x->s, x->plan, &o, &x->host) != PTXGEN_OK)
            say(x, "no host code", why);
        return x->host != NULL;
    }
    if (ptxgen_compile(x->s, x->plan, &o, &x->program) != PTXGEN_OK)
        say(x, "not compiled", why);
    else if (ptxgen_load(x->s, x->d->gpu, x->program, &x->loaded) != PTXGEN_OK)
        say(x, "not loaded", why);
    return x->loaded != NULL;
}

/* ---- launching ------------------------------------------------------------------------------- */
static bool start(struct subject *x, struct bed *b, const int64_t *size, const ptxgen_value *param, const char *modes)
{
    const ptxgen_arguments args = { size, bed_inputs(b), bed_outputs(b), param };

    if (x->d->gpu == NULL)
        return ptxgen_host_run(x->s, x->host, &args, modes[0] ? modes : NULL) == PTXGEN_OK;
    return ptxgen_launch(x->s, x->loaded, &args, NULL, NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(x->s, x->d->gpu, NULL) == PTXGEN_OK;
}

static bool no_case(const struct subject *x)
{
    ptxgen_diagnostic g;

    for (int i = 0; i < ptxgen_diagnostic_count(x->s); i++) {
        ptxgen_diagnostic_get(x->s, i, &g);
        if (g.message && strstr(g.message, "no case of"))
            return true;
    }
    return false;
}

static void param_values(const ptxgen_problem *p, const struct run *r, ptxgen_value *param)
{
    for (int i = 0; i < ptxgen_problem_param_count(p); i++) {
        ptxgen_param_info info;

        ptxgen_problem_param(p, i, &info);
        param[i] = info.default_value;
        for (int k = 0; k < r->nparams; k++)
            if (strcmp(r->param[k].name, info.name) == 0) {
                if (info.type >= PTXGEN_F16)
                    param[i].f = strtod(r->param[k].value, NULL);
                else if (r->param[k].value[0] == '-')
                    param[i].i = strtoll(r->param[k].value, NULL, 10);
                else
                    param[i].u = strtoull(r->param[k].value, NULL, 10);
            }
    }
}

/* The launch failed. */
static enum verdict failed_start(struct subject *x, const struct run *r, char *why, bool *lost)
{
    ptxgen_diagnostic g = { 0 };

    if (x->pinned && no_case(x))
        return OUT_OF_RANGE;
    for (int i = 0; i < ptxgen_diagnostic_count(x->s); i++)
        ptxgen_diagnostic_get(x->s, i, &g);
    if (r->refused && (g.code == 5002 || g.code == 5106)) /* on the host, on a GPU */
        return PASSED;
    say(x, r->refused ? "refused, but otherwise than expected" : "did not run", why);
    *lost = x->d->gpu != NULL && g.code != 5002;
    return FAILED;
}

static enum verdict launch(struct subject *x, const struct run *r, unsigned shift, const char *modes, struct bed **out,
                           char *why, bool *lost)
{
    int64_t size[NAMES_MAX];
    ptxgen_value param[NAMES_MAX];
    struct bed *b;

    size_values(x->p, r, size);
    param_values(x->p, r, param);
    *out = b = bed_create(x->d, x->p, r, size, shift, why);
    if (b == NULL)
        return FAILED;
    if (!start(x, b, size, param, modes))
        return failed_start(x, r, why, lost);
    if (r->refused) {
        snprintf(why, WHY, "ran, and must be refused");
        return FAILED;
    }
    return bed_check(b, why) ? PASSED : FAILED;
}

static enum verdict one_run(struct subject *x, const struct run *r, char *why, bool *lost)
{
    struct bed *first = NULL, *second = NULL;
    enum verdict v = launch(x, r, 0, r->modes, &first, why, lost);

    /* Once more: what the first left in its workspace must serve, and the bits be the same where that is promised. */
    if (v == PASSED && !r->refused) {
        v = launch(x, r, r->same_bits > 1 ? 1 : 0, r->again, &second, why, lost);
        if (v == PASSED && r->same_bits && !bed_same(first, second, why))
            v = FAILED;
        if (v == FAILED)
            snprintf(why + strlen(why), WHY - strlen(why), " (second launch)");
    }
    bed_destroy(first);
    bed_destroy(second);
    ptxgen_diagnostics_clear(x->s);
    return v;
}

static void note_case(const struct subject *x, int run, char *why)
{
    const char *name = x->host ? ptxgen_host_case(x->host) : NULL;
    const bool said = strstr(why, "; variant ") != NULL;

    snprintf(why + strlen(why), WHY - strlen(why), " (run %d%s%s%s%s)", run, name ? ", case " : "", name ? name : "",
             x->variant[0] && !said ? ", variant " : "", said ? "" : x->variant);
}

static enum verdict run_all(struct subject *x, char *why, bool *lost)
{
    enum verdict all = PASSED;

    for (int r = 0; r < x->c->nruns; r++) {
        const enum verdict v = one_run(x, &x->c->run[r], why, lost);

        if (v == FAILED) {
            note_case(x, r, why);
            return FAILED;
        }
        if (v == OUT_OF_RANGE)
            all = v;
        if (v == PASSED && !x->c->run[r].refused)
            note_case(x, r, why);
    }
    return all;
}

/* A plan for these sizes alone, of a variant that no launch at them takes. */
static bool takes_no_launch(struct subject *x)
{
    ptxgen_diagnostic g = { 0 };

    for (int i = 0; i < ptxgen_diagnostic_count(x->s); i++)
        ptxgen_diagnostic_get(x->s, i, &g);
    return case_setting(x->c, "only") && g.code == 3002;
}

static enum verdict subject_run(struct subject *x, char *why, bool *lost)
{
    why[0] = 0;
    if (ptxgen_problem_from_string(x->s, x->c->spec.at, x->c->spec.length, "case", &x->p) != PTXGEN_OK) {
        say(x, "the spec is refused", why);
        return FAILED;
    }
    if (!make_plan(x, why))
        return x->pinned && (!x->drawn || takes_no_launch(x)) ? OUT_OF_RANGE : FAILED;
    if (!prepare(x, why))
        return FAILED;
    return run_all(x, why, lost);
}

enum verdict execute(struct device *d, const struct one_case *c, char *why, bool *lost)
{
    struct subject *x = calloc(1, sizeof *x);
    enum verdict v = FAILED;

    *lost = false;
    snprintf(why, WHY, "no memory");
    if (x && ptxgen_session_create(&x->s) == PTXGEN_OK) {
        x->d = d;
        x->c = c;
        v = subject_run(x, why, lost);
        if (!*lost)
            ptxgen_loaded_destroy(x->loaded);
        ptxgen_program_destroy(x->program);
        ptxgen_host_destroy(x->host);
        ptxgen_session_destroy(x->s);
    }
    free(x);
    return v;
}
