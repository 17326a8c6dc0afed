/* SPDX-License-Identifier: Apache-2.0 */
/* joined.c - a stencil on one rank's part, whose kernel takes rows beyond it from the ranks beside this one while it runs.
 *
 *     the first blocks    send the outermost rows of the part, as words with the number of the exchange (kb_halo_send())
 *     blocks at an end    wait for all words beyond the part that their points read (kb_halo_wait()); then, at the edge, points
 *                         read them where other rows are in the array
 *     the last of both    keeps the number for the next launch, and tells the other ranks
 *
 * Boxes begin in the middle of the part, so that what the ends wait for has come before their turn, and they are not what
 * the launch ends with.  Blocks that send wait for nothing, and are launched before those that wait: so however few blocks a
 * device has room for, what is waited for comes.  In a grid with few rows of boxes one block sends, before it waits.
 *
 * There are words for even and for odd launches.  Ranks that send to each other wait for each other, so neither is two
 * launches ahead, and one that has come has read all words of the launch before.
 */
#include "stencil_gen.h"

enum { WORD = 4, SLOT = JOINED_SLOT, AT_ONCE = 4 /* loads of a sender */ };

struct joined joined_of(struct gen *g, int steps)
{
    const int many = 2 * steps < JOINED_AT_ONCE ? 2 * steps : JOINED_AT_ONCE;
    struct joined j = { .g = g, .at_once = steps > 1 ? many : AT_ONCE };
    if (g->p->joins) {
        j.input = stencil_joined_input(g->p);
        const struct reach r = stencil_input_reach(g->p, j.input);
        j.before = (int)-r.lo[0] * steps;
        j.after = (int)r.hi[0] * steps;
        j.rows = (int)(r.hi[0] - r.lo[0]) * stencil_joined_steps(g->p);
    }
    return j;
}

static kb_val window_of(struct gen *g) { return gen_param(g, g->p->nparams - 3); }
static kb_val neighbour(struct gen *g, int side) { return gen_param(g, g->p->nparams - 2 + side); }
kb_val joined_window(struct joined *j) { return window_of(j->g); }
kb_val joined_beside(struct joined *j, int side) { return kb_ne(j->g->k, neighbour(j->g, side), 0); }

int joined_words(const struct joined *j) { return j->g->p->input[j->input].array.stride / WORD; }
static int words(const struct joined *j) { return joined_words(j); }

static kb_val u32(kb *k, kb_val x) { return kb_cast(k, x, TY_U32); }

/* Elements of a row. */
static kb_val pitch(struct joined *j)
{
    kb_val n = kb_imm(j->g->k, TY_I64, 1);
    for (int d = 1; d < j->g->p->rank; d++)
        n = kb_mul(j->g->k, n, gen_extent(j->g, &j->g->p->space[d].extent));
    return n;
}

/* From the begin of a window to a word of this launch's exchange: `element` counts from the first row before the part. */
kb_val joined_slot(struct joined *j, kb_val number, kb_val element)
{
    kb *k = j->g->k;
    const kb_val odd = kb_cast(k, kb_and(k, number, 1), TY_I64),
                 half = kb_mul(k, pitch(j), (int64_t)j->rows * words(j) * SLOT);
    return kb_add(k, kb_add(k, kb_mul(k, odd, half), kb_mul(k, element, (int64_t)words(j) * SLOT)), KB_HALO_SLOTS);
}

static void send_element(struct joined *j, kb_val to, kb_val x, kb_val number)
{
    kb *k = j->g->k;
    const kb_val bits = kb_bitcast(k, x, words(j) > 1 ? TY_U64 : TY_U32);
    for (int w = 0; w < words(j); w++)
        kb_halo_send(k, kb_add(k, to, w * SLOT), words(j) > 1 ? u32(k, kb_shr(k, bits, 32 * w)) : bits, number);
}

/* The first `after` rows to the rank before, where they come after its own; the last `before` ones to the rank after. */
void joined_send(struct joined *j, int side, kb_val block, kb_val number)
{
    struct gen *g = j->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->input[j->input].array;
    const int rows = side ? j->before : j->after;
    LET(count, kb_mul(k, pitch(j), rows));
    LET(from,
        side ? kb_mul(k, pitch(j), kb_sub(k, gen_extent(g, &g->p->space[0].extent), rows)) : kb_imm(k, TY_I64, 0));
    LET(to, kb_add(k, neighbour(g, side),
                   joined_slot(j, number, side ? kb_imm(k, TY_I64, 0) : kb_mul(k, pitch(j), j->before))));
    const kb_val first = kb_add(k, kb_mul(k, kb_cast(k, block, TY_I64), kb_threads(k)), kb_cast(k, kb_tid(k), TY_I64)),
                 step = kb_mul(k, kb_cast(k, j->senders, TY_I64), kb_threads(k));
    kb_if(k, kb_ne(k, neighbour(g, side), 0)) {
        kb_for(k, i, first, count, kb_mul(k, step, j->at_once)) {
            kb_val x[JOINED_AT_ONCE], at[JOINED_AT_ONCE];
            for (int u = 0; u < j->at_once; u++) {
                at[u] = kb_add(k, i, kb_mul(k, step, u));
                x[u] = gen_load_field(g, a, gen_input(g, j->input),
                                      kb_add(k, from, kb_min(k, at[u], kb_sub(k, count, 1))), 0);
            }
            for (int u = 0; u < j->at_once; u++)
                kb_if(k, kb_lt(k, at[u], count)) {
                    send_element(j, kb_add(k, to, kb_mul(k, at[u], (int64_t)words(j) * SLOT)), x[u], number);
                }
        }
    }
}

/* Boxes of the grid in a row of them. */
static kb_val boxes_across(struct gen *g)
{
    kb *k = g->k;
    kb_val n = kb_max(k, u32(k, gen_value(g, VAL_BOXES1)), 1);
    if (g->p->rank > 2)
        n = kb_mul(k, n, kb_max(k, u32(k, gen_value(g, VAL_BOXES2)), 1));
    return n;
}

/* The row of boxes that a block has, from the one that the grid would give it; which boxes are ends, and who sends.  All
 * blocks do this, so the host computes what it can. */
kb_val joined_turn(struct joined *j, kb_val box)
{
    struct gen *g = j->g;
    kb *k = g->k;
    LET(boxes, u32(k, gen_value(g, VAL_BOXES0)));
    j->low = kb_name(u32(k, gen_value(g, VAL_ENDS_BEFORE)), "low");
    j->high = kb_name(u32(k, gen_value(g, VAL_ENDS_AFTER)), "high");
    /* Rows of boxes before the first end: from the middle on.  If there are none, one block sends. */
    LET(middle, kb_shr(k, boxes, 1));
    const kb_val rest = kb_sub(k, boxes, middle), none = kb_or(k, kb_lt(k, middle, j->low), kb_le(k, rest, j->high));
    const kb_val between =
        kb_select(k, none, kb_imm(k, TY_U32, 1), kb_mul(k, kb_sub(k, rest, j->high), boxes_across(g)));
    j->senders = kb_name(kb_min(k, between, u32(k, gen_value(g, VAL_SENDERS))), "senders");
    const kb_val later = kb_add(k, box, middle);
    LET(turned, kb_select(k, kb_ge(k, later, boxes), kb_sub(k, later, boxes), later));
    const kb_val first = kb_lt(k, turned, j->low), last = kb_ge(k, kb_add(k, turned, j->high), boxes);
    j->end[0] = kb_and(k, first, kb_ne(k, neighbour(g, 0), 0));
    j->end[1] = kb_and(k, last, kb_ne(k, neighbour(g, 1), 0));
    j->at_end = kb_or(k, first, last);
    return turned;
}

/* Blocks that send, and those at the ends, some of which are both. */
static kb_val parts(struct joined *j)
{
    kb *k = j->g->k;
    const kb_val ends = kb_min(k, kb_add(k, j->low, j->high), u32(k, gen_value(j->g, VAL_BOXES0)));
    return kb_add(k, j->senders, kb_mul(k, boxes_across(j->g), ends));
}

/* In the row beyond the part that `row` is, and at element `rest` of it. */
static kb_val slot_of(struct joined *j, int side, kb_val row, kb_val rest)
{
    struct gen *g = j->g;
    kb *k = g->k;
    const kb_val from_first = kb_add(k, side ? kb_sub(k, row, gen_extent(g, &g->p->space[0].extent)) : row, j->before);
    const kb_val element = kb_add(k, kb_mul(k, from_first, pitch(j)), rest);
    return kb_add(k, window_of(g), joined_slot(j, kb_get(k, j->number), element));
}

/* Columns before and after those of a box that its points read along an axis.  Where rows skew, the first one begins earlier,
 * by less than a vector more than the lead (place.c), and the others beside it. */
static struct skews margin(struct gen *g, int axis)
{
    const struct reach r = stencil_space_reach(g->p);
    const int rank = g->p->rank;
    struct skews m = { (int)-r.lo[axis], (int)r.hi[axis] };
    if (axis == rank - 1 && stencil_skewed(g->c)) {
        const struct skews skews = stencil_skews(g->c, rank);
        const int lead = stencil_lead(g->c, rank);
        m.lo += stencil_points(g->c, rank, axis) - 1 + lead - skews.lo;
        m.hi += skews.hi - lead;
    }
    return m;
}

/* The words of one side that the block's points read, by all its threads. */
static void wait_at_end(struct joined *j, int side, const kb_val *box)
{
    struct gen *g = j->g;
    kb *k = g->k;
    const int rank = g->p->rank, rows = side ? j->after : j->before;
    kb_val count = kb_imm(k, TY_I64, rows);
    for (int d = 1; d < rank; d++)
        count = kb_mul(k, count, kb_add(k, j->box[d], margin(g, d).lo + margin(g, d).hi));
    kb_if(k, j->end[side]) {
        kb_for(k, i, kb_cast(k, kb_tid(k), TY_I64), count, kb_threads(k)) {
            kb_val left = i, index[SPACE_MAX], rest = kb_imm(k, TY_I64, 0), inside = kb_true(k);
            for (int d = rank - 1; d > 0; d--) {
                const kb_val extent = kb_add(k, j->box[d], margin(g, d).lo + margin(g, d).hi);
                const kb_val at = kb_sub(k, kb_add(k, box[d], kb_rem(k, left, extent)), margin(g, d).lo);
                left = kb_div(k, left, extent);
                index[d] = boundary_index(k, g->p->input[j->input].boundary[d].mode, at,
                                          gen_extent(g, &g->p->space[d].extent), &inside);
            }
            for (int d = 1; d < rank; d++)
                rest = kb_add(k, kb_mul(k, rest, gen_extent(g, &g->p->space[d].extent)), index[d]);
            const kb_val row = side ? kb_add(k, left, gen_extent(g, &g->p->space[0].extent)) : kb_sub(k, left, rows);
            for (int w = 0; w < words(j); w++)
                kb_halo_wait(k, window_of(g), kb_add(k, slot_of(j, side, row, rest), w * SLOT), kb_get(k, j->number));
        }
    }
}

void joined_begin(struct joined *j, const kb_val *box)
{
    struct gen *g = j->g;
    kb *k = g->k;
    LET(block, u32(k, kb_block(k)));
    LET(sends, kb_lt(k, block, j->senders));
    j->amount = kb_add(k, kb_cast(k, sends, TY_U32), kb_cast(k, j->at_end, TY_U32));
    j->number = kb_var_new(k, kb_imm(k, TY_U32, 0), "number");
    kb_section(k, "sends");
    kb_if(k, kb_or(k, sends, j->at_end)) {
        kb_set(k, j->number, kb_halo_number(k, window_of(g)));
    }
    kb_if(k, sends) {
        kb_if(k, kb_ne(k, kb_get(k, j->number), 0)) {
            for (int side = 0; side < 2; side++)
                joined_send(j, side, block, kb_get(k, j->number));
        }
    }
    kb_section(k, "waits");
    kb_if(k, j->at_end) {
        kb_barrier(k); /* all its threads have sent */
        kb_if(k, kb_ne(k, kb_get(k, j->number), 0)) {
            for (int side = 0; side < 2; side++)
                wait_at_end(j, side, box);
        }
        kb_barrier(k);
    }
}

kb_val joined_take(struct joined *j, int side, kb_val row, kb_val rest, kb_ptr here, kb_val *beyond)
{
    struct gen *g = j->g;
    kb *k = g->k;
    const kb_val out = side ? kb_ge(k, row, gen_extent(g, &g->p->space[0].extent)) : kb_lt(k, row, 0);
    *beyond = kb_and(k, out, kb_ne(k, neighbour(g, side), 0));
    /* From one address of the row; so registers hold little for each element. */
    const kb_val first = kb_select(k, *beyond, slot_of(j, side, row, kb_imm(k, TY_I64, 0)), kb_address(k, here));
    const kb_val apart = kb_select(k, *beyond, kb_imm(k, TY_I64, SLOT), kb_imm(k, TY_I64, WORD));
    const kb_val at = kb_add(k, first, kb_mul(k, rest, kb_mul(k, apart, words(j))));
    kb_val bits = kb_halo_read(k, at);
    if (words(j) > 1) {
        const kb_val upper = kb_halo_read(k, kb_add(k, at, apart));
        bits = kb_or(k, kb_cast(k, bits, TY_U64), kb_shl(k, kb_cast(k, upper, TY_U64), 32));
    }
    return kb_bitcast(k, bits, here.ty);
}

void joined_end(struct joined *j)
{
    kb *k = j->g->k;
    kb_section(k, "done");
    kb_if(k, kb_gt(k, j->amount, 0)) {
        kb_barrier(k);
        LET(number, kb_get(k, j->number));
        kb_if(k, kb_and(k, kb_thread0(k), kb_ne(k, number, 0))) {
            kb_halo_done(k, window_of(j->g), number, j->amount, parts(j));
        }
    }
}
