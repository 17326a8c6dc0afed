/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "parts.h"
#include "ptxgen/stages.h"

#include <stdlib.h>
#include <string.h>

int parts_verify(const struct job *j)
{
    if (j->options->verify && ptxgen_stage_count(j->problem))
        return fail(EXIT_USAGE, "not yet: --verify of a spec with stages on several ranks; without --distributed and "
                                "--devices each stage is compared with the reference");
    return EXIT_OK;
}

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

void parts_copy(const struct job *j, int split, const struct array *a, char *part, int64_t first, int64_t count,
                bool out)
{
    int64_t outer, inner;
    parts_rows(j, split, a, &outer, &inner);
    for (int64_t i = 0; i < outer; i++) {
        char *whole = a->data + (i * j->size[split] + first) * inner, *here = part + i * count * inner;
        memcpy(out ? whole : here, out ? here : whole, (size_t)(count * inner));
    }
}

int64_t *parts_sizes(const struct job *j, int split, int64_t count)
{
    int64_t *size = calloc((size_t)j->nsizes + 1, sizeof *size);
    for (int i = 0; size && i < j->nsizes; i++)
        size[i] = i == split ? count : j->size[i];
    return size;
}
