/* SPDX-License-Identifier: Apache-2.0 */
/* supported.c - what cannot be split, with located messages. */
#include "derive.h"

enum { ARGUMENTS_MORE = 8 }; /* of a stage, beside the problem's: params, number of states, states */

struct look {
    struct ptxgen_session *s;
    struct dist_split *sp;
    bool good;
    unsigned modes; /* boundaries along the split dimension of what reads neighbours there, as bits */
};

static const char *name_of(const struct dist_split *sp) { return sp->problem->size[sp->size].name; }

static bool refuse(struct ptxgen_session *s, struct span at, const char *text, const char *name, const char *hint)
{
    struct diag *m = diag_error(&s->diags, D_DISTRIBUTED, at, text, name);
    if (hint)
        diag_hint(&s->diags, m, "%s", hint);
    return false;
}

bool dist_own_place(const struct dist_split *sp, const struct expr *at, int k)
{
    return at->arg[k]->kind == EX_INDEX && at->arg[k]->which == sp->axis &&
           sp->problem->input[at->which].array.dim[k].size == sp->size;
}

static void neighbour(const struct expr *e, void *user)
{
    struct look *l = user;
    if (!l->good || (e->kind != EX_INPUT && e->kind != EX_GATHER && e->kind != EX_AT))
        return;
    const struct input *in = &l->sp->problem->input[e->which];
    for (int d = 0; e->kind == EX_AT && d < in->array.rank; d++)
        if (in->array.dim[d].size == l->sp->size && !dist_own_place(l->sp, e, d))
            l->good = refuse(l->s, e->at, "'%s' is read at places that may lie on any rank", in->array.name,
                             "split a dimension that the array does not have");
    if (e->kind == EX_AT)
        return;
    int64_t offset = 0;
    bool across = false;
    for (int d = 0; d < in->array.rank; d++)
        if (in->axis[d] == l->sp->axis && (e->kind == EX_GATHER || (d < e->noffsets && e->offset[d]))) {
            across = true;
            offset = e->kind == EX_GATHER ? 0 : e->offset[d];
            l->modes |= 1u << in->boundary[d].mode;
        }
    l->sp->before = -offset > l->sp->before ? -offset : l->sp->before;
    l->sp->after = offset > l->sp->after ? offset : l->sp->after;
    if (across && e->kind == EX_GATHER)
        l->good = refuse(l->s, e->at, "neighbours at offsets that are given at launch may lie on any rank along '%s'",
                         name_of(l->sp), "split a dimension that the array does not have");
}

/* Finds how far neighbours are. */
static bool fits_neighbours(struct ptxgen_session *s, struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    struct look l = { s, sp, true, 0 };
    for (int i = 0; i < p->nlets; i++)
        expr_walk(p->let[i].value, neighbour, &l);
    for (int d = 0; d < p->nby; d++)
        expr_walk(p->by[d], neighbour, &l);
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            expr_walk(p->reduction[r].map[f], neighbour, &l);
    for (int o = 0; o < p->noutputs; o++)
        output_walk(&p->output[o], neighbour, &l);
    sp->interior = (l.modes & 1u << BOUND_INTERIOR) != 0;
    sp->wraps = (l.modes & 1u << BOUND_WRAP) != 0;
    sp->only_wraps = l.modes == 1u << BOUND_WRAP;
    if (l.good && sp->interior && l.modes != 1u << BOUND_INTERIOR)
        return refuse(s, p->at, "inputs with the boundary `interior` along '%s' cannot be mixed with others",
                      name_of(sp), "split another dimension, or give all inputs one boundary along this one");
    for (int r = 0; r < p->nreductions && l.good && sp->before + sp->after > 0; r++)
        if (!p->reduction[r].op->identity[0])
            return refuse(s, p->reduction[r].at,
                          "beside neighbours along '%s', an operator needs an identity to be distributed", name_of(sp),
                          NULL);
    return l.good;
}

/* Outputs whose places or values depend on more than a rank knows of its part. */
static bool fits_outputs(struct ptxgen_session *s, const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    for (int o = 0; o < p->noutputs; o++) {
        const enum output_role role = p->output[o].role;
        if (output_is_placed(&p->output[o]))
            return refuse(s, p->output[o].at, "elements of one rank may belong anywhere, along '%s' as elsewhere",
                          name_of(sp), "run it on one device");
        if (sp->combined && (role == OUT_KEPT || role == OUT_MAPPED))
            return refuse(s, p->output[o].at,
                          role == OUT_KEPT ? "where kept elements lie depends on other ranks along '%s'"
                                           : "results along '%s' are known after all ranks, too late for each element",
                          name_of(sp), "split a dimension that is not combined");
    }
    return true;
}

/* Arrays are whole along every dimension but the split one, which has their ranks' elements; elements: each read or written
 * with its own, as far as the array says. */
static bool fits_array(struct ptxgen_session *s, const struct dist_split *sp, const struct prog_array *a, bool elements,
                       struct span at)
{
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d].size == sp->size && (a->dim[d].add || !elements))
            return refuse(s, at,
                          elements
                              ? "'%s' is shorter than the split dimension, so its elements lie on no rank of their own"
                              : "'%s' is read at places that may lie on any rank",
                          a->name, "split another dimension");
    return true;
}

static bool fits_arrays(struct ptxgen_session *s, const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = true;
    for (int i = 0; i < p->ninputs && good; i++)
        good = fits_array(s, sp, &p->input[i].array, p->input[i].role == ROLE_ELEMENT || p->input[i].role == ROLE_TABLE,
                          p->input[i].at);
    for (int i = 0; i < p->noutputs && good; i++)
        good = fits_array(s, sp, &p->output[i].array, true, p->output[i].at);
    return good;
}

bool dist_exact(const struct problem *p)
{
    bool all = true;
    for (int r = 0; r < p->nreductions; r++)
        all &= p->reduction[r].op->exact;
    return all;
}

/* Is the split dimension the first of all arrays that have it, so that a piece of them is consecutive in memory? */
static bool leads(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = true;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = i < p->ninputs ? &p->input[i].array : &p->output[i - p->ninputs].array;
        for (int d = 1; d < a->rank; d++)
            good &= a->dim[d].size != sp->size;
    }
    return good;
}

/* Ordered operators: the elements of a rank must follow each other in the row-major order of what is combined. */
static bool in_order(struct ptxgen_session *s, const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool first = true;
    for (int i = 0; i < sp->axis; i++)
        first &= !dist_reduced(p, i);
    for (int r = 0; r < p->nreductions && !first; r++)
        if (p->kind == KIND_SCAN || !p->reduction[r].op->commutative)
            return refuse(
                s, p->reduction[r].at,
                p->kind == KIND_SCAN
                    ? "a scan goes through the ranks one after the other, but '%s' is not the first scanned dimension"
                    : "this operator is ordered, and '%s' is not the first dimension that is reduced",
                name_of(sp), "split the first of them, or one that is kept");
    return true;
}

/* Tables of bins: each rank has all bins, and in a fold they are dimensions like the kept ones. */
static bool fits_bins(struct ptxgen_session *s, const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    int rank = 1 + p->nby;
    for (int i = 0; i < p->rank; i++)
        rank += !p->space[i].reduced;
    for (int d = 0; d < p->nby; d++)
        if (p->bin[d].size == sp->size)
            return refuse(s, p->output[0].at, "elements of one rank may belong to any bin, and the bins are along '%s'",
                          name_of(sp), "give the bins a dimension of their own");
    if (p->nby && sp->combined && rank > SPACE_MAX)
        return refuse(s, p->at,
                      "not yet: more than 2 dimensions of results with `by`, where '%s', which is combined, is split",
                      name_of(sp), "split a dimension that is kept");
    return true;
}

/* Blocks that are dealt out: each is consecutive in memory, and computed by itself. */
static bool fits_blocks(struct ptxgen_session *s, const struct dist_split *sp)
{
    if (sp->block && sp->before + sp->after > 0)
        return refuse(s, sp->problem->at, "neighbours along '%s' are on other ranks for each block that is dealt out",
                      name_of(sp), "give each rank consecutive elements");
    if (sp->block && !leads(sp))
        return refuse(s, sp->problem->at,
                      "blocks that are dealt out need '%s' to be the first dimension of every array that has it",
                      name_of(sp), "give each rank consecutive elements");
    return true;
}

bool dist_supported(struct ptxgen_session *s, struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    const int segments = p->offsets >= 0 ? p->offsets : p->flags;
    const bool depends = sp->combined && p->determinism != DET_ANY && !dist_exact(p);
    sp->pieces = sp->block || (depends && leads(sp));
    if (segments >= 0)
        return refuse(s, p->input[segments].at, "segments between %s may cross ranks, which is not supported",
                      p->offsets >= 0 ? "offsets" : "flags", NULL);
    if (p->key)
        return refuse(s, p->at, "not yet: a scan with `by` on several ranks", NULL, NULL);
    if (p->ninputs + p->noutputs + p->nparams + p->nsizes + ARGUMENTS_MORE > PROBLEM_ARGS_MAX)
        return refuse(s, p->at, "with what ranks need, '%s' has too many inputs, outputs, params and dimensions",
                      p->name, NULL);
    if (depends && p->determinism == DET_DEVICE && !sp->pieces)
        return refuse(s, p->at, "`determinism: device` needs '%s' to be the first dimension of every array that has it",
                      name_of(sp), "`determinism: run` gives the same bits for the same parts");
    return fits_bins(s, sp) && fits_arrays(s, sp) && fits_outputs(s, sp) && fits_neighbours(s, sp) &&
           fits_blocks(s, sp) && (!sp->combined || in_order(s, sp));
}
