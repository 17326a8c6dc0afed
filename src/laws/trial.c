/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - both sides of a law for given states, what the oracle makes of them, and how they are shown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "laws_impl.h"

int law_operands(enum law law)
{
    static const int operands[LAW_COUNT] = { 3, 2, 1, 1 };
    return operands[law];
}

/* ---- sides ---- */

static enum outcome compare_states(const struct evaluator *v, const struct state *x, const struct state *y, int *field)
{
    const struct op *op = v->w->red->op;
    bool unsure = false;
    if (v->undefined)
        return OUTCOME_UNDEFINED;
    for (int f = 0; f < op->nfields; f++) {
        const bool is_float = ty_is_float(op->field[f]);
        int equal;
        if (v->w->level == LEVEL_IDEAL)
            equal = ideal_compare_equal(op->field[f], &x->field[f], &y->field[f]);
        else if (is_float && isnan(x->field[f].bits.f) && isnan(y->field[f].bits.f))
            equal = 1;
        else
            equal = x->field[f].bits.u == y->field[f].bits.u ? 1 : -1; /* the sign of zero counts */
        if (equal < 0) {
            *field = f;
            return OUTCOME_DIFFERENT;
        }
        unsure |= equal == 0;
    }
    return unsure ? OUTCOME_UNDEFINED : OUTCOME_EQUAL;
}

/* An identity from outside has its values in bits. */
static void given_identity(struct evaluator *v, const struct state *given, struct state *out)
{
    const struct op *op = v->w->red->op;
    *out = *given;
    for (int f = 0; v->w->level == LEVEL_IDEAL && f < op->nfields; f++)
        if (ty_is_float(op->field[f]) && !ideal_from_bits(op->field[f], given->field[f].bits, &out->field[f]))
            v->undefined = true;
}

enum outcome trial_sides(struct evaluator *v, struct trial *t, int *field)
{
    struct state e, left;
    switch (t->law) {
    case LAW_ASSOCIATIVE:
        evaluate_combine(v, &t->a, &t->b, &left);
        evaluate_combine(v, &left, &t->c, &t->l);
        evaluate_combine(v, &t->b, &t->c, &left);
        evaluate_combine(v, &t->a, &left, &t->r);
        break;
    case LAW_COMMUTATIVE:
        evaluate_combine(v, &t->a, &t->b, &t->l);
        evaluate_combine(v, &t->b, &t->a, &t->r);
        break;
    case LAW_IDENTITY:
        if (t->identity)
            given_identity(v, t->identity, &e);
        else
            evaluate_identity(v, &e);
        evaluate_combine(v, t->right ? &t->a : &e, t->right ? &e : &t->a, &t->l);
        t->r = t->a;
        break;
    default:
        evaluate_combine(v, &t->a, &t->a, &t->l);
        t->r = t->a;
        break;
    }
    return compare_states(v, &t->l, &t->r, field);
}

bool trial_lift(struct trial *t)
{
    const struct op *op = t->world.red->op;
    struct state *const of[] = { &t->a, &t->b, &t->c };
    bool good = true;
    t->world.level = LEVEL_IDEAL;
    for (int i = 0; i < law_operands(t->law); i++)
        for (int f = 0; f < op->nfields; f++)
            if (ty_is_float(op->field[f]))
                good &= ideal_from_bits(op->field[f], of[i]->field[f].bits, &of[i]->field[f]);
    return good;
}

/* Elements first … first + n - 1, combined one after the other. */
static void run_of(struct evaluator *v, int first, int n, struct state *out)
{
    struct state x;
    evaluate_element(v, first, out);
    for (int i = 1; i < n; i++) {
        evaluate_element(v, first + i, &x);
        evaluate_combine(v, out, &x, out);
    }
}

enum outcome trial_run(struct evaluator *v, struct trial *t, int *field)
{
    struct state *const to[] = { &t->a, &t->b, &t->c };
    v->w = &t->world;
    v->undefined = v->overflow = false;
    v->stamp++;
    for (int i = 0, first = 0; i < law_operands(t->law); first += t->count[i++])
        run_of(v, first, t->count[i], to[i]);
    return trial_sides(v, t, field);
}

/* ---- the oracle ---- */

/* The value of a cell in its type; false where the type has none such. */
static bool to_bits(enum level level, enum ty t, const struct cell *x, union value *out)
{
    *out = x->bits;
    if (level == LEVEL_BITS || !ty_is_float(t))
        return true;
    out->f = ref_round(t, (double)x->real.v);
    return x->real.kind != REAL_EXACT || (long double)out->f == x->real.v;
}

/* What the oracle reads: sizes, params, and one element of every input. */
struct oracle {
    const struct world *w;
    struct run_args args;
};

static void oracle_begin(struct evaluator *v, const struct world *w, struct oracle *o)
{
    const struct problem *p = w->p;
    int64_t *size = arena_new(v->a, int64_t, p->nsizes + 1), at[SPACE_MAX];
    union value *param = arena_new(v->a, union value, p->nparams + 1);
    const void **input = arena_new(v->a, const void *, p->ninputs + 1);
    world_point(w, 0, at);
    for (int i = 0; i < p->nsizes; i++)
        size[i] = world_size(w, i);
    for (int i = 0; i < p->nparams; i++)
        param[i] = world_param(w, i);
    for (int i = 0; i < p->ninputs; i++) {
        const struct prog_array *a = &p->input[i].array;
        char *element = arena_alloc(v->a, (size_t)a->stride);
        for (int f = 0; f < a->nfields; f++) {
            struct expr leaf = { .kind = EX_INPUT, .type = a->field[f].type, .which = i, .field = f };
            value_store(a->field[f].type, element + a->field[f].offset, world_leaf(w, at, &leaf));
        }
        input[i] = element;
    }
    *o = (struct oracle){ w, { .size = size, .input = input, .param = param } };
}

static void oracle_combine(const struct oracle *o, const struct state *a, const struct state *b, struct state *out)
{
    const struct op *op = o->w->red->op;
    union value x[STATE_FIELDS_MAX], y[STATE_FIELDS_MAX];
    for (int f = 0; f < op->nfields; f++) {
        x[f] = a->field[f].bits;
        y[f] = b->field[f].bits;
    }
    ref_operate(o->w->p, op, &o->args, x, y, x);
    for (int f = 0; f < op->nfields; f++)
        out->field[f].bits = x[f];
}

static void oracle_sides(const struct oracle *o, struct trial *t, const struct state *e)
{
    struct state x;
    switch (t->law) {
    case LAW_ASSOCIATIVE:
        oracle_combine(o, &t->a, &t->b, &x);
        oracle_combine(o, &x, &t->c, &t->l);
        oracle_combine(o, &t->b, &t->c, &x);
        oracle_combine(o, &t->a, &x, &t->r);
        return;
    case LAW_COMMUTATIVE:
        oracle_combine(o, &t->a, &t->b, &t->l);
        oracle_combine(o, &t->b, &t->a, &t->r);
        return;
    case LAW_IDENTITY: oracle_combine(o, t->right ? &t->a : e, t->right ? e : &t->a, &t->l); break;
    default: oracle_combine(o, &t->a, &t->a, &t->l); break;
    }
    t->r = t->a;
}

static double weight_of(const struct op *op, const struct trial *t)
{
    const struct state *const of[] = { &t->a, &t->b, &t->c };
    double weight = 0;
    for (int i = 0; i < law_operands(t->law); i++)
        for (int f = 0; f < op->nfields; f++) {
            const union value x = of[i]->field[f].bits;
            const double size = ty_is_float(op->field[f]) ? fabs(x.f) : fabs((double)x.i);
            const bool whole = !ty_is_float(op->field[f]) || x.f == floor(x.f);
            const bool negative = ty_is_float(op->field[f]) ? signbit(x.f) : ty_is_signed(op->field[f]) && x.i < 0;
            weight += isnan(size) ? 30 : fmin(log2(1 + size), 100) + (whole ? 0 : 1) + (negative ? 0.125 : 0);
        }
    return weight;
}

bool trial_replay(struct evaluator *v, const struct trial *t, struct example *out)
{
    const struct op *op = t->world.red->op;
    const enum level level = t->world.level;
    struct example x = { .trial = *t };
    struct state *const side[] = { &x.trial.a, &x.trial.b, &x.trial.c };
    struct state e = { 0 };
    struct oracle oracle;
    for (int i = 0; i < law_operands(t->law); i++)
        for (int f = 0; f < op->nfields; f++)
            if (!to_bits(level, op->field[f], &side[i]->field[f], &side[i]->field[f].bits))
                return false;
    if (t->law == LAW_IDENTITY && t->identity)
        e = *t->identity;
    oracle_begin(v, &t->world, &oracle);
    for (int f = 0; t->law == LAW_IDENTITY && !t->identity && f < op->nfields; f++)
        e.field[f].bits = ref_const(t->world.p, op->identity[f], &oracle.args);
    oracle_sides(&oracle, &x.trial, &e);
    x.trial.world.level = LEVEL_BITS;
    v->w = &x.trial.world;
    v->undefined = false;
    if (compare_states(v, &x.trial.l, &x.trial.r, &x.field) != OUTCOME_DIFFERENT)
        return false;
    x.found = true;
    x.weight = weight_of(op, &x.trial);
    *out = x;
    return true;
}

/* ---- text ---- */

static void value_text(enum ty t, union value v, struct str *out)
{
    if (t == TY_BOOL)
        str_add(out, v.i ? "true" : "false");
    else if (t == TY_F32) { /* the shortest that reads back */
        char text[32];
        for (int digits = 1; digits < 10; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, v.f);
            if (strtof(text, NULL) == (float)v.f)
                break;
        }
        str_add(out, isnan(v.f) ? "nan" : text);
    } else if (ty_is_float(t))
        str_double(out, isnan(v.f) ? NAN : v.f);
    else if (ty_is_signed(t))
        str_printf(out, "%lld", (long long)v.i);
    else
        str_printf(out, "%llu", (unsigned long long)v.u);
}

void state_text(const struct op *op, const struct state *s, struct str *out)
{
    if (!*op->field_name[0]) {
        value_text(op->field[0], s->field[0].bits, out);
        return;
    }
    for (int f = 0; f < op->nfields; f++) {
        str_printf(out, "%s%s: ", f ? ", " : "{", op->field_name[f]);
        value_text(op->field[f], s->field[f].bits, out);
    }
    str_addc(out, '}');
}

static void named(const struct op *op, const char *name, const struct state *s, struct str *out)
{
    str_printf(out, "%s%s = ", out->length ? ", " : "", name);
    state_text(op, s, out);
}

struct reads {
    bool param[PROBLEM_ARGS_MAX], size[PROBLEM_ARGS_MAX];
};

static void note_read(const struct expr *e, void *user)
{
    struct reads *r = user;
    if (e->kind == EX_PARAM)
        r->param[e->which] = true;
    if (e->kind == EX_SIZE)
        r->size[e->which] = true;
}

/* The params and sizes that the operator reads. */
static void settings_text(const struct world *w, struct str *out)
{
    const struct op *op = w->red->op;
    struct reads reads = { 0 };
    for (int f = 0; f < op->nfields; f++)
        expr_walk(op->combine[f], note_read, &reads);
    for (int i = 0; i < op->nlets; i++)
        expr_walk(op->let[i].value, note_read, &reads);
    for (int i = 0; i < w->p->nparams; i++)
        if (reads.param[i]) {
            str_printf(out, "%s%s = ", out->length ? ", " : "", w->p->param[i].name);
            value_text(w->p->param[i].type, world_param(w, i), out);
        }
    for (int i = 0; i < w->p->nsizes; i++)
        if (reads.size[i])
            str_printf(out, "%s%s = %lld", out->length ? ", " : "", w->p->size[i].name, (long long)world_size(w, i));
}

/* The sides: of states with fields only where they differ. */
static void side_text(const struct example *x, const struct state *side, struct str *out)
{
    const struct op *op = x->trial.world.red->op;
    const struct state *other = side == &x->trial.l ? &x->trial.r : &x->trial.l;
    int shown = 0;
    if (!*op->field_name[0]) {
        state_text(op, side, out);
        return;
    }
    for (int f = 0; f < op->nfields; f++)
        if (side->field[f].bits.u != other->field[f].bits.u || f == x->field) {
            str_printf(out, "%s%s: ", shown++ ? ", " : "{", op->field_name[f]);
            value_text(op->field[f], side->field[f].bits, out);
        }
    str_addc(out, '}');
}

const char *example_text(struct arena *a, const struct example *x)
{
    const struct trial *t = &x->trial;
    const struct op *op = t->world.red->op;
    static const char *const left[LAW_COUNT] = { ": (ab)c = ", ": ab = ", NULL, ": aa = " };
    static const char *const right[LAW_COUNT] = { ", a(bc) = ", ", ba = ", NULL, NULL };
    struct str out = { 0 };
    settings_text(&t->world, &out);
    named(op, "a", &t->a, &out);
    if (t->law == LAW_ASSOCIATIVE || t->law == LAW_COMMUTATIVE)
        named(op, "b", &t->b, &out);
    if (t->law == LAW_ASSOCIATIVE)
        named(op, "c", &t->c, &out);
    str_add(&out, left[t->law] ? left[t->law] : t->right ? ": ae = " : ": ea = ");
    side_text(x, &t->l, &out);
    if (right[t->law]) {
        str_add(&out, right[t->law]);
        side_text(x, &t->r, &out);
    }
    const char *text = arena_strdup(a, out.text ? out.text : "");
    str_finish(&out);
    return text;
}

/* ---- why bits differ ---- */

static bool any_float(const struct example *x, bool (*is)(double))
{
    const struct op *op = x->trial.world.red->op;
    const struct state *const all[] = { &x->trial.l, &x->trial.r, &x->trial.a, &x->trial.b, &x->trial.c };
    for (int i = 0; i < 2 + law_operands(x->trial.law); i++)
        for (int f = 0; f < op->nfields; f++)
            if (ty_is_float(op->field[f]) && is(all[i]->field[f].bits.f))
                return true;
    return false;
}

static bool is_nan(double x) { return isnan(x); }
static bool is_inf(double x) { return isinf(x); }

const char *example_cause(struct evaluator *v, const struct example *x)
{
    const struct op *op = x->trial.world.red->op;
    const union value l = x->trial.l.field[x->field].bits, r = x->trial.r.field[x->field].bits;
    struct trial t = x->trial;
    int field;
    if (any_float(x, is_nan))
        return "NaN";
    if (any_float(x, is_inf))
        return "infinities";
    if (ty_is_float(op->field[x->field]) && l.f == 0 && r.f == 0)
        return "the sign of zero";
    v->w = &t.world;
    v->undefined = v->overflow = false;
    trial_lift(&t);
    trial_sides(v, &t, &field);
    return v->overflow ? "overflow" : ty_is_float(op->field[x->field]) ? "rounding" : "overflow";
}
