/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_space.c - the space of whole-array reductions after Tangram (Garcia de Gonzalo et al., CGO 2019): how elements
 * are distributed over blocks and threads, how the threads of a block combine, and how the blocks do.
 *
 *   reduce.atomic       every block updates one accumulator per reduction atomically; the last one reads and resets it,
 * so that no launch has to initialise anything reduce.two_kernel   a second kernel of one block reduces the partials
 *
 * and, for these, reduce.block and reduce.last_block, the tunables `combine`, `over_blocks` and `over_threads`.  None
 * of it is chosen by default.
 */
#include "reduce.h"

enum { SHARED_MAX = 40 * 1024 };

/* ---- what is legal ----------------------------------------------------------------------------------------------- */

/* Atomic accumulation reorders: every operator must commute, have a neutral element, and an instruction or a word for
 * its state. */
static bool atomic_states(const struct problem *p, struct arena *a, const char **why)
{
    if (!state_commutative(p)) {
        *why = "atomic operations keep no order, and the operator does not commute";
        return false;
    }
    if (!state_pad(p)) {
        *why = "atomic operations need an accumulator to begin with, and the operator has no identity";
        return false;
    }
    if (state_determinism(p) != DET_ANY) {
        *why = "atomic operations combine in any order; `determinism` asks for the same bits on every run";
        return false;
    }
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

static int state_bytes(const struct problem *p)
{
    enum ty type[32];
    int bytes = 0;
    for (int f = 0, n = state_fields(p, type); f < n; f++)
        bytes += ty_bytes(type[f]);
    return bytes;
}

bool reduce_check_space(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const char *why = NULL;
    const int combine = c->tunable[TN_COMBINE];
    if (!state_commutative(p) && (combine || c->tunable[TN_OVER_BLOCKS] || c->tunable[TN_OVER_THREADS]))
        return reduce_contradiction(pl, c, "an ordered operator has one distribution and one tree");
    if (combine == COMBINE_SHUFFLE)
        return true;
    if (!state_pad(p))
        return reduce_contradiction(
            pl, c, "without an identity only `combine` shuffle leaves out threads that have no element");
    if ((combine == COMBINE_SHARED_ATOMIC_ALL || combine == COMBINE_SHARED_ATOMIC_LEADERS ||
         combine == COMBINE_TREE_LEADERS) &&
        !atomic_states(p, &pl->s->arena, &why))
        return reduce_contradiction(pl, c, why);
    if (combine == COMBINE_REDUX && (pl->plan->device.sm < 80 || !has_redux(p)))
        return reduce_contradiction(
            pl, c, "redux.sync takes integers of 32 bits and add, min, max, and, or, xor, on sm_80 or newer");
    if ((combine == COMBINE_TREE || combine == COMBINE_TREE_LEADERS) &&
        c->tunable[TN_THREADS] * state_bytes(p) > SHARED_MAX)
        return reduce_contradiction(pl, c,
                                    "a tree in shared memory of all threads' states takes more than 40960 bytes");
    return true;
}

/* ---- reduce.atomic ----------------------------------------------------------------------------------------------- */

bool reduce_atomic_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return reduce_whole_array(p, a, why) && atomic_states(p, a, why);
}

void reduce_atomic_plan(struct planner *pl, const struct strategy *row) { reduce_plan_large(pl, row, false); }

bool reduce_atomic_build(struct planner *pl, struct plan_case *c)
{
    struct prog_kernel *k = reduce_kernel(pl, c, "");
    reduce_buffer_arg(pl, c, k, "counter", REGION_CONTROL, f_const(4));
    reduce_buffer_arg(pl, c, k, "accumulator", REGION_CONTROL, f_const((int64_t)8 * pl->plan->problem->nreductions));
    plan_launch(pl, c, 0, reduce_grid(pl, c));
    return reduce_check_tunables(pl, c);
}

/* ---- reduce.two_kernel ------------------------------------------------------------------------------------------- */

bool reduce_two_kernel_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return reduce_whole_array(p, a, why);
}

void reduce_two_kernel_plan(struct planner *pl, const struct strategy *row) { reduce_plan_large(pl, row, false); }

bool reduce_two_kernel_build(struct planner *pl, struct plan_case *c)
{
    static const char *const suffix[] = { "totals", "finish" };
    const struct formula blocks = reduce_grid(pl, c);
    for (int i = 0; i < 2; i++)
        plan_value_arg(reduce_kernel(pl, c, suffix[i]), "blocks", TY_I32, blocks);
    enum ty type[32];
    const int fields = state_fields(pl->plan->problem, type);
    for (int f = 0; f < fields; f++) {
        const char *name = arena_printf(&pl->s->arena, "partial%d", f);
        const int buffer = plan_buffer(pl, c, name, REGION_SCRATCH, f_mul(blocks, f_const(ty_bytes(type[f]))));
        for (int i = 0; i < 2; i++)
            plan_arg(&c->code.kernel[i], (struct prog_arg){ .kind = ARG_BUFFER, .name = name, .index = buffer });
    }
    plan_launch(pl, c, 0, blocks);
    plan_launch(pl, c, 1, f_const(1));
    return reduce_check_tunables(pl, c);
}

int reduce_tile_bytes(const struct problem *p, const struct plan_case *c)
{
    int bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i))
            bytes += c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] * p->input[i].array.stride;
    return bytes;
}
