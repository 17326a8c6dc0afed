/* SPDX-License-Identifier: Apache-2.0 */
/* strips.c - scans down few long columns in one pass: strips of neighbouring columns, whose tiles pass
 * their totals on by look-back.
 *
 *     until no ticket is left:
 *         fetch       the next tile's loads set out: thread (row group, column) takes some consecutive rows
 *         look-back   of the tile before it: row group i looks at the tile i + 1 before, all columns side by side
 *         downsweep   of that tile
 *         upsweep     of the next one: groups meet in shared memory, the last one publishes the totals of all columns
 *
 * Ticket q is tile q / strips of strip q % strips.  Words and epochs are those of scan/lookback.c, tickets of blocks that
 * stay as in in_turns.c; the states of a tile's columns lie side by side.
 *
 * Note [Barriers of a round]
 * After the barrier of the look-back lies what the groups have seen, after that of the upsweep what they have
 * combined, and the next ticket.  A place is written again only after the other barrier, at which all its readers have
 * arrived; rounds of look-back that follow one another have one more in between.
 */
#include "llvmgen/shared/tile_state.h"
#include "llvmgen/scan/tile.h"

enum {
    LOOKS = 4, /* tiles that a group looks at at once, but for the first time */
    AT_ONCE = 8
};

/* What all threads of the block share. */
struct shared {
    int width, groups; /* columns of a strip, row groups */
    kb_ptr ticket;     /* u64: the next one */
    kb_arr aggregates; /* per group and column: what the group has combined */
    kb_arr seen;       /* per group and column: what the group has seen in an earlier tile, … */
    kb_ptr prefix;     /* … u32: a prefix */
    struct turn turn;
};

struct strip_tile {
    struct scan_segment segment; /* the thread's column; the last one stands for those that do not exist */
    kb_val exists;               /* bool: the column */
    kb_val strip, index;         /* u32: of the strip, and of the tile in it */
    struct items h;
};

/* What stays of a tile between its two passes. */
struct kept {
    struct direct_vars value; /* direct inputs of the thread's positions */
    struct run_var before;    /* what comes before the thread in the tile */
    kb_tvar total;            /* in the last group: of the column in the tile */
};

static int per_thread(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static kb_val column_of(struct gen *g, const struct shared *m, kb_val strip, kb_val column)
{
    kb *k = g->k;
    return kb_add(k, kb_mul(k, kb_cast(k, strip, TY_I64), m->width), kb_cast(k, column, TY_I64));
}

/* The state of the thread's column in a tile of its strip. */
static struct ticket state_of(struct gen *g, const struct shared *m, const struct strip_tile *t, kb_val index,
                              kb_val epoch)
{
    kb *k = g->k;
    const kb_val per_segment = kb_cast(k, gen_value(g, VAL_PER_SEGMENT), TY_U32);
    const kb_val tile = kb_add(k, kb_mul(k, t->strip, per_segment), index);
    const kb_val at = kb_add(k, kb_cast(k, kb_mul(k, tile, m->width), TY_I32), kb_rem(k, kb_tid(k), m->width));
    return (struct ticket){ at, epoch };
}

static void open_tile(struct gen *g, const struct shared *m, struct strip_tile *t, kb_val ticket)
{
    kb *k = g->k;
    const int n = per_thread(g), rows = m->groups * n;
    const kb_val strips = kb_cast(k, gen_value(g, VAL_STRIPS), TY_U32), segments = gen_value(g, VAL_SEGMENTS);
    t->index = kb_name(kb_div(k, ticket, strips), "index"); /* once per tile */
    t->strip = kb_name(kb_sub(k, ticket, kb_mul(k, t->index, strips)), "strip");
    const kb_val number = column_of(g, m, t->strip, kb_rem(k, kb_tid(k), m->width));
    t->exists = kb_lt(k, number, segments);
    const kb_val column = kb_min(k, number, kb_sub(k, segments, 1));
    segment_open(g, &t->segment, g->c->turns ? turn_segment(g, column) : column);
    t->h = (struct items){ .g = g, .segment = &t->segment, .n = n, .apart = true, .stepwise = true };
    t->h.turn = g->c->turns ? &m->turn : NULL;
    struct items *h = &t->h;
    h->base = kb_mul(k, kb_cast(k, t->index, TY_I64), rows);
    h->own = kb_mul(k, kb_div(k, kb_tid(k), m->width), n);
    h->valid = kb_cast(k, kb_min(k, kb_sub(k, t->segment.length, h->base), rows), TY_I32);
    h->full = kb_assume_uniform(kb_eq(k, h->valid, rows), KB_UNI_BLOCK); /* as the ticket is */
    h->is_start = kb_and(k, kb_eq(k, t->index, 0), kb_lt(k, kb_tid(k), m->width));
    for (int i = 0; i < n; i++)
        h->head[i] = kb_false(k);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static void kept_new(struct gen *g, struct kept *c)
{
    struct direct none[SCAN_ITEMS_MAX];
    for (int n = 0, i = 0; i < g->p->ninputs; i++)
        for (int f = 0; access_input_direct(g->p, i) && f < g->p->input[i].array.nfields; f++, n++)
            for (int e = 0; e < per_thread(g); e++)
                none[e].v[n] = kb_imm(g->k, g->p->input[i].array.field[f].type, 0);
    direct_keep(g, &c->value, none, per_thread(g));
    c->before = run_var_new(g, run_none(g));
    c->total = kb_var_new(g->k, state_zero(g), "total");
}

/* ---- the passes -------------------------------------------------------------------------------------------------- */

/* Neighbours first, so that operators of many steps do not wait for one another. */
static kb_tup in_pairs(struct gen *g, const struct items *h)
{
    kb_tup x[SCAN_ITEMS_MAX];
    for (int i = 0; i < h->n; i++)
        x[i] = h->x[i];
    for (int n = h->n; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n; i += 2)
            x[i / 2] = i + 1 < n ? state_combine(g, x[i], x[i + 1]) : x[i];
    return x[0];
}

/* The combination of the thread's positions.  What those outside contribute, nobody asks for. */
static kb_tup combined(struct gen *g, struct items *h)
{
    kb *k = g->k;
    h->whole = true;
    if (!scan_loads_elsewhere(g->p)) { /* else those outside must stay inside */
        items_contribute(h);
        h->whole = false;
        return in_pairs(g, h);
    }
    kb_tvar x = kb_var_new(k, state_zero(g), "combined");
    kb_if(k, h->full) {
        items_contribute(h);
        kb_set(k, x, in_pairs(g, h));
        h->whole = false;
    }
    kb_else
    {
        items_contribute(h);
        kb_set(k, x, in_pairs(g, h));
    }
    return kb_get(k, x);
}

/* What the thread combines of the tile that has been fetched, stored. */
static kb_tup upsweep(struct gen *g, const struct shared *m, struct strip_tile *t, struct kept *c)
{
    struct items *h = &t->h;
    g->here = &t->segment.here;
    if (h->turn && scan_turns_inputs(g->p)) {
        turn_take(h, &c->value);
        direct_keep(g, &c->value, h->direct, h->n);
    } else {
        direct_take(g, &c->value, h->direct, h->n);
    }
    const kb_tup x = combined(g, h);
    kb_store(g->k, m->aggregates, kb_tid(g->k), x);
    return x;
}

static kb_val last_group(struct gen *g, const struct shared *m)
{
    return kb_ge(g->k, kb_tid(g->k), (m->groups - 1) * m->width);
}

/* Groups whose words set out together; the same number each time. */
static int at_once(const struct shared *m)
{
    int n = AT_ONCE;
    while (m->groups % n)
        n--;
    return n;
}

/* Of the group i after that of place `at`: distances that are known go into the loads. */
static kb_tup of_group(struct gen *g, const struct shared *m, kb_arr from, kb_val at, int i)
{
    for (int f = 0; f < from.n; f++)
        from.e[f] = kb_advance(g->k, from.e[f], kb_imm(g->k, TY_I32, i * m->width));
    return kb_load(g->k, from, at);
}

/* Is combining as good as choosing?  Else what is not asked for is left out. */
static bool combines_soon(const struct gen *g) { return g->nfields == 1; }

/* x := what comes next after it, where `more`; `first`: nothing comes before that. */
static void join_next(struct gen *g, struct run_var x, kb_tup next, kb_val more, bool first)
{
    kb *k = g->k;
    const struct run so_far = first ? run_none(g) : run_get(g, x);
    if (combines_soon(g)) {
        const kb_tup both = first ? next : kb_select(k, so_far.some, state_combine(g, so_far.x, next), next);
        kb_set(k, x.x, first ? both : kb_select(k, more, both, so_far.x));
        kb_set(k, x.some, kb_or(k, so_far.some, more));
        return;
    }
    kb_if(k, more) {
        run_set(g, x, run_join(g, so_far, run_of(g, next, kb_false(k))));
    }
}

/* What the groups from place `at` on have combined, as far as they come before the thread. */
static void join_groups(struct gen *g, const struct shared *m, kb_val at, struct run_var before)
{
    kb *k = g->k;
    const int n = at_once(m);
    kb_tup x[AT_ONCE];
    for (int i = 0; i < n; i++)
        x[i] = of_group(g, m, m->aggregates, at, i);
    for (int i = 0; i < n && (i < n - 1 || n < m->groups); i++) {
        const kb_val earlier = kb_gt(k, kb_sub(k, kb_tid(k), at), i * m->width);
        join_next(g, before, x[i], earlier, i == 0 && n == m->groups);
    }
}

/* What comes before the thread in its column of the tile; the last group publishes the column's total. */
static void meet(struct gen *g, const struct shared *m, const struct strip_tile *t, kb_tup own, kb_val epoch,
                 struct kept *c)
{
    kb *k = g->k;
    const kb_val never = kb_false(k);
    const kb_val column = kb_rem(k, kb_tid(k), m->width);
    run_set(g, c->before, run_none(g));
    if (at_once(m) == m->groups) {
        join_groups(g, m, column, c->before);
    } else {
        kb_for(k, at, column, kb_tid(k), at_once(m) * m->width) {
            join_groups(g, m, at, c->before);
        }
    }
    kb_if(k, last_group(g, m)) {
        const struct run total = run_join(g, run_get(g, c->before), run_of(g, own, never));
        kb_set(k, c->total, total.x);
        tile_publish(g, state_of(g, m, t, t->index, epoch), total.x, kb_eq(k, t->index, 0));
    }
}

/* What the group sees in `looks` tiles, the nearest one `back` before this one, up to the first prefix, once they are
 * there.  The first tile has a prefix, so that none before it is asked for. */
static void glance(struct gen *g, const struct shared *m, const struct strip_tile *t, kb_val back, int looks,
                   kb_val epoch)
{
    kb *k = g->k;
    kb_tvar x = kb_var_new(k, state_zero(g), "seen");
    kb_var ends = kb_var_new(k, kb_true(k), "ends");
    kb_if(k, kb_ge(k, t->index, back)) {
        kb_loop(k) {
            kb_val all = kb_true(k), prefix[LOOKS];
            struct published s[LOOKS];
            for (int i = 0; i < looks; i++) { /* all of them in flight; the first tile stands for those before it */
                const kb_val from = kb_sub(k, t->index, kb_min(k, kb_add(k, back, i), t->index));
                const struct ticket at = state_of(g, m, t, from, epoch);
                s[i] = tile_state_read(g, at, at.tile);
                prefix[i] = kb_eq(g->k, s[i].kind, TILE_PREFIX);
                all = kb_and(k, all, s[i].there);
            }
            kb_set(k, x, s[0].x);
            kb_set(k, ends, prefix[0]);
            for (int i = 1; i < looks; i++)
                kb_if(k, kb_not(k, kb_get(k, ends))) {
                    kb_set(k, x, state_combine(g, s[i].x, kb_get(k, x)));
                    kb_set(k, ends, prefix[i]);
                }
            kb_break_if(k, all);
            kb_backoff(k, BACKOFF_NANOSECONDS);
        }
    }
    kb_store(k, m->seen, kb_tid(k), kb_get(k, x));
    kb_store(k, m->prefix, kb_tid(k), kb_cast(k, kb_get(k, ends), TY_U32));
}

/* What the groups from place `at` on have seen goes before *prefix, up to the first prefix. */
static void take_seen(struct gen *g, const struct shared *m, kb_val at, struct run_var prefix, kb_var done)
{
    kb *k = g->k;
    const int n = at_once(m);
    kb_tup x[AT_ONCE];
    kb_val ends[AT_ONCE];
    for (int i = 0; i < n; i++) {
        const kb_arr prefixes = { 1, { m->prefix } };
        x[i] = of_group(g, m, m->seen, at, i);
        ends[i] = kb_ne(k, of_group(g, m, prefixes, at, i).e[0], 0);
    }
    for (int i = 0; i < n; i++) {
        const struct run so_far = run_get(g, prefix);
        const kb_val open = kb_not(k, kb_get(k, done));
        if (combines_soon(g)) {
            const kb_tup both = kb_select(k, so_far.some, state_combine(g, x[i], so_far.x), x[i]);
            kb_set(k, prefix.x, kb_select(k, open, both, so_far.x));
        } else {
            kb_if(k, open) {
                kb_set(k, prefix.x, run_join(g, run_of(g, x[i], kb_false(k)), so_far).x);
            }
        }
        kb_set(k, prefix.some, kb_true(k));
        kb_set(k, done, kb_or(k, kb_get(k, done), ends[i]));
    }
}

/* A round of look-back: what the groups see in `looks` tiles each, from `back` on, goes before *prefix in the thread's
 * column, up to the first prefix.  Are all columns of the strip done?  The whole block arrives. */
static kb_val look_round(struct gen *g, const struct shared *m, const struct strip_tile *t, kb_val back, int looks,
                         kb_val epoch, struct run_var prefix, kb_var done)
{
    kb *k = g->k;
    const kb_val group = kb_cast(k, kb_div(k, kb_tid(k), m->width), TY_U32);
    glance(g, m, t, kb_add(k, back, kb_mul(k, group, looks)), looks, epoch);
    kb_barrier(k); /* see Note [Barriers of a round] */
    const kb_val column = kb_rem(k, kb_tid(k), m->width);
    if (at_once(m) == m->groups) {
        take_seen(g, m, column, prefix, done);
    } else {
        kb_for(k, at, column, kb_imm(k, TY_I32, m->groups * m->width), at_once(m) * m->width) {
            kb_break_if(k, kb_get(k, done));
            take_seen(g, m, at, prefix, done);
        }
    }
    /* A warp has all columns of the strip, and all warps have read the same. */
    const kb_val open = kb_ballot(k, kb_not(k, kb_get(k, done)));
    return kb_assume_uniform(kb_eq(k, open, 0), KB_UNI_BLOCK);
}

/* Are so many tiles of a strip on their way at once that the nearest prefix is further back than one tile per group? */
static kb_val strips_are_few(struct gen *g, const struct shared *m)
{
    kb *k = g->k;
    const kb_val strips = kb_cast(k, gen_value(g, VAL_STRIPS), TY_I32);
    return kb_gt(k, kb_blocks(k), kb_mul(k, strips, LOOKS * m->groups));
}

/* What comes before the tile in the thread's column; not for the first one.  The last group publishes the prefix of
 * what follows.  One tile per group first, which is enough where strips are many; else several at once.  The whole
 * block arrives. */
static kb_tup look_back(struct gen *g, const struct shared *m, const struct strip_tile *t, kb_val epoch, kb_tup total)
{
    kb *k = g->k;
    kb_var back = kb_var_new(k, kb_imm(k, TY_U32, 1), "back"), done = kb_var_new(k, kb_false(k), "done");
    kb_var all = kb_var_new(k, kb_false(k), "all");
    back.uni = all.uni = KB_UNI_BLOCK;
    struct run_var prefix = run_var_new(g, run_none(g));
    kb_if(k, kb_not(k, strips_are_few(g, m))) {
        kb_set(k, all, look_round(g, m, t, kb_get(k, back), 1, epoch, prefix, done));
        kb_set(k, back, kb_add(k, kb_get(k, back), m->groups));
    }
    kb_loop(k) {
        kb_break_if(k, kb_get(k, all));
        kb_if(k, kb_gt(k, kb_get(k, back), 1)) {
            kb_barrier(k); /* all have read what the groups have seen */
        }
        kb_set(k, all, look_round(g, m, t, kb_get(k, back), LOOKS, epoch, prefix, done));
        kb_set(k, back, kb_add(k, kb_get(k, back), LOOKS * m->groups));
    }
    const kb_tup found = run_get(g, prefix).x;
    kb_if(k, last_group(g, m)) {
        tile_publish(g, state_of(g, m, t, t->index, epoch), state_combine(g, found, total), kb_true(k));
    }
    return found;
}

/* From what has been loaded to results.  Full tiles have code of their own: what clamps positions, and what follows from
 * that, is as much as all else.  Nothing lies between scanning and storing, so that states need not wait in registers. */
static void finish_items(struct strip_tile *t, struct run before)
{
    struct items *h = &t->h;
    kb_if(h->g->k, t->exists) {
        items_contribute(h);
        items_scan(h, before, NULL);
        items_store(h);
        items_finish(h);
    }
}

static void downsweep(struct gen *g, const struct shared *m, struct strip_tile *t, const struct kept *c, kb_val epoch)
{
    kb *k = g->k;
    struct items *h = &t->h;
    g->here = &t->segment.here;
    LET(begun, kb_assume_uniform(kb_gt(k, t->index, 0), KB_UNI_BLOCK)); /* as the ticket is */
    kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
    kb_if(k, begun) {
        kb_set(k, prefix, look_back(g, m, t, epoch, kb_get(k, c->total)));
    }
    kb_else { kb_barrier(k); } /* as in look_back */
    direct_take(g, &c->value, h->direct, h->n);
    const struct run outside = { begun, kb_false(k), kb_get(k, prefix) };
    const struct run before = run_join(g, outside, run_get(g, c->before));
    h->apart = false; /* all of it is */
    kb_if(k, h->full) {
        h->whole = true;
        finish_items(t, before);
        h->whole = false;
    }
    kb_else { finish_items(t, before); }
    if (h->turn)
        turn_leave(h, t->exists);
}

/* ---- the block --------------------------------------------------------------------------------------------------- */

/* Where the block is: the tile to load, and the one that has been loaded. */
struct way {
    kb_var next, last;    /* u32: tickets */
    kb_var there;         /* bool: there is a last one */
    struct kept cur, new; /* of the last tile, and of the next one */
};

/* Fetch tile `next` if it exists, finish the last one, and publish the totals of the next one. */
static void round_of(struct gen *g, const struct shared *m, struct way *w, kb_val exists, kb_val epoch)
{
    kb *k = g->k;
    struct strip_tile next, last;
    LET(leader, kb_thread0(k));
    kb_var taken = kb_var_new(k, kb_imm(k, TY_U64, 0), "ticket_word");
    kb_var following = kb_var_new(k, kb_get(k, w->next), "following");
    open_tile(g, m, &next, kb_get(k, w->next));
    kb_if(k, exists) {
        kb_if(k, leader) { /* its answer is not waited for before the upsweep */
            kb_set(k, taken, ticket_take(g, &tile_tickets));
        }
        if (next.h.turn && scan_turns_inputs(g->p)) {
            turn_fetch(&next.h, &w->new.value);
        } else {
            items_load(&next.h);
            direct_keep(g, &w->new.value, next.h.direct, next.h.n);
        }
    }
    open_tile(g, m, &last, kb_get(k, w->last));
    kb_if(k, kb_get(k, w->there)) {
        downsweep(g, m, &last, &w->cur, epoch);
    }
    kb_if(k, exists) {
        const kb_tup own = upsweep(g, m, &next, &w->new);
        kb_if(k, leader) {
            ticket_share(g, m->ticket, kb_get(k, taken));
        }
        kb_barrier(k);
        kb_set(k, following, kb_cast(k, ticket_shared(g, m->ticket), TY_U32));
        meet(g, m, &next, own, epoch, &w->new);
    }
    kb_set(k, w->last, kb_get(k, w->next));
    kb_set(k, w->next, kb_assume_uniform(kb_get(k, following), KB_UNI_BLOCK));
}

static void rounds(struct gen *g, const struct shared *m, kb_val word)
{
    kb *k = g->k;
    const kb_val tiles = kb_cast(k, gen_value(g, VAL_TICKETS), TY_U32);
    LET(epoch, kb_cast(k, kb_shr(k, word, 32), TY_U32));
    struct way w = { .next = kb_var_new(k, kb_cast(k, word, TY_U32), "next"),
                     .last = kb_var_new(k, kb_imm(k, TY_U32, 0), "last"),
                     .there = kb_var_new(k, kb_false(k), "there") };
    w.next.uni = w.last.uni = w.there.uni = KB_UNI_BLOCK;
    kept_new(g, &w.cur);
    kept_new(g, &w.new);
    kb_loop(k) {
        LET(exists, kb_lt(k, kb_get(k, w.next), tiles));
        round_of(g, m, &w, exists, epoch);
        kb_break_if(k, kb_not(k, exists));
        struct direct d[SCAN_ITEMS_MAX];
        direct_take(g, &w.new.value, d, per_thread(g));
        direct_keep(g, &w.cur.value, d, per_thread(g));
        run_set(g, w.cur.before, run_get(g, w.new.before));
        kb_set(k, w.cur.total, kb_get(k, w.new.total));
        kb_set(k, w.there, kb_true(k));
    }
    tickets_used_up(g, kb_get(k, w.last), epoch, gen_value(g, VAL_TICKETS));
}

static void scan_strips(struct gen *g, void *of)
{
    (void)of;
    kb *k = g->k;
    struct shared m = { .groups = gen_tunable(g, TN_ROWS) };
    m.width = kb_threads(k) / m.groups;
    m.ticket = ticket_slot(g);
    m.aggregates = state_shared(g, kb_threads(k), "group_totals");
    m.seen = state_shared(g, kb_threads(k), "seen_totals");
    m.prefix = kb_shared_v(k, TY_U32, kb_threads(k), "seen_prefixes");
    if (g->c->turns)
        turn_new(g, &m.turn);
    rounds(g, &m, ticket_take_first(g, m.ticket));
}

void emit_segscan_strips(struct gen *g) { scan_kernel_of(g, scan_strips, NULL); }
