/* SPDX-License-Identifier: Apache-2.0 */
/* ref_segment.c - reduce and scan.
 *
 * The kept axes number the segments; the reduced (scanned) axes, in row-major order, number the elements of each.
 * Irregular segments are ranges [offsets[s], offsets[s + 1]) of the only axis, or begin at flags.  A reduce folds every
 * segment, then writes what is per segment and what is per element; a scan writes along the way.
 */
#include "ref_internal.h"

#include <string.h>

/* The elements of one segment. */
struct walk {
    struct ref *r;
    bool reverse;
    bool range; /* irregular: at[0] runs over [lo, hi) */
    int64_t lo, hi;
};

/* Step the axes whose `reduced` is the given one like a counter; false when it has gone around. */
static bool step_axes(struct ref *r, bool reduced, bool reverse)
{
    for (int d = r->p->rank - 1; d >= 0; d--) {
        if (r->p->space[d].reduced != reduced) {
            continue;
        }
        int64_t first = reverse ? r->extent[d] - 1 : 0, last = reverse ? 0 : r->extent[d] - 1;
        if (r->at[d] != last) {
            r->at[d] += reverse ? -1 : 1;
            return true;
        }
        r->at[d] = first;
    }
    return false;
}

/* Go to the first of them; the number of positions. */
static int64_t start_axes(struct ref *r, bool reduced, bool reverse)
{
    int64_t count = 1;
    for (int d = 0; d < r->p->rank; d++) {
        if (r->p->space[d].reduced == reduced) {
            r->at[d] = reverse && r->extent[d] > 0 ? r->extent[d] - 1 : 0;
            count *= r->extent[d];
        }
    }
    return count;
}

/* Go to the first element; the number of elements. */
static int64_t walk_start(struct walk *w)
{
    struct ref *r = w->r;
    ref_next_element(r);
    if (!w->range) {
        return start_axes(r, true, w->reverse);
    }
    r->at[0] = w->reverse ? w->hi - 1 : w->lo;
    return w->hi - w->lo;
}

static bool walk_step(struct walk *w)
{
    struct ref *r = w->r;
    ref_next_element(r);
    if (!w->range) {
        return step_axes(r, true, w->reverse);
    }
    r->at[0] += w->reverse ? -1 : 1;
    return r->at[0] >= w->lo && r->at[0] < w->hi;
}

static const char *empty_message(struct ref *r, int reduction)
{
    return ref_message(r, "'%s' has no identity and no init, and there are no elements to combine",
                       r->p->reduction[reduction].name);
}

static void push_element(struct ref *r, struct ref_fold *fold, int reduction)
{
    struct tuple x;
    const struct reduction *red = &r->p->reduction[reduction];
    ref_eval_tuple(r, red->map, red->op->nfields, &x);
    fold_push(&fold[reduction], &x);
}

/* Does flag segmentation begin anew at the current element, in the order of the scan? */
static bool begins_segment(const struct ref *r)
{
    if (r->p->flags < 0) {
        return false;
    }
    int64_t i = r->at[0];
    if (!r->p->reverse) {
        return ref_input_number(r, r->p->flags, i) != 0;
    }
    return i + 1 < r->extent[0] && ref_input_number(r, r->p->flags, i + 1) != 0;
}

/* Fold all elements of the segment into out[reduction]. */
static const char *fold_segment(struct walk *w, struct ref_fold *fold, struct tuple *out)
{
    struct ref *r = w->r;
    int64_t n = walk_start(w);
    bool chained = r->p->kind == KIND_SCAN;
    for (int i = 0; i < r->p->nreductions; i++) {
        fold_begin(&fold[i], r, i, n, chained);
    }
    for (bool more = n > 0; more; more = walk_step(w)) {
        for (int i = 0; i < r->p->nreductions; i++) {
            if (begins_segment(r)) {
                fold_begin(&fold[i], r, i, n, chained);
            }
            push_element(r, fold, i);
        }
    }
    walk_start(w); /* values per segment see its first element */
    for (int i = 0; i < r->p->nreductions; i++) {
        if (!fold_value(&fold[i], &out[i]) && (!chained || problem_shows_totals(r->p))) {
            return empty_message(r, i);
        }
    }
    return NULL;
}

static const char *reduce_segment(struct walk *w, struct ref_fold *fold)
{
    struct ref *r = w->r;
    const char *message = fold_segment(w, fold, r->state);
    if (message) {
        return message;
    }
    ref_write_outputs(r, AT_TOTAL);
    if (problem_writes(r->p, AT_POINT) || problem_writes(r->p, AT_RESULT)) {
        for (bool more = walk_start(w) > 0; more; more = walk_step(w)) {
            ref_write_outputs(r, AT_POINT);
            ref_write_outputs(r, AT_RESULT);
        }
    }
    return NULL;
}

/* The states of all scans at the current element, which is pushed on the way. */
static const char *scan_element(struct ref *r, struct ref_fold *fold, int64_t n)
{
    for (int i = 0; i < r->p->nreductions; i++) {
        if (begins_segment(r)) {
            fold_begin(&fold[i], r, i, n, true);
        }
        if (!r->p->exclusive) {
            push_element(r, fold, i);
        }
        if (!fold_value(&fold[i], &r->state[i])) {
            return empty_message(r, i);
        }
        if (r->p->exclusive) {
            push_element(r, fold, i);
        }
    }
    return NULL;
}

static const char *scan_segment(struct walk *w, struct ref_fold *fold)
{
    struct ref *r = w->r;
    const char *message = problem_writes(r->p, AT_TOTAL) ? fold_segment(w, fold, r->total) : NULL;
    if (message) {
        return message;
    }
    ref_write_outputs(r, AT_TOTAL);
    memset(r->kept, 0, sizeof *r->kept * (size_t)r->p->noutputs);
    int64_t n = walk_start(w);
    for (int i = 0; i < r->p->nreductions; i++) {
        fold_begin(&fold[i], r, i, n, true);
    }
    for (bool more = n > 0; more; more = walk_step(w)) {
        if ((message = scan_element(r, fold, n))) {
            return message;
        }
        ref_write_outputs(r, AT_POINT);
    }
    return NULL;
}

/* ---- by a computed index ---- */

/* The element at this position of the segment, in the order of the scan. */
static void go_to(struct ref *r, int64_t position)
{
    for (int d = r->p->rank - 1; d >= 0; d--) {
        if (r->p->space[d].reduced) {
            const int64_t i = position % r->extent[d];
            r->at[d] = r->p->reverse ? r->extent[d] - 1 - i : i;
            position /= r->extent[d];
        }
    }
    ref_next_element(r);
}

/* Scan n elements of one bin. */
static const char *scan_bin(struct ref *r, struct ref_fold *fold, const int64_t *position, int64_t n)
{
    const char *message = NULL;
    for (int i = 0; i < r->p->nreductions; i++) {
        fold_begin(&fold[i], r, i, n, true);
    }
    for (int64_t e = 0; e < n && !message; e++) {
        go_to(r, position[e]);
        message = scan_element(r, fold, n);
        ref_write_outputs(r, AT_POINT);
    }
    return message;
}

static const char *bin_totals(struct walk *w, struct ref_fold *fold, int64_t bin)
{
    struct ref *r = w->r;
    for (int i = 0; i < r->p->nreductions; i++) {
        if (!fold_value(&fold[i], &r->total[i]) && problem_writes(r->p, AT_TOTAL)) {
            return empty_message(r, i);
        }
    }
    walk_start(w);
    r->segment = bin;
    ref_write_outputs(r, AT_TOTAL);
    return NULL;
}

/* Bin after bin, each in the order of its elements; elements of none one by one. */
static const char *scan_bins(struct walk *w, struct ref_fold *fold)
{
    struct ref *r = w->r;
    const int64_t n = walk_start(w), bins = ref_dim(r, &r->p->keys);
    int64_t *bin = arena_new(r->scratch, int64_t, n + 1), *order = arena_new(r->scratch, int64_t, n + 1),
            *end = arena_new(r->scratch, int64_t, bins + 2), first = 0;
    const char *message = NULL;
    for (int64_t i = 0; i < n; i++) {
        go_to(r, i);
        const struct num x = ref_eval(r, r->p->key);
        for (int o = 0; o < r->p->noutputs; o++) {
            r->unsure[o] |= x.err > 0;
        }
        bin[i] = x.v.i >= 0 && x.v.i < bins ? x.v.i : bins;
        end[bin[i] + 1]++;
    }
    for (int64_t b = 0; b <= bins; b++) {
        end[b + 1] += end[b];
    }
    for (int64_t i = 0; i < n; i++) {
        order[end[bin[i]]++] = i;
    }
    for (int64_t b = 0; b < bins && !message; b++) {
        message = scan_bin(r, fold, &order[first], end[b] - first);
        message = message ? message : bin_totals(w, fold, b);
        first = end[b];
    }
    for (int64_t i = first; i < n && !message; i++) {
        message = scan_bin(r, fold, &order[i], 1);
    }
    return message;
}

static const char *irregular_segments(struct ref *r, const char *(*segment)(struct walk *, struct ref_fold *),
                                      struct ref_fold *fold)
{
    const struct input *offsets = &r->p->input[r->p->offsets];
    int64_t count = ref_dim(r, &offsets->array.dim[0]) - 1;
    for (int64_t s = 0; s < count; s++) {
        struct walk w = { r, r->p->reverse, true, ref_input_number(r, r->p->offsets, s),
                          ref_input_number(r, r->p->offsets, s + 1) };
        if (w.lo < 0 || w.hi < w.lo || w.hi > r->extent[0]) {
            return ref_message(r, "%s[%lld] = %lld, %s[%lld] = %lld: segment offsets must ascend within 0 … %lld",
                               offsets->array.name, (long long)s, (long long)w.lo, offsets->array.name,
                               (long long)s + 1, (long long)w.hi, (long long)r->extent[0]);
        }
        r->segment = s;
        const char *message = segment(&w, fold);
        if (message) {
            return message;
        }
    }
    return NULL;
}

static const char *each_segment(struct ref *r, const char *(*segment)(struct walk *, struct ref_fold *))
{
    struct ref_fold *fold = arena_new(r->scratch, struct ref_fold, r->p->nreductions);
    if (r->p->offsets >= 0) {
        return irregular_segments(r, segment, fold);
    }
    struct walk w = { .r = r, .reverse = r->p->reverse };
    const char *message = NULL;
    if (start_axes(r, false, false) > 0) {
        do {
            message = segment(&w, fold);
        } while (!message && step_axes(r, false, false));
    }
    return message;
}

const char *ref_reduce(struct ref *r) { return r->p->nby ? ref_bins(r) : each_segment(r, reduce_segment); }
const char *ref_scan(struct ref *r) { return each_segment(r, r->p->key ? scan_bins : scan_segment); }
