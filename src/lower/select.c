/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - which strategies a plan is made of.
 *
 * Rows of strategies.def are tried in order; every one that fits adds cases for the sizes it is good at, so that the
 * cases together take any launch.  A pinned strategy stands alone, and is an error where it does not fit.
 */
#include "lower_impl.h"
#include "results.h"
#include "tuned.h"

#include <math.h>
#include <string.h>

static const struct strategy rows[] = {
#define STRATEGY(id, kind, name, reference, tunables, chain)                                                           \
    { name, kind, reference, id##_fits, id##_plan, id##_build, tunables, chain },
#include "strategies.def"
#undef STRATEGY
};

int strategy_count(void) { return (int)(sizeof rows / sizeof *rows); }
const struct strategy *strategy_row(int i) { return &rows[i]; }

const struct strategy *strategy_by_name(const char *name)
{
    /* To go with version 0.2. */
    static const struct alias old[] = { { "scan.allpre", "scan.resident" },
                                        { "segscan.lookback", "scan.lookback" },
                                        { "segscan.block", "scan.block" },
                                        { "scan.lookahead", "scan.pipeline" },
                                        { "segscan.flags", "scan.lookback" },
                                        { "segscan.offsets", "scan.lookback" },
                                        { "reduce.ordered", "reduce.last_block" },
                                        { "reduce.bins_shared", "reduce.bins" },
                                        { "stencil.dynamic", "stencil.global" },
                                        { "segreduce.multi_block", "segreduce.block" },
                                        { "segreduce.offsets_block", "segreduce.block" },
                                        { NULL, NULL } };
    name = name_now(old, name);
    for (int i = 0; i < strategy_count(); i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

const struct problem *strategy_problem(const struct strategy *row, const struct problem *p)
{
    return row->kind == p->kind ? p : row->tunables & WITH_BINS ? p->binned : NULL;
}

bool strategy_fits(const struct strategy *row, const struct problem *p, const struct device *d, struct arena *a,
                   const char **why)
{
    *why = "it scans all elements of a segment together; here each bin is scanned by itself";
    return (!p->key || row->tunables & WITH_BINS) && row->fits(p, d, a, why);
}

static void plan_row(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    pl->plan->problem = strategy_problem(row, p);
    row->plan(pl, row);
    pl->plan->problem = p;
}

const char *plan_pinned_name(const struct planner *pl, struct span *at)
{
    const struct plan_options *o = pl->options;
    *at = span_none();
    for (int i = 0; o && i < o->nset; i++)
        if (!strcmp(o->set[i].name, "strategy"))
            return o->set[i].value;
    if (o && o->strategy)
        return o->strategy;
    *at = pl->plan->problem->strategy_at;
    return pl->plan->problem->strategy;
}

static bool fits(const struct planner *pl, const struct strategy *row, const char **why)
{
    const struct problem *p = strategy_problem(row, pl->plan->problem);
    if (!p) {
        *why = "it is for another kind of problem";
        return false;
    }
    return strategy_fits(row, p, &pl->plan->device, &pl->s->arena, why);
}

static bool unknown(struct diags *d, const char *name, struct span at)
{
    /* To go with version 0.2. */
    static const struct alias gone[] = { { "reduce.bins_global", "reduce.bins with bins: 0" },
                                         { "reduce.bins_private", "reduce.bins with lanes: 1" },
                                         { "reduce.cluster", "reduce.block with cluster: 8" },
                                         { "segreduce.thread", "segreduce.subwarp with lanes: 1" },
                                         { "segscan.allpre", "scan.resident, of rows with across: 1" },
                                         { "segscan.cluster", "scan.block with cluster: 2" },
                                         { "segscan.flat", "scan.lookback with across: 1" },
                                         { "segscan.resident", "scan.resident, of rows with across: 1" },
                                         { "segscan.stream", "scan.block" },
                                         { "segscan.subwarp", "segscan.staged" },
                                         { "segscan.warp", "scan.block with lanes: 32" },
                                         { NULL, NULL } };
    const char *names[sizeof rows / sizeof *rows];
    struct diag *m = diag_error(d, D_BAD_TUNABLE, at, "unknown strategy '%s'", name);
    if (name_now(gone, name) != name) {
        diag_hint(d, m, "version 0.1 has %s in its place", name_now(gone, name));
        return false;
    }
    for (int i = 0; i < strategy_count(); i++)
        names[i] = rows[i].name;
    diag_suggest(d, m, name, names, strategy_count());
    return false;
}

static bool plan_named(struct planner *pl, const char *name, struct span at)
{
    struct diags *d = &pl->s->diags;
    const struct strategy *row = strategy_by_name(name);
    if (!row)
        return unknown(d, name, at);
    const char *why = NULL;
    if (!fits(pl, row, &why)) {
        diag_error(d, D_NO_STRATEGY, at, "%s does not fit: %s", name, why);
        return false;
    }
    if (!plan_settings_check(pl, row))
        return false;
    plan_row(pl, row);
    if (!pl->plan->ncases)
        diag_error(d, D_BAD_TUNABLE, at, "%s takes no launch of this problem with these tunables", name);
    return pl->plan->ncases > 0;
}

/* The last case takes whatever comes to it. */
static bool complete(const struct plan *plan)
{
    return plan->ncases > 0 && plan->cases[plan->ncases - 1].code.guard.n == 0;
}

/* ---- tuned cases ---- */

void tuning_range(int64_t size, int64_t *lo, int64_t *hi)
{
    const double most = floor((double)size * M_SQRT2);
    *lo = (int64_t)ceil((double)size / M_SQRT2);
    *hi = most < 0x1p63 ? (int64_t)most : INT64_MAX;
}

/* lo <= size <= hi for every size of the entry, and what the case asks for besides. */
static struct formula near(const struct planner *pl, const struct tuned *t, struct formula guard)
{
    for (int i = pl->plan->problem->nsizes - 1; i >= 0; i--) {
        int64_t lo, hi;
        const bool known = pl->options->size && pl->options->size[i] >= 0; /* then the entry has been chosen for it */
        tuning_range(t->size[i], &lo, &hi);
        const struct formula within = f_and(f_le(lo, f_size(i)), f_le(f_size(i), hi));
        if (!known)
            guard = f_and(within, guard);
    }
    return guard;
}

/* A condition on many sizes and alignments may outgrow a formula: then the entry is left out. */
static bool guards_fit(const struct planner *pl, const struct tuned *t, int first)
{
    for (int c = first; c < pl->plan->ncases; c++)
        if (near(pl, t, pl->plan->cases[c].code.guard).n < 0)
            return false;
    return true;
}

/* The cases of a variant, as if it were pinned, for sizes near those that it was tuned at. */
static bool plan_tuned(struct planner *pl, int number)
{
    const struct tuned *t = &pl->options->tuned[number];
    struct plan *plan = pl->plan;
    const struct plan_options pinned = { .nset = t->nset, .set = t->set, .size = pl->options->size };
    struct planner inner = { .s = pl->s, .plan = plan, .options = &pinned };
    const struct strategy *row = strategy_by_name(t->set[0].value);
    const int first = plan->ncases, checks = plan->nchecks;
    plan_row(&inner, row);
    plan_drop_repeated_checks(plan, checks);
    if (!guards_fit(pl, t, first)) {
        memset(&plan->cases[first], 0, sizeof *plan->cases * (size_t)(plan->ncases - first));
        plan->ncases = first;
    }
    for (int c = first; c < plan->ncases; c++) {
        struct plan_case *k = &plan->cases[c];
        k->code.name = arena_printf(&pl->s->arena, "tuned%d_%s", number, k->code.name);
        k->code.guard = near(pl, t, k->code.guard);
        for (int i = 0; i < TN_COUNT; i++)
            k->tunable_from[i] = "tuning file";
        if (!plan_case_build(&inner, k))
            return false;
    }
    return true;
}

/* Room for the cases that take the other sizes. */
enum { USUAL_CASES = 30 };

static bool plan_all_tuned(struct planner *pl)
{
    const struct plan_options *o = pl->options;
    for (int i = 0; o && i < o->ntuned && !complete(pl->plan) && pl->plan->ncases < PLAN_CASES_MAX - USUAL_CASES; i++)
        if (!plan_tuned(pl, i))
            return false;
    return true;
}

/* Leaves out the cases whose guards are false whatever the sizes, as where the number of columns is a constant. */
static void drop_never_taken(struct plan *plan, int from)
{
    int n = from;
    for (int c = from; c < plan->ncases; c++) {
        const struct formula *guard = &plan->cases[c].code.guard;
        int64_t holds;
        if (guard->n < 0 || !formula_known(guard, &(struct formula_facts){ 0 }, &holds) || holds)
            plan->cases[n++] = plan->cases[c];
    }
    memset(&plan->cases[n], 0, sizeof *plan->cases * (size_t)(plan->ncases - n));
    plan->ncases = n;
}

/* What is left of scans whose outputs turn: columns that are short or few; few long segments come after them. */
static bool after_turned(const struct strategy *row)
{
    return row->plan == segscan_strips_plan || row->plan == segscan_column_plan;
}

static void plan_rows(struct planner *pl, bool after)
{
    for (int i = 0; i < strategy_count() && !complete(pl->plan); i++) {
        const char *why = NULL;
        if ((!after || after_turned(&rows[i])) && fits(pl, &rows[i], &why))
            plan_row(pl, &rows[i]);
    }
}

static bool plan_chosen(struct planner *pl)
{
    const int from = pl->plan->ncases;
    if (segscan_turned_plan(pl)) {
        plan_rows(pl, true);
        if (!complete(pl->plan))
            scan_turns_plan(pl);
    }
    if (!complete(pl->plan))
        scan_small_plan(pl);
    plan_rows(pl, false);
    drop_never_taken(pl->plan, from);
    return pl->plan->ncases > 0;
}

static void report_none(struct planner *pl)
{
    static const char *const kinds[] = { "reduction", "scan", "stencil" };
    struct diags *d = &pl->s->diags;
    const struct problem *p = pl->plan->problem;
    const char *arch = pl->plan->device.arch;
    struct diag *m = diag_error(d, D_NO_STRATEGY, p->at, "no strategy fits this %s on %s", kinds[p->kind], arch);
    for (int i = 0; i < strategy_count(); i++) {
        const char *why = NULL;
        if (rows[i].kind == p->kind && !fits(pl, &rows[i], &why))
            diag_note(d, m, span_none(), "%s: %s", rows[i].name, why);
    }
}

static bool setting_used(const struct plan *plan, const struct tunable *set)
{
    enum tunable_id t;
    int value;
    if (!tunable_given(NULL, NULL, set, &t, &value))
        return true; /* "strategy" */
    for (int c = 0; c < plan->ncases; c++)
        if (plan->cases[c].overridden[t])
            return true;
    return false;
}

/* A setting that no case used would be a silent no-op. */
static bool settings_used(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    const struct plan_options *o = pl->options;
    bool used = true;
    for (int i = 0; i < p->ntunables; i++)
        used &= setting_used(pl->plan, &p->tunable[i]);
    for (int i = 0; o && i < o->nset; i++)
        used &= setting_used(pl->plan, &o->set[i]);
    return used || plan_settings_check(pl, pl->plan->cases[0].strategy);
}

struct plan *plan_new(struct ptxgen_session *s, const struct problem *p)
{
    struct plan *plan = arena_new(&s->arena, struct plan, 1);
    plan->problem = p;
    plan->cases = arena_new(&s->arena, struct plan_case, PLAN_CASES_MAX);
    return plan;
}

/* A formula that outgrew its room has a negative length: no plan may carry one. */
static bool formulas_fit(struct planner *pl, const struct prog_case *code)
{
    bool ok = code->guard.n >= 0;
    for (int i = 0; i < code->nbuffers; i++)
        ok &= code->buffer[i].bytes.n >= 0;
    for (int i = 0; i < code->nsteps; i++)
        ok &= code->step[i].grid.n >= 0 && code->step[i].shared.n >= 0;
    for (int i = 0; i < code->nkernels; i++)
        for (int j = 0; j < code->kernel[i].nargs; j++)
            ok &= code->kernel[i].arg[j].value.n >= 0;
    if (!ok)
        diag_error(&pl->s->diags, D_INTERNAL, pl->plan->problem->at, "a formula of case '%s' is too long", code->name);
    return ok;
}

static bool free_fits(const struct device *d, const struct plan_case *c, enum tunable_id t, int value)
{
    if (t == TN_PDL)
        return !value || d->sm >= 90;
    for (int k = 0; t == TN_MIN_BLOCKS && k < c->code.nkernels; k++)
        if (value * c->code.kernel[k].threads > d->threads_per_sm)
            return false;
    return true;
}

bool plan_free_fits(const struct plan *plan, enum tunable_id t, int value)
{
    for (int c = 0; c < plan->ncases; c++)
        if (!free_fits(&plan->device, &plan->cases[c], t, value))
            return false;
    return true;
}

/* What the user sets and no strategy looks at. ptxas would pass over a launch bound that no multiprocessor can keep. */
static bool check_free(struct planner *pl, const struct plan_case *c)
{
    struct diags *d = &pl->s->diags;
    const struct device *device = &pl->plan->device;
    const struct span at = pl->plan->problem->strategy_at;
    if (c->overridden[TN_MIN_BLOCKS] && !free_fits(device, c, TN_MIN_BLOCKS, c->tunable[TN_MIN_BLOCKS]))
        diag_error(d, D_BAD_TUNABLE, at, "min_blocks: %d blocks are more than the %d threads of a multiprocessor",
                   c->tunable[TN_MIN_BLOCKS], device->threads_per_sm);
    else if (c->overridden[TN_PDL] && !free_fits(device, c, TN_PDL, c->tunable[TN_PDL]))
        diag_error(d, D_BAD_TUNABLE, at, "pdl: dependent launch needs sm_90; the target is %s", device->arch);
    else
        return true;
    return false;
}

bool plan_case_valid(struct planner *pl, const struct plan_case *c)
{
    return formulas_fit(pl, &c->code) && check_free(pl, c);
}

/* Leaves out the cases whose guards fail at the known sizes, and those that an earlier case stands before wherever their
 * own guards hold. Guards stay: a launch that is none of these is refused. False after a diagnostic: nothing is left. */
static bool keep_taken(struct planner *pl)
{
    const struct plan_options *o = pl->options;
    const struct problem *p = pl->plan->problem;
    const bool only_these = o && o->only_these;
    unsigned char aligned[PROBLEM_ARGS_MAX];
    int64_t divisor[PROBLEM_ARGS_MAX], least[PROBLEM_ARGS_MAX], most[PROBLEM_ARGS_MAX];
    const struct formula_facts facts = { o ? o->size : NULL, least, most, divisor, only_these ? aligned : p->alignment,
                                         o ? o->sms : 0 };
    struct plan *plan = pl->plan;
    int n = 0;
    memset(aligned, ACCESS_BYTES, sizeof aligned);
    for (int i = 0; i < p->nsizes; i++) {
        least[i] = p->size[i].min;
        most[i] = p->size[i].max;
        divisor[i] = p->size[i].multiple_of;
    }
    for (int c = 0; c < plan->ncases; c++) {
        const struct formula *guard = &plan->cases[c].code.guard;
        int64_t holds;
        bool taken = !formula_known(guard, &facts, &holds) || holds;
        for (int k = 0; k < n; k++)
            taken &= !formula_follows(&plan->cases[k].code.guard, guard, &facts);
        if (taken)
            plan->cases[n++] = plan->cases[c];
    }
    if (n == 0 && only_these)
        diag_error(&pl->s->diags, D_NO_STRATEGY, plan->problem->strategy_at, "%s takes no launch at these sizes",
                   plan->cases[0].strategy->name);
    plan->ncases = n > 0 || only_these ? n : plan->ncases;
    return plan->ncases > 0;
}

const struct plan *plan_create(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                               const struct plan_options *o)
{
    struct plan *plan = plan_new(s, p);
    plan->device = *d;
    plan->set = o && (o->nset > 0 || o->strategy);
    struct planner pl = { .s = s, .plan = plan, .options = o };
    struct span at;
    plan_launch_checks(&pl);
    const char *name = plan_pinned_name(&pl, &at);
    if (!plan_settings_check(&pl, NULL) || (!name && !p->ntunables && !(o && o->nset) && !plan_all_tuned(&pl)))
        return NULL;
    const int built = plan->ncases;
    plan->origin = name ? PLAN_PINNED : PLAN_CHOSEN;
    if (name ? !plan_named(&pl, name, at) : !plan_chosen(&pl)) {
        if (!name)
            report_none(&pl);
        return NULL;
    }
    if (!settings_used(&pl))
        return NULL;
    plan_drop_repeated_checks(plan, 0);
    for (int c = built; c < plan->ncases; c++)
        if (!plan_case_build(&pl, &plan->cases[c]))
            return NULL;
    for (int c = 0; c < plan->ncases; c++)
        if (!plan_case_valid(&pl, &plan->cases[c]))
            return NULL;
    for (int c = 0; c < plan->ncases; c++)
        plan_evidence(&s->arena, &plan->cases[c]);
    return keep_taken(&pl) ? plan : NULL;
}
