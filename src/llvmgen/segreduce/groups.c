/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - where segments end, 32 at a time; see shares.h.
 *
 * The next group's offsets are loaded while one is used.  Groups of 32 segments without any element are not walked
 * through one by one: a search skips them, and all warps together look for them once.
 */
#include "shares.h"

static kb_val clamped(kb *k, kb_val x, kb_val lo, kb_val hi) { return kb_max(k, kb_min(k, x, hi), lo); }

kb_val share_offset(struct shares *s, kb_val i)
{
    kb *k = s->g->k;
    const kb_val there = kb_min(k, i, s->segments);
    return kb_cast(k, kb_load(k, gen_input(s->g, s->g->p->offsets), there), TY_I64);
}

kb_val share_position(struct shares *s, kb_val element)
{
    kb *k = s->g->k;
    const kb_val at = kb_sub(k, element, s->from), length = kb_cast(k, s->length, TY_I64);
    return kb_cast(k, clamped(k, at, kb_imm(k, TY_I64, 0), length), TY_I32);
}

void group_init(struct shares *s)
{
    kb *k = s->g->k;
    s->now = (struct group){ kb_var_new(k, kb_imm(k, TY_I64, 0), "base"), kb_var_new(k, kb_imm(k, TY_I32, 0), "end"),
                             kb_var_new(k, kb_imm(k, TY_I32, 0), "last") };
    s->next_first = kb_var_new(k, kb_imm(k, TY_I64, 0), "next_first");
    s->next_last = kb_var_new(k, kb_imm(k, TY_I64, 0), "next_last");
}

/* The lane's number in the group that begins with segment `base`. */
static kb_val own_number(struct shares *s, kb_val base)
{
    return kb_add(s->g->k, base, kb_cast(s->g->k, kb_lane(s->g->k), TY_I64));
}

static void next_load(struct shares *s, kb_val base)
{
    kb *k = s->g->k;
    LET(own, own_number(s, base));
    kb_set(k, s->next_first, share_offset(s, own));
    kb_set(k, s->next_last, share_offset(s, kb_add(k, own, 1)));
}

/* What has been loaded becomes the current group.  An end at the share's very end is its own, one after it is not, and
 * becomes one place further.  Segments that do not exist begin and end with the last offset. */
static void group_take(struct shares *s, kb_val base)
{
    kb *k = s->g->k;
    const kb_val first = kb_get(k, s->next_first), last = kb_get(k, s->next_last);
    const kb_val behind = kb_cast(k, kb_add(k, s->length, 1), TY_I64), zero = kb_imm(k, TY_I64, 0);
    LET(end, kb_cast(k, clamped(k, kb_sub(k, last, s->from), zero, behind), TY_I32));
    kb_set(k, s->now.base, base);
    kb_set(k, s->now.end, kb_select(k, kb_lt(k, first, last), end, kb_imm(k, TY_I32, SHARE_NONE)));
    kb_set(k, s->now.last, kb_shfl_idx(k, end, KB_WARP - 1));
}

struct group_target {
    struct shares *s;
    kb_val element;
};

/* Does group `number` end at the element or in front of it? */
static kb_val group_before(struct gen *g, const void *what, kb_val number)
{
    const struct group_target *target = what;
    kb *k = g->k;
    LET(there, kb_mul(k, kb_add(k, number, 1), KB_WARP));
    return kb_le(k, share_offset(target->s, there), target->element);
}

/* The first group, number `first` or after it, that ends after element `target`; its first segment. */
static kb_val group_search(struct shares *s, kb_val first, kb_val target, kb_val groups, kb_val apart)
{
    const struct group_target what = { s, target };
    return kb_mul(s->g->k, warp_search(s->g, first, groups, apart, group_before, &what), KB_WARP);
}

static kb_val group_count(struct shares *s) { return kb_shr(s->g->k, kb_add(s->g->k, s->segments, KB_WARP - 1), 5); }

static void group_load(struct shares *s, kb_val base)
{
    next_load(s, base);
    group_take(s, base);
    next_load(s, kb_add(s->g->k, base, KB_WARP));
}

void group_first(struct shares *s)
{
    kb *k = s->g->k;
    LET(groups, group_count(s));
    LET(base, group_search(s, kb_imm(k, TY_I64, 0), s->from, groups, warp_evenly(s->g, groups)));
    next_load(s, base);
    const kb_val first = kb_get(k, s->next_first), last = kb_get(k, s->next_last);
    LET(cut, kb_and(k, kb_lt(k, first, s->from), kb_lt(k, s->from, last)));
    LET(lanes, kb_ballot(k, cut)); /* one at most: offsets ascend */
    kb_if(k, kb_ne(k, lanes, 0)) {
        const kb_val lane = kb_cast(k, kb_ctz(k, lanes), TY_I32);
        kb_set(k, s->head, kb_add(k, base, kb_cast(k, lane, TY_I64)));
        kb_set(k, s->head_first, kb_shfl_idx(k, first, lane));
    }
    group_take(s, base);
    next_load(s, kb_add(k, base, KB_WARP));
}

void group_advance(struct shares *s, kb_val pos)
{
    kb *k = s->g->k;
    LET(base, kb_add(k, share_uniform(kb_get(k, s->now.base)), KB_WARP));
    group_take(s, base);
    kb_if(k, kb_le(k, share_uniform(kb_get(k, s->now.last)), pos)) {
        const kb_val target = kb_add(k, s->from, kb_cast(k, pos, TY_I64));
        const kb_val number = kb_add(k, kb_shr(k, base, 5), 1);
        group_load(s, group_search(s, number, target, group_count(s), kb_imm(k, TY_I64, 1)));
    }
    kb_else { next_load(s, kb_add(k, base, KB_WARP)); }
}

void groups_finish_empty(struct shares *s, kb_val number, kb_val warps)
{
    kb *k = s->g->k;
    const int64_t round = (int64_t)KB_WARP * KB_WARP;
    kb_for(k, first, kb_mul(k, number, round), s->segments, kb_mul(k, warps, round)) {
        LET(own, kb_add(k, first, kb_mul(k, kb_cast(k, kb_lane(k), TY_I64), KB_WARP)));
        LET(none, kb_ge(k, share_offset(s, own), share_offset(s, kb_add(k, own, KB_WARP))));
        kb_var left = kb_var_new(k, kb_ballot(k, kb_and(k, kb_lt(k, own, s->segments), none)), "left");
        kb_loop(k) {
            LET(groups, share_uniform(kb_get(k, left)));
            kb_break_if(k, kb_eq(k, groups, 0));
            LET(group, kb_cast(k, kb_ctz(k, groups), TY_I64));
            LET(segment, own_number(s, kb_add(k, first, kb_mul(k, group, KB_WARP))));
            kb_if(k, kb_lt(k, segment, s->segments)) {
                share_finish(s, segment, state_zero(s->g), true);
            }
            kb_set(k, left, kb_and(k, groups, kb_sub(k, groups, 1)));
        }
    }
}
