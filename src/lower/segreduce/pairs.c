/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - planning of reductions over pairs of rows of two tables, tile by tile in shared memory.
 *
 * A block takes `threads / lanes * segments` segments and goes over all of their elements, `lanes * items` at a time.
 */
#include "lower/pairs.h"

#include "segreduce.h"

/* ---- what sums read ---------------------------------------------------------------------------------------------- */

struct search {
    const struct problem *p;
    struct pairs *pairs;
    int along; /* the dimension of all sums; -1: none seen yet */
    bool inside, let[LET_VALUES_MAX], several, many;
};

static bool same_extent(const struct prog_dim *a, const struct prog_dim *b)
{
    return a->size == b->size && a->add == b->add;
}

/* Is it such a table, read at the point's own row? */
static bool operand(const struct problem *p, const struct expr *e, struct pairs_operand *out)
{
    const struct prog_array *a = &p->input[e->which].array;
    for (int last = 0; last < 2 && e->nargs == 2; last++) {
        const struct expr *row = e->arg[1 - last], *term = e->arg[last];
        if (row->kind != EX_INDEX || term->kind != EX_RUN || a->field[e->field].type == TY_BOOL)
            continue;
        *out = (struct pairs_operand){ e->which, e->field, row->which, last == 1 };
        return a->dim[last].size == term->which && a->dim[last].add == 0 &&
               same_extent(&a->dim[1 - last], &p->space[row->which].extent);
    }
    return false;
}

bool pairs_is(const struct problem *p, const struct expr *e, const struct pairs_operand *o)
{
    struct pairs_operand own;
    return e->kind == EX_AT && operand(p, e, &own) && own.input == o->input && own.field == o->field &&
           own.axis == o->axis && own.terms_last == o->terms_last;
}

static void note_operand(struct search *s, const struct expr *e)
{
    struct pairs *x = s->pairs;
    struct pairs_operand o;
    if (!operand(s->p, e, &o))
        return;
    for (int i = 0; i < x->noperands; i++)
        if (pairs_is(s->p, e, &x->operand[i]))
            return;
    x->terms = s->p->input[o.input].array.dim[o.terms_last ? 1 : 0];
    if (x->noperands == PAIRS_OPERANDS_MAX)
        s->many = true;
    else
        x->operand[x->noperands++] = o;
}

static void look(struct search *s, const struct expr *e)
{
    const bool outside = !s->inside;
    if (e->kind == EX_LET && !s->let[e->which]) {
        s->let[e->which] = true;
        look(s, s->p->let[e->which].value);
    }
    if (e->kind == EX_SUM) {
        s->several |= s->inside || (s->along >= 0 && s->along != e->which);
        s->along = e->which;
        s->inside = true;
    } else if (e->kind == EX_AT && s->inside) {
        note_operand(s, e);
    }
    for (int i = 0; i < e->nargs; i++)
        look(s, e->arg[i]);
    if (outside)
        s->inside = false;
}

static bool along_axis(const struct pairs *x, int axis)
{
    for (int i = 0; i < x->noperands; i++)
        if (x->operand[i].axis == axis)
            return true;
    return false;
}

bool pairs_of(const struct problem *p, struct pairs *out, const char **why)
{
    struct search s = { .p = p, .pairs = out, .along = -1 };
    *out = (struct pairs){ 0 };
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            look(&s, p->reduction[r].map[f]);
    const struct misfit m[] = {
        { s.along < 0, "it takes sums over rows of tables, and here elements have none" },
        { s.several, "it takes sums over one dimension, and here there are others inside or beside them" },
        { s.many, "the sums read too many tables" },
        { !along_axis(out, 0) || !along_axis(out, 1), "no row of a table is read by elements of several segments" },
        { 0 }
    };
    return plan_takes(why, m);
}

int pairs_pitch(const struct problem *p, const struct pairs_operand *o, int rows)
{
    return rows + SEG_VECTOR_BYTES / ty_bytes(p->input[o->input].array.field[o->field].type);
}

/* ---- the strategy ------------------------------------------------------------------------------------------------ */

static bool takes(const struct problem *p, const char **why)
{
    struct pairs pairs;
    const struct misfit m[] = {
        { p->rank != 2, "it takes spaces of two dimensions, of which one is kept" },
        { segreduce_direct_fields(p) > 0 || problem_writes(p, AT_POINT) || problem_writes(p, AT_RESULT),
          "it keeps rows of tables in shared memory, and here elements have values of their own" },
        { !state_commutative(p) || !state_pad(p), "lanes take elements by turns: the operator has to be commutative" },
        { 0 }
    };
    return segreduce_regular(p, why) && plan_takes(why, m) && pairs_of(p, &pairs, why);
}

FITS_WHAT(segreduce_pairs, takes)

static int tile_rows(const struct plan_case *c, bool reduced)
{
    const int lanes = c->tunable[TN_LANES];
    return reduced ? lanes * c->tunable[TN_ITEMS] : c->tunable[TN_THREADS] / lanes * c->tunable[TN_SEGMENTS];
}

static int64_t shared_bytes(const struct problem *p, const struct plan_case *c)
{
    struct pairs x;
    const char *why;
    int64_t bytes = 0;
    pairs_of(p, &x, &why);
    for (int i = 0; i < x.noperands; i++) {
        const struct pairs_operand *o = &x.operand[i];
        const int rows = tile_rows(c, p->space[o->axis].reduced);
        bytes +=
            (int64_t)PAIRS_TERMS * pairs_pitch(p, o, rows) * ty_bytes(p->input[o->input].array.field[o->field].type);
    }
    return bytes;
}

/* Segments for each multiprocessor, and elements of a segment, from which on a shape is faster than lanes that have
 * segments of their own.  H200, the nearest of 24/64/1000 points of 16/16/64 f32, 2^20/2^20/65536 of them: 130/228/799 us,
 * segreduce.subwarp -/426/3077; of 1000 points of 3 f32: 1792, segreduce.column 1657. */
static const struct shape {
    const char *name, *variant;
    int per_sm, length;
} shapes[] = { { "pairs", "", 64, 24 }, { "pairs_wide", "wide", 8, 512 } };

enum { TERMS_MIN = 4 };

void segreduce_pairs_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool pinned = plan_pinned(pl);
    struct pairs pairs;
    const char *why;
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    pairs_of(p, &pairs, &why);
    for (int i = 0; i < (pinned ? 1 : 2); i++) {
        const struct shape *s = &shapes[i];
        if (hi < s->length && !pinned)
            continue;
        struct plan_case *c = plan_case_add(pl, row, s->name, (struct formula){ 0 });
        plan_case_tuned(pl, c, s->variant);
        plan_set_pdl(pl, c);
        plan_lighten(p, c);
        if (pinned)
            return;
        c->code.guard =
            f_and(f_ge(segments_count(p), f_mul(plan_sms(p), s->per_sm)),
                  f_and(f_ge(segments_length(p), s->length), f_ge(access_extent(p, &pairs.terms), TERMS_MIN)));
    }
}

bool segreduce_pairs_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int threads = c->tunable[TN_THREADS], lanes = c->tunable[TN_LANES];
    if (threads % SEG_WARP || !lanes || lanes > SEG_WARP || !segreduce_power_of_two(lanes))
        return segreduce_contradiction(pl, c, "threads must be a multiple of 32, and lanes a power of two up to 32");
    if (c->tunable[TN_VECTOR] != 1 || c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] > PAIRS_MAX)
        return segreduce_contradiction(pl, c, "a thread holds at most 32 pairs, and the vector is 1");
    if (!segreduce_power_of_two(c->tunable[TN_ITEMS]) || !segreduce_power_of_two(c->tunable[TN_SEGMENTS]))
        return segreduce_contradiction(pl, c, "items and segments must be powers of two");
    if (shared_bytes(p, c) > pl->plan->device.shared_per_block)
        return segreduce_contradiction(pl, c, "the tiles do not fit shared memory");
    c->tiled = true;
    segreduce_kernel(pl, c, "");
    plan_launch(pl, c, 0, segreduce_bounded(c, f_cdiv(segments_count(p), tile_rows(c, false))));
    return true;
}
