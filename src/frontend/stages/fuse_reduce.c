/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_reduce.c - reductions of everything join the stages that write what they read.
 *
 * A map or stencil can reduce what it writes as it writes it (`reductions` beside a stencil).  So a later stage that
 * reduces all elements of its outputs, each where the point lies, needs no pass of its own:
 *
 *   candidates   reductions of everything without segments, in the order of the program
 *   writer       the last stage that writes an input of the reduction; the other inputs are there before
 *   left out     where the writer would lose a kernel made for it, or where one order of the elements is asked for
 */
#include "stages_impl.h"

static bool is_candidate(const struct part *p)
{
    const struct problem *q = p->problem;
    bool is = p->into < 0 && q->kind == KIND_REDUCE && !q->nby && q->offsets < 0 && !ynode_get(p->root, "init");
    for (int i = 0; i < q->rank; i++)
        is &= q->space[i].reduced;
    for (int i = 0; i < q->noutputs; i++)
        is &= q->output[i].role == OUT_SEGMENT;
    return is;
}

static bool writes(const struct part *p, const char *array)
{
    for (int i = 0; i < p->problem->noutputs; i++)
        if (!strcmp(p->problem->output[i].array.name, array))
            return true;
    return false;
}

int last_writer(const struct stages_builder *sb, int reader)
{
    const struct problem *p = sb->part[reader].problem;
    for (int i = reader; i-- > 0;)
        for (int k = 0; sb->part[i].into < 0 && k < p->ninputs; k++)
            if (writes(&sb->part[i], p->input[k].array.name))
                return i;
    return -1;
}

static const char *reduction_obstacle(const struct fusing *f, const struct part *reduction)
{
    const struct problem *p = reduction->problem;
    if (reduction->alone)
        return "`fuse: false`";
    if (p->strategy || p->ntunables)
        return "its strategy is given";
    if (p->sums)
        return "it has sums, which share what they read";
    for (int i = 0; i < p->ninputs; i++) {
        const struct input *in = &p->input[i];
        if (in->neighbours || in->role != ROLE_ELEMENT || in->placed || !axes_in_order(in->axis, in->array.rank))
            return fuse_because(f, "it reads 'A' at other places than the element", "", in->array.name);
    }
    for (int i = 0; i < p->nreductions; i++)
        if (!p->reduction[i].op->commutative || (!p->reduction[i].op->exact && p->determinism != DET_ANY))
            return "it needs an order of the elements";
    return NULL;
}

static const char *writer_obstacle(const struct fusing *f, const struct part *writer)
{
    const struct problem *p = writer->problem;
    bool simple = p->kind == KIND_STENCIL && !p->iterated && !p->sums && !p->dynamic;
    if (writer->alone)
        return fuse_because(f, "`fuse: false` of 'B'", writer->name, "");
    if (p->strategy || p->ntunables)
        return fuse_because(f, "the strategy of 'B' is given", writer->name, "");
    for (int i = 0; i < p->noutputs; i++)
        simple &= p->output[i].role == OUT_ELEMENT || p->output[i].role == OUT_SEGMENT;
    for (int i = 0; i < p->ninputs; i++) /* in three dimensions, planes of neighbours have kernels of their own */
        simple &= !p->input[i].neighbours || p->rank < 3;
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; d < p->input[i].array.rank; d++)
            simple &= p->input[i].boundary[d].mode != BOUND_INTERIOR;
    return simple ? NULL : fuse_because(f, "'B' cannot reduce as it writes", writer->name, "");
}

/* Is what the reduction reads of the writer there at each point, with all elements? */
static const char *outputs_obstacle(const struct fusing *f, const struct part *writer, const struct problem *reduction)
{
    const struct problem *p = writer->problem;
    for (int i = 0; i < p->noutputs; i++) {
        const struct output *o = &p->output[i];
        bool whole = o->role == OUT_ELEMENT && o->array.rank == p->rank && axes_in_order(o->axis, o->array.rank);
        for (int d = 0; whole && d < p->rank; d++)
            whole = o->array.dim[d].size == p->space[d].extent.size && o->array.dim[d].add == p->space[d].extent.add;
        if (!whole && problem_input(reduction, o->array.name) >= 0)
            return fuse_because(f, "'B' does not write 'A' element by element", writer->name, o->array.name);
    }
    return NULL;
}

static const char *join(struct fusing *f, int number, int to)
{
    const struct part *reduction = &f->sb->part[number], *writer = &f->sb->part[to];
    const char *why = reduction_obstacle(f, reduction);
    why = why ? why : writer_obstacle(f, writer);
    why = why ? why : outputs_obstacle(f, writer, reduction->problem);
    return why ? why : fuse_into(f, number, to, &(struct fuse_way){ joined_root, joining_is_both });
}

void join_reductions(struct fusing *f)
{
    for (int i = 0; i < f->sb->nparts; i++) {
        const int to = is_candidate(&f->sb->part[i]) ? last_writer(f->sb, i) : -1;
        if (to >= 0)
            f->sb->part[i].apart = join(f, i, to);
    }
}
