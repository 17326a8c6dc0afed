/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_apart.c - reasons of pairs of stages that stay apart because of what they are.
 *
 * A pair could be expected to become one stage where the second reads elements of the first, each once.  Maps, and
 * reductions of everything, have reasons of their own (fuse.c, fuse_value.c, fuse_reduce.c).  What is left:
 *
 *   maps         of what a scan writes; or of a reduction, beside the reason of their readers
 *   reductions   that keep dimensions, have `by`, `init` or segments, or write elements, of what a stencil writes
 *   others       of what a scan, a reduction, or a map with a loop, reductions or computed places writes
 */
#include "stages_impl.h"

/* An output of the writer that the reader reads, each element once; NULL: none. */
static const char *elements_read(const struct part *reader, const struct part *writer)
{
    const struct problem *p = reader->problem;
    for (int i = 0; i < writer->problem->noutputs; i++) {
        const char *name = writer->problem->output[i].array.name;
        const int in = strncmp(name, "ptxgen_", 7) != 0 ? problem_input(p, name) : -1; /* not of halves of a stage */
        if (in >= 0 && p->input[in].role == ROLE_ELEMENT && p->input[in].used && p->rank > 0 &&
            p->input[in].array.rank == p->rank)
            return p->input[in].array.name;
    }
    return NULL;
}

const char *apart_from_writer(const struct fusing *f, int map, int writer, const char *why)
{
    const struct part *part = &f->sb->part[map], *from = &f->sb->part[writer];
    if (part->alone || from->problem->kind == KIND_STENCIL || !elements_read(part, from))
        return part->apart;
    why = from->problem->kind == KIND_SCAN ? "it is a scan, which takes no maps" : why;
    return fuse_because(f, arena_printf(f->sb->b->a, "%s; not part of 'B': %s", part->apart, why), from->name, "");
}

/* Why no reader takes a stage; NULL: it is a map, which has a reason of its own. */
static const char *form_of_writer(const struct problem *p)
{
    if (p->kind != KIND_STENCIL)
        return p->kind == KIND_SCAN ? "is a scan" : "is a reduction";
    if (p->iterated)
        return "has a loop";
    if (p->nreductions)
        return "has `reductions`";
    for (int i = 0; i < p->noutputs; i++)
        if (output_is_placed(&p->output[i]))
            return "writes at computed places";
    return NULL;
}

/* Why a reduction is none that a map or stencil makes as it writes; NULL: it may be one. */
static const char *form_of_reduction(const struct part *part)
{
    const struct problem *p = part->problem;
    if (p->nby)
        return "it has `by`";
    if (p->offsets >= 0 || p->flags >= 0 || p->starts)
        return "it has segments";
    if (ynode_get(part->root, "init"))
        return "it has `init`";
    for (int i = 0; i < p->rank; i++)
        if (!p->space[i].reduced)
            return "it keeps a dimension";
    for (int i = 0; i < p->noutputs; i++)
        if (p->output[i].role != OUT_SEGMENT)
            return "it writes elements, too";
    return NULL;
}

static const char *apart_from(const struct fusing *f, const struct part *reader, const struct part *writer)
{
    const char *array = elements_read(reader, writer), *form = form_of_writer(writer->problem);
    const char *reduction = reader->problem->kind == KIND_REDUCE ? form_of_reduction(reader) : NULL;
    if (!array)
        return NULL;
    if (writer->problem->kind == KIND_STENCIL && reduction)
        return fuse_because(f,
                            arena_printf(f->sb->b->a, "%s, and 'B' takes reductions of all elements alone", reduction),
                            writer->name, "");
    return form ? fuse_because(f,
                               arena_printf(f->sb->b->a,
                                            "'B', which writes 'A', %s; only plain maps become part of what reads them",
                                            form),
                               writer->name, array)
                : NULL;
}

void tell_apart(struct fusing *f)
{
    struct part *part = f->sb->part;
    for (int i = 0; i < f->sb->nparts; i++)
        for (int w = i; w-- > 0 && part[i].into < 0 && !part[i].apart;)
            if (part[w].into < 0)
                part[i].apart = part[i].alone ? (elements_read(&part[i], &part[w]) ? "`fuse: false`" : NULL)
                                              : apart_from(f, &part[i], &part[w]);
}
