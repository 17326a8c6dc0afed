/* SPDX-License-Identifier: Apache-2.0 */
/* strip_joined.c - several time steps on one rank's part, whose kernel takes rows beyond it from the ranks beside this one while
 * it runs: as many rows as the steps reach, in words with the number of the exchange (joined.c).
 *
 *     the first blocks  send the outermost rows of the part; in three dimensions they do nothing else
 *     a warp at an end  reads words where its rows are another rank's, ahead of their use as other rows, and waits where one has
 *                       not come when it is used
 *     the last of both  keeps the number for the next kernel, and tells the other ranks
 *
 * In two dimensions the first blocks, of part 1 of the rows, compute afterwards: they read no word, so what is waited for comes,
 * however few blocks a device has room for; where there are no such blocks, one sends, before it waits.  All blocks run side by
 * side for the whole kernel, so what a warp does beside its rows is what the kernel takes longer.  So parts that have to send, to
 * wait, or to tell have fewer rows: 1, 0 and the last one.
 */
#include "strip_gen.h"

static kb_val u32(kb *k, kb_val x) { return kb_cast(k, x, TY_U32); }

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Is the line that begins at element `row` one of a rank before (side 0) or after (1)? */
static kb_val beyond(const struct strip *s, int side, kb_val row)
{
    kb *k = s->g->k;
    const kb_val out =
        side ? kb_ge(k, row, kb_mul(k, s->pitch, kb_cast(k, s->planes, TY_I64))) : kb_lt(k, row, kb_imm(k, TY_I64, 0));
    return kb_and(k, out, s->beside[side]);
}

/* Where the words of an element beyond the part are.  Columns that only move others are taken from the nearest. */
static kb_val place_of(const struct strip *s, kb_val after, kb_val element)
{
    struct joined *j = s->joined;
    kb *k = s->g->k;
    LET(before, kb_mul(k, s->pitch, j->before));
    const kb_val end = kb_mul(k, s->pitch, kb_cast(k, s->planes, TY_I64)),
                 first = kb_select(k, after, before, kb_imm(k, TY_I64, 0)),
                 last = kb_sub(k, kb_select(k, after, kb_mul(k, s->pitch, j->before + j->after), before), 1);
    const kb_val at = kb_add(k, kb_sub(k, element, kb_select(k, after, end, kb_imm(k, TY_I64, 0))), before);
    return kb_add(k, joined_window(j), joined_slot(j, kb_get(k, j->number), kb_max(k, kb_min(k, at, last), first)));
}

static kb_val value_of(const struct queue *q, const struct strip *s, const kb_val *word)
{
    kb *k = s->g->k;
    kb_val bits = word[0];
    if (joined_words(s->joined) > 1)
        bits = kb_or(k, kb_cast(k, word[0], TY_U64), kb_shl(k, kb_cast(k, word[1], TY_U64), 32));
    return kb_bitcast(k, bits, q->ahead[0][0][0].ty);
}

/* Most words of a strip have come with the last one: then those that are read ahead are there. */
void strip_joined_await(const struct strip *s, kb_val begin)
{
    struct joined *j = s->joined;
    kb *k = s->g->k;
    const kb_val number = kb_get(k, j->number);
    kb_if(k, kb_and(k, kb_and(k, kb_lt(k, begin, 0), s->beside[0]), kb_ne(k, number, 0))) {
        kb_val e[V];
        strip_elements(s, j->input, kb_sub(k, s->line[0], s->pitch), e);
        kb_halo_wait(k, joined_window(j), place_of(s, kb_false(k), e[V - 1]), number);
    }
}

void strip_joined_fetch(const struct strip *s, const struct queue *q, int place, int line, kb_val row)
{
    struct joined *j = s->joined;
    kb *k = s->g->k;
    kb_val v[V], after = beyond(s, 1, row);
    kb_if(k, kb_or(k, beyond(s, 0, row), after)) {
        const kb_val number = kb_get(k, j->number);
        kb_val e[V], came = kb_true(k);
        strip_elements(s, q->input, row, e);
        for (int i = 0; i < V; i++) {
            kb_val word[2], at = place_of(s, after, e[i]);
            for (int w = 0; w < joined_words(j); w++)
                came = kb_and(k, came, kb_halo_peek(k, kb_add(k, at, w * JOINED_SLOT), number, &word[w]));
            kb_set(k, q->ahead[place][line][i], value_of(q, s, word));
        }
        kb_set(k, q->came[place][line], kb_or(k, came, kb_eq(k, number, 0)));
    }
    kb_else
    {
        strip_load(s, q->input, row, v);
        for (int i = 0; i < V; i++)
            kb_set(k, q->ahead[place][line][i], v[i]);
        kb_set(k, q->came[place][line], kb_true(k));
    }
}

void strip_joined_take(const struct strip *s, const struct queue *q, int place, int line, kb_val row)
{
    struct joined *j = s->joined;
    kb *k = s->g->k;
    kb_if(k, kb_not(k, kb_get(k, q->came[place][line]))) {
        const kb_val after = beyond(s, 1, row);
        kb_val e[V];
        strip_elements(s, q->input, row, e);
        for (int i = 0; i < V; i++) {
            kb_val word[2], at = place_of(s, after, e[i]);
            for (int w = 0; w < joined_words(j); w++) {
                const kb_val from = kb_add(k, at, w * JOINED_SLOT);
                kb_halo_wait(k, joined_window(j), from, kb_get(k, j->number));
                word[w] = kb_halo_read(k, from);
            }
            kb_set(k, q->ahead[place][line][i], value_of(q, s, word));
        }
    }
}

kb_val strip_joined_plane(const struct strip *s, kb_val z, kb_val in_array, kb_val *other)
{
    kb *k = s->g->k;
    *other = kb_or(k, kb_and(k, kb_lt(k, z, 0), s->beside[0]), kb_and(k, kb_ge(k, z, s->planes), s->beside[1]));
    const kb_val last = kb_add(k, s->planes, s->joined->after - 1);
    return kb_select(k, *other, kb_max(k, kb_min(k, z, last), -s->joined->before), in_array);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* What a warp has to do. */
struct share {
    kb_val sends, reads, total; /* bool, bool, u32: how often some warp does one of these */
};

/* Two dimensions: part 1 of the rows first, then part 0 and the others. */
static struct share place_rows(struct strip *s, kb_val number, kb_val *strip)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val strips = gen_value(g, VAL_STRIPS), rows = gen_value(g, VAL_ROWS);
    const int lost = s->is.steps * s->is.reach, warps = kb_threads(k) / KB_WARP;
    LET(turn, kb_div(k, number, strips));
    *strip = kb_rem(k, number, strips);
    LET(part, kb_select(k, kb_lt(k, turn, 2), kb_sub(k, kb_imm(k, TY_I32, 1), turn), turn));
    LET(gives, kb_min(k, kb_shr(k, rows, 2), STRIP_GIVES));
    const kb_val first = kb_sub(k, kb_mul(k, part, rows), kb_mul(k, gives, kb_min(k, part, 2)));
    s->from = first;
    s->to = kb_min(k, kb_sub(k, kb_add(k, first, rows), kb_select(k, kb_lt(k, part, 2), gives, kb_imm(k, TY_I32, 0))),
                   s->planes);
    /* From this part on rows after the last one are read; if it is 0 or 1, all parts count as ends. */
    LET(end, kb_div(k, kb_max(k, kb_add(k, kb_sub(k, s->planes, lost), kb_mul(k, gives, 2)), 0), rows));
    LET(inner, kb_ge(k, end, 2));
    const kb_val all = kb_mul(k, kb_blocks(k), warps),
                 few = kb_min(k, kb_max(k, kb_div(k, strips, warps), 1), JOINED_SENDERS_MOST);
    s->joined->senders = kb_name(u32(k, kb_select(k, inner, few, kb_imm(k, TY_I32, 1))), "senders");
    const kb_val outer = kb_select(k, inner, kb_sub(k, all, kb_mul(k, strips, kb_sub(k, end, 1))), all);
    return (struct share){ .sends = kb_lt(k, u32(k, kb_block(k)), s->joined->senders),
                           .reads = kb_or(k, kb_not(k, inner), kb_or(k, kb_eq(k, turn, 1), kb_ge(k, turn, end))),
                           .total = kb_add(k, kb_mul(k, s->joined->senders, warps), u32(k, outer)) };
}

/* Three dimensions: blocks come to ends of tiles anywhere, so those that send are others. */
static struct share place_planes(struct strip *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    s->joined->senders = kb_name(u32(k, gen_value(g, VAL_SENDERS)), "senders");
    s->block = kb_sub(k, s->block, gen_value(g, VAL_SENDERS));
    const kb_val sends = kb_lt(k, s->block, 0);
    return (struct share){ .sends = sends,
                           .reads = kb_not(k, sends),
                           .total = kb_mul(k, u32(k, kb_blocks(k)), kb_threads(k) / KB_WARP) };
}

static void done(const struct strip *s, const struct share *share)
{
    struct joined *j = s->joined;
    kb *k = s->g->k;
    kb_section(k, "done");
    const kb_val amount = kb_add(k, u32(k, share->sends), u32(k, share->reads));
    kb_warp_sync(k);
    const kb_val number = kb_get(k, j->number);
    kb_if(k, kb_and(k, kb_and(k, kb_gt(k, amount, 0), kb_lane0(k)), kb_ne(k, number, 0))) {
        kb_halo_done(k, joined_window(j), number, amount, share->total);
    }
}

void strip_joined(struct strip *s, struct joined *j)
{
    struct gen *g = s->g;
    kb *k = g->k;
    kb_val strip;
    const bool flat = !s->is.height;
    const kb_val warps = kb_mul(k, kb_block(k), kb_threads(k) / KB_WARP);
    const struct share share = flat ? place_rows(s, kb_add(k, warps, s->warp), &strip) : place_planes(s);
    for (int side = 0; side < 2; side++)
        s->beside[side] = kb_name(joined_beside(j, side), "beside");
    j->number = kb_var_new(k, kb_imm(k, TY_U32, 0), "number");
    kb_section(k, "sends");
    kb_if(k, kb_or(k, share.sends, share.reads)) {
        kb_set(k, j->number, kb_halo_number(k, joined_window(j)));
    }
    kb_if(k, share.sends) {
        kb_if(k, kb_ne(k, kb_get(k, j->number), 0)) {
            for (int side = 0; side < 2; side++)
                joined_send(j, side, u32(k, kb_block(k)), kb_get(k, j->number));
        }
    }
    kb_warp_sync(k); /* all its lanes have sent before one waits */
    kb_section(k, "steps");
    if (flat)
        strip_stream_rows(s, strip);
    else kb_if(k, share.reads) {
        strip_planes_of_block(s);
    }
    done(s, &share);
}
