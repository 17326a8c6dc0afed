/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c - values beyond the ends of rows, in windows of which only columns may leave the arrays.
 *
 * In three dimensions many warps have the end of a row, where rows are short most of them.  They load whole vectors like
 * all others: there are rows before and after those that they read, so what lies beyond an end is in the arrays.
 * Afterwards it is put right:
 *
 *     interior   not at all: the points that read it are skipped
 *     constant   a choice for each value; for bytes that are computed with in words, a mask for each word
 *     clamp, reflect, mirror
 *                of bytes that are computed with in words, by a permutation of the word and the one beside it
 *     others     of elements of two bytes, where rows skew: for each column of the window, the lanes in which it lies beyond
 *                an end load what stands for it
 */
#include "stencil_gen.h"

#include "llvmgen/builder/kb_target.h"
#include "lower/stencil/taps.h"

static enum boundary_mode mode_of(const struct window *w, int input)
{
    return w->g->p->input[input].boundary[w->rank - 1].mode;
}

/* Loading again pays for elements of two bytes.  H200, us, so and through the boundary at once: f16, 7 points at 400 x 400 x
 * 190 77, 96; but f32, 13 points at 93 x 190 x 94 14.4, 13.8, and f64 with an array at 160 x 512 x 319 260, 207.  Where rows
 * do not skew, what lies beside whole vectors is loaded on its own anyway. */
bool ends_mended(const struct window *w, int input)
{
    const enum boundary_mode mode = mode_of(w, input);
    const bool again = w->skewed && w->g->p->input[input].array.stride == 2;
    return w->place == PLACE_ROWS && w->vectors &&
           (again || mode == BOUND_INTERIOR || mode == BOUND_CONSTANT || w->word_ends >> input & 1);
}

int64_t ends_beyond(const struct gen *g)
{
    enum { WIDE = 64 };
    const int last = g->p->rank - 1;
    const struct reach r = stencil_space_reach(g->p);
    const struct skews skews = stencil_skewed(g->c) ? stencil_skews(g->c, g->p->rank) : (struct skews){ 0, 0 };
    const int64_t reach = r.hi[last] > -r.lo[last] ? r.hi[last] : -r.lo[last],
                  most = reach + skews.hi - skews.lo + 2 * stencil_points(g->c, g->p->rank, last);
    return most > WIDE ? most : WIDE;
}

/* Is the value there, and may it be wrong?  Vectors of rows that do not skew exist as a whole. */
static bool doubtful(const struct window *w, const struct cell *c)
{
    const int x = c->at[w->rank - 1];
    const bool exists = !w->skewed && x >= 0 && x < w->points[w->rank - 1];
    return c->v.ir && c->sideways && !c->mended && !exists && ends_mended(w, c->input);
}

/* The number of a column in its row, i32: the guard of vectors keeps extents short. */
static kb_val column(const struct window *w, int x)
{
    return kb_cast(w->g->k, kb_add(w->g->k, w->origin[w->rank - 1], x), TY_I32);
}

static kb_val length(const struct window *w) { return kb_cast(w->g->k, w->extent[w->rank - 1], TY_I32); }

static kb_val outside(const struct window *w, int x)
{
    kb *k = w->g->k;
    return kb_ge(k, kb_cast(k, column(w, x), TY_U32), kb_cast(k, length(w), TY_U32));
}

/* Columns from one that lies outside, less than a row from its end, to the one that stands for it. */
static kb_val distance(const struct window *w, enum boundary_mode mode, int x)
{
    kb *k = w->g->k;
    const kb_val i = column(w, x), n = length(w), low = kb_neg(k, i), high = kb_sub(k, kb_sub(k, n, 1), i),
                 left = kb_lt(k, i, 0);
    switch (mode) {
    case BOUND_WRAP: return kb_select(k, left, n, kb_neg(k, n));
    case BOUND_REFLECT:
        return kb_select(k, left, kb_sub(k, kb_add(k, low, low), 1), kb_add(k, kb_add(k, high, high), 1));
    case BOUND_MIRROR: return kb_select(k, left, kb_add(k, low, low), kb_add(k, high, high));
    case BOUND_CLAMP:
    case BOUND_CONSTANT:
    case BOUND_INTERIOR: break;
    }
    return kb_select(k, left, low, high);
}

/* All values of this cell's column. */
static void reload_column(struct window *w, const struct cell *like)
{
    kb *k = w->g->k;
    const struct prog_array *a = &w->g->p->input[like->input].array;
    const int last = w->rank - 1, x = like->at[last];
    struct cell **cell = kb_scratch(k, sizeof(struct cell *) * (size_t)w->ncells);
    kb_var *var = kb_scratch(k, sizeof *var * (size_t)w->ncells);
    int count = 0;
    for (int i = 0; cell && var && i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (c->input != like->input || c->at[last] != x || !doubtful(w, c))
            continue;
        var[count] = kb_var_new(k, c->v, "column");
        cell[count++] = c;
    }
    kb_if(k, outside(w, x)) {
        const kb_val at = kb_add(k, kb_cast(k, distance(w, mode_of(w, like->input), x), TY_I64), x);
        for (int i = 0; i < count; i++) {
            const kb_ptr row = window_row(w, a, gen_input(w->g, like->input), cell[i]->at);
            kb_set(k, var[i], gen_load_field(w->g, a, row, at, cell[i]->field));
        }
    }
    for (int i = 0; i < count; i++) {
        cell[i]->v = kb_get(k, var[i]);
        cell[i]->mended = true;
    }
}

/* Ones in the bytes of the word at column x that lie inside, u32. */
static kb_val bytes_inside(const struct window *w, int x)
{
    enum { BYTES = 4, BITS = 8 };
    kb *k = w->g->k;
    const kb_val i = column(w, x), before = kb_min(k, kb_max(k, kb_neg(k, i), 0), BYTES),
                 upto = kb_min(k, kb_max(k, kb_sub(k, length(w), i), 0), BYTES), one = kb_imm(k, TY_U64, 1);
    const kb_val ends = kb_shl(k, one, kb_cast(k, kb_mul(k, upto, BITS), TY_U64)),
                 begins = kb_shl(k, one, kb_cast(k, kb_mul(k, before, BITS), TY_U64));
    return kb_cast(k, kb_and(k, kb_sub(k, ends, 1), kb_not(k, kb_sub(k, begins, 1))), TY_U32);
}

/* For all values that came in a word. */
static void replace_word(struct window *w, kb_val old, kb_val word)
{
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (c->word.ir != old.ir)
            continue;
        c->word = word;
        c->v = kb_extract(w->g->k, &word, c->byte, w->g->p->input[c->input].array.field[0].type);
        c->mended = true;
    }
}

/* Bytes that lie outside become the constant, in the word that this one came in and all others with it. */
static void mask_word(struct window *w, const struct cell *like, int64_t constant)
{
    enum { EACH = 0x01010101 };
    kb *k = w->g->k;
    const kb_val inside = bytes_inside(w, like->at[w->rank - 1] - like->byte);
    kb_val word = kb_and(k, like->word, inside);
    if (constant)
        word = kb_or(k, word, kb_and(k, kb_not(k, inside), constant * EACH));
    replace_word(w, like->word, word);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

enum {
    NEAR = 2,
    WORD = 4,
    BEYOND = NEAR + WORD - 1
}; /* what stands for a byte is in its own word or in the next one */

uint64_t ends_in_words(const struct window *w)
{
    uint64_t all = 0;
    for (int i = 0; i < w->g->p->ninputs; i++) {
        const struct prog_array *a = &w->g->p->input[i].array;
        const enum boundary_mode mode = mode_of(w, i);
        const struct reach r = stencil_input_reach(w->g->p, i);
        const int last = w->rank - 1;
        const bool words = a->stride == 1 && w->points[last] % WORD == 0 && (w->skewed || r.hi[last] - r.lo[last] > 2);
        if (words && (mode == BOUND_CLAMP || mode == BOUND_REFLECT || mode == BOUND_MIRROR) &&
            stencil_symmetric_rows(w->g->p, i, NEAR))
            all |= (uint64_t)1 << i;
    }
    return all;
}

/* The column, from the word's first one, that stands for byte `in` of a word whose first column is so many before the
 * row's first one, or, at its other end, which has so many columns in it; 16 bits, as kb_permute() takes them. */
static uint64_t standing(enum boundary_mode mode, bool left, int columns)
{
    uint64_t digits = 0;
    for (int in = 0; in < WORD; in++) {
        const int edge = left ? columns : columns - 1, out = left ? edge - in : in - edge;
        const int more = mode == BOUND_CLAMP ? 0 : mode == BOUND_REFLECT ? out - 1 : out;
        const int at = out <= 0 ? in : left ? edge + more : edge - more;
        digits |= (uint64_t)(at & 7) << 4 * in;
    }
    return digits;
}

/* Entry `number` (u32) of a table of 16 bits each, of which there are eight. */
static kb_val looked_up(kb *k, const uint64_t table[2], kb_val number)
{
    const kb_val half =
        kb_select(k, kb_lt(k, number, 4), kb_imm(k, TY_U64, (int64_t)table[0]), kb_imm(k, TY_U64, (int64_t)table[1]));
    return kb_cast(k, kb_shr(k, half, kb_cast(k, kb_mul(k, kb_and(k, number, 3), 16), TY_U64)), TY_U32);
}

/* How the word at column x is made of itself and the one beside it. */
static kb_val permutation(const struct window *w, enum boundary_mode mode, int x, kb_val at_left)
{
    enum { ITSELF = 0x3210 };
    kb *k = w->g->k;
    uint64_t left[2] = { 0 }, right[2] = { 0 };
    for (int i = 0; i < BEYOND; i++) {
        left[i / 4] |= standing(mode, true, i + 1) << i % 4 * 16;
        right[i / 4] |= standing(mode, false, WORD - 1 - i) << i % 4 * 16;
    }
    const kb_val before = kb_cast(k, kb_sub(k, kb_neg(k, column(w, x)), 1), TY_U32),
                 after = kb_cast(k, kb_sub(k, kb_add(k, column(w, x), WORD - 1), length(w)), TY_U32),
                 which = kb_select(k, at_left, looked_up(k, left, before), looked_up(k, right, after));
    const kb_val leaves = kb_lt(k, kb_select(k, at_left, before, after), BEYOND);
    return kb_select(k, leaves, which, kb_imm(k, TY_U32, ITSELF));
}

static const struct cell *in_word(struct window *w, const struct cell *like, int from)
{
    for (int i = 0; i < WORD; i++) {
        int at[SPACE_MAX] = { like->at[0], like->at[1], like->at[2] };
        at[w->rank - 1] = from + i;
        const struct cell *c = window_cell(w, like->input, like->field, at);
        if (c && c->word.ir)
            return c;
    }
    return NULL;
}

/* The word that this value came in, and all others with it. */
static void permute_word(struct window *w, const struct cell *like)
{
    kb *k = w->g->k;
    const int x = like->at[w->rank - 1] - like->byte;
    const struct cell *const before = in_word(w, like, x - WORD), *const after = in_word(w, like, x + WORD);
    const kb_val at_left = kb_lt(k, column(w, 0), WORD * WORD), left = after ? after->word : like->word,
                 right = before ? before->word : like->word,
                 word = kb_permute_by(k, like->word, kb_select(k, at_left, left, right),
                                      permutation(w, mode_of(w, like->input), x, at_left));
    replace_word(w, like->word, word);
}

static void choose_constant(struct window *w, struct cell *c)
{
    kb *k = w->g->k;
    const int last = w->rank - 1;
    const union value constant = w->g->p->input[c->input].boundary[last].constant[c->field];
    if (c->word.ir) {
        mask_word(w, c, constant.i & 255);
        return;
    }
    c->v = kb_select(k, outside(w, c->at[last]), kb_const(k, c->v.ty, constant), c->v);
    c->mended = true;
}

void ends_mend(struct window *w)
{
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (!doubtful(w, c))
            continue;
        switch (mode_of(w, c->input)) {
        case BOUND_INTERIOR: c->mended = true; break;
        case BOUND_CONSTANT: choose_constant(w, c); break;
        case BOUND_CLAMP:
        case BOUND_WRAP:
        case BOUND_REFLECT:
        case BOUND_MIRROR: (w->word_ends >> c->input & 1 ? permute_word : reload_column)(w, c); break;
        }
    }
}
