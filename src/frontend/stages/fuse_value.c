/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_value.c - maps of results become values of the reductions that make these.
 *
 * A reduction writes any number of values per segment.  So a map over its segments needs no kernel of its own, whoever
 * reads what it writes:
 *
 *   candidates   maps that did not become part of a reader, in the order of the program
 *   writer       the last stage that writes an input of the map, a reduction; the other inputs are there before
 *   left out     where the map has other elements than the reduction has segments, or reads them elsewhere
 */
#include "stages_impl.h"

static const char *map_obstacle(const struct fusing *f, const struct part *map)
{
    const struct problem *p = map->problem;
    if (map->alone)
        return "`fuse: false`";
    if (p->strategy || p->ntunables)
        return "its strategy is given";
    if (p->sums || p->dynamic)
        return "it has sums, or reads neighbours";
    for (int i = 0; i < p->ninputs; i++) {
        const struct input *in = &p->input[i];
        if (in->neighbours || in->role != ROLE_ELEMENT || in->placed || in->array.rank != p->rank ||
            !axes_in_order(in->axis, in->array.rank))
            return fuse_because(f, "it reads 'A' at other places than the element", "", in->array.name);
    }
    for (int i = 0; i < p->noutputs; i++) {
        const char *why = output_obstacle(f, p, &p->output[i]);
        if (why)
            return why;
    }
    return NULL;
}

static bool extent_same(const struct problem *p, int i, const struct problem *q, int k)
{
    const struct prog_dim *x = &p->space[i].extent, *y = &q->space[k].extent;
    return x->add == y->add &&
           (x->size < 0 || y->size < 0 ? x->size == y->size : !strcmp(p->size[x->size].name, q->size[y->size].name));
}

/* Are the elements of the map the segments of the reduction? */
static bool are_segments(const struct problem *map, const struct problem *reduction)
{
    int kept = 0;
    for (int i = 0; i < reduction->rank; i++) {
        if (reduction->space[i].reduced)
            continue;
        if (kept == map->rank || !extent_same(reduction, i, map, kept))
            return false;
        kept++;
    }
    return kept == map->rank;
}

static const char *writer_obstacle(const struct fusing *f, const struct part *map, const struct part *writer)
{
    const struct problem *p = writer->problem;
    if (p->kind != KIND_REDUCE || p->nby || p->offsets >= 0 || !are_segments(map->problem, p))
        return fuse_because(f, "the results of 'B' are not its elements", writer->name, "");
    if (writer->alone)
        return fuse_because(f, "`fuse: false` of 'B'", writer->name, "");
    if (p->strategy || p->ntunables)
        return fuse_because(f, "the strategy of 'B' is given", writer->name, "");
    for (int i = 0; i < p->noutputs; i++) {
        const struct output *o = &p->output[i];
        if (problem_input(map->problem, o->array.name) >= 0 &&
            (o->role != OUT_SEGMENT || o->array.nfields != 1 || *o->array.field[0].name))
            return fuse_because(f, "'B' does not write 'A' once for each segment", writer->name, o->array.name);
    }
    return NULL;
}

/* What is fed back may be written where it was read only after all that reads the old values. */
static const char *order_obstacle(const struct fusing *f, int number, int writer)
{
    const struct problem *p = f->sb->part[number].problem;
    bool between = false;
    for (int i = writer + 1; i < number; i++)
        between |= f->sb->part[i].into < 0;
    for (int i = 0; between && i < p->noutputs; i++)
        if (names_find(&f->repeated, p->output[i].array.name) >= 0)
            return fuse_because(f, "'A' would be written before stages that come first", "", p->output[i].array.name);
    return NULL;
}

const char *fuse_with_writer(struct fusing *f, int number, int to)
{
    const struct part *map = &f->sb->part[number];
    const char *why = map_obstacle(f, map);
    why = why ? why : writer_obstacle(f, map, &f->sb->part[to]);
    why = why ? why : order_obstacle(f, number, to);
    return why ? why : fuse_into(f, number, to, &(struct fuse_way){ valued_root, values_are_both });
}
