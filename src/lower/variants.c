/* SPDX-License-Identifier: Apache-2.0 */
/* variants.c - see variants.h.
 *
 * For each strategy of the problem's kind the default plan with that strategy pinned says which values its tunables
 * usually have. Then an odometer runs over the candidates of those tunables, and every setting of it is planned in a
 * session of its own, whose memory is given back afterwards: a plan takes up to a megabyte, and there are thousands.
 */
#include "variants.h"

#include "cost.h"
#include "lower_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- candidates
 * ---------------------------------------------------------------------------------------------------------------- */

/* Tunables whose candidates are not the powers of two within their range. `FIXED`: only the usual value, unless the
 * user lists others. */
enum { FIXED = -1, CHOSEN_MAX = 16 };
static const struct {
    enum tunable_id tunable;
    int rank; /* dimensions that a problem must have for the tunable to matter */
    int n, value[CHOSEN_MAX];
} chosen[] = {
    { TN_THREADS, 1, 7, { 64, 128, 192, 256, 384, 512, 1024 } },
    { TN_ITEMS, 1, 10, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 16 } },
    { TN_BLOCKS_PER_SM, 1, 6, { 1, 2, 3, 4, 6, 8 } },
    { TN_BLOCK_X, 1, 5, { 16, 32, 64, 128, 256 } },
    { TN_BLOCK_Y, 3, 5, { 1, 2, 4, 8, 16 } },
    { TN_POINTS_X, 1, 4, { 1, 2, 4, 8 } },
    { TN_POINTS_Y, 2, 5, { 1, 2, 4, 8, 16 } },
    { TN_POINTS_Z, 3, 4, { 1, 2, 4, 8 } },
    { TN_MIN_BLOCKS, 1, FIXED, { 0 } },
    { TN_PDL, 1, FIXED, { 0 } },
    { TN_MAX_GRID, 1, FIXED, { 0 } },
    { TN_COMBINE, 1, FIXED, { 0 } },
    { TN_OVER_BLOCKS, 1, FIXED, { 0 } },
    { TN_OVER_THREADS, 1, FIXED, { 0 } },
    { TN_BULK, 1, 4, { 0, 2, 3, 4 } },
};

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
    int n = insert(value, 0, usual), lo, hi;
    tunable_limits(t, &lo, &hi);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (chosen[i].tunable == t) {
            for (int k = 0; k < chosen[i].n && p->rank >= chosen[i].rank; k++)
                n = insert(value, n, chosen[i].value[k]);
            return n;
        }
    if (lo == 0)
        n = insert(value, n, 0);
    for (int64_t x = 1; x <= hi; x *= 2)
        if (x >= lo)
            n = insert(value, n, (int)x);
    return n;
}

/* ---- ids
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* A tunable may be left alone by a value below its range (max_grid 0: no bound), which cannot be set. */
static bool settable(enum tunable_id t, int value)
{
    int lo, hi;
    tunable_limits(t, &lo, &hi);
    return value >= lo;
}

void variant_print(const struct plan *plan, struct str *out)
{
    const struct plan_case *c = &plan->kase[0];
    for (int i = 1; i < plan->ncases; i++)
        if (plan->kase[i].strategy != c->strategy) {
            str_add(out, "default");
            return;
        }
    str_add(out, c->strategy->name);
    for (int t = 0, n = 0; t < TN_COUNT; t++)
        if (c->strategy->tunables & 1u << t && settable((enum tunable_id)t, c->tunable[t]))
            str_printf(out, "%c%s=%d", n++ ? ',' : '@', tunable_name(t), c->tunable[t]);
}

static bool bad_id(struct ptxgen_session *s, const char *id)
{
    struct diag *m = diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "'%s' is no variant", id);
    diag_note(&s->diags, m, span_none(),
              "an id is STRATEGY@TUNABLE=VALUE,TUNABLE=VALUE,... or default; `ptxgen variants` lists them");
    return false;
}

bool variant_parse(struct ptxgen_session *s, const char *id, const struct tunable **out, int *nset)
{
    struct tunable *set = arena_new(&s->arena, struct tunable, TN_COUNT + 1);
    char *text = arena_strdup(&s->arena, id), *at = strchr(text, '@');
    int n = 0;
    *out = set;
    *nset = 0;
    if (!strcmp(id, "default"))
        return true;
    if (at)
        *at++ = 0;
    set[n++] = (struct tunable){ "strategy", text, span_none() };
    while (at && *at) {
        char *value = strchr(at, '='), *next = strchr(at, ',');
        if (!value || (next && value > next) || n > TN_COUNT)
            return bad_id(s, id);
        *value = 0;
        if (next)
            *next = 0;
        set[n++] = (struct tunable){ at, value + 1, span_none() };
        at = next ? next + 1 : NULL;
    }
    *nset = n;
    return *text ? true : bad_id(s, id);
}

/* ---- the space
 * ----------------------------------------------------------------------------------------------------------------- */

struct axis_of {
    enum tunable_id tunable;
    int n, at;
    int value[CANDIDATES_MAX];
};

struct walk {
    struct ptxgen_session *s;
    const struct problem *p;
    const struct device *d;
    const struct plan_options *o;
    const struct gpu_model *model;
    bool illegal;
    int (*visit)(const ptxgen_variant *v, void *user);
    void *user;
    bool stopped;
    const struct strategy *row;
    int naxes;
    struct axis_of axis[TN_COUNT];
};

/* A session for one plan. */
static void scratch_begin(struct ptxgen_session *t, jmp_buf *oom)
{
    memset(t, 0, sizeof *t);
    arena_init(&t->arena);
    t->arena.oom = oom;
    diags_init(&t->diags, &t->arena);
}

/* The plan with the walk's strategy and the values of its axes (defaults: without those of the user's lists that are no
 * single number). */
static const struct plan *plan_at(struct walk *w, struct ptxgen_session *t)
{
    struct tunable *set = arena_new(&t->arena, struct tunable, w->naxes + 1);
    int n = 0;
    set[n++] = (struct tunable){ "strategy", w->row->name, span_none() };
    for (int i = 0; i < w->naxes; i++)
        set[n++] = (struct tunable){ tunable_name(w->axis[i].tunable),
                                     arena_printf(&t->arena, "%d", w->axis[i].value[w->axis[i].at]), span_none() };
    const struct plan_options o = { .nset = n, .set = set, .size = w->o->size };
    return plan_create(t, w->p, w->d, &o);
}

/* Why there is no plan: for the whole strategy, or for these values. */
static const char *reason(const struct walk *w, struct ptxgen_session *t)
{
    const char *why = "no plan";
    const struct diag *last = t->diags.last;
    return !w->row->fits(w->p, w->d, &t->arena, &why) ? why : last ? last->text : why;
}

/* Tells the visitor; plan NULL: illegal for the last message of t. */
static void tell(struct walk *w, struct ptxgen_session *t, const struct plan *plan)
{
    const char *names[TN_COUNT];
    int values[TN_COUNT];
    struct str id = { 0 };
    str_add(&id, w->row->name);
    for (int i = 0; i < w->naxes; i++) {
        names[i] = tunable_name(w->axis[i].tunable);
        values[i] = w->axis[i].value[w->axis[i].at];
        str_printf(&id, "%c%s=%d", i ? ',' : '@', names[i], values[i]);
    }
    ptxgen_variant v = { .id = id.text,
                         .strategy = w->row->name,
                         .tunable_count = w->naxes,
                         .tunable = names,
                         .value = values,
                         .why_not = plan ? NULL : reason(w, t) };
    if (plan && w->model && w->o->size && sizes_known(w->p, w->o->size))
        v.predicted_seconds = predict(plan, w->o->size, NULL, w->model, NULL).seconds;
    if (!id.failed && (plan || w->illegal))
        w->stopped = w->visit(&v, w->user) != 0;
    str_finish(&id);
}

/* One setting of the odometer. */
static void visit_one(struct walk *w)
{
    struct ptxgen_session t;
    jmp_buf oom;
    scratch_begin(&t, &oom);
    if (setjmp(oom)) {
        arena_finish(&t.arena);
        longjmp(*w->s->arena.oom, 1);
    }
    tell(w, &t, plan_at(w, &t));
    arena_finish(&t.arena);
}

/* The next setting; false after the last. */
static bool turn(struct walk *w)
{
    for (int i = w->naxes - 1; i >= 0; i--) {
        if (++w->axis[i].at < w->axis[i].n)
            return true;
        w->axis[i].at = 0;
    }
    return false;
}

/* "128,256" or "tree,shuffle" into values; false after a diagnostic. */
static bool parse_list(struct ptxgen_session *s, const struct tunable *set, struct axis_of *axis)
{
    axis->n = 0;
    for (const char *at = set->value;; at++) {
        const size_t length = strcspn(at, ",");
        long v;
        if (!tunable_value(axis->tunable, at, length, &v) || axis->n == CANDIDATES_MAX) {
            diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "%s: '%s' is no list of values", set->name, set->value);
            return false;
        }
        axis->value[axis->n++] = (int)v;
        at += length;
        if (!*at)
            return true;
    }
}

/* Candidates around the usual values: what the user lists, else the usual ones of the tunable. */
static bool find_axes(struct walk *w, const int *usual)
{
    w->naxes = 0;
    for (int t = 0; t < TN_COUNT; t++) {
        if (!(w->row->tunables & 1u << t))
            continue;
        struct axis_of *axis = &w->axis[w->naxes];
        *axis = (struct axis_of){ .tunable = (enum tunable_id)t };
        if (settable(axis->tunable, usual[t]))
            axis->n = tunable_candidates(axis->tunable, w->p, usual[t], axis->value);
        for (int i = 0; i < w->o->nset; i++)
            if (!strcmp(w->o->set[i].name, tunable_name(axis->tunable)) && !parse_list(w->s, &w->o->set[i], axis))
                return false;
        w->naxes += axis->n > 0;
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
    const size_t length = strlen(w->row->name);
    for (const char *at = list; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] ? 1 : 0))
        if (strcspn(at, ",") == length && !strncmp(at, w->row->name, length))
            return true;
    return !list;
}

/* The strategy's own choice of tunables; false when it does not fit, which is told. */
static bool usual_values(struct walk *w, int *usual)
{
    struct ptxgen_session t;
    jmp_buf oom;
    scratch_begin(&t, &oom);
    if (setjmp(oom)) {
        arena_finish(&t.arena);
        longjmp(*w->s->arena.oom, 1);
    }
    w->naxes = 0;
    const struct plan *plan = plan_at(w, &t);
    if (plan)
        memcpy(usual, plan->kase[0].tunable, sizeof plan->kase[0].tunable);
    else
        tell(w, &t, NULL);
    arena_finish(&t.arena);
    return plan != NULL;
}

/* Names in the settings that nothing has. */
static bool check_settings(struct ptxgen_session *s, const struct plan_options *o)
{
    for (int i = 0; i < o->nset; i++) {
        const char *names[TN_COUNT + 1] = { "strategy" };
        bool known = !strcmp(o->set[i].name, names[0]);
        for (int t = 0; t < TN_COUNT; t++) {
            names[t + 1] = tunable_name((enum tunable_id)t);
            known |= !strcmp(o->set[i].name, names[t + 1]);
        }
        if (!known) {
            struct diag *m =
                diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "there is no tunable '%s'", o->set[i].name);
            diag_suggest(&s->diags, m, o->set[i].name, names, TN_COUNT + 1);
            return false;
        }
    }
    return true;
}

bool variants_each(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                   const struct plan_options *o, const struct gpu_model *model, bool illegal,
                   int (*visit)(const ptxgen_variant *v, void *user), void *user)
{
    struct problem free_of_pins = *p; /* the spec's own pin would contradict every other strategy */
    free_of_pins.strategy = NULL;
    free_of_pins.ntunables = 0;
    struct walk *w = arena_new(&s->arena, struct walk, 1);
    *w = (struct walk){
        .s = s, .p = &free_of_pins, .d = d, .o = o, .model = model, .illegal = illegal, .visit = visit, .user = user
    };
    if (!check_settings(s, o))
        return false;
    for (int i = 0; i < strategy_count() && !w->stopped; i++) {
        int usual[TN_COUNT];
        w->row = strategy_row(i);
        if (w->row->kind != p->kind || !wanted(w) || !usual_values(w, usual))
            continue;
        if (!find_axes(w, usual))
            return false;
        do
            visit_one(w);
        while (!w->stopped && turn(w));
    }
    return true;
}
