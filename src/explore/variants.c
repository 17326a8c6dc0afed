/* SPDX-License-Identifier: Apache-2.0 */
/* variants.c - see variants.h.
 *
 * For each strategy of the problem's kind the default plan with that strategy pinned says which values its tunables
 * usually have. Then an odometer runs over the candidates of those tunables, and every setting of it is planned in a
 * session of its own, whose memory serves the next one: a plan takes up to a megabyte, and there are thousands.
 *
 * A drawing visits the settings of the odometer in the order of a random permutation, a Feistel network on their
 * numbers, so nothing is kept about those that it has been at.  A count leaves out the tunables of class FREE, whose
 * values multiply what the others give.
 *
 * Most settings are illegal for what a few of their tunables have together; where planning says which ones these are,
 * the odometer passes over the settings that have the same.
 */
#include "variants.h"

#include "cost.h"
#include "lower/lower_impl.h"
#include "odometer.h"

#include <string.h>

/* ---- candidates ---- */

/* Dimensions that a problem must have for a tunable to matter. */
static int rank_of(enum tunable_id t) { return t == TN_BLOCK_Y || t == TN_POINTS_Z ? 3 : t == TN_POINTS_Y ? 2 : 1; }

static int insert(int *value, int n, int x)
{
    int at = 0;
    while (at < n && value[at] < x)
        at++;
    if ((at < n && value[at] == x) || n == CANDIDATES_MAX)
        return n;
    memmove(value + at + 1, value + at, sizeof *value * (size_t)(n - at));
    value[at] = x;
    return n + 1;
}

int tunable_candidates(enum tunable_id t, const struct problem *p, int usual, int *value)
{
    const int *listed, count = tunable_values(t, &listed);
    int n = insert(value, 0, usual);
    for (int i = 0; i < count && p->rank >= rank_of(t); i++)
        n = insert(value, n, listed[i]);
    return n;
}

/* ---- the space ---- */

struct walk {
    struct ptxgen_session *s;
    const struct problem *p;
    const struct device *d;
    const struct variants_request *request;
    const struct plan_options *o;
    int (*visit)(const ptxgen_variant *v, void *user);
    int (*visit_count)(const ptxgen_variant_count *c, void *user); /* or this one */
    void *user;
    bool stopped;
    const struct strategy *row;
    int64_t left; /* that are still to be drawn */
    struct odometer odometer;
    unsigned clash;             /* of the last setting that was planned */
    ptxgen_variant_count count; /* of the strategy */
    struct ptxgen_session scratch;
};

static bool fits(const struct walk *w, struct arena *a, const char **why)
{
    const struct problem *p = strategy_problem(w->row, w->p);
    return p && strategy_fits(w->row, p, w->d, a, why);
}

static bool counting(const struct walk *w) { return w->visit_count != NULL; }

/* A session for one plan, in the memory of the one before. */
static struct ptxgen_session *scratch_begin(struct walk *w, jmp_buf *oom)
{
    struct ptxgen_session *t = &w->scratch;
    const struct arena kept = t->arena;
    memset(t, 0, sizeof *t);
    t->arena = kept;
    arena_reset(&t->arena);
    t->arena.oom = oom;
    diags_init(&t->diags, &t->arena);
    return t;
}

_Noreturn static void out_of_memory(struct walk *w)
{
    arena_finish(&w->scratch.arena);
    longjmp(*w->s->arena.oom, 1);
}

/* The plan with the walk's strategy and the values of its axes (defaults: without those of the user's lists that are no
 * single number). */
static const struct plan *plan_at(struct walk *w, struct ptxgen_session *t)
{
    struct tunable *set = arena_new(&t->arena, struct tunable, w->odometer.naxes + 1);
    int n = 0;
    set[n++] = (struct tunable){ "strategy", w->row->name, span_none() };
    for (int i = 0; i < w->odometer.naxes; i++)
        if (!w->odometer.axis[i].still)
            set[n++] =
                (struct tunable){ tunable_name(w->odometer.axis[i].tunable),
                                  arena_printf(&t->arena, "%d", w->odometer.axis[i].value[w->odometer.axis[i].at]),
                                  span_none() };
    const struct plan_options o = { .nset = n, .set = set, .size = w->o->size, .clash = &w->clash };
    w->clash = 0;
    return plan_create(t, w->p, w->d, &o);
}

/* Why there is no plan: for the whole strategy, or for these values. */
static const char *reason(const struct walk *w, struct ptxgen_session *t)
{
    const char *why = "no plan";
    const struct diag *last = t->diags.last;
    return !fits(w, &t->arena, &why) ? why : last ? last->text : why;
}

/* Tells the visitor; plan NULL: illegal for the last message of t. */
static void tell(struct walk *w, struct ptxgen_session *t, const struct plan *plan)
{
    const char *names[TN_COUNT];
    int values[TN_COUNT];
    struct str id = { 0 };
    str_add(&id, w->row->name);
    int n = 0;
    for (int i = 0; i < w->odometer.naxes; i++) {
        const enum tunable_id t = w->odometer.axis[i].tunable;
        const int value = w->odometer.axis[i].value[w->odometer.axis[i].at];
        if (!tunable_in_id(w->row, t, value))
            continue;
        names[n] = tunable_name(t);
        values[n] = value;
        str_printf(&id, "%c%s=%d", n++ ? ',' : '@', tunable_name(t), value);
    }
    ptxgen_variant v = { .id = id.text,
                         .strategy = w->row->name,
                         .tunable_count = n,
                         .tunable = names,
                         .value = values,
                         .why_not = plan ? NULL : reason(w, t) };
    if (plan && w->request->model && w->o->size && sizes_known(w->p, w->o->size))
        v.predicted_seconds = predict(plan, w->o->size, NULL, w->request->model, NULL).seconds;
    if (!id.failed && (plan || w->request->illegal))
        w->stopped = w->visit(&v, w->user) != 0;
    str_finish(&id);
}

/* What the FREE tunables multiply a setting by; with a plan, only values that go with it. */
static int64_t free_values(const struct walk *w, const struct plan *plan)
{
    int64_t all = 1;
    for (int i = 0; i < w->odometer.naxes; i++) {
        const struct tunable_axis *axis = &w->odometer.axis[i];
        int fitting = 0;
        if (!axis->still)
            continue;
        for (int k = 0; k < axis->n; k++)
            fitting += !plan || plan_free_fits(plan, axis->tunable, axis->value[k]);
        all *= fitting;
    }
    return all;
}

/* One setting of the odometer, alone; is it legal? */
static bool visit_one(struct walk *w)
{
    jmp_buf oom;
    if (setjmp(oom))
        out_of_memory(w);
    struct ptxgen_session *t = scratch_begin(w, &oom);
    const struct plan *plan = plan_at(w, t);
    if (!counting(w)) {
        tell(w, t, plan);
    } else if (plan) {
        const int64_t legal = free_values(w, plan);
        w->count.legal += legal;
        w->count.illegal += free_values(w, NULL) - legal;
    }
    return plan != NULL;
}

/* ---- all settings ---- */

/* This setting, and all after it that are illegal for the same reason; the first `dealt` axes stay. */
static void visit_some(struct walk *w, int dealt)
{
    const bool all = !counting(w) && w->request->illegal; /* are told one by one */
    int axes = all ? 0 : odometer_illegal(&w->odometer);
    if (!axes && visit_one(w))
        return;
    if (!axes && !all)
        axes = odometer_learn(&w->odometer, w->clash);
    axes = !axes ? w->odometer.naxes : axes < dealt ? dealt : axes;
    w->count.illegal += odometer_pass(&w->odometer, axes) * free_values(w, NULL);
}

static void visit_all(struct walk *w)
{
    const int parts = w->request->parts, dealt = odometer_deal(&w->odometer, parts);
    do
        if (parts < 2 || odometer_number(&w->odometer, dealt) % parts == w->request->part)
            visit_some(w, dealt);
        else
            odometer_pass(&w->odometer, dealt);
    while (!w->stopped && odometer_turn(&w->odometer));
}

/* ---- drawing ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Number k of a random permutation of 0 ... n - 1: a Feistel network on 2 * half bits, applied until it gives one of
 * these. */
static int64_t permuted(int64_t k, int64_t n, uint64_t seed)
{
    enum { ROUNDS = 4 };
    int half = 1;
    while ((int64_t)1 << 2 * half < n)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t x = (uint64_t)k;
    do
        for (uint64_t r = 0; r < ROUNDS; r++)
            x = (x & mask) << half | ((x >> half) ^ (mix(seed + r + mix(x & mask)) & mask));
    while (x >= (uint64_t)n);
    return (int64_t)x;
}

/* Up to `quota` legal settings, unless they are very rare. */
static void draw_some(struct walk *w, int64_t quota)
{
    enum { TRIES = 20000, TRIES_PER_HIT = 64 };
    const int64_t all = odometer_settings(&w->odometer);
    const int64_t tries = quota < TRIES / TRIES_PER_HIT ? TRIES : quota * TRIES_PER_HIT;
    const uint64_t seed = mix(w->request->seed + 1) + (uint64_t)(w->row - strategy_row(0));
    for (int64_t k = 0; k < all && k < tries && quota > 0 && !w->stopped; k++) {
        odometer_go_to(&w->odometer, permuted(k, all, seed));
        if (!w->request->illegal && odometer_illegal(&w->odometer))
            continue;
        const bool legal = visit_one(w);
        if (!legal)
            odometer_learn(&w->odometer, w->clash);
        quota -= legal;
        w->left -= legal;
    }
}

/* ---- axes ---- */

/* "128,256" or "tree,shuffle" into values; false after a diagnostic. */
static bool parse_list(struct ptxgen_session *s, const struct tunable *set, struct tunable_axis *axis)
{
    axis->n = 0;
    for (const char *at = set->value;; at++) {
        const size_t length = strcspn(at, ",");
        int value;
        if (axis->n == CANDIDATES_MAX) {
            diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "%s: more than %d values", set->name, CANDIDATES_MAX);
            return false;
        }
        if (!tunable_value(axis->tunable, at, length, &value)) {
            const struct tunable one = { set->name, arena_strndup(&s->arena, at, length), set->at };
            tunable_report(&s->diags, axis->tunable, &one);
            return false;
        }
        axis->value[axis->n++] = value;
        at += length;
        if (!*at)
            return true;
    }
}

/* Candidates around the usual values: what the user lists, else those of the tunable. */
static bool find_axes(struct walk *w, const int *usual)
{
    odometer_clear(&w->odometer);
    for (int t = 0; t < TN_COUNT; t++) {
        if (!(w->row->tunables & 1u << t))
            continue;
        struct tunable_axis *axis = &w->odometer.axis[w->odometer.naxes];
        *axis = (struct tunable_axis){ .tunable = (enum tunable_id)t,
                                       .still = counting(w) && (tunable_class((enum tunable_id)t) & TUNABLE_FREE) };
        const bool fixed = w->request->main_only && (tunable_class(axis->tunable) & TUNABLE_FINE);
        if (tunable_settable(axis->tunable, usual[t]))
            axis->n = fixed ? insert(axis->value, 0, usual[t])
                            : tunable_candidates(axis->tunable, w->p, usual[t], axis->value);
        for (int i = 0; i < w->o->nset; i++)
            if (tunable_by_name(w->o->set[i].name) == (int)axis->tunable && !parse_list(w->s, &w->o->set[i], axis))
                return false;
        w->odometer.naxes += axis->n > 0;
    }
    return true;
}

/* Is the strategy among those that the user lists, if any are? */
static bool wanted(const struct walk *w)
{
    const char *list = NULL;
    for (int i = 0; i < w->o->nset; i++)
        if (!strcmp(w->o->set[i].name, "strategy"))
            list = w->o->set[i].value;
    for (const char *at = list; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] ? 1 : 0))
        if (strategy_by_name(arena_strndup(&w->s->arena, at, strcspn(at, ","))) == w->row)
            return true;
    return !list;
}

/* The strategy's own choice of tunables; false when it does not fit, which is told. */
static bool usual_values(struct walk *w, int *usual)
{
    jmp_buf oom;
    if (setjmp(oom))
        out_of_memory(w);
    struct ptxgen_session *t = scratch_begin(w, &oom);
    odometer_clear(&w->odometer);
    w->count = (ptxgen_variant_count){ .strategy = w->row->name };
    const struct plan *plan = plan_at(w, t);
    if (plan) {
        memcpy(usual, plan->cases[0].tunable, sizeof plan->cases[0].tunable);
    } else if (counting(w)) {
        w->count.why_not = reason(w, t);
        w->stopped = w->visit_count(&w->count, w->user) != 0;
    } else {
        tell(w, t, NULL);
    }
    return plan != NULL;
}

/* A name in a list of strategies that is none, or is for another kind of problem. */
static bool check_strategies(struct ptxgen_session *s, const struct problem *p, const char *list)
{
    const char *names[64];
    int count = 0;
    for (int i = 0; i < strategy_count() && count < 64; i++)
        if (strategy_problem(strategy_row(i), p))
            names[count++] = strategy_row(i)->name;
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        const char *name = arena_strndup(&s->arena, at, length);
        const struct strategy *row = strategy_by_name(name);
        if (!row || !strategy_problem(row, p)) {
            struct diag *m =
                diag_error(&s->diags, D_BAD_TUNABLE, span_none(),
                           row ? "'%s' is for another kind of problem" : "there is no strategy '%s'", name);
            diag_suggest(&s->diags, m, name, names, count);
            return false;
        }
        at += length;
        if (!*at)
            return true;
    }
}

/* Names in the settings that nothing has. */
static bool check_settings(struct ptxgen_session *s, const struct problem *p, const struct plan_options *o)
{
    for (int i = 0; i < o->nset; i++) {
        if (!strcmp(o->set[i].name, "strategy") && !check_strategies(s, p, o->set[i].value))
            return false;
        const char *names[TN_COUNT + 1] = { "strategy" };
        for (int t = 0; t < TN_COUNT; t++)
            names[t + 1] = tunable_name((enum tunable_id)t);
        if (strcmp(o->set[i].name, names[0]) != 0 && tunable_by_name(o->set[i].name) < 0) {
            struct diag *m =
                diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "there is no tunable '%s'", o->set[i].name);
            diag_suggest(&s->diags, m, o->set[i].name, names, TN_COUNT + 1);
            return false;
        }
    }
    return true;
}

/* ---- walking ---- */

/* How many of the strategies from number i on take part in a drawing. */
static int strategies_left(struct walk *w, int i)
{
    int n = 0;
    for (; i < strategy_count(); i++) {
        const char *why;
        w->row = strategy_row(i);
        n += wanted(w) && fits(w, &w->s->arena, &why);
    }
    return n;
}

static bool visit_strategy(struct walk *w, int number)
{
    int usual[TN_COUNT];
    const int sharing = w->request->draw > 0 ? strategies_left(w, number) : 0;
    w->row = strategy_row(number);
    if (!strategy_problem(w->row, w->p) || !wanted(w) || !usual_values(w, usual))
        return true;
    if (!find_axes(w, usual))
        return false;
    if (w->request->draw > 0)
        draw_some(w, (w->left + sharing - 1) / (sharing ? sharing : 1));
    else
        visit_all(w);
    if (counting(w))
        w->stopped = w->visit_count(&w->count, w->user) != 0;
    return true;
}

static bool walk_space(struct walk *w)
{
    struct problem free_of_pins = *w->p, binned; /* the spec's own pin would contradict every other strategy */
    problem_unpin(&free_of_pins, &binned);
    w->p = &free_of_pins;
    w->o = w->request->options;
    w->left = w->request->draw;
    bool ok = check_settings(w->s, w->p, w->o);
    for (int i = 0; ok && i < strategy_count() && !w->stopped && (w->request->draw <= 0 || w->left > 0); i++)
        ok = visit_strategy(w, i);
    arena_finish(&w->scratch.arena);
    return ok;
}

bool variants_each(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                   const struct variants_request *request, int (*visit)(const ptxgen_variant *v, void *user),
                   void *user)
{
    struct walk *w = arena_new(&s->arena, struct walk, 1);
    *w = (struct walk){ .s = s, .p = p, .d = d, .request = request, .visit = visit, .user = user };
    return walk_space(w);
}

bool variants_count(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                    const struct variants_request *request, int (*visit)(const ptxgen_variant_count *c, void *user),
                    void *user)
{
    struct walk *w = arena_new(&s->arena, struct walk, 1);
    struct variants_request all = *request;
    all.draw = 0;
    *w = (struct walk){ .s = s, .p = p, .d = d, .request = &all, .visit_count = visit, .user = user };
    return walk_space(w);
}
