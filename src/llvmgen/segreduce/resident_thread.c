/* SPDX-License-Identifier: Apache-2.0 */
/* resident_thread.c - what the elements that a thread keeps come to.
 *
 *     whole states:    all elements of the thread, and then the team's threads
 *     field by field:  a field of all elements of the team, then the next one, which depends on it
 */
#include "resident_gen.h"

/* ---- whole states ------------------------------------------------------------------------------------------------ */

/* Elements that are left out together.  States are combined before that where the numbers of their elements are known
 * when generating, unless an operator takes all of a thread at once. */
static int masked_together(const struct resident *r)
{
    for (int i = 0; i < r->g->p->nreductions; i++)
        if (r->g->p->reduction[i].takes_many)
            return 1;
    return r->vector;
}

struct other_reads {
    const struct problem *p;
    bool any;
};

/* Does a value follow the segment?  Of at(), an index of the user's own is kept within the array. */
static bool follows_segment(const struct problem *p, const struct expr *e)
{
    bool does = e->kind == EX_INDEX && p->space[e->which].reduced;
    for (int i = 0; i < e->nargs && !does; i++)
        does = follows_segment(p, e->arg[i]);
    return does;
}

static void find_other_reads(const struct expr *e, void *user)
{
    struct other_reads *o = user;
    const struct input *in = e->kind == EX_INPUT || e->kind == EX_AT ? &o->p->input[e->which] : NULL;
    if (!in || (e->kind == EX_INPUT && !e->noffsets && access_input_direct(o->p, e->which)))
        return;
    for (int d = 0; d < in->array.rank; d++)
        o->any |= e->kind == EX_INPUT
                      ? in->axis[d] >= 0 && o->p->space[in->axis[d]].reduced
                      : (e->arg[d]->kind == EX_INDEX || e->op >> d & 1) && follows_segment(o->p, e->arg[d]);
}

bool resident_reads(const struct problem *p, const struct expr *e)
{
    struct other_reads o = { p, false };
    problem_walk(p, e, find_other_reads, &o);
    return o.any;
}

bool resident_maps_read(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->nreductions; i++)
        for (int f = 0; f < p->reduction[i].op->nfields; f++)
            any |= resident_reads(p, p->reduction[i].map[f]);
    return any;
}

static void map_vector(const struct resident *r, struct kept *w, int i, kb_tup *x)
{
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    r->points(r, w, i, pt, at);
    for (int j = 0; j < r->vector; j++)
        x[j] = point_map(&pt[j]);
}

kb_tup resident_combine(const struct resident *r, struct kept *w)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_tup all[SEG_ITEMS_MAX], x[GEN_VECTOR_MAX];
    struct partial some = partial_new(g, "some");
    const int together = masked_together(r);
    const bool guarded = resident_maps_read(g->p), padded = g->padded && !guarded;
    int n = 0;
    for (int i = 0; i < r->items; i++) {
        if (!guarded)
            map_vector(r, w, i, x);
        for (int j = 0; j < r->vector && padded; j += together)
            all[n++] = kb_select(k, w->inside[i], state_combine_many(g, &x[j], together), state_pad_value(g));
        if (padded)
            continue;
        kb_if(k, w->inside[i]) {
            if (guarded)
                map_vector(r, w, i, x);
            partial_take(g, &some, state_combine_many(g, x, r->vector));
        }
    }
    return padded ? state_combine_many(g, all, n) : kb_get(k, some.x);
}

/* ---- field by field ---------------------------------------------------------------------------------------------- */

/* Is the field the length of the segment?  A lifted constant that combines by itself counts elements (operators.def). */
static bool is_length(const struct resident *r, struct field at)
{
    const struct reduction *red = &r->g->p->reduction[at.red];
    return r->blocks == 1 && red->takes_many && !red->op->many[at.f] && red->map[at.f]->kind == EX_CONST;
}

/* Does what elements add to the field depend on fields before it? */
static bool depends(const struct problem *p, struct field at)
{
    return p->reduction[at.red].takes_many && p->reduction[at.red].op->many[at.f];
}

/* A state whose fields follow one another over the lanes, or the block: a thread combines its elements with the maximum of all
 * and not with its own, and has computed what maps of the same difference ask for.  Threads meet for all fields that depend
 * on no other, and then for each that does: twice at least, so that no thread still reads what another one writes for the
 * next row. */
bool resident_by_fields(const struct resident *r)
{
    const struct problem *p = r->g->p;
    bool each = r->g->padded && !resident_maps_read(p), first = false;
    int meetings = 0;
    for (int i = 0; i < p->nreductions; i++) {
        const struct reduction *red = &p->reduction[i];
        each &= !red->counts && (red->takes_many || red->op->nfields == 1);
        for (int f = 0; f < red->op->nfields; f++) {
            const struct field at = { i, f };
            meetings += depends(p, at);
            first |= !depends(p, at) && !is_length(r, at);
        }
    }
    return each && meetings > 0 && meetings + first >= 2;
}

static kb_val field_tree(struct gen *g, struct field at, const kb_val *x, int n)
{
    if (n == 1)
        return x[0];
    const kb_val left = field_tree(g, at, x, n / 2);
    return state_field_join(g, at.red, at.f, left, field_tree(g, at, x + n / 2, n - n / 2));
}

kb_val resident_field_of_lanes(struct gen *g, struct field at, kb_val x, int lanes)
{
    for (int d = 1; d < lanes; d *= 2)
        x = state_field_join(g, at.red, at.f, x, kb_shfl_xor(g->k, x, d));
    return x;
}

/* What the thread's elements add to the field; of a vector, all or none. */
static kb_val field_of_thread(const struct resident *r, const struct kept *w, struct field at, const kb_tup *x,
                              kb_tup known)
{
    struct gen *g = r->g;
    kb_val share[GEN_VECTOR_MAX], of_vector[SEG_ITEMS_MAX];
    for (int i = 0; i < r->items; i++) {
        for (int j = 0; j < r->vector; j++)
            share[j] = state_field_share(g, at.red, at.f, x[i * r->vector + j], known);
        of_vector[i] =
            kb_select(g->k, w->inside[i], field_tree(g, at, share, r->vector), state_field_pad(g, at.red, at.f));
    }
    return field_tree(g, at, of_vector, r->items);
}

/* The fields that depend on no other, and are no length; later: those that depend on them. */
static int fields_of(const struct resident *r, struct field *at, struct field *later, int *nlater)
{
    const struct problem *p = r->g->p;
    int n = 0;
    *nlater = 0;
    for (int i = 0; i < p->nreductions; i++)
        for (int f = 0; f < p->reduction[i].op->nfields; f++) {
            const struct field field = { i, f };
            if (depends(p, field))
                later[(*nlater)++] = field;
            else if (!is_length(r, field))
                at[n++] = field;
        }
    return n;
}

/* A state of which lengths are known. */
static kb_tup lengths(const struct resident *r)
{
    struct gen *g = r->g;
    kb_tup x = state_zero(g);
    for (int i = 0; i < g->p->nreductions; i++)
        for (int f = 0; f < g->p->reduction[i].op->nfields; f++)
            if (is_length(r, (struct field){ i, f }))
                x.e[state_first(g->p, i) + f] = kb_cast(g->k, r->length, g->field[state_first(g->p, i) + f]);
    return x;
}

void resident_fields(const struct resident *r, struct kept *w, int segments, kb_tup *total)
{
    struct gen *g = r->g;
    struct field at[STATE_FIELDS_MAX], later[STATE_FIELDS_MAX];
    kb_tup x[SEG_ITEMS_MAX];
    kb_val own[STATE_FIELDS_MAX * GEN_VECTOR_MAX];
    int nlater;
    const int n = fields_of(r, at, later, &nlater), each = r->items * r->vector;
    for (int s = 0; s < segments; s++) {
        segment_enter(g, &w[s].seg);
        for (int i = 0; i < r->items; i++)
            map_vector(r, &w[s], i, &x[s * each + i * r->vector]);
        total[s] = lengths(r);
    }
    for (int from = 0, count; from < n + nlater; from += count) {
        const struct field *of = from < n ? at : &later[from - n];
        count = from < n ? n : 1;
        for (int i = 0; i < count; i++)
            for (int s = 0; s < segments; s++)
                own[i * segments + s] = field_of_thread(r, &w[s], of[i], &x[s * each], total[s]);
        r->meet(r, count, of, segments, own);
        for (int i = 0; i < count; i++)
            for (int s = 0; s < segments; s++)
                total[s].e[state_first(g->p, of[i].red) + of[i].f] = own[i * segments + s];
    }
}
