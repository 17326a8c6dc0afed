/* SPDX-License-Identifier: Apache-2.0 */
/* derive_joined.c - a stencil on the whole part, whose kernel takes rows of other ranks itself (src/llvmgen/stencil/joined.c).
 *
 * Beyond the whole, the user's boundaries hold: a part that begins or ends the whole has no rank there.
 */
#include <string.h>

#include "derive_impl.h"
#include "lower/access.h"
#include "lower/stencil/stencil.h"
#include "lower/stencil/strip.h"

enum { ADDRESSES = 3 };

/* Do the array's dimensions follow the space's? */
static bool in_order(const struct problem *p, const struct prog_array *a, const int *axis)
{
    bool good = a->rank == p->rank;
    for (int k = 0; k < a->rank; k++)
        good &= axis[k] == k;
    return good;
}

/* One input is read beyond the part; its elements are whole words. */
static bool fits_inputs(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    int n = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const struct prog_array *a = &p->input[i].array;
        const struct reach r = stencil_input_reach(p, i);
        bool has = false;
        for (int k = 0; k < a->rank; k++)
            has |= a->dim[k].size == sp->size;
        if (has && (!in_order(p, a, p->input[i].axis) || !access_input_direct(p, i)))
            return false;
        if (!has || (r.lo[0] == 0 && r.hi[0] == 0))
            continue;
        n++;
        if (-r.lo[0] != sp->before || r.hi[0] != sp->after || *a->field[0].name || (a->stride != 4 && a->stride != 8))
            return false;
    }
    return n == 1;
}

bool dist_joins(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = p->kind == KIND_STENCIL && !sp->combined && sp->axis == 0 && p->rank >= 2 && sp->before > 0 &&
                sp->after > 0 && !sp->interior && !p->strategy && !p->ntunables && !p->dynamic && !p->sums;
    for (int o = 0; o < p->noutputs; o++)
        good &= p->output[o].role == OUT_ELEMENT && in_order(p, &p->output[o].array, p->output[o].axis);
    return good && fits_inputs(sp);
}

/* Only the input that is fed back has rows on other ranks: ghosts of several steps need all that their points read. */
bool dist_joins_steps(const struct dist_split *sp, struct arena *a)
{
    const struct problem *p = sp->problem;
    bool good = sp->stage[STAGE_STEPS].problem && sp->stage[STAGE_JOINED].problem && p->nfeedback == 1 &&
                p->feedback[0].input == stencil_joined_input(p) && !strip_misfit(p, a);
    for (int i = 0; i < p->ninputs && good; i++)
        for (int k = 0; k < p->input[i].array.rank; k++)
            good &= p->input[i].array.dim[k].size != sp->size || i == p->feedback[0].input;
    return good;
}

int dist_joined_steps(const struct dist_split *sp)
{
    return sp->stage[STAGE_JOINED_STEPS].problem ? stencil_joined_steps(sp->problem) : 0;
}

void derive_joined(struct derive *d, struct problem *p)
{
    static const char *const names[ADDRESSES] = { "dist_window", "dist_before", "dist_after" };
    struct prog_param *param = arena_new(d->a, struct prog_param, p->nparams + ADDRESSES);
    memcpy(param, p->param, sizeof *param * (size_t)p->nparams);
    for (int i = 0; i < ADDRESSES; i++)
        param[p->nparams++] = (struct prog_param){ names[i], TY_I64, false, { 0 } };
    p->param = param;
    p->joins = true;
    p->strategy = p->iterated ? "stencil.temporal" : "stencil.multi_write";
}
