/* SPDX-License-Identifier: Apache-2.0 */
/* strip.c - see strip.h. */
#include "strip.h"

#include "lower/access.h"
#include "base/arena.h"
#include "base/str.h"

static int reach_max(const struct problem *p) { return p->rank == 1 ? LINE_REACH_MAX : STRIP_REACH_MAX; }

int strip_reach(const struct problem *p)
{
    const struct reach r = stencil_space_reach(p);
    int64_t most = 1;
    for (int d = 0; d < p->rank; d++) {
        most = -r.lo[d] > most ? -r.lo[d] : most;
        most = r.hi[d] > most ? r.hi[d] : most;
    }
    const int furthest = reach_max(p);
    return most > furthest ? furthest + 1 : (int)most;
}

int strip_vector_of(const struct prog_array *a, int most)
{
    const int n = ACCESS_BYTES / a->stride;
    return n < 1 ? 1 : n > most ? most : n;
}

int strip_vector(const struct prog_array *a) { return strip_vector_of(a, STRIP_COLUMNS); }

struct formula strip_bases_aligned(const struct problem *p, int most, struct formula guard)
{
    uint64_t at[ACCESS_BYTES + 1] = { 0 };
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        if (a && !*a->field[0].name)
            at[strip_vector_of(a, most) * a->stride] |= f_pointer(i);
    }
    return f_and(guard, access_begin_at(at));
}

int strip_steps(const struct plan_case *c, int i)
{
    const int steps = c->tunable[TN_STEPS] >> i;
    return steps > 1 ? steps : 0;
}

struct strip_shape strip_shape(const struct plan_case *c, const struct problem *p, int steps)
{
    struct strip_shape s = {
        .steps = steps, .reach = strip_reach(p), .lines = 1, .warps = c->tunable[TN_THREADS] / 32
    };
    const int lost = steps * s.reach;
    s.places = 2 * s.reach + 1;
    /* rows that begin anywhere are read from a boundary before or after and lose what lies between; then they are
     * written from the boundary before on */
    s.halo = (lost + (c->aligned ? 0 : STRIP_COLUMNS) + STRIP_COLUMNS - 1) / STRIP_COLUMNS * STRIP_COLUMNS;
    s.useful = STRIP_WIDTH - 2 * s.halo;
    if (p->rank == 3) {
        s.lines = c->tunable[TN_ITEMS];
        s.height = s.lines * s.warps;
        s.useful_height = s.height - 2 * lost;
    }
    return s;
}

bool strip_wraps(const struct problem *p, int d)
{
    return p->input[p->feedback[0].input].boundary[d].mode == BOUND_WRAP;
}

bool strip_sees_lines(const struct problem *p, int input)
{
    const struct reach r = stencil_input_reach(p, input);
    return p->rank == 3 && (r.lo[1] < 0 || r.hi[1] > 0);
}

void strip_explain(const struct problem *p, const struct plan_case *c, struct str *out)
{
    const struct strip_shape s = strip_shape(c, p, c->tunable[TN_STEPS]);
    str_printf(out, "    halo           %d of the %d columns of a strip", 2 * s.halo, STRIP_WIDTH);
    if (s.height)
        str_printf(out, " and %d of the %d lines of a block", s.height - s.useful_height, s.height);
    str_printf(out, ", for %d steps\n", s.steps);
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

static bool reads_at_the_point(const struct problem *p, int input)
{
    const struct reach r = stencil_input_reach(p, input);
    for (int d = 0; d < p->input[input].array.rank; d++)
        if (r.lo[d] < 0 || r.hi[d] > 0)
            return false;
    return true;
}

static const char *input_misfit(const struct problem *p, int i)
{
    const struct input *in = &p->input[i];
    if (in->role != ROLE_ELEMENT)
        return "it takes arrays of elements";
    if (in->placed)
        return "an array is read at computed places";
    if (stencil_feeds(p, i) < 0)
        return reads_at_the_point(p, i) ? NULL : "an array that is not fed back is read beside the point";
    if (!access_input_direct(p, i) || *in->array.field[0].name)
        return "an array that is fed back is a structure or does not have all axes";
    for (int d = 0; d < p->rank; d++)
        if ((in->boundary[d].mode == BOUND_WRAP) != strip_wraps(p, d))
            return "of the arrays that are fed back some wrap around and some do not";
    return NULL;
}

/* Lines of planes beside the middle one would have to go through shared memory too. */
static void count_skewed(const struct expr *e, void *user)
{
    if (e->kind == EX_INPUT && e->noffsets == 3 && e->offset[0] && e->offset[1])
        ++*(int *)user;
}

const char *strip_misfit(const struct problem *p, struct arena *a)
{
    int skewed = 0, arrays = p->nfeedback;
    if (!p->iterated)
        return "there are no time steps";
    if (p->dynamic || stencil_linear(p))
        return "it takes known offsets and reductions that commute";
    if (p->nfeedback > STRIP_FED_MAX)
        return arena_printf(a, "it feeds back at most %d arrays", STRIP_FED_MAX);
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == AT_POINT && (stencil_fed(p, o) < 0 || !access_output_direct(p, o)))
            return "an output is not fed back";
    for (int i = 0; i < p->ninputs; i++) {
        const char *why = input_misfit(p, i);
        if (why)
            return why;
        arrays += access_input_direct(p, i);
    }
    if (arrays > STRIP_ARRAYS_MAX)
        return arena_printf(a, "there are more than %d arrays", STRIP_ARRAYS_MAX);
    stencil_each_read(p, count_skewed, &skewed);
    if (skewed > 0)
        return "an offset has both a plane and a line";
    if (strip_reach(p) > reach_max(p))
        return arena_printf(a, "offsets reach further than %d", reach_max(p));
    return NULL;
}
