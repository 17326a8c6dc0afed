/* SPDX-License-Identifier: Apache-2.0 */
/* same.c - is a problem that was made of a map and its reader the two of them?
 *
 * And of a reduction that joins its writer, or of a map of its results: are the two in it?  The expressions of the three problems are compared by what they mean: by the names of arrays, params and dimensions, and
 * through lets.  So a name that means something else in the new problem is found, whatever hides it.
 */
#include "stages_impl.h"

/* Expressions of `of`, and their twins in `in`. */
struct twins {
    const struct problem *of, *in, *map; /* map: what `of` reads of it is a let in `in`; NULL: nothing */
    const struct problem *writer;        /* what `of` reads of it is an output in `in`; NULL: nothing */
    struct twins *results;               /* what `of` reads of that problem is its value in `in`; NULL: nothing */
    int states;                          /* of `in`, before those of `of` */
    int let[LET_VALUES_MAX];             /* 1 + the twin that a let has been compared with */
    int made[STAGE_ARGS_MAX];            /* of each output of the map, 1 + its let */
};

static int output_number(const struct problem *p, const char *name)
{
    for (int i = 0; p && i < p->noutputs; i++)
        if (!strcmp(p->output[i].array.name, name))
            return i;
    return -1;
}

static bool input_same(const struct twins *t, int x, int y)
{
    return !strcmp(t->of->input[x].array.name, t->in->input[y].array.name);
}

static bool size_same(const struct twins *t, int x, int y)
{
    return x < 0 || y < 0 ? x == y : !strcmp(t->of->size[x].name, t->in->size[y].name);
}

static bool same(struct twins *t, const struct expr *x, const struct expr *y);

static bool operator_same(struct twins *t, const struct op *x, const struct op *y)
{
    bool is = x->nfields == y->nfields && x->nlets == y->nlets && x->commutative == y->commutative;
    for (int i = 0; is && i < x->nlets; i++)
        is = same(t, x->let[i].value, y->let[i].value);
    for (int f = 0; is && f < x->nfields; f++)
        is = x->field[f] == y->field[f] && same(t, x->identity[f], y->identity[f]) &&
             same(t, x->combine[f], y->combine[f]);
    return is;
}

static bool which_same(struct twins *t, const struct expr *x, const struct expr *y)
{
    switch (x->kind) {
    case EX_GATHER:
        return input_same(t, x->which, y->which) && input_same(t, x->which2, y->which2) &&
               operator_same(t, t->of->gatherer[x->op].op, t->in->gatherer[y->op].op);
    case EX_INPUT:
    case EX_AT:
    case EX_NEIGHBOUR: return input_same(t, x->which, y->which);
    case EX_PARAM: return !strcmp(t->of->param[x->which].name, t->in->param[y->which].name);
    case EX_SIZE:
    case EX_SUM:
    case EX_RUN: return size_same(t, x->which, y->which);
    case EX_STATE: return x->which + t->states == y->which;
    default: return x->which == y->which && x->which2 == y->which2;
    }
}

static bool let_same(struct twins *t, const struct expr *x, const struct expr *y)
{
    if (y->kind != EX_LET || x->type != y->type)
        return false;
    if (!t->let[x->which]) {
        t->let[x->which] = y->which + 1;
        return same(t, t->of->let[x->which].value, t->in->let[y->which].value);
    }
    return t->let[x->which] == y->which + 1;
}

/* x is an element of output `made` of the map. */
static bool made_same(struct twins *t, const struct expr *x, const struct expr *y, int made)
{
    if (y->kind != EX_LET || x->type != y->type || x->noffsets ||
        strcmp(t->in->let[y->which].name, t->map->output[made].array.name))
        return false;
    t->made[made] = y->which + 1;
    return true;
}

static const char *input_name(const struct twins *t, const struct expr *e) { return t->of->input[e->which].array.name; }

/* The conversion of a value to the type that it has. */
static const struct expr *unconverted(const struct expr *e)
{
    return e->kind == EX_CAST && e->arg[0]->type == e->type ? e->arg[0] : e;
}

static bool same(struct twins *t, const struct expr *x, const struct expr *y)
{
    if (!x || !y)
        return x == y;
    const int made = x->kind == EX_INPUT ? output_number(t->map, input_name(t, x)) : -1;
    if (made >= 0)
        return made_same(t, x, y, made);
    const int written = x->kind == EX_INPUT ? output_number(t->writer, input_name(t, x)) : -1;
    if (written >= 0) /* the outputs of the writer come first */
        return y->kind == EX_OUTPUT && y->which == written && x->type == y->type && x->field == y->field &&
               !x->noffsets;
    const int result = x->kind == EX_INPUT && t->results ? output_number(t->results->of, input_name(t, x)) : -1;
    if (result >= 0)
        return x->type == y->type && !x->noffsets &&
               same(t->results, t->results->of->output[result].value[0], unconverted(y));
    if (x->kind == EX_LET)
        return let_same(t, x, y);
    if (x->kind != y->kind || x->type != y->type || (x->kind != EX_GATHER && x->op != y->op) || x->field != y->field ||
        x->noffsets != y->noffsets || x->imm.u != y->imm.u || x->nargs != y->nargs || !which_same(t, x, y))
        return false;
    for (int i = 0; i < x->noffsets; i++)
        if (x->offset[i] != y->offset[i])
            return false;
    for (int i = 0; i < x->nargs; i++)
        if (!same(t, x->arg[i], y->arg[i]))
            return false;
    return true;
}

static bool array_is(const struct twins *t, const struct prog_array *x, const struct prog_array *y)
{
    bool is = !strcmp(x->name, y->name) && x->nfields == y->nfields && x->rank == y->rank;
    for (int d = 0; is && d < x->rank; d++)
        is = size_same(t, x->dim[d].size, y->dim[d].size) && x->dim[d].add == y->dim[d].add;
    for (int f = 0; is && f < x->nfields; f++)
        is = x->field[f].type == y->field[f].type && !strcmp(x->field[f].name, y->field[f].name);
    return is;
}

static bool output_same(struct twins *t, const struct output *x, const struct output *y)
{
    bool is = array_is(t, &x->array, &y->array) && x->role == y->role && x->counter == y->counter &&
              x->from_end == y->from_end && !memcmp(x->axis, y->axis, sizeof x->axis) && same(t, x->where, y->where) &&
              same(t, x->place, y->place) && !x->combine == !y->combine;
    for (int f = 0; is && f < x->array.nfields; f++)
        is = same(t, x->value[f], y->value[f]) && same(t, x->initial[f], y->initial[f]);
    for (int d = 0; is && d < PROG_RANK_MAX; d++)
        is = same(t, x->index[d], y->index[d]);
    return is;
}

static bool reduction_same(struct twins *t, const struct reduction *x, const struct reduction *y)
{
    bool is = !strcmp(x->op->name, y->op->name) && x->counts == y->counts && operator_same(t, x->op, y->op);
    for (int f = 0; is && f < x->op->nfields; f++)
        is = same(t, x->map[f], y->map[f]) && same(t, x->init[f], y->init[f]);
    return is;
}

static bool space_same(const struct twins *t)
{
    const struct problem *x = t->of, *y = t->in;
    bool is = x->kind == y->kind && x->rank == y->rank;
    for (int i = 0; is && i < x->rank; i++)
        is = size_same(t, x->space[i].extent.size, y->space[i].extent.size) &&
             x->space[i].extent.add == y->space[i].extent.add && x->space[i].reduced == y->space[i].reduced;
    return is;
}

static bool boundary_same(const struct boundary *x, const struct boundary *y)
{
    bool is = x->mode == y->mode;
    for (int f = 0; is && f < STATE_FIELDS_MAX; f++)
        is = x->constant[f].u == y->constant[f].u;
    return is;
}

/* Does a read of an input beyond its edge give what it gave? */
static bool edges_same(const struct twins *t)
{
    for (int i = 0; i < t->of->ninputs; i++)
        for (int k = 0; k < t->in->ninputs; k++) {
            const struct input *x = &t->of->input[i], *y = &t->in->input[k];
            if (!input_same(t, i, k) || !(x->placed || x->neighbours))
                continue;
            for (int d = 0; d < x->array.rank; d++)
                if (!boundary_same(&x->boundary[d], &y->boundary[d]))
                    return false;
        }
    return true;
}

static bool segments_same(const struct twins *t)
{
    const struct problem *x = t->of, *y = t->in;
    return x->starts == y->starts && (x->offsets < 0) == (y->offsets < 0) && (x->flags < 0) == (y->flags < 0) &&
           (x->offsets < 0 || input_same(t, x->offsets, y->offsets)) &&
           (x->flags < 0 || input_same(t, x->flags, y->flags));
}

/* `in` may have `more` outputs after those of `of`. */
static bool reader_same(struct twins *t, int more)
{
    const struct problem *x = t->of, *y = t->in;
    bool is = space_same(t) && segments_same(t) && edges_same(t) && x->noutputs + more == y->noutputs &&
              x->nreductions == y->nreductions && x->nby == y->nby && x->exclusive == y->exclusive &&
              x->reverse == y->reverse && x->determinism == y->determinism;
    for (int i = 0; is && i < x->noutputs; i++)
        is = output_same(t, &x->output[i], &y->output[i]);
    for (int i = 0; is && i < x->nreductions; i++)
        is = reduction_same(t, &x->reduction[i], &y->reduction[i]);
    for (int i = 0; is && i < x->nby; i++)
        is = same(t, x->by[i], y->by[i]);
    if (is && (x->key || y->key))
        is = x->key && y->key && size_same(t, x->keys.size, y->keys.size) && x->keys.add == y->keys.add &&
             same(t, x->key, y->key);
    return is;
}

bool fusion_is_both(struct arena *a, const struct problem *reader, const struct problem *map,
                    const struct problem *fused)
{
    struct twins *of_reader = arena_new(a, struct twins, 2), *of_map = of_reader + 1;
    of_reader->of = reader;
    of_reader->map = map;
    of_map->of = map;
    of_reader->in = of_map->in = fused;
    if (!reader_same(of_reader, 0) || !edges_same(of_map))
        return false;
    for (int i = 0; i < map->noutputs; i++)
        if (of_reader->made[i] &&
            !same(of_map, map->output[i].value[0], unconverted(fused->let[of_reader->made[i] - 1].value)))
            return false;
    return true;
}

bool joining_is_both(struct arena *a, const struct problem *writer, const struct problem *reduction,
                     const struct problem *joined)
{
    struct twins *of_writer = arena_new(a, struct twins, 2), *of_reduction = of_writer + 1;
    of_writer->of = of_reduction->writer = writer;
    of_writer->in = of_reduction->in = joined;
    of_reduction->of = reduction;
    of_reduction->states = writer->nreductions;
    bool is = space_same(of_writer) && edges_same(of_writer) &&
              joined->noutputs == writer->noutputs + reduction->noutputs &&
              joined->nreductions == writer->nreductions + reduction->nreductions;
    for (int i = 0; is && i < joined->noutputs; i++)
        is = i < writer->noutputs
                 ? output_same(of_writer, &writer->output[i], &joined->output[i])
                 : output_same(of_reduction, &reduction->output[i - writer->noutputs], &joined->output[i]);
    for (int i = 0; is && i < joined->nreductions; i++)
        is = i < writer->nreductions
                 ? reduction_same(of_writer, &writer->reduction[i], &joined->reduction[i])
                 : reduction_same(of_reduction, &reduction->reduction[i - writer->nreductions], &joined->reduction[i]);
    return is;
}

bool values_are_both(struct arena *a, const struct problem *writer, const struct problem *map,
                     const struct problem *both)
{
    struct twins *of_writer = arena_new(a, struct twins, 2), *of_map = of_writer + 1;
    of_writer->of = writer;
    of_map->of = map;
    of_writer->in = of_map->in = both;
    of_map->results = of_writer;
    bool is = reader_same(of_writer, map->noutputs);
    for (int i = 0; is && i < map->noutputs; i++) {
        const struct output *x = &map->output[i], *y = &both->output[writer->noutputs + i];
        is = array_is(of_map, &x->array, &y->array) && y->role == OUT_SEGMENT && same(of_map, x->value[0], y->value[0]);
    }
    return is;
}
