/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - kernels, buffers and grids of segmented reductions. */
#include "segreduce.h"

enum { GRID_MAX = 1 << 20, PARTS_MAX = 1 << 16 };

bool segreduce_contradiction(struct planner *pl, const struct plan_case *c, const char *what)
{
    diag_error(&pl->s->diags, D_BAD_TUNABLE, pl->plan->problem->strategy_at,
               "%s: %d threads, %d items, %d elements: %s", c->code.strategy, c->tunable[TN_THREADS],
               c->tunable[TN_ITEMS], c->tunable[TN_VECTOR], what);
    return false;
}

static bool power_of_two(int x) { return (x & (x - 1)) == 0; }

bool segreduce_check_tunables(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const bool runs = segments_trailing(p) || p->offsets >= 0;
    if (c->tunable[TN_THREADS] % 32)
        return segreduce_contradiction(pl, c, "threads must be a multiple of 32");
    if (c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > ITEMS_MAX)
        return segreduce_contradiction(pl, c, "a thread holds at most 64 elements of a segment");
    if (c->tunable[TN_VECTOR] > (runs ? access_vector_width(p) : 1) || !power_of_two(c->tunable[TN_VECTOR]))
        return segreduce_contradiction(pl, c,
                                       "the vector must be a power of two, no wider than 16 bytes of the widest array; "
                                       "1 where segments are not runs of elements");
    if (!power_of_two(c->tunable[TN_LANES]))
        return segreduce_contradiction(pl, c, "lanes must be a power of two");
    return true;
}

/* `vector_end`: positions from there on are too few for a vector. */
static struct formula vector_end(const struct problem *p, const struct plan_case *c)
{
    const struct formula positions = segments_trailing(p) || p->offsets >= 0 ? access_count(p) : segments_length(p);
    const struct formula vector = f_const(c->tunable[TN_VECTOR]);
    return c->tunable[TN_VECTOR] == 1 ? positions : f_mul(f_div(positions, vector), vector);
}

struct prog_kernel *segreduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = plan_kernel(pl, c, suffix);
    plan_problem_args(pl, k);
    plan_value_arg(k, "segments", TY_I64, segments_count(p));
    if (p->offsets < 0)
        plan_value_arg(k, "length", TY_I64, segments_length(p));
    return k;
}

struct prog_kernel *segreduce_team_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    struct prog_kernel *k = segreduce_kernel(pl, c, suffix);
    plan_value_arg(k, "vector_end", TY_I64, vector_end(pl->plan->problem, c));
    return k;
}

static struct formula bounded(const struct plan_case *c, struct formula blocks)
{
    return f_min(blocks, f_const(c->tunable[TN_MAX_GRID] ? c->tunable[TN_MAX_GRID] : GRID_MAX));
}

/* Every team takes its segments once, unless the grid becomes too large. */
static bool build_teams(struct planner *pl, struct plan_case *c, int lanes)
{
    if (!segreduce_check_tunables(pl, c))
        return false;
    const int64_t per_block = (int64_t)c->tunable[TN_THREADS] / lanes * c->tunable[TN_SEGMENTS];
    segreduce_team_kernel(pl, c, "");
    plan_launch(pl, c, 0, bounded(c, f_cdiv(segments_count(pl->plan->problem), f_const(per_block))));
    return true;
}

/* A warp takes as many vectors at a time as its lanes load. */
static bool build_packed(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula vectors = f_mul(segments_count(p), f_div(segments_length(p), f_const(c->tunable[TN_VECTOR])));
    if (!segreduce_check_tunables(pl, c))
        return false;
    segreduce_kernel(pl, c, "");
    plan_launch(pl, c, 0, bounded(c, f_cdiv(vectors, f_const((int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS]))));
    return true;
}

bool segreduce_subwarp_build(struct planner *pl, struct plan_case *c)
{
    return c->tunable[TN_LANES] ? build_teams(pl, c, c->tunable[TN_LANES]) : build_packed(pl, c);
}

bool segreduce_block_build(struct planner *pl, struct plan_case *c)
{
    segreduce_team_kernel(pl, c, "");
    plan_launch(pl, c, 0, bounded(c, segments_count(pl->plan->problem)));
    return segreduce_check_tunables(pl, c);
}

void segreduce_partials(struct planner *pl, struct plan_case *c, struct prog_kernel *k, struct formula groups,
                        struct formula blocks)
{
    enum ty type[32];
    const int fields = state_fields(pl->plan->problem, type);
    plan_arg(k, (struct prog_arg){ .kind = ARG_BUFFER,
                                   .name = "counter",
                                   .index = plan_buffer(pl, c, "counter", REGION_CONTROL, f_mul(groups, f_const(4))) });
    for (int f = 0; f < fields; f++) {
        const char *name = arena_printf(&pl->s->arena, "partial%d", f);
        plan_arg(k, (struct prog_arg){
                        .kind = ARG_BUFFER,
                        .name = name,
                        .index = plan_buffer(pl, c, name, REGION_SCRATCH, f_mul(blocks, f_const(ty_bytes(type[f])))) });
    }
}

/* As many parts as there are places; where there are more segments than a quarter of these, twice as many, so that the
 * last round counts little. */
static struct formula wanted_parts(const struct problem *p, const struct plan_case *c)
{
    const struct formula segments = f_max(segments_count(p), f_const(1));
    const struct formula fill = f_mul(segreduce_sms(p), f_const(c->tunable[TN_BLOCKS_PER_SM]));
    const struct formula many = f_lt(fill, f_mul(segments, f_const(4)));
    const struct formula parts = f_max(f_div(fill, segments), f_mul(many, f_cdiv(f_mul(fill, f_const(2)), segments)));
    return f_min(f_max(parts, f_const(1)), f_const(PARTS_MAX));
}

/* Parts of equal length, in whole vectors of all threads, each with a round at least, none empty. */
bool segreduce_multi_block_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula length = segments_length(p), segments = segments_count(p);
    const struct formula round =
        f_const((int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR]);
    const struct formula wanted = wanted_parts(p, c);
    const struct formula step = f_const((int64_t)c->tunable[TN_THREADS] * c->tunable[TN_VECTOR]);
    const struct formula chunk = f_max(f_mul(f_cdiv(f_cdiv(length, wanted), step), step), round);
    const struct formula parts = f_max(f_cdiv(length, chunk), f_const(1));
    struct prog_kernel *k = segreduce_team_kernel(pl, c, "");
    plan_value_arg(k, "parts", TY_I32, parts);
    plan_value_arg(k, "chunk", TY_I64, chunk);
    const struct formula blocks = f_mul(segments, parts);
    plan_words_arg(pl, c, k, blocks, SEGMENTS_TICKET_WORDS);
    plan_launch(pl, c, 0, blocks);
    return segreduce_check_tunables(pl, c);
}
