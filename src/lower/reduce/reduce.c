/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - planning of whole-array reductions.
 *
 * The strategies share one shape.  The points are numbered linearly; all direct arrays are read (and written) in
 * vectors of `vector` elements after `head` elements that lead to a common 16-byte boundary; what is left over at both
 * ends, fewer than 2 * vector elements, is taken by the first block.
 *
 *   reduce.block       one block, for small arrays; with more threads where there is more than a little; one cluster of
 *                      blocks (sm_90), whose totals meet in the first block's shared memory, for a little more
 *   reduce.gather      a grid; the block that starts last gathers partials in words that tell of which launch they are
 *   reduce.last_block  a grid; the last block to finish combines the partials (Futhark's SegRed); of operators that do
 *                      not commute inputs may come through rings of bulk copies (sm_90)
 *
 * Commutative operators: tiles of threads x items vectors go round-robin to the blocks.  Ordered operators: every warp
 * takes one consecutive range of windows of 32 x items vectors, and partials are combined in order.
 *
 * Determinism: the combination tree is a function of n, the tunables and the grid.  For `run` and `device` the tree
 * must not depend on addresses: only head 0 is taken by the vector case, and a scalar case with the same tree takes the
 * rest; for `device` the grid does not depend on the device either.
 */
#include "reduce.h"
#include "lower/segments.h"
#include "lower/tuned.h"

#include <string.h>

enum { SHORT_LIMIT = 1 << 12, CLUSTER_LIMIT = 1 << 17, STAGING_MAX = 40 * 1024 };

bool reduce_whole_array(const struct problem *p, const char **why)
{
    const struct misfit m[] = { { segments_kept(p), "it reduces whole arrays; this problem keeps a dimension" },
                                { p->nby > 0, "it reduces whole arrays; this problem reduces by indices" },
                                { p->offsets >= 0 || p->flags >= 0,
                                  "it reduces whole arrays; this problem has segments" },
                                { 0 } };
    return plan_takes(why, m);
}

FITS_WHAT(reduce_block, reduce_whole_array)
FITS_WHAT(reduce_gather, reduce_whole_array)

bool reduce_clusters_fit(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    *why = NULL;
    if (d->sm < 90)
        *why = arena_printf(a, "thread-block clusters need sm_90; the target is %s", d->arch);
    else if (!state_commutative(p))
        *why = "blocks of a cluster combine in any order, and the operator does not commute";
    else if (state_determinism(p) == DET_DEVICE)
        *why = "determinism: device forbids a combination tree that only some devices can build";
    return !*why;
}

/* Dependent launch pays where launches follow one another and the kernel is short.  Every element is read once: it need
 * not stay in the caches. */
void reduce_usual(struct planner *pl, struct plan_case *c)
{
    plan_set_pdl(pl, c);
    plan_set(c, TN_EVICT_FIRST, pl->plan->problem->nby > 0 || !problem_writes(pl->plan->problem, AT_POINT),
             "every element is read once, and few are written");
}

/* What a stage of a warp's ring holds: a window of every direct input. */
static int window_bytes(const struct problem *p, const struct plan_case *c)
{
    return reduce_tile_bytes(p, c) / (c->tunable[TN_THREADS] / 32);
}

static int ring_bytes(const struct problem *p, const struct plan_case *c)
{
    const int bulk = c->tunable[TN_COPY_STAGES];
    return bulk * (reduce_tile_bytes(p, c) + c->tunable[TN_THREADS] / 32 * 8) + reduce_totals_bytes(p, c);
}

static bool has_structures(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i) && *p->input[i].array.field[0].name)
            return true;
    return false;
}

/* Bulk copies move 16 bytes and multiples, so every window of every direct input begins at such a boundary. */
static bool bulk_aligned(const struct problem *p, const struct plan_case *c)
{
    bool any = false, ok = c->aligned && !has_structures(p);
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i)) {
            ok &= c->tunable[TN_VECTOR] * p->input[i].array.stride % 16 == 0;
            any = true;
        }
    return any && ok;
}

/* Rings of bulk copies where the architecture has them and a block's fit. */
static void choose_bulk(struct planner *pl, struct plan_case *c)
{
    enum { STAGES = 2 };
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    if (!(c->strategy->tunables & WITH_COPY_STAGES) || c->overridden[TN_COPY_STAGES] || d->sm < 90 ||
        state_commutative(p) || !bulk_aligned(p, c))
        return;
    c->tunable[TN_COPY_STAGES] = STAGES;
    c->tunable_from[TN_COPY_STAGES] = "where the architecture has bulk copies";
    if (c->tunable[TN_VECTOR] == 2 && access_direct_fields(p) == 1)
        plan_set(c, TN_ITEMS, 9,
                 "H200, max segment sums of 2^22/2^24/2^26/2^28 f64: 17/43/150/569 us; 7 items 21/61/157/604, 5 "
                 "18/49/177/685");
    while (c->tunable[TN_COPY_STAGES] && ring_bytes(p, c) > d->shared_per_block)
        c->tunable[TN_COPY_STAGES]--;
}

/* Ordered operators go through the transpose where lanes hold more than a vector of scalars, with as many items as fit:
 * an odd number, which keeps the transpose free of bank conflicts. */
static void choose_staged(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (state_commutative(p))
        return;
    if (!c->overridden[TN_SMEM_TRANSPOSE])
        c->tunable[TN_SMEM_TRANSPOSE] =
            c->aligned && !has_structures(p) && c->tunable[TN_ITEMS] > 1 && !c->tunable[TN_COPY_STAGES];
    while (c->tunable[TN_SMEM_TRANSPOSE] && plan_shrinks(c, TN_ITEMS) && reduce_tile_bytes(p, c) > STAGING_MAX)
        c->tunable[TN_ITEMS] -= c->tunable[TN_ITEMS] % 2 ? 2 : 1;
    if (!c->overridden[TN_SMEM_TRANSPOSE] && reduce_tile_bytes(p, c) > STAGING_MAX)
        c->tunable[TN_SMEM_TRANSPOSE] = 0; /* many inputs */
}

/* A thread holds a tile's elements in registers. */
static void choose_items(struct plan_case *c)
{
    while (plan_shrinks(c, TN_ITEMS) && c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > ITEMS_MAX)
        c->tunable[TN_ITEMS]--;
}

/* A vector case, and where pointers may not share a boundary and `fallback` is asked for, a scalar case behind it; so
 * too where another case, with another tree, would take what this one leaves.  t: a row of tuning.def for them, or NULL.
 * The former case. */
static struct plan_case *add_cases(struct planner *pl, const struct strategy *row, const struct tuning *t,
                                   const char *name, struct formula guard, bool fallback)
{
    const struct problem *p = pl->plan->problem;
    const bool fixed_tree = state_determinism(p) != DET_ANY;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    plan_case_row(c, t);
    plan_lighten(p, c);
    c->aligned = c->tunable[TN_VECTOR] > 1;
    reduce_usual(pl, c);
    choose_items(c);
    choose_bulk(pl, c);
    choose_staged(pl, c);
    struct formula aligned = { 0 };
    const bool guarded = access_aligned_guard(p, c->tunable[TN_VECTOR], fixed_tree, &aligned);
    if (!guarded)
        return c;
    c->code.guard = f_and(guard, aligned);
    if (!fallback && !fixed_tree)
        return c;
    struct plan_case *u = plan_case_add(pl, row, arena_printf(&pl->s->arena, "%s_unaligned", name), guard);
    plan_case_row(u, t);
    plan_lighten(p, u);
    plan_min_blocks(pl, u); /* the bound of a row is for loads of whole vectors */
    u->aligned = false;
    u->tunable[TN_ITEMS] = c->tunable[TN_ITEMS];
    reduce_usual(pl, u);
    if (!fixed_tree && state_commutative(p) && !u->overridden[TN_VECTOR]) {
        u->tunable[TN_ITEMS] =
            c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] < 8 ? c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] : 8;
        u->tunable[TN_VECTOR] = 1;
        u->tunable_from[TN_VECTOR] = "elements one by one";
    }
    u->tunable[TN_COPY_STAGES] = 0;
    if (!state_commutative(p))
        u->tunable[TN_SMEM_TRANSPOSE] = 0;
    return c;
}

/* A pinned strategy alone must take every launch; otherwise reduce.last_block takes what the others leave. */
static bool pinned(struct planner *pl, const struct strategy *row, const char *name)
{
    if (!plan_pinned(pl))
        return false;
    add_cases(pl, row, NULL, name, (struct formula){ 0 }, true);
    return true;
}

/* A little more than what one block takes: a cluster. */
static void add_cluster(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const char *why;
    int64_t lo, hi;
    plan_count_range(pl, &lo, &hi);
    if (hi <= REDUCE_BLOCK_LIMIT || lo > CLUSTER_LIMIT ||
        !reduce_clusters_fit(p, &pl->plan->device, &pl->s->arena, &why))
        return;
    const char *variant = !strcmp(tuning_variant(p), "several") ? "several cluster" : "cluster";
    const struct tuning *t = tuning_lookup(row->name, variant, pl->plan->device.sm);
    const struct formula n = access_count(p);
    const struct formula above = f_le(REDUCE_BLOCK_LIMIT + 1, n), below = f_le(n, CLUSTER_LIMIT);
    add_cases(pl, row, t, "medium", f_and(above, below), false);
}

void reduce_block_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    int64_t lo, hi;
    plan_count_range(pl, &lo, &hi);
    if (pinned(pl, row, "block"))
        return;
    const struct formula n = access_count(p), always = { 0 };
    const bool two = state_commutative(p) && hi > SHORT_LIMIT; /* with more threads above that */
    const int first = two ? SHORT_LIMIT : REDUCE_BLOCK_LIMIT;
    if (lo <= first)
        add_cases(pl, row, NULL, "small", hi <= first ? always : f_le(n, first), false);
    if (two && lo <= REDUCE_BLOCK_LIMIT)
        add_cases(pl, row, tuning_lookup(row->name, "long", pl->plan->device.sm), "small_wide",
                  hi <= REDUCE_BLOCK_LIMIT ? always : f_le(n, REDUCE_BLOCK_LIMIT), false);
    add_cluster(pl, row);
}

/* What is not small: reduce.gather for commutative operators; ordered ones lose more by the registers that its ticket
 * takes than the shorter end gives back, and have reduce.last_block. */
void reduce_plan_large(struct planner *pl, const struct strategy *row, bool chosen)
{
    if (pinned(pl, row, "grid") || !chosen)
        return;
    add_cases(pl, row, NULL, "large", (struct formula){ 0 }, true);
}

/* A row of tuning.def that is a case of its own. */
static void plan_middle(struct planner *pl, const struct strategy *row, const struct tuning *t)
{
    enum { FEW_FIELDS = 4 /* beside a tile, in registers of two blocks */ };
    const struct problem *p = pl->plan->problem;
    const struct formula n = access_count(p);
    struct formula guard = { 0 };
    int64_t lo, hi;
    plan_count_range(pl, &lo, &hi);
    if (plan_pinned(pl) || hi <= REDUCE_BLOCK_LIMIT || hi < t->from || lo > t->to ||
        strcmp(t->variant, tuning_variant(p)) != 0 || (t->vector && access_vector_width(p) != t->vector))
        return;
    if (lo < t->from)
        guard = f_le(t->from, n);
    if (hi > t->to)
        guard = f_and(guard, f_le(n, t->to));
    struct plan_case *c = add_cases(pl, row, t, t->size, guard, false);
    if (state_fields(p, NULL) > FEW_FIELDS || plan_divides_numbers(p))
        plan_min_blocks(pl, c);
}

void reduce_gather_plan(struct planner *pl, const struct strategy *row)
{
    const struct tuning *t;
    for (int i = 0; (t = tuning_case(row->name, i, pl->plan->device.sm)); i++)
        plan_middle(pl, row, t);
    reduce_plan_large(pl, row, state_commutative(pl->plan->problem));
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static bool check_bulk(struct planner *pl, const struct plan_case *c)
{
    enum { BARRIERS = 128 };
    const unsigned ring = WITH_COPY_STAGES | WITH_THREADS | WITH_ITEMS | WITH_VECTOR | WITH_COMBINE;
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    if (d->sm < 90)
        return plan_contradiction(pl, c, WITH_COPY_STAGES, "bulk copies need sm_90");
    if (c->tunable[TN_SMEM_TRANSPOSE])
        return plan_contradiction(pl, c, WITH_COPY_STAGES | WITH_SMEM_TRANSPOSE,
                                  "inputs come through bulk copies or through the transpose, not both");
    /* The case for other addresses has no ring, and deals its vectors out to threads in another order. */
    if (state_commutative(p) && !c->tunable[TN_OVER_THREADS] && state_determinism(p) != DET_ANY)
        return plan_contradiction(pl, c, WITH_COPY_STAGES | WITH_OVER_THREADS,
                                  "bulk copies make the tree depend on where arrays begin; `determinism` asks for "
                                  "the same bits anywhere");
    if (!bulk_aligned(p, c))
        return plan_contradiction(pl, c, WITH_COPY_STAGES | WITH_VECTOR,
                                  "bulk copies take vectors of 16 bytes of aligned arrays of scalars, of one width");
    if (c->tunable[TN_THREADS] / 32 * c->tunable[TN_COPY_STAGES] > BARRIERS || window_bytes(p, c) >= 1 << 20)
        return plan_contradiction(pl, c, ring, "a block has at most 128 stages");
    if (ring_bytes(p, c) > d->shared_per_block)
        return plan_contradiction(pl, c, ring,
                                  arena_printf(&pl->s->arena,
                                               "the rings take %d bytes of shared memory; a block of %s has at most %d",
                                               ring_bytes(p, c), d->arch, d->shared_per_block));
    return true;
}

/* Tunables that go together: whole warps, a tile that fits registers, a transpose that fits static shared memory. */
bool reduce_check_tunables(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (c->tunable[TN_THREADS] % 32)
        return plan_contradiction(pl, c, WITH_THREADS, "threads must be a multiple of 32");
    if (c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > ITEMS_MAX)
        return plan_contradiction(pl, c, WITH_ITEMS | WITH_VECTOR, "a thread holds at most 64 elements");
    if (c->tunable[TN_VECTOR] > access_vector_width(p) || (c->tunable[TN_VECTOR] & (c->tunable[TN_VECTOR] - 1)))
        return plan_contradiction(pl, c, WITH_VECTOR,
                                  "the vector must be a power of two, no wider than 16 bytes of the widest array");
    if (!reduce_check_space(pl, c))
        return false;
    if (c->tunable[TN_COPY_STAGES])
        return check_bulk(pl, c);
    if (!c->tunable[TN_SMEM_TRANSPOSE])
        return true;
    const unsigned staged = WITH_SMEM_TRANSPOSE | WITH_COPY_STAGES, tile = WITH_THREADS | WITH_ITEMS | WITH_VECTOR;
    if (state_commutative(p) || has_structures(p))
        return plan_contradiction(pl, c, staged, "the transpose is for ordered operators on arrays of scalars");
    return reduce_tile_bytes(p, c) <= STAGING_MAX ||
           plan_contradiction(pl, c, staged | tile, "the transpose takes more than 40960 bytes");
}

/* The arguments after those of the problem: how many points, and what comes before the first vector boundary. */
struct prog_kernel *reduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    const struct problem *p = pl->plan->problem;
    const int vector = c->tunable[TN_VECTOR];
    struct prog_kernel *k = plan_kernel(pl, c, suffix);
    const struct formula count = access_count(p);
    const bool shifted = c->aligned && state_determinism(p) == DET_ANY;
    const struct formula head = shifted ? access_head(p, vector) : f_const(0);
    plan_value_arg(k, VAL_COUNT, TY_I64, count);
    if (!state_commutative(p)) {
        /* Windows begin at a boundary, `lead` places before the first element. */
        plan_value_arg(k, VAL_LEAD, TY_I32, head.n == 1 ? head : f_mod(f_sub(vector, head), vector));
        return k;
    }
    const struct formula body = head.n == 1 ? count : f_sub(count, head);
    plan_value_arg(k, VAL_HEAD, TY_I32, head);
    plan_value_arg(k, VAL_VECTORS, TY_I64, vector == 1 ? body : f_div(body, vector));
    return k;
}

bool reduce_block_build(struct planner *pl, struct plan_case *c)
{
    const int cluster = c->tunable[TN_CLUSTER] > 1 ? c->tunable[TN_CLUSTER] : 0;
    const char *why;
    struct prog_kernel *k = reduce_kernel(pl, c, "");
    k->cluster = cluster;
    struct prog_step *step = plan_launch(pl, c, 0, f_const(cluster ? cluster : 1));
    step->nonportable_cluster = cluster > 8;
    if (cluster && !reduce_clusters_fit(pl->plan->problem, &pl->plan->device, &pl->s->arena, &why))
        return plan_contradiction(pl, c, WITH_CLUSTER, why);
    return reduce_check_tunables(pl, c);
}

bool reduce_gather_build(struct planner *pl, struct plan_case *c)
{
    const struct formula blocks = reduce_grid(pl, c);
    reduce_kernel(pl, c, "");
    plan_words_arg(pl, c, blocks, 0);
    plan_launch(pl, c, 0, blocks);
    return reduce_check_tunables(pl, c);
}
