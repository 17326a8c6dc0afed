/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - the space of whole-array reductions after Tangram (Garcia de Gonzalo et al., CGO 2019): how elements
 * are distributed over blocks and threads, how the threads of a block combine, and how the blocks do.
 *
 *   reduce.atomic      every block updates one accumulator per reduction atomically; the last one reads and resets it,
 *                      so that no launch has to initialise anything
 *   reduce.two_kernel  a second kernel of one block reduces the partials
 *   reduce.last_block  the last block to finish does (Futhark's SegRed)
 *
 * and, for these and reduce.block, the tunables `combine`, `over_blocks` and `over_threads`; for these alone `cluster`:
 * the blocks of a thread-block cluster combine first, and its first block alone takes part in what the grid does
 * (sm_90).  None of it is chosen by default.
 */
#include "reduce.h"

enum { SHARED_MAX = 40 * 1024 };

/* ---- what is legal ----------------------------------------------------------------------------------------------- */

/* Atomic accumulation reorders: every operator must commute, have a neutral element, and an instruction or a word for
 * its state. */
static bool atomic_states(const struct problem *p, struct arena *a, const char **why)
{
    const struct misfit m[] = {
        { !state_commutative(p), "atomic operations keep no order, and the operator does not commute" },
        { !state_pad(p), "atomic operations need an accumulator to begin with, and the operator has no identity" },
        { state_determinism(p) != DET_ANY,
          "atomic operations combine in any order; `determinism` asks for the same bits on every run" },
        { 0 }
    };
    if (!plan_takes(why, m))
        return false;
    for (int r = 0; r < p->nreductions; r++)
        if (op_native(p->reduction[r].op) == NATIVE_NONE && !op_packed_bytes(p->reduction[r].op)) {
            *why = arena_printf(a, "the state of '%s' is wider than the 8 bytes that an atomic operation updates",
                                p->reduction[r].name);
            return false;
        }
    return true;
}

static bool has_redux(const struct problem *p)
{
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        if (op_native(op) == NATIVE_NONE || ty_is_float(op->field[0]) || ty_bytes(op->field[0]) != 4)
            return false;
    }
    return true;
}

/* How often a block keeps a total of each of its warps, and room for few small ones with tickets and barriers. */
enum { TOTALS = 3, TOTALS_MIN = 2048 };

int reduce_totals_bytes(const struct problem *p, const struct plan_case *c)
{
    const int combine = c->tunable[TN_COMBINE], tree = combine == COMBINE_TREE || combine == COMBINE_TREE_LEADERS;
    const int totals = TOTALS * 32 * (state_bytes(p) + 4); /* and which warps have any */
    return (totals > TOTALS_MIN ? totals : TOTALS_MIN) + tree * c->tunable[TN_THREADS] * state_bytes(p);
}

bool reduce_check_space(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const char *why = NULL;
    const int combine = c->tunable[TN_COMBINE];
    const unsigned space = WITH_COMBINE | WITH_OVER_BLOCKS | WITH_OVER_THREADS;
    if (!state_commutative(p) && (combine || c->tunable[TN_OVER_BLOCKS] || c->tunable[TN_OVER_THREADS]))
        return plan_contradiction(pl, c, space, "an ordered operator has one distribution and one tree");
    if (combine == COMBINE_SHUFFLE)
        return true;
    if (!state_pad(p))
        return plan_contradiction(pl, c, WITH_COMBINE,
                                  "without an identity only `combine` shuffle leaves out threads that have no element");
    if ((combine == COMBINE_SHARED_ATOMIC_ALL || combine == COMBINE_SHARED_ATOMIC_LEADERS ||
         combine == COMBINE_TREE_LEADERS) &&
        !atomic_states(p, &pl->s->arena, &why))
        return plan_contradiction(pl, c, WITH_COMBINE, why);
    if (combine == COMBINE_REDUX && (pl->plan->device.sm < 80 || !has_redux(p)))
        return plan_contradiction(
            pl, c, WITH_COMBINE,
            "redux.sync takes integers of 32 bits and add, min, max, and, or, xor, on sm_80 or newer");
    if ((combine == COMBINE_TREE || combine == COMBINE_TREE_LEADERS) &&
        c->tunable[TN_THREADS] * state_bytes(p) > SHARED_MAX)
        return plan_contradiction(pl, c, WITH_COMBINE | WITH_THREADS,
                                  "a tree in shared memory of all threads' states takes more than 40960 bytes");
    return true;
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

static bool clusters(const struct plan_case *c) { return c->tunable[TN_CLUSTER] > 1; }

static bool check_clusters(struct planner *pl, const struct plan_case *c)
{
    enum { PORTABLE = 8 };
    const char *why = NULL;
    if (!clusters(c))
        return true;
    if (!reduce_clusters_fit(pl->plan->problem, &pl->plan->device, &pl->s->arena, &why))
        return plan_contradiction(pl, c, WITH_CLUSTER, why);
    return c->tunable[TN_CLUSTER] <= PORTABLE ||
           plan_contradiction(pl, c, WITH_CLUSTER,
                              "not every device with clusters holds a cluster of more than 8 blocks");
}

/* Launch the first kernel, whose blocks combine by clusters first where the tunable says so.  False after a diagnostic. */
static bool launch_grid(struct planner *pl, struct plan_case *c, struct formula blocks)
{
    plan_launch(pl, c, 0, blocks);
    if (!reduce_check_tunables(pl, c) || !check_clusters(pl, c))
        return false;
    if (clusters(c))
        ((struct prog_kernel *)c->code.kernel)[0].cluster = c->tunable[TN_CLUSTER];
    return true;
}

/* What every block leaves, or every cluster. */
static void partials_args(struct planner *pl, struct plan_case *c, struct formula blocks)
{
    plan_partials_arg(pl, c, 0, clusters(c) ? f_div(blocks, c->tunable[TN_CLUSTER]) : blocks, 1);
}

/* ---- reduce.atomic ----------------------------------------------------------------------------------------------- */

bool reduce_atomic_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return reduce_whole_array(p, why) && atomic_states(p, a, why);
}

void reduce_atomic_plan(struct planner *pl, const struct strategy *row) { reduce_plan_large(pl, row, false); }

bool reduce_atomic_build(struct planner *pl, struct plan_case *c)
{
    reduce_kernel(pl, c, "");
    plan_buffer_arg(pl, c, 0, BUF_COUNTER, REGION_CONTROL, f_const(4));
    plan_buffer_arg(pl, c, 0, BUF_ACCUMULATOR, REGION_CONTROL, f_const((int64_t)8 * pl->plan->problem->nreductions));
    return launch_grid(pl, c, reduce_grid(pl, c));
}

/* ---- reduce.two_kernel ------------------------------------------------------------------------------------------- */

FITS_WHAT(reduce_two_kernel, reduce_whole_array)

void reduce_two_kernel_plan(struct planner *pl, const struct strategy *row) { reduce_plan_large(pl, row, false); }

bool reduce_two_kernel_build(struct planner *pl, struct plan_case *c)
{
    static const char *const suffix[] = { "totals", "finish" };
    const struct formula blocks = reduce_grid(pl, c);
    for (int i = 0; i < 2; i++)
        plan_value_arg(reduce_kernel(pl, c, suffix[i]), VAL_BLOCKS, TY_I32, blocks);
    partials_args(pl, c, blocks);
    const bool fine = launch_grid(pl, c, blocks);
    plan_launch(pl, c, 1, f_const(1));
    return fine;
}

/* ---- reduce.last_block ------------------------------------------------------------------------------------------- */

FITS_WHAT(reduce_last_block, reduce_whole_array)

void reduce_last_block_plan(struct planner *pl, const struct strategy *row) { reduce_plan_large(pl, row, true); }

bool reduce_last_block_build(struct planner *pl, struct plan_case *c)
{
    const struct formula blocks = reduce_grid(pl, c);
    reduce_kernel(pl, c, "");
    plan_buffer_arg(pl, c, 0, BUF_COUNTER, REGION_CONTROL, f_const(4));
    partials_args(pl, c, blocks);
    return launch_grid(pl, c, blocks);
}

int reduce_tile_bytes(const struct problem *p, const struct plan_case *c)
{
    int bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i))
            bytes += c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] * p->input[i].array.stride;
    return bytes;
}
