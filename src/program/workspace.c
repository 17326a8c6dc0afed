/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.c - how much memory a launch works in, and where its buffers lie.
 *
 * Scratch has no content between launches, so every case lays its buffers out from the beginning, one after the other.
 *
 * Note [Layout of the control region]
 * Control memory is zeroed once and then carries state from launch to launch, of any case and any size.  So no byte may
 * ever belong to two buffers, and a buffer must be found again where it was.  Buffers whose size is a constant
 * lie at the beginning, over all cases, at fixed offsets.  The others, whose sizes follow from the launch, have a
 * *slot* each, s of S.  A single slot lies after the fixed part and may be as long as it likes.  With more of them,
 * the size is rounded up to a power of two P (at least 256), and every P has S places of its own after those of all
 * smaller ones:
 *
 *     fixed | S places of 256 | S places of 512 | …        offset(s, P) = fixed + S * (P - 256) + s * P
 *
 * This takes at most four times S of what is needed, only for what was ever used, and an offset depends on nothing but
 * the buffer and P.  When a buffer is used with sizes that share a P, or in a single slot, its beginning stays, which
 * is what persistent state of growing arrays needs.
 */
#include "workspace.h"

static bool is_constant(const struct formula *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->step[i].op < FO_ADD && f->step[i].op != FO_CONST)
            return false;
    return f->n >= 0;
}

/* Rounded up to `alignment`, saturating so that sums of it are seen to overflow. */
static int64_t aligned(int64_t bytes, int64_t alignment)
{
    if (bytes > INT64_MAX - alignment)
        return INT64_MAX;
    return bytes <= 0 ? 0 : (bytes + alignment - 1) / alignment * alignment;
}

static int64_t sum(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static bool is_fixed(const struct prog_buffer *b) { return b->region == REGION_CONTROL && is_constant(&b->bytes); }
static bool has_slot(const struct prog_buffer *b) { return b->region == REGION_CONTROL && !is_constant(&b->bytes); }

static int64_t constant_bytes(const struct prog_buffer *b)
{
    static const struct formula_env none;
    return b->bytes.n == 0 ? 0 : aligned(formula_eval(&b->bytes, &none), WORKSPACE_ALIGNMENT);
}

/* Fixed bytes and slots of all buffers before buffer `buffer` of case c. */
static struct control_place before(const struct program *p, int c, int buffer)
{
    struct control_place at = { 0 };
    for (int k = 0; k < p->ncases && k <= c; k++)
        for (int b = 0; b < p->cases[k].nbuffers && (k < c || b < buffer); b++) {
            const struct prog_buffer *x = &p->cases[k].buffer[b];
            at.offset = sum(at.offset, is_fixed(x) ? constant_bytes(x) : 0);
            at.slot += has_slot(x);
        }
    return at;
}

void program_control_layout(const struct program *p, int64_t *fixed, int *slots)
{
    const struct control_place all = before(p, p->ncases, 0);
    *fixed = all.offset;
    *slots = all.slot;
}

struct control_place program_control_place(const struct program *p, int c, int buffer)
{
    struct control_place at = before(p, c, buffer);
    if (is_fixed(&p->cases[c].buffer[buffer]))
        at.slot = -1;
    else
        program_control_layout(p, &at.offset, &(int){ 0 });
    return at;
}

/* Offset of a control buffer of `bytes` bytes; *end: where it ends. */
static int64_t place_control(const struct program *p, int c, int buffer, int64_t bytes, int64_t *end)
{
    const struct control_place at = program_control_place(p, c, buffer);
    int64_t fixed, power = WORKSPACE_ALIGNMENT;
    int slots;
    program_control_layout(p, &fixed, &slots);
    if (at.slot < 0 || slots == 1) {
        *end = sum(at.offset, aligned(bytes, WORKSPACE_ALIGNMENT));
        return at.offset;
    }
    while (power < bytes && power <= INT64_MAX / 2)
        power *= 2;
    const int64_t offset = sum(fixed, sum(product(slots, power - WORKSPACE_ALIGNMENT), product(at.slot, power)));
    *end = power < bytes ? INT64_MAX : sum(offset, power);
    return offset;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void case_workspace(const struct program *p, int c, const struct formula_env *env, int64_t *control,
                           int64_t *scratch, int64_t *offset)
{
    int64_t used = 0, end = 0;
    for (int b = 0; b < p->cases[c].nbuffers; b++) {
        const struct prog_buffer *x = &p->cases[c].buffer[b];
        const int64_t bytes = x->bytes.n == 0 ? 0 : formula_eval(&x->bytes, env);
        int64_t at = used, buffer_end = 0;
        if (x->region == REGION_CONTROL)
            at = place_control(p, c, b, bytes, &buffer_end);
        else
            used = sum(used, aligned(bytes, WORKSPACE_ALIGNMENT));
        end = larger(end, buffer_end);
        if (offset != NULL)
            offset[b] = at;
    }
    *control = larger(*control, end);
    *scratch = larger(*scratch, used);
}

void program_workspace(const struct program *p, int c, const struct formula_env *env, int64_t *control,
                       int64_t *scratch, int64_t *offset)
{
    *control = *scratch = 0;
    for (int k = 0; k < p->ncases; k++)
        if (c < 0 ? formula_eval(&p->cases[k].guard, env) != 0 : k == c)
            case_workspace(p, k, env, control, scratch, c < 0 ? NULL : offset);
    if (*control == INT64_MAX)
        *control = -1;
    if (*scratch == INT64_MAX)
        *scratch = -1;
}
