/* SPDX-License-Identifier: Apache-2.0 */
/* segreduce.c - what the strategies for segmented reductions know, and the arguments, buffers and checks of their
 * kernels.
 */
#include "segreduce.h"

enum { GRID_MAX = 1 << 20 };

/* ---- facts ------------------------------------------------------------------------------------------------------- */

bool segreduce_regular(const struct problem *p, const char **why)
{
    const struct misfit m[] = { { p->offsets >= 0, "its segments all have one size; this problem has offsets" },
                                { p->nby > 0, "it reduces segments; this problem reduces by indices" },
                                { !segments_kept(p), "it reduces segments; this problem keeps no dimension" },
                                { 0 } };
    return plan_takes(why, m);
}

bool segreduce_between_offsets(const struct problem *p, const char **why)
{
    *why = "its segments lie between offsets; this problem has none";
    return p->offsets >= 0;
}

bool segreduce_runs(const struct problem *p)
{
    return segments_trailing(p) || segments_in_pieces(p) || p->offsets >= 0;
}

int segreduce_state_words(const struct problem *p)
{
    enum ty type[STATE_FIELDS_MAX];
    int words = 0;
    const int fields = state_fields(p, type);
    for (int f = 0; f < fields; f++)
        words += (ty_bytes(type[f]) + 3) / 4;
    return words;
}

int64_t segreduce_staged_bytes(const struct problem *p, int64_t elements, int slack)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i))
            bytes += elements * p->input[i].array.stride + slack;
    return bytes;
}

static int common_divisor(int a, int b) { return b ? common_divisor(b, a % b) : a; }

int segreduce_quantum(const struct problem *p)
{
    int most = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const int n = SEG_VECTOR_BYTES / common_divisor(SEG_VECTOR_BYTES, p->input[i].array.stride);
        if (access_input_direct(p, i) && n > most)
            most = n;
    }
    return most;
}

bool segreduce_power_of_two(int x) { return (x & (x - 1)) == 0; }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

void segreduce_add(struct planner *pl, const struct strategy *row, segreduce_case *make, const void *what,
                   const char *name, int vector, struct formula guard, bool anywhere)
{
    const struct problem *p = pl->plan->problem;
    struct formula aligned = { 0 };
    struct plan_case *c = make(pl, row, what, name, guard, true);
    if (!access_aligned_guard(p, vector ? vector : c->tunable[TN_VECTOR], true, &aligned)) {
        c->aligned = false;
        return;
    }
    if (segments_in_pieces(p))
        aligned = f_and(f_eq(f_mod(segments_piece(p), vector ? vector : c->tunable[TN_VECTOR]), 0), aligned);
    c->code.guard = f_and(guard, aligned);
    if (anywhere || state_determinism(p) != DET_ANY)
        make(pl, row, what, arena_printf(&pl->s->arena, "%s_unaligned", name), guard, false);
}

/* Elements that a thread holds, of all its segments. */
static int elements(const struct plan_case *c)
{
    const int segments = c->tunable[TN_SEGMENTS] > 1 ? c->tunable[TN_SEGMENTS] : 1;
    return c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] * segments;
}

void segreduce_fit_items(struct plan_case *c)
{
    while (plan_shrinks(c, TN_ITEMS) && elements(c) > ITEMS_MAX)
        c->tunable[TN_ITEMS] /= 2;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

bool segreduce_check_tunables(struct planner *pl, const struct plan_case *c, bool vectors)
{
    const struct problem *p = pl->plan->problem;
    const int vector = c->tunable[TN_VECTOR];
    const struct misfit m[] = { { c->tunable[TN_THREADS] % SEG_WARP, "threads must be a multiple of 32" },
                                { elements(c) > ITEMS_MAX,
                                  "a thread holds at most 64 elements, of all its segments together" },
                                { vector > (vectors ? access_vector_width(p) : 1) || !segreduce_power_of_two(vector),
                                  "the vector must be a power of two, no wider than 16 bytes of the widest array; 1 "
                                  "where neither elements nor segments lie side by side" },
                                { !segreduce_power_of_two(c->tunable[TN_LANES]), "lanes must be a power of two" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}

struct prog_kernel *segreduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = plan_kernel(pl, c, suffix);
    plan_value_arg(k, VAL_SEGMENTS, TY_I64, segments_count(p));
    if (p->offsets < 0)
        plan_value_arg(k, VAL_LENGTH, TY_I64, segments_length(p));
    plan_piece_arg(k, p);
    return k;
}

/* `vector_end`: positions from there on are too few for a vector. */
struct prog_kernel *segreduce_team_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    const struct problem *p = pl->plan->problem;
    const bool all = segments_trailing(p) || p->offsets >= 0;
    const struct formula positions = all ? access_count(p) : segments_length(p);
    const int vector = c->tunable[TN_VECTOR];
    struct prog_kernel *k = segreduce_kernel(pl, c, suffix);
    plan_value_arg(k, VAL_VECTOR_END, TY_I64, vector == 1 ? positions : f_mul(f_div(positions, vector), vector));
    return k;
}

struct formula segreduce_bounded(const struct plan_case *c, struct formula blocks)
{
    return f_min(blocks, c->tunable[TN_MAX_GRID] ? c->tunable[TN_MAX_GRID] : GRID_MAX);
}

struct formula segreduce_parts(struct prog_kernel *k, struct formula length, struct formula wanted, int64_t step,
                               int64_t least)
{
    const struct formula even = f_mul(f_cdiv(f_cdiv(length, wanted), step), step);
    const struct formula chunk = f_max(even, least);
    const struct formula parts = f_max(f_cdiv(length, chunk), 1);
    plan_value_arg(k, VAL_PARTS, TY_I32, parts);
    plan_value_arg(k, VAL_CHUNK, TY_I64, chunk);
    return parts;
}
