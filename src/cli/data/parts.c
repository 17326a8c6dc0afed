/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "parts.h"
#include "stages.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_ARRAYS_MAX = 256 }; /* more than a problem has */

int parts_split(const struct job *j, const ptxgen_dist *dist)
{
    int i = 0;
    while (i < j->nsizes - 1 && strcmp(ptxgen_problem_size_name(j->problem, i), ptxgen_dist_split(dist)) != 0)
        i++;
    return i;
}

struct array *parts_array(struct job *j, int i) { return i < j->ninputs ? &j->input[i] : &j->output[i - j->ninputs]; }

bool parts_rows(const struct job *j, int split, const struct array *a, int64_t *outer, int64_t *inner)
{
    bool found = false;
    *outer = 1;
    *inner = (int64_t)a->info.element_size;
    for (int d = 0; d < a->info.rank; d++) {
        if (a->info.size_index[d] == split)
            found = true;
        else
            *(found ? inner : outer) *= array_dim(&a->info, d, j->size);
    }
    return found;
}

int parts_block(const struct options *o, int64_t *block)
{
    *block = 0;
    if (!o->shard_block || (!parse_count(o->shard_block, block) && *block > 0))
        return EXIT_OK;
    return fail(EXIT_USAGE, "--shard-block %s: expected a number of elements", o->shard_block);
}

ptxgen_status parts_share(ptxgen_session *s, const struct job *j, const ptxgen_dist *dist, int64_t total, int rank,
                          int ranks, struct part *out)
{
    const ptxgen_status status = ptxgen_dist_share(s, dist, total, rank, &out->first, &out->count);
    parts_block(j->options, &out->block);
    out->step = out->block * ranks;
    if (!out->block)
        out->block = out->step = out->count;
    return status;
}

void parts_copy(const struct job *j, int split, const struct array *a, char *here, const struct part *of, bool out)
{
    int64_t outer, inner;
    parts_rows(j, split, a, &outer, &inner);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t at = 0, row = of->first; at < of->count; at += of->block, row += of->step) {
            const int64_t n = of->count - at < of->block ? of->count - at : of->block;
            char *whole = a->data + (i * j->size[split] + row) * inner, *part = here + (i * of->count + at) * inner;
            memcpy(out ? whole : part, out ? part : whole, (size_t)(n * inner));
        }
}

int64_t *parts_sizes(const struct job *j, int split, int64_t count)
{
    int64_t *size = calloc((size_t)j->nsizes + 1, sizeof *size);
    for (int i = 0; size && i < j->nsizes; i++)
        size[i] = i == split ? count : j->size[i];
    return size;
}

/* ---- a stage of a program ---------------------------------------------------------------------------------------- */

static int size_named(const ptxgen_problem *p, const char *name)
{
    int i = ptxgen_problem_size_count(p) - 1;
    while (i >= 0 && strcmp(ptxgen_problem_size_name(p, i), name) != 0)
        i--;
    return i < 0 ? PARTS_WHOLE : i;
}

/* Room for a whole array. */
static bool whole(struct array *a, const int64_t *size)
{
    a->elements = ptxgen_array_elements(&a->info, size);
    a->bytes = (size_t)a->elements * a->info.element_size;
    a->data = a->block = calloc(1, a->bytes + 1);
    return a->data;
}

bool parts_stage_begin(struct parts_stage *p, struct job *j, const ptxgen_dist *dist, int stage,
                       const ptxgen_arguments *shown)
{
    const ptxgen_problem *of = ptxgen_stage_problem(j->problem, stage);
    *p = (struct parts_stage){ .of = { .options = j->options,
                                       .session = j->session,
                                       .problem = (ptxgen_problem *)(uintptr_t)of,
                                       .nsizes = ptxgen_problem_size_count(of),
                                       .ninputs = ptxgen_problem_input_count(of),
                                       .noutputs = ptxgen_problem_output_count(of) },
                               .split = size_named(of, ptxgen_dist_split(dist)),
                               .shown = shown };
    struct job *w = &p->of;
    w->size = calloc((size_t)w->nsizes + 1, sizeof *w->size);
    w->input = calloc((size_t)w->ninputs + 1, sizeof *w->input);
    w->output = calloc((size_t)w->noutputs + 1, sizeof *w->output);
    bool fine = w->size && w->input && w->output;
    for (int i = 0; i < w->nsizes && fine; i++)
        w->size[i] = i == p->split ? j->size[parts_split(j, dist)] : shown->size[i];
    for (int i = 0; i < w->ninputs && fine; i++) {
        ptxgen_problem_input(of, i, &w->input[i].info);
        fine = whole(&w->input[i], w->size);
    }
    for (int i = 0; i < w->noutputs && fine; i++) {
        ptxgen_problem_output(of, i, &w->output[i].info);
        fine = whole(&w->output[i], w->size);
    }
    return fine;
}

void *parts_stage_shown(const struct parts_stage *p, int i, const ptxgen_arguments *shown)
{
    return i < p->of.ninputs ? (void *)(uintptr_t)shown->input[i] : shown->output[i - p->of.ninputs];
}

int parts_stage_verify(const struct parts_stage *p, struct job *j, int stage, int64_t step)
{
    const void *input[PARTS_ARRAYS_MAX];
    void *output[PARTS_ARRAYS_MAX];
    for (int i = 0; i < p->of.ninputs; i++)
        input[i] = p->of.input[i].data;
    for (int i = 0; i < p->of.noutputs; i++)
        output[i] = p->of.output[i].data;
    const ptxgen_arguments args = { p->of.size, input, output, p->shown->param };
    return stages_visit(stage, step, &args, j);
}

void parts_stage_finish(struct parts_stage *p)
{
    for (int i = 0; p->of.input && i < p->of.ninputs; i++)
        free(p->of.input[i].block);
    for (int i = 0; p->of.output && i < p->of.noutputs; i++)
        free(p->of.output[i].block);
    free(p->of.size);
    free(p->of.input);
    free(p->of.output);
}
