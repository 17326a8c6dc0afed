/* SPDX-License-Identifier: Apache-2.0 */
/* expr_sums.c - sums inside expressions: loops over a dimension that is none of the space.
 *
 *     before the loop:  what does not vary along it
 *     in it:            the terms of all sums over the dimension, of all elements at hand, several at a time
 *
 * Sums that wait for others, as that of exp(x - greatest(f, x)), have loops of their own.
 */
#include "expr_emit.h"

#include <math.h>

#include "llvmgen/builder/kb_impl.h"

kb_val emit_fold_identity(kb *k, enum fold op, enum ty t)
{
    switch (op) {
    case FOLD_MIN: return kb_cast(k, kb_immf(k, TY_F64, INFINITY), t);
    case FOLD_MAX: return kb_cast(k, kb_immf(k, TY_F64, -INFINITY), t);
    case FOLD_MUL: return kb_cast(k, kb_imm(k, TY_I32, 1), t);
    case FOLD_AND: return kb_not(k, kb_imm(k, t, 0));
    default: return kb_cast(k, kb_imm(k, TY_I32, 0), t);
    }
}

kb_val emit_fold(kb *k, enum fold op, kb_val a, kb_val b)
{
    static const enum binary binary[] = {
        [FOLD_ADD] = BIN_ADD, [FOLD_MUL] = BIN_MUL, [FOLD_AND] = BIN_AND, [FOLD_OR] = BIN_OR
    };
    const kb_val both[] = { a, b };
    if (op == FOLD_MIN || op == FOLD_MAX)
        return emit_function(k, op == FOLD_MIN ? FN_MIN : FN_MAX, 2, both);
    return emit_binary(k, binary[op], a, b);
}

/* What leaves every first term as it is: sums keep -0, and the least of no numbers but NaN is NaN. */
static kb_val fold_begin(kb *k, enum fold op, enum ty t)
{
    const bool number = ty_is_float(t);
    if (number && (op == FOLD_MIN || op == FOLD_MAX))
        return kb_immf(k, t, NAN);
    return number && op == FOLD_ADD ? kb_immf(k, t, -0.0) : emit_fold_identity(k, op, t);
}

static const struct emit_sum *over(const struct emit_sum *s, int dimension)
{
    while (s && s->dimension != dimension)
        s = s->outer;
    return s;
}

/* Has the expression a value inside these sums alone? */
static bool stands(const struct emit_sum *around, const struct expr *e)
{
    const struct emit_sum own = { .dimension = e->which, .outer = around };
    bool does = e->kind != EX_RUN || over(around, e->which);
    for (int i = 0; i < e->nargs && does; i++)
        does = stands(e->kind == EX_SUM ? &own : around, e->arg[i]);
    return does;
}

static int nodes(const struct expr *e)
{
    int n = 1;
    for (int i = 0; i < e->nargs; i++)
        n += nodes(e->arg[i]);
    return n;
}

enum { UNSEEN, READY, WAITS };

/* Emits what stays the same in the loop or the elements that follow, in the largest parts. */
struct ahead {
    kb *k;
    struct emit_env *env;
    const struct emit_sum *around;
    emit_stays *stays; /* NULL: whatever has a value around */
    const void *what;
    struct emit_sum *into;             /* NULL: parts are counted */
    int n;                             /* parts */
    unsigned char let[LET_VALUES_MAX]; /* UNSEEN, READY: it stays the same, WAITS: it does not */
    bool within[LET_VALUES_MAX];       /* its parts have been taken */
};

static bool stays(struct ahead *a, const struct expr *e)
{
    bool same = e->kind == EX_LET || a->stays(a->what, e);
    if (e->kind == EX_LET && a->let[e->which] == UNSEEN)
        a->let[e->which] = stays(a, a->env->let[e->which].value) ? READY : WAITS;
    if (e->kind == EX_LET)
        return a->let[e->which] == READY;
    for (int i = 0; i < e->nargs && same; i++)
        same = stays(a, e->arg[i]);
    return same;
}

static void take_ahead(struct ahead *a, const struct expr *e)
{
    if (e->kind == EX_CONST || e->kind == EX_PARAM || e->kind == EX_SIZE || e->kind == EX_RUN)
        return;
    if (stands(a->around, e) && (!a->stays || stays(a, e))) {
        if (a->into)
            a->into->held[a->n] = (struct emit_held){ e, emit_expr(a->k, a->env, e) };
        a->n++;
        return;
    }
    if (e->kind == EX_LET && !a->within[e->which]) {
        a->within[e->which] = true;
        take_ahead(a, a->env->let[e->which].value);
    }
    for (int i = 0; i < e->nargs; i++)
        take_ahead(a, e->arg[i]);
}

bool sum_held(const kb *k, const struct emit_env *env, const struct expr *e, kb_val *value)
{
    for (const struct emit_sum *s = env->sum; s; s = s->outer)
        for (int i = 0; i < s->nheld; i++)
            if (s->held[i].e == e && kb_reaches(k, s->place)) {
                *value = s->held[i].value;
                return true;
            }
    return false;
}

/* held: the most values that may be held. */
static bool sum_open(kb *k, struct emit_env *env, int dimension, int held, struct emit_sum *sum)
{
    *sum = (struct emit_sum){ .dimension = dimension, .outer = env->sum, .place = kb_place(k) };
    sum->held = kb_scratch(k, sizeof *sum->held * (size_t)held);
    return sum->held != NULL; /* else out of memory, which has been noted */
}

enum {
    TOGETHER_MAX = 64,
    SEVERAL = 8,
    UNROLL = 4,
    WRITTEN_OUT = 8,
    LARGE = 64,
    TILE_LARGE = 512 /* nodes of a term */,
    FEW = 32
};

/* m sums over one dimension, each of n elements: of element i sum j has the number i * m + j.  SEVERAL of them share a
 * loop, or TOGETHER_MAX where they read tiles. */
struct sums {
    kb *k;
    int n, m;
    struct emit_env *const *env;
    const struct expr *const *e;
    struct emit_sum *sum; /* of each element: where all of its sums are */
    kb_var total[TOGETHER_MAX];
    kb_val first; /* of a tile: terms are numbered from there on */
};

static kb_val with_term(kb *k, struct emit_env *env, const struct expr *e, kb_val total)
{
    const struct expr *term = e->arg[0];
    if (e->field != FUSES)
        return emit_fold(k, (enum fold)e->op, total, emit_expr(k, env, term));
    const kb_val x = emit_expr(k, env, term->arg[0]), y = emit_expr(k, env, term->arg[1]);
    return kb_math(k, FN_FMA, 3, (kb_val[]){ x, y, total });
}

static void add_term(struct sums *s, kb_val from, int plus)
{
    kb *k = s->k;
    struct emit_tiles *tiles = s->env[0]->tiles;
    const kb_val number = kb_add(k, from, plus), index = tiles ? kb_add(k, s->first, number) : number;
    if (tiles)
        tiles->term(k, tiles, from, plus);
    for (int i = 0; i < s->n; i++) {
        s->sum[i].index = index;
        for (int j = 0; j < s->m; j++) {
            const kb_var total = s->total[i * s->m + j];
            kb_set(k, total, with_term(k, s->env[i], s->e[j], kb_get(k, total)));
        }
    }
}

/* The terms from index `from` below `to`, `unroll` at a time. */
static void add_terms(struct sums *s, kb_val from, kb_val to, int unroll)
{
    kb_for(s->k, i, from, to, unroll) {
        for (int j = 0; j < unroll; j++)
            add_term(s, i, j);
    }
}

/* `own` terms of a tile.  Many sums are in other registers after each loop, where those of several loops meet: then all
 * terms of whole tiles are written out. */
static void add_tile(struct sums *s, const struct emit_tiles *t, kb_val own, int unroll)
{
    kb *k = s->k;
    kb_val from = kb_imm(k, TY_I64, 0);
    if (unroll == t->terms) {
        kb_if(k, kb_eq(k, own, unroll)) {
            for (int j = 0; j < unroll; j++)
                add_term(s, from, j);
        }
        kb_else { add_terms(s, from, own, 1); }
        return;
    }
    for (int n = unroll; n > 0; n = n > UNROLL ? UNROLL : n > 1 ? 1 : 0) {
        const kb_val to = kb_and(k, own, -n);
        add_terms(s, from, to, n);
        from = to;
    }
}

/* The terms of one tile after the other. */
static void add_tiles(struct sums *s, struct emit_tiles *t, kb_val terms, int unroll)
{
    kb *k = s->k;
    kb_for(k, first, kb_imm(k, TY_I64, 0), terms, t->terms) {
        t->load(k, t, first, terms);
        s->first = first;
        add_tile(s, t, kb_min(k, kb_sub(k, terms, first), t->terms), unroll);
    }
}

static void add_all(struct sums *s, kb_val terms, int unroll)
{
    const kb_val zero = kb_imm(s->k, TY_I64, 0), most = kb_and(s->k, terms, -unroll);
    int64_t known;
    if (s->env[0]->tiles) {
        add_tiles(s, s->env[0]->tiles, terms, unroll);
        return;
    }
    if (kb_is_const(terms, &known) && known <= WRITTEN_OUT) {
        for (int64_t j = 0; j < known; j++)
            add_term(s, kb_imm(s->k, TY_I64, j), 0);
        return;
    }
    add_terms(s, zero, most, unroll);
    if (unroll > 1)
        add_terms(s, most, terms, 1);
}

static bool sums_inside(const struct expr *e)
{
    bool does = e->kind == EX_SUM;
    for (int i = 0; i < e->nargs && !does; i++)
        does = sums_inside(e->arg[i]);
    return does;
}

static int unrolled_tiles(const struct emit_tiles *tiles, int sums, int nodes)
{
    if (sums > FEW)
        return nodes > 2 * TILE_LARGE ? 1 : tiles->terms;
    return nodes > TILE_LARGE ? 1 : nodes > TILE_LARGE / 2 ? UNROLL : 2 * UNROLL;
}

static int unrolled(const kb *k, const struct sums *s, int size)
{
    const bool tight = kb_sums_tight(k);
    const int n = s->n;
    bool nested = false;
    if (s->env[0]->tiles)
        return unrolled_tiles(s->env[0]->tiles, n * s->m, size * n);
    for (int j = 0; j < s->m; j++)
        nested |= sums_inside(s->e[j]->arg[0]);
    return size * n > (tight ? 2 * LARGE : LARGE) || nested ? 1 : n > 1 && !tight ? UNROLL / 2 : UNROLL;
}

/* One loop for m sums of n elements: what several of them read is read once. */
static void emit_sums(kb *k, int n, struct emit_env *const *env, int m, const struct expr *const *e, kb_val *out)
{
    int size = 0;
    struct emit_sum sum[TOGETHER_MAX];
    struct sums s = { .k = k, .n = n, .m = m, .env = env, .e = e, .sum = sum };
    const kb_val terms = emit_expr(k, env[0], e[0]->arg[1]);
    for (int x = 0; x < n * m; x++)
        out[x] = emit_fold_identity(k, (enum fold)e[x % m]->op, e[x % m]->type);
    for (int j = 0; j < m; j++)
        size += nodes(e[j]->arg[0]);
    for (int i = 0; i < n; i++) {
        if (!sum_open(k, env[i], e[0]->which, size, &sum[i]))
            return;
        struct ahead ahead = { .k = k, .env = env[i], .around = env[i]->sum, .into = &sum[i] };
        for (int j = 0; j < m; j++) {
            take_ahead(&ahead, e[j]->arg[0]);
            s.total[i * m + j] = kb_var_new(k, fold_begin(k, (enum fold)e[j]->op, e[j]->type), "total");
        }
        sum[i].nheld = ahead.n;
    }
    for (int i = 0; i < n; i++)
        env[i]->sum = &sum[i];
    add_all(&s, terms, unrolled(k, &s, size));
    for (int i = 0; i < n; i++)
        env[i]->sum = sum[i].outer;
    for (int x = 0; x < n * m; x++) {
        const kb_val none = out[x];
        out[x] = kb_get(k, s.total[x]);
        if (ty_is_float(none.ty))
            out[x] = kb_select(k, kb_gt(k, terms, 0), out[x], none);
    }
}

kb_val sum_emit(kb *k, struct emit_env *env, const struct expr *e)
{
    kb_val out;
    emit_sums(k, 1, &env, 1, &e, &out);
    return out;
}

struct together {
    kb *k;
    int n;
    struct emit_env *const *env;
    int m; /* sums of this round */
    const struct expr *e[TOGETHER_MAX];
    unsigned char let[LET_VALUES_MAX]; /* in this round: UNSEEN … */
};

/* Sums that one loop can compute: over the same dimension, to the same end. */
static bool joins(const struct together *t, const struct expr *e)
{
    for (int j = 0; j < t->m; j++)
        if (t->e[j] == e)
            return false;
    return t->m == 0 || (t->m < SEVERAL && e->which == t->e[0]->which && expr_equal(e->arg[1], t->e[0]->arg[1]));
}

/* Does the expression wait for a sum that does not vary along the sums around it?  The innermost that wait for nothing
 * are those of this round. */
static bool find_sums(struct together *t, const struct expr *e)
{
    kb_val held;
    bool waits = false;
    if (e->kind == EX_LET && t->let[e->which] == UNSEEN)
        t->let[e->which] = find_sums(t, t->env[0]->let[e->which].value) ? WAITS : READY;
    if (e->kind == EX_LET)
        return t->let[e->which] == WAITS;
    for (int i = 0; i < e->nargs; i++)
        waits |= find_sums(t, e->arg[i]);
    if (e->kind != EX_SUM || !stands(t->env[0]->sum, e) || sum_held(t->k, t->env[0], e, &held))
        return waits;
    if (!waits && joins(t, e))
        t->e[t->m++] = e;
    return true;
}

/* The sums of this round, of elements from number `from` on, whose environments use the values from then on. */
static bool sum_round(struct together *t, int from, int n)
{
    kb_val out[TOGETHER_MAX];
    emit_sums(t->k, n, t->env + from, t->m, t->e, out);
    for (int i = 0; i < n; i++) {
        struct emit_env *env = t->env[from + i];
        struct emit_sum *done = kb_scratch(t->k, sizeof *done);
        if (!done || !sum_open(t->k, env, -1, t->m, done))
            return false;
        for (int j = 0; j < t->m; j++)
            done->held[done->nheld++] = (struct emit_held){ t->e[j], out[i * t->m + j] };
        env->sum = done;
    }
    return true;
}

void emit_together(kb *k, int n, struct emit_env *const *env, int nexprs, const struct expr *const *e)
{
    bool more = true;
    while (more) {
        struct together t = { .k = k, .n = n, .env = env };
        for (int i = 0; i < nexprs; i++)
            find_sums(&t, e[i]);
        more = t.m > 0;
        const int most = more ? (n > 0 && env[0]->tiles ? TOGETHER_MAX : SEVERAL) / t.m : 0;
        for (int from = 0; from < n && more; from += most)
            more = sum_round(&t, from, n - from < most ? n - from : most);
    }
}

void emit_ahead(kb *k, struct emit_env *env, emit_stays *same, const void *what, int nexprs,
                const struct expr *const *e)
{
    struct emit_sum *done = kb_scratch(k, sizeof *done);
    int parts = 0;
    for (int pass = 0; pass < 2 && done; pass++) {
        struct ahead a = { .k = k, .env = env, .stays = same, .what = what, .into = pass ? done : NULL };
        if (pass && (!parts || !sum_open(k, env, -1, parts, done)))
            return;
        for (int i = 0; i < nexprs; i++)
            take_ahead(&a, e[i]);
        done->nheld = parts = a.n;
    }
    env->sum = done;
}

kb_val sum_index(kb *k, const struct emit_env *env, const struct expr *e)
{
    const struct emit_sum *s = over(env->sum, e->which);
    if (s)
        return s->index;
    kb_misuse(k, "dimension %d runs in no sum here", e->which);
    return kb_imm(k, TY_I64, 0);
}
