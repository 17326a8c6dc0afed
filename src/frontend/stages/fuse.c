/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - maps become part of the stages that read them.
 *
 * A map whose outputs only one later stage reads, element by element, need not be stored: its values become lets of the
 * reader.  That is done where it moves no more memory and computes no element twice for nothing:
 *
 *   candidates   maps without loops and reductions, in the order of the program, until no more is found
 *   map          reads no neighbours; its outputs stay inside, and one stage reads them
 *   reader       reads each of their elements once, in the order in which it is computed; or, where it may take several
 *                passes, reads no more bytes than before in each
 *   writers      else, a map of the results of a reduction becomes values of that reduction (fuse_value.c)
 *   reductions   of what another stage writes, join that stage (fuse_reduce.c)
 *   others       stay apart (fuse_apart.c)
 *   proof        the new problem is built from the trees, and compared with both (same.c)
 */
#include "stages_impl.h"

static bool is_candidate(const struct part *p)
{
    bool is = p->into < 0 && p->problem && p->problem->kind == KIND_STENCIL && !p->problem->iterated &&
              !p->problem->nreductions;
    for (int i = 0; is && i < p->problem->noutputs; i++)
        is = p->problem->output[i].role == OUT_ELEMENT;
    return is;
}

const char *fuse_because(const struct fusing *f, const char *format, const char *name, const char *array)
{
    char *text = arena_alloc(f->sb->b->a, strlen(format) + strlen(name) + strlen(array) + 1);
    char *to = text;
    for (const char *c = format; *c; c++) { /* A: the array, B: the stage */
        const char *put = *c == 'A' ? array : *c == 'B' ? name : NULL;
        to = put ? stpcpy(to, put) : (*to = *c, to + 1);
    }
    return text;
}

/* ---- the map ----------------------------------------------------------------------------------------------------- */

bool axes_in_order(const int *axis, int rank)
{
    for (int d = 0; d < rank; d++)
        if (axis[d] < 0 || (d && axis[d] <= axis[d - 1]))
            return false;
    return true;
}

const char *output_obstacle(const struct fusing *f, const struct problem *p, const struct output *o)
{
    const char *name = o->array.name;
    if (o->array.nfields != 1 || *o->array.field[0].name)
        return fuse_because(f, "'A' has fields", "", name);
    bool all = o->array.rank == p->rank && axes_in_order(o->axis, o->array.rank);
    for (int d = 0; all && d < o->array.rank; d++)
        all = o->array.dim[d].size == p->space[d].extent.size && o->array.dim[d].add == p->space[d].extent.add;
    return all ? NULL : fuse_because(f, "'A' has another shape than what it is computed from", "", name);
}

static const char *map_obstacle(const struct fusing *f, const struct part *map)
{
    const struct problem *p = map->problem;
    const char *why = NULL;
    if (map->alone)
        return "`fuse: false`";
    if (p->strategy || p->ntunables)
        return "its strategy is given";
    if (p->sums)
        return "it has sums, which share what they read";
    if (p->dynamic)
        return "it reads neighbours";
    for (int i = 0; i < p->noutputs && !why; i++)
        why = names_find(&f->whole, p->output[i].array.name) >= 0
                  ? fuse_because(f, "'A' is used outside of the stages", "", p->output[i].array.name)
                  : output_obstacle(f, p, &p->output[i]);
    for (int i = 0; i < p->ninputs && !why; i++) {
        const struct input *in = &p->input[i];
        if (in->neighbours)
            why = fuse_because(f, "it reads neighbours of 'A'", "", in->array.name);
        else if (in->role == ROLE_ELEMENT && !axes_in_order(in->axis, in->array.rank))
            why = fuse_because(f, "it reads 'A' in another order than it writes", "", in->array.name);
    }
    return why;
}

int problem_input(const struct problem *p, const char *name)
{
    for (int i = 0; i < p->ninputs; i++)
        if (!strcmp(p->input[i].array.name, name))
            return i;
    return -1;
}

static bool reads(const struct part *reader, const struct part *map)
{
    for (int i = 0; i < map->problem->noutputs; i++)
        if (problem_input(reader->problem, map->problem->output[i].array.name) >= 0)
            return true;
    return false;
}

/* The part that alone reads outputs of the map; -1: *why. */
static int only_reader(const struct fusing *f, int map, const char **why)
{
    const struct stages_builder *sb = f->sb;
    int only = -1;
    for (int i = map + 1; i < sb->nparts; i++) {
        if (sb->part[i].into >= 0 || !reads(&sb->part[i], &sb->part[map]))
            continue;
        if (only >= 0) {
            *why = fuse_because(f, "'A' and 'B' read it", sb->part[i].name, sb->part[only].name);
            return -1;
        }
        only = i;
    }
    if (only < 0)
        *why = "nothing reads it";
    return only;
}

/* ---- the reader -------------------------------------------------------------------------------------------------- */

static const char *input_obstacle(const struct fusing *f, const struct part *reader, const struct input *in)
{
    const struct problem *p = reader->problem;
    const char *name = in->array.name;
    if (in->neighbours)
        return fuse_because(f, "'B' reads neighbours of 'A'", reader->name, name);
    if (in->role != ROLE_ELEMENT || in->placed)
        return fuse_because(f, "'B' does not read 'A' element by element", reader->name, name);
    if (in->array.rank != p->rank)
        return fuse_because(f, "'B' reads elements of 'A' more than once", reader->name, name);
    return axes_in_order(in->axis, in->array.rank)
               ? NULL
               : fuse_because(f, "'B' reads 'A' in another order", reader->name, name);
}

/* May a kernel for the problem read an element more than once? */
static bool takes_passes(const struct problem *p)
{
    return p->kind == KIND_SCAN || p->nby || problem_writes(p, AT_RESULT);
}

static void find_dear(const struct expr *e, void *user)
{
    static const enum fn cheap[] = { FN_MIN,  FN_MAX,   FN_ABS,   FN_SIGN,  FN_CLAMP, FN_SELECT,   FN_FMA, FN_FLOOR,
                                     FN_CEIL, FN_ROUND, FN_TRUNC, FN_ISNAN, FN_ISINF, FN_POPCOUNT, FN_CLZ, FN_CTZ };
    bool dear = e->kind == EX_AT || e->kind == EX_CALL;
    for (size_t i = 0; e->kind == EX_CALL && i < sizeof cheap / sizeof *cheap; i++)
        dear &= (enum fn)e->op != cheap[i];
    *(bool *)user |= dear;
}

/* Several passes are as fast as before where each of them reads no more than it would have read of the outputs. */
static const char *passes_obstacle(const struct fusing *f, const struct part *map, const struct part *reader)
{
    const struct problem *p = map->problem;
    int64_t before = 0, then = 0;
    bool dear = false;
    if (!takes_passes(reader->problem))
        return NULL;
    for (int i = 0; i < p->noutputs; i++) {
        before += p->output[i].array.stride;
        problem_walk(p, p->output[i].value[0], find_dear, &dear);
    }
    for (int i = 0; i < p->ninputs; i++) {
        const int shared = problem_input(reader->problem, p->input[i].array.name);
        if (p->input[i].array.rank == p->rank && (shared < 0 || reader->problem->input[shared].role != ROLE_ELEMENT))
            then += p->input[i].array.stride;
    }
    if (dear)
        return fuse_because(f, "'B' may take several passes, and each would compute it anew", reader->name, "");
    return then > before ? fuse_because(f, "'B' may take several passes, and each would read more", reader->name, "")
                         : NULL;
}

static void find_index(const struct expr *e, void *user) { *(bool *)user |= e->kind == EX_INDEX; }

/* Does a value depend on where along the dimensions its element lies? */
static bool needs_indices(const struct problem *p)
{
    bool needs = false;
    for (int i = 0; i < p->ninputs; i++)
        needs |= p->input[i].role == ROLE_ELEMENT && p->input[i].array.rank && p->input[i].array.rank < p->rank;
    for (int i = 0; i < p->noutputs; i++)
        problem_walk(p, p->output[i].value[0], find_index, &needs);
    for (int i = 0; i < p->nreductions; i++)
        problem_walk(p, p->reduction[i].map[0], find_index, &needs);
    return needs;
}

/* A reduction or scan of everything goes over elements as if they were one row; indices would cost divisions. */
static const char *indices_obstacle(const struct fusing *f, const struct part *map, const struct part *reader)
{
    const struct problem *p = reader->problem;
    bool one_row = p->kind != KIND_STENCIL && p->rank > 1;
    for (int i = 0; i < p->rank; i++)
        one_row &= p->space[i].reduced;
    return one_row && needs_indices(map->problem) && !needs_indices(p)
               ? fuse_because(f, "'B' goes over 'A' as one row, and would have to compute indices", reader->name,
                              map->problem->output[0].array.name)
               : NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int writer_of(const struct stages_builder *sb, const char *array)
{
    for (int i = 0; i < sb->nparts; i++)
        for (int o = 0; o < sb->part[i].problem->noutputs; o++)
            if (!strcmp(sb->part[i].problem->output[o].array.name, array))
                return i;
    return -1;
}

static int last_reader(const struct stages_builder *sb, const char *array)
{
    int last = -1;
    for (int i = 0; i < sb->nparts; i++)
        if (sb->part[i].into < 0 && problem_input(sb->part[i].problem, array) >= 0)
            last = i;
    return last;
}

/* An input that is fed back is overwritten where its last reader comes before the new values.  If the last reader comes
 * later then, the new values need memory of their own: no more than the outputs of the map give back. */
static const char *memory_obstacle(const struct fusing *f, const struct part *map, int reader)
{
    const struct ynode *iterate = schema_get(f->sb->b->root, ST_STAGES, "iterate"),
                       *feedback = iterate ? schema_get(iterate, ST_LOOP, "feedback") : NULL;
    int64_t freed = 0, taken = 0;
    const char *which = "";
    for (int i = 0; i < map->problem->noutputs; i++)
        freed += map->problem->output[i].array.stride;
    for (int i = 0; feedback && i < feedback->count; i++) {
        const struct ypair *pair = &feedback->pair[i];
        const int in = problem_input(map->problem, pair->key->text),
                  writer = pair->value->kind == Y_SCALAR ? writer_of(f->sb, pair->value->text) : -1;
        if (in < 0 || writer < 0 || writer > reader || last_reader(f->sb, pair->key->text) >= writer)
            continue;
        const struct prog_array *a = &map->problem->input[in].array;
        taken += map->problem->input[in].role == ROLE_ELEMENT ? a->stride : INT32_MAX;
        which = pair->key->text;
    }
    return taken > freed ? fuse_because(f, "'A' is overwritten before 'B'", f->sb->part[reader].name, which) : NULL;
}

static const char *reader_obstacle(const struct fusing *f, const struct part *map, int number)
{
    const struct part *reader = &f->sb->part[number];
    const struct problem *p = reader->problem;
    const char *why = NULL;
    if (reader->alone)
        return fuse_because(f, "`fuse: false` of 'B'", reader->name, "");
    if (p->strategy || p->ntunables)
        return fuse_because(f, "the strategy of 'B' is given", reader->name, "");
    if (p->iterated)
        return fuse_because(f, "'B' reads it in every step of its own", reader->name, "");
    for (int i = 0; i < map->problem->noutputs && !why; i++) {
        const int in = problem_input(p, map->problem->output[i].array.name);
        why = in >= 0 ? input_obstacle(f, reader, &p->input[in]) : NULL;
    }
    why = why ? why : passes_obstacle(f, map, reader);
    why = why ? why : indices_obstacle(f, map, reader);
    return why ? why : memory_obstacle(f, map, number);
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

static const struct problem *fuse_build(const struct fusing *f, const struct ynode *root, const char *name,
                                        const char **why)
{
    struct diags *d = &f->sb->b->s->diags;
    const struct diags kept = *d;
    diags_clear(d);
    struct builder *b = builder_new(f->sb->b->s, root);
    b->quiet = true;
    const struct problem *p = builder_problem(b, name);
    for (const struct diag *m = d->first; m && !p; m = m->next)
        if (m->severity == SEV_ERROR && !*why)
            *why = fuse_because(f, "in one stage, A", "", m->text);
    *d = kept;
    return p;
}

const char *fuse_into(const struct fusing *f, int number, int to, const struct fuse_way *way)
{
    struct stages_builder *sb = f->sb;
    struct part *part = &sb->part[number], *whole = &sb->part[to];
    const char *clash = NULL, *why = NULL;
    const struct ynode *root = way->root(sb, whole, part, &clash);
    if (!root && !clash)
        return "its values would be too long";
    if (!root)
        return fuse_because(f, "'B' has another 'A'", whole->name, clash);
    const struct problem *p = fuse_build(f, root, whole->name, &why);
    if (!p)
        return why ? why : "in one stage, there are errors";
    if (!way->is_both(sb->b->a, whole->problem, part->problem, p))
        return fuse_because(f, "in one stage with 'B', names or dimensions would mean something else", whole->name, "");
    whole->root = root;
    whole->problem = p;
    part->into = to;
    return NULL;
}

static const char *fuse(struct fusing *f, int number)
{
    const struct part *map = &f->sb->part[number];
    const char *why = map_obstacle(f, map);
    const int to = why ? -1 : only_reader(f, number, &why);
    why = why ? why : reader_obstacle(f, map, to);
    return why ? why : fuse_into(f, number, to, &(struct fuse_way){ fused_root, fusion_is_both });
}

/* What has become of candidates, in the order of the program. */
static void publish(struct stages_builder *sb)
{
    struct stages *out = sb->out;
    for (int i = 0; i < sb->nparts; i++) {
        int into = sb->part[i].into;
        while (into >= 0 && sb->part[into].into >= 0)
            into = sb->part[into].into;
        if (into >= 0 || sb->part[i].apart)
            out->fusion[out->nfusions++] =
                (struct stage_fusion){ sb->part[i].name, into >= 0 ? sb->part[into].name : NULL,
                                       into >= 0 ? NULL : sb->part[i].apart, sb->part[i].own };
    }
}

void fuse_maps(struct stages_builder *sb)
{
    struct fusing f = { .sb = sb, .whole = { .arena = sb->b->a }, .repeated = { .arena = sb->b->a } };
    const struct ynode *outputs = schema_get(sb->b->root, ST_STAGES, "outputs"),
                       *iterate = schema_get(sb->b->root, ST_STAGES, "iterate");
    if (outputs)
        names_collect(&f.whole, outputs);
    if (iterate) {
        names_collect(&f.whole, iterate);
        names_collect(&f.repeated, iterate);
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < sb->nparts; i++)
            if (is_candidate(&sb->part[i])) {
                sb->part[i].apart = fuse(&f, i);
                more |= !sb->part[i].apart;
            }
    }
    for (int i = 0; i < sb->nparts; i++) {
        const int writer = is_candidate(&sb->part[i]) ? last_writer(sb, i) : -1;
        const char *why = writer >= 0 ? fuse_with_writer(&f, i, writer) : NULL;
        if (writer >= 0)
            sb->part[i].apart = why ? apart_from_writer(&f, i, writer, why) : NULL;
    }
    join_reductions(&f);
    tell_apart(&f);
    publish(sb);
}
