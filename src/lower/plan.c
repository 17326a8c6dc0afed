/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - pieces that every strategy's planning is made of: cases, kernels, arguments, buffers, steps, tunables. */
#include "work.h"
#include "lower_impl.h"
#include "segments.h"
#include "tuned.h"

#include <string.h>

static const struct tuning tuning_rows[] = {
#define TUNE(strategy, variant, sm, evidence, ...) { strategy, variant, NULL, sm, evidence, 0, 0, 0, { __VA_ARGS__ } },
#define TUNE_CASE(strategy, variant, size, sm, evidence, from, to, vector, ...)                                        \
    { strategy, variant, size, sm, evidence, from, to, vector, { __VA_ARGS__ } },
#include "tuning.def"
#undef TUNE
#undef TUNE_CASE
};

static const struct tuning *row_of(const char *strategy, const char *variant, const char *size, int sm)
{
    const struct tuning *best = NULL;
    for (size_t i = 0; i < sizeof tuning_rows / sizeof *tuning_rows; i++) {
        const struct tuning *t = &tuning_rows[i];
        const bool sized = size ? t->size && !strcmp(t->size, size) : !t->size;
        const bool named = sized && !strcmp(t->strategy, strategy) && !strcmp(t->variant, variant);
        if (named && (sm ? t->sm <= sm && (!best || t->sm > best->sm) : !best || t->sm < best->sm))
            best = t;
    }
    return best;
}

const struct tuning *tuning_lookup(const char *strategy, const char *variant, int sm)
{
    return row_of(strategy, variant, NULL, sm);
}

const struct tuning *tuning_case(const char *strategy, int n, int sm)
{
    for (size_t i = 0; i < sizeof tuning_rows / sizeof *tuning_rows; i++) {
        const struct tuning *t = &tuning_rows[i];
        if (t->size && !strcmp(t->strategy, strategy) && row_of(strategy, t->variant, t->size, sm) == t && n-- == 0)
            return t;
    }
    return NULL;
}

/* A row's evidence is of its own values: where planning has made another of one, the evidence is not about that. */
void plan_evidence(struct arena *a, struct plan_case *c)
{
    for (int t = 0; t < TN_COUNT; t++) {
        const struct tuning *of = NULL;
        bool same = false;
        for (size_t i = 0; c->tunable_from[t] && i < sizeof tuning_rows / sizeof *tuning_rows; i++) {
            const struct tuning *row = &tuning_rows[i];
            if (row->evidence == c->tunable_from[t] && !strcmp(row->strategy, c->strategy->name)) {
                of = row;
                same |= row->value[t] == c->tunable[t];
            }
        }
        if (of && !same)
            c->tunable_from[t] = arena_printf(a, "%d is tuned, which does not suit this case", of->value[t]);
    }
}

/* As a row of tuning.def: what planning does not derive from the problem and the device. */
void tuning_row(const struct plan *plan, const char *evidence, struct str *out)
{
    static const char *const id[] = {
#define X(id, ...) [TN_##id] = #id,
        TUNABLES(X)
#undef X
    };
    const struct plan_case *c = &plan->cases[0];
    const unsigned tuned = c->strategy->tunables & ~(WITH_VECTOR | WITH_MIN_BLOCKS | WITH_PDL);
    str_printf(out, "TUNE(\"%s\", \"%s\", %d, \"", c->strategy->name, tuning_variant(plan->problem), plan->device.sm);
    for (; *evidence; evidence++)
        if (*evidence != '"' && *evidence != '\\' && *evidence != '\n')
            str_addc(out, *evidence);
    str_add(out, "\",\n    ");
    for (int t = 0, n = 0; t < TN_COUNT; t++)
        if (tuned & 1u << t && c->tunable[t])
            str_printf(out, "%s [TN_%s] = %d", n++ ? "," : "", id[t], c->tunable[t]);
    str_add(out, ")\n");
}

/* One setting of the user, which plan_settings_check() has seen. */
static void apply(struct plan_case *c, const struct tunable *set, const char *from)
{
    enum tunable_id t;
    int value;
    if (tunable_given(NULL, c->strategy, set, &t, &value)) {
        c->tunable[t] = value;
        c->overridden[t] = true;
        c->tunable_from[t] = from;
    }
}

/* Is an element read from more than one array, so that a thread has more bytes in flight per item? */
static bool several_arrays(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        n += access_input_direct(p, i);
    return n > 1;
}

const char *tuning_variant(const struct problem *p)
{
    enum ty type[STATE_FIELDS_MAX];
    int bytes = 0;
    const int n = state_fields(p, type);
    for (int f = 0; f < n; f++)
        bytes += ty_bytes(type[f]);
    if (!state_commutative(p))
        return "ordered";
    if (bytes > 8)
        return p->nreductions > 1 ? "several" : "wide";
    return several_arrays(p) ? "pair" : access_vector_width(p) >= 8 ? "narrow" : "";
}

int plan_setting(const struct planner *pl, enum tunable_id t, int otherwise)
{
    const struct problem *p = pl->plan->problem;
    const int nset = pl->options ? pl->options->nset : 0;
    for (int i = p->ntunables + nset - 1; i >= 0; i--) {
        enum tunable_id of;
        int value;
        if (tunable_given(NULL, NULL, i < p->ntunables ? &p->tunable[i] : &pl->options->set[i - p->ntunables], &of,
                          &value) &&
            of == t)
            return value;
    }
    return otherwise;
}

bool plan_overrides(const struct planner *pl, enum tunable_id t) { return plan_setting(pl, t, -1) >= 0; }

void plan_keep_first(struct planner *pl, int from)
{
    if (pl->plan->ncases > from + 1)
        pl->plan->ncases = from + 1;
}

bool plan_takes(const char **why, const struct misfit *m)
{
    while (m->why && !m->holds)
        m++;
    *why = m->why;
    return !m->why;
}

bool plan_pinned(const struct planner *pl) { return plan_pinned_name(pl, &(struct span){ 0 }) != NULL; }

void plan_set(struct plan_case *c, enum tunable_id t, int value, const char *from)
{
    if (c->overridden[t] || !(c->strategy->tunables & 1u << t))
        return;
    c->tunable[t] = value;
    if (from)
        c->tunable_from[t] = from;
}

struct formula plan_sms(const struct problem *p)
{
    enum { FIXED = 128 /* of `determinism: device` */ };
    return state_determinism(p) == DET_DEVICE ? f_const(FIXED) : f_sms();
}

struct formula plan_blocks_in_turns(const struct problem *p, struct formula length, struct formula blocks)
{
    enum { SHORT = 8, BLOCKS_OF_SM = 256, BLOCKS_MOST = 1 << 30 };
    const struct formula any = f_mul(f_ge(length, SHORT), BLOCKS_MOST);
    return f_min(blocks, f_max(f_mul(plan_sms(p), BLOCKS_OF_SM), any));
}

void plan_set_pdl(const struct planner *pl, struct plan_case *c)
{
    plan_set(c, TN_PDL, pl->plan->device.sm >= 90, "on where the architecture has it");
}

void plan_lighten(const struct problem *p, struct plan_case *c)
{
    enum { MOST = 2048, PLACED = 8 };
    int operations = work_is_heavy(p) ? work_operations(p) : 0;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) /* an element in flight holds the address of its read or write */
        if ((i < p->ninputs ? p->input[i].placed : output_is_placed(&p->output[i - p->ninputs])) &&
            operations < MOST / PLACED)
            operations = MOST / PLACED;
    while (plan_shrinks(c, TN_ITEMS) && (int64_t)operations * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > MOST) {
        c->tunable[TN_ITEMS] /= 2;
        c->tunable_from[TN_ITEMS] = "few copies of large expressions";
    }
}

void plan_min_blocks(struct planner *pl, struct plan_case *c)
{
    const bool tuned = pl->plan->device.sm == 90;
    plan_set(c, TN_MIN_BLOCKS, tuned ? 0 : 1,
             tuned ? "ptxas is left alone, as when this was tuned" : "a bound keeps ptxas from spilling");
}

struct plan_case *plan_case_add(struct planner *pl, const struct strategy *row, const char *name, struct formula guard)
{
    struct plan *plan = pl->plan;
    const struct problem *p = plan->problem;
    struct plan_case *c = &plan->cases[plan->ncases++];
    c->strategy = row;
    c->code.name = name;
    c->code.strategy = row->name;
    c->code.guard = guard;
    /* determinism: device wants one tree everywhere, so one row everywhere. */
    const int sm = state_determinism(p) == DET_DEVICE ? 0 : plan->device.sm;
    const struct tuning *t = tuning_lookup(row->name, tuning_variant(p), sm);
    if (!t)
        t = tuning_lookup(row->name, "", sm);
    for (int i = 0; t && i < TN_COUNT; i++) {
        c->tunable[i] = t->value[i];
        c->tunable_from[i] = t->value[i] ? t->evidence : NULL; /* 0: the row says nothing of it */
    }
    plan_min_blocks(pl, c);
    c->tunable[TN_VECTOR] = access_vector_width(p);
    c->tunable_from[TN_VECTOR] = "16 bytes of the widest array";
    for (int i = 0; i < p->ntunables; i++)
        apply(c, &p->tunable[i], "spec");
    for (int i = 0; pl->options && i < pl->options->nset; i++)
        apply(c, &pl->options->set[i], "--set");
    plan_lighten(p, c);
    return c;
}

void plan_case_drop(struct planner *pl) { pl->plan->cases[--pl->plan->ncases] = (struct plan_case){ 0 }; }

void plan_case_row(struct plan_case *c, const struct tuning *t)
{
    for (int i = 0; t && i < TN_COUNT; i++)
        if (t->value[i] && !c->overridden[i]) {
            c->tunable[i] = t->value[i];
            c->tunable_from[i] = t->evidence;
        }
}

void plan_case_tuned(struct planner *pl, struct plan_case *c, const char *variant)
{
    plan_case_row(c, *variant ? tuning_lookup(c->strategy->name, variant, pl->plan->device.sm) : NULL);
}

void plan_case_variant(struct planner *pl, struct plan_case *c, const char *variant)
{
    plan_case_tuned(pl, c, variant);
    plan_lighten(pl->plan->problem, c);
}

static void add_arg(struct prog_kernel *k, struct prog_arg arg) { ((struct prog_arg *)k->arg)[k->nargs++] = arg; }

/* Formulas are large, and most cases have few of them. */
static void *one_more(struct arena *a, void *array, int n, int by, size_t each)
{
    return n % by ? array : arena_grow(a, array, each * (size_t)n, each * (size_t)(n + by));
}

/* Of the case that is being built, until plan_arguments_end(). */
static struct prog_arg *arguments(struct planner *pl, int kernel)
{
    if (!pl->arguments[kernel])
        pl->arguments[kernel] = arena_new(&pl->s->arena, struct prog_arg, PROG_ARG_MAX);
    return pl->arguments[kernel];
}

void plan_arguments_end(struct planner *pl, struct plan_case *c)
{
    for (int i = 0; i < c->code.nkernels; i++) {
        struct prog_kernel *k = &c->code.kernel[i];
        const size_t bytes = sizeof *k->arg * (size_t)k->nargs;
        k->arg = arena_grow(&pl->s->arena, k->arg, bytes, bytes);
    }
}

static void note_index(const struct expr *e, void *any) { *(bool *)any |= e->kind == EX_INDEX; }

/* Do elements ask for indices along reduced axes that are several: by index(), or for `others`? */
static bool divides_places(const struct problem *p, bool others)
{
    int reduced = 0;
    bool any = others;
    for (int d = 0; d < p->rank; d++)
        reduced += p->space[d].reduced;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            problem_walk(p, p->reduction[r].map[f], note_index, &any);
    return any && reduced > 1;
}

bool plan_divides_numbers(const struct problem *p)
{
    bool others = p->nby > 0, beside = false, turned = false;
    int kept = 0;
    for (int i = 0; i < p->ninputs; i++) {
        others |= p->input[i].role == ROLE_ELEMENT && !access_input_direct(p, i);
        beside |= p->input[i].role == ROLE_ELEMENT && p->input[i].neighbours;
    }
    for (int d = 0; d < p->rank; d++)
        kept += !p->space[d].reduced;
    if (segments_in_pieces(p))
        return true;
    for (int o = 0; o < p->noutputs; o++)
        turned |= output_moment(&p->output[o]) == AT_POINT && !access_output_direct(p, o);
    if (p->kind == KIND_SCAN) /* positions along several axes */
        return p->rank - kept > 1 && kept > 0 && (others || turned);
    if (p->kind != KIND_REDUCE)
        return false;
    others |= beside;
    /* Columns inside boxes are numbered through all boxes. */
    if (p->offsets < 0 && kept > 0 && kept < p->rank &&
        (divides_places(p, others) || (!p->space[0].reduced && !segments_trailing(p))))
        return true;
    return p->rank > 1 && others && (p->nby > 0 || kept != 1);
}

struct prog_kernel *plan_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    struct arena *a = &pl->s->arena;
    const struct problem *p = pl->plan->problem;
    if (!c->code.kernel)
        c->code.kernel = arena_new(a, struct prog_kernel, PLAN_STEPS_MAX);
    struct prog_kernel *k = &c->code.kernel[c->code.nkernels++];
    k->name = arena_printf(a, "%s_%s%s%s", pl->plan->problem->name, c->code.name, *suffix ? "_" : "", suffix);
    k->threads = c->tunable[TN_THREADS];
    k->cluster = 0;
    k->module = (int)(c - pl->plan->cases);
    k->arg = arguments(pl, c->code.nkernels - 1);
    for (int i = 0; i < p->ninputs; i++)
        add_arg(k, (struct prog_arg){ .kind = ARG_INPUT, .index = i, .name = p->input[i].array.name });
    for (int i = 0; i < p->noutputs; i++)
        add_arg(k, (struct prog_arg){ .kind = ARG_OUTPUT, .index = i, .name = p->output[i].array.name });
    for (int i = 0; i < p->nparams; i++)
        add_arg(k,
                (struct prog_arg){ .kind = ARG_PARAM, .index = i, .type = p->param[i].type, .name = p->param[i].name });
    for (int i = 0; i < p->nsizes + p->njoined; i++)
        add_arg(k, (struct prog_arg){
                       .kind = ARG_VALUE, .type = TY_I64, .value = access_size(p, i), .name = p->size[i].name });
    for (int i = 0, n = 0; i < p->nsizes; i++)
        if (p->divisors >> i & 1)
            plan_value_arg(k, VAL_DIVISOR0 + n++, TY_I64, f_div(INT64_MAX, f_max(access_size(p, i), 1)));
    for (int d = 1; d < p->rank && plan_divides_numbers(p); d++)
        if (p->space[d].extent.size >= 0)
            plan_value_arg(k, d == 1 ? VAL_RECIPROCAL1 : VAL_RECIPROCAL2, TY_I64,
                           f_div(INT64_MAX, f_max(access_extent(p, &p->space[d].extent), 1)));
    return k;
}

const char *argument_name(enum prog_arg_kind kind, int id)
{
    static const char *const value[] = {
#define X(id, name) [VAL_##id] = name,
        KERNEL_VALUES(X)
#undef X
    };
    static const char *const buffer[] = {
#define X(id, name) [BUF_##id] = name,
        KERNEL_BUFFERS(X)
#undef X
    };
    return kind == ARG_VALUE ? value[id] : buffer[id];
}

void plan_value_arg(struct prog_kernel *k, enum kernel_value id, enum ty type, struct formula value)
{
    const char *name = argument_name(ARG_VALUE, id);
    add_arg(k, (struct prog_arg){ .kind = ARG_VALUE, .id = id, .type = type, .value = value, .name = name });
}

void plan_piece_arg(struct prog_kernel *k, const struct problem *p)
{
    if (!segments_in_pieces(p))
        return;
    const struct formula most = f_min(f_max(segments_piece(p), 1), SEGMENTS_PIECE_MOST);
    plan_value_arg(k, VAL_PIECE, TY_I64, f_add(f_div((int64_t)1 << 32, most), 1));
}

int plan_buffer(struct planner *pl, struct plan_case *c, const char *name, enum prog_region region,
                struct formula bytes)
{
    c->code.buffer = one_more(&pl->s->arena, c->code.buffer, c->code.nbuffers, 4, sizeof *c->code.buffer);
    c->code.buffer[c->code.nbuffers] = (struct prog_buffer){ .name = name, .region = region, .bytes = bytes };
    return c->code.nbuffers++;
}

static void buffer_arg(struct planner *pl, struct plan_case *c, int first, struct prog_arg arg, enum prog_region region,
                       struct formula bytes)
{
    arg.kind = ARG_BUFFER;
    arg.index = plan_buffer(pl, c, arg.name, region, bytes);
    for (int i = first; i < c->code.nkernels; i++)
        add_arg(&c->code.kernel[i], arg);
}

void plan_buffer_arg(struct planner *pl, struct plan_case *c, int first, enum kernel_buffer id, enum prog_region region,
                     struct formula bytes)
{
    const struct prog_arg arg = { .id = id, .name = argument_name(ARG_BUFFER, id) };
    buffer_arg(pl, c, first, arg, region, bytes);
}

void plan_partials_arg(struct planner *pl, struct plan_case *c, int first, struct formula slots, int each)
{
    enum ty type[STATE_FIELDS_MAX];
    for (int f = 0, fields = state_fields(pl->plan->problem, type); f < fields; f++) {
        const char *name = arena_printf(&pl->s->arena, "partial%d", f);
        buffer_arg(pl, c, first, (struct prog_arg){ .id = BUF_PARTIAL, .name = name }, REGION_SCRATCH,
                   f_mul(slots, each * ty_bytes(type[f])));
    }
}

void plan_words_arg(struct planner *pl, struct plan_case *c, struct formula slots, int spare)
{
    const struct formula totals = f_mul(slots, 8 * (spare + state_words(pl->plan->problem, NULL)));
    plan_buffer_arg(pl, c, 0, BUF_WORDS, REGION_CONTROL, f_add(LAUNCH_LINE_BYTES, totals));
}

struct prog_step *plan_launch(struct planner *pl, struct plan_case *c, int kernel, struct formula grid)
{
    c->code.step = one_more(&pl->s->arena, c->code.step, c->code.nsteps, 1, sizeof *c->code.step);
    struct prog_step *s = &c->code.step[c->code.nsteps++];
    s->kernel = kernel;
    s->grid = grid;
    s->dependent = c->tunable[TN_PDL] != 0;
    return s;
}

void plan_check(struct planner *pl, struct formula condition, const char *message)
{
    struct plan *plan = pl->plan;
    plan->check = one_more(&pl->s->arena, plan->check, plan->nchecks, 4, sizeof *plan->check);
    plan->check[plan->nchecks++] = (struct prog_check){ .condition = condition, .message = message };
}

static int64_t saturating_product(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

void plan_extent_range(const struct planner *pl, const struct prog_dim *e, int64_t *lo, int64_t *hi)
{
    *lo = *hi = e->add;
    if (e->size < 0)
        return;
    const struct problem *p = pl->plan->problem;
    const struct dimension *dim = &p->size[e->size];
    const int64_t given = pl->options && pl->options->size ? problem_size(p, e->size, pl->options->size) : -1;
    *lo = given >= 0 ? given : dim->min;
    *hi = given >= 0 ? given : dim->max;
}

void plan_range_times(const struct planner *pl, const struct prog_dim *e, int64_t *lo, int64_t *hi)
{
    int64_t from, to;
    plan_extent_range(pl, e, &from, &to);
    *lo = saturating_product(*lo, from);
    *hi = saturating_product(*hi, to);
}

void plan_count_range(const struct planner *pl, int64_t *lo, int64_t *hi)
{
    const struct problem *p = pl->plan->problem;
    *lo = *hi = 1;
    for (int d = 0; d < p->rank; d++)
        plan_range_times(pl, &p->space[d].extent, lo, hi);
}
