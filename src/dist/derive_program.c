/* SPDX-License-Identifier: Apache-2.0 */
/* derive_program.c - the stages of a program, each split along the same dimension, or solved by each rank as it is.
 *
 * Dimensions of the same name are the same in all stages.  So an array that one stage writes is cut as the next one reads
 * it, and nothing is moved between stages.  A stage without the split dimension has only arrays that all ranks have.
 */
#include "dist.h"

#include <string.h>

bool dist_derive_problem(struct ptxgen_session *s, struct ptxgen_dist *d, const struct problem *p, const char *split)
{
    d->split = dist_derive(s, p, split, d->block);
    if (!d->split)
        return false;
    d->size = d->split->size;
    d->pieces = d->split->pieces;
    return true;
}

/* ---- a stage that is not split ----------------------------------------------------------------------------------- */

/* May its elements meet in any order, and that changes their bits?  Then ranks would go apart. */
static bool meets_in_any_order(const struct problem *p)
{
    bool any = p->nby && !dist_exact(p);
    for (int o = 0; o < p->noutputs; o++)
        any |= p->output[o].combine && !p->output[o].combine->exact;
    return any;
}

/* What each rank computes of a problem without the split dimension: all of it.  NULL after a message. */
static const struct dist_split *dist_alike(struct ptxgen_session *s, const struct problem *p)
{
    struct dist_split *sp = arena_new(&s->arena, struct dist_split, 1);
    struct problem *copy = arena_new(&s->arena, struct problem, 1);
    *sp = (struct dist_split){ .problem = p, .size = -1, .axis = -1, .alike = true };
    if (meets_in_any_order(p)) {
        diag_hint(&s->diags,
                  diag_error(&s->diags, D_DISTRIBUTED, p->at,
                             "each rank would compute this for itself, and get other bits than the others, because "
                             "elements that round meet in any order"),
                  "split a dimension that the stage has");
        return NULL;
    }
    *copy = *p;
    if (p->determinism == DET_ANY && !dist_exact(p)) { /* all ranks get the same bits */
        copy->determinism = DET_RUN;
        copy->strategy = NULL;
        copy->strategy_at = span_none();
        copy->ntunables = 0;
    }
    sp->stage[STAGE_LOCAL].problem = copy;
    return sp;
}

/* ---- all stages -------------------------------------------------------------------------------------------------- */

static int size_named(const struct problem *p, const char *name)
{
    for (int i = 0; i < p->nsizes; i++)
        if (!strcmp(p->size[i].name, name))
            return i;
    return -1;
}

static bool has_axis(const struct problem *p, int size)
{
    for (int i = 0; i < p->rank; i++)
        if (p->space[i].extent.size == size)
            return true;
    return p->njoined > 0; /* dist_derive() says that it cannot split these */
}

static const struct dist_split *refuse_array(struct ptxgen_session *s, const struct problem *p, int size)
{
    struct span at = p->at;
    const char *name = NULL;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = problem_array(p, i);
        for (int d = 0; d < a->rank && !name; d++)
            if (a->dim[d].size == size) {
                name = a->name;
                at = i < p->ninputs ? p->input[i].at : p->output[i - p->ninputs].at;
            }
    }
    diag_hint(&s->diags,
              diag_error(&s->diags, D_DISTRIBUTED, at,
                         "'%s' is split along '%s', and the elements of this stage, which may need any of it, are not",
                         name ? name : p->name, p->size[size].name),
              "split another dimension");
    return NULL;
}

static const struct dist_split *split_stage(struct ptxgen_session *s, const struct problem *p, const char *split,
                                            int64_t block)
{
    const int size = size_named(p, split);
    if (size < 0)
        return dist_alike(s, p);
    return has_axis(p, size) ? dist_derive(s, p, split, block) : refuse_array(s, p, size);
}

/* The first dimension with a name of the first stage that has one; NULL after a message. */
static const char *first_dimension(struct ptxgen_session *s, const struct stages *p)
{
    for (int i = 0; i < p->data.nstages; i++)
        for (int k = 0; k < p->problem[i]->rank; k++) {
            const int size = p->problem[i]->space[k].extent.size;
            if (size >= 0 && size < p->problem[i]->nsizes)
                return p->problem[i]->size[size].name;
        }
    diag_error(&s->diags, D_DISTRIBUTED, p->problem[0]->at,
               "there is no dimension with a size to split among the ranks");
    return NULL;
}

/* The number of the size of the whole, or -1 after a message. */
static int find_size(struct ptxgen_session *s, const struct stages *p, const char *split)
{
    const struct program *shape = p->data.shape;
    for (int i = 0; i < shape->nsizes; i++)
        if (!strcmp(shape->size[i], split))
            return i;
    diag_suggest(&s->diags,
                 diag_error(&s->diags, D_DISTRIBUTED, p->problem[0]->at,
                            "there is no dimension called %s to split among the ranks", split),
                 split, shape->size, shape->nsizes);
    return -1;
}

/* Names and params of a stage. */
static const struct program *shape_of(struct ptxgen_session *s, const struct problem *p)
{
    struct program *shape = arena_new(&s->arena, struct program, 1);
    const char **size = arena_new(&s->arena, const char *, p->nsizes + 1);
    for (int i = 0; i < p->nsizes; i++)
        size[i] = p->size[i].name;
    *shape = (struct program){ .name = p->name, .nsizes = p->nsizes, .size = size };
    return shape;
}

static bool add_stage(struct ptxgen_session *s, struct ptxgen_dist *d, const struct stages *p, int i, const char *split)
{
    struct ptxgen_dist *of = d->of[i] = arena_new(&s->arena, struct ptxgen_dist, 1);
    of->comm = d->comm;
    of->block = d->block;
    of->shape = shape_of(s, p->problem[i]);
    of->split = split_stage(s, p->problem[i], split, d->block);
    if (!of->split) {
        struct diag *last = s->diags.last;
        last->text = arena_printf(&s->arena, "stage %s: %s", p->data.stage[i].name, last->text);
        return false;
    }
    of->size = of->split->size;
    d->pieces |= of->split->pieces;
    return true;
}

bool dist_derive_program(struct ptxgen_session *s, struct ptxgen_dist *d, const struct stages *p, const char *split)
{
    split = split ? split : first_dimension(s, p);
    d->size = split ? find_size(s, p, split) : -1;
    bool good = d->size >= 0;
    d->program = &p->data;
    for (int i = 0; i < p->data.nstages && good; i++)
        good = add_stage(s, d, p, i, split);
    return good;
}
