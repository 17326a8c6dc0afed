/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - programs of several stages: memory between stages, and the walk. */
#include "stages.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { ALIGNMENT = 256 };

/* What gets memory: an array between stages, or a twin. */
struct lifetime {
    int slot, first, last;
    int64_t bytes;
};

static bool bytes_of(const struct prog_array *a, const int64_t *size, int64_t *out)
{
    const int64_t elements = prog_array_elements(a, size);
    if (elements < 0 || __builtin_mul_overflow(elements, (int64_t)a->stride, out) || *out > INT64_MAX / 2)
        return false;
    *out = (*out + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return true;
}

static bool lifetimes(const struct prog_stages *p, const int64_t *size, struct lifetime *of, int *count)
{
    *count = 0;
    for (int i = 0; i < p->narrays; i++) {
        const struct stage_array *a = &p->array[i];
        of[*count] = (struct lifetime){ i, a->first, a->last, 0 };
        if (a->place == PLACE_BETWEEN && !bytes_of(&a->array, size, &of[(*count)++].bytes))
            return false;
    }
    for (int i = 0; i < p->nfeedback; i++) {
        of[*count] = (struct lifetime){ STAGE_ARRAYS_MAX + i, 0, p->nstages - 1, 0 };
        if (p->feedback[i].twin && !bytes_of(&p->array[p->feedback[i].output].array, size, &of[(*count)++].bytes))
            return false;
    }
    return true;
}

/* The largest first; of equal ones, the first. */
static void sort(struct lifetime *of, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && of[k].bytes > of[k - 1].bytes; k--) {
            const struct lifetime moved = of[k];
            of[k] = of[k - 1];
            of[k - 1] = moved;
        }
}

static bool together(const struct lifetime *x, const struct lifetime *y)
{
    return x->first <= y->last && y->first <= x->last && x->bytes && y->bytes;
}

/* The lowest place for of[i] that overlaps none of those before it that live at the same time. */
static int64_t lowest(const struct lifetime *of, int i, const struct stages_layout *l)
{
    int64_t at = 0;
    for (int k = 0; k < i;) {
        const int64_t begin = l->offset[of[k].slot], end = begin + of[k].bytes;
        const bool meets = together(&of[i], &of[k]) && at < end && begin < at + of[i].bytes;
        at = meets ? end : at;
        k = meets ? 0 : k + 1;
    }
    return at;
}

bool stages_place(const struct prog_stages *p, const int64_t *size, struct stages_layout *out)
{
    struct lifetime of[2 * STAGE_ARRAYS_MAX];
    int count;
    *out = (struct stages_layout){ 0 };
    if (!lifetimes(p, size, of, &count))
        return false;
    sort(of, count);
    for (int i = 0; i < count; i++) {
        const int64_t at = lowest(of, i, out);
        if (at > INT64_MAX / 2 - of[i].bytes)
            return false;
        out->offset[of[i].slot] = at;
        out->bytes = at + of[i].bytes > out->bytes ? at + of[i].bytes : out->bytes;
    }
    return true;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

struct walk {
    const struct prog_stages *p;
    const struct run_args *args;
    const struct stages_layout *layout;
    char *memory;
    int64_t step, steps;
};

int64_t stages_steps(const struct prog_stages *p, const union value *param, const char **why)
{
    const int64_t steps = p->steps_param < 0 ? p->steps : param[p->steps_param].i;
    bool fed = p->nfeedback > 0;
    for (int i = 0; i < p->narrays; i++) {
        bool one = p->array[i].place != PLACE_OUTPUT;
        for (int f = 0; f < p->nfeedback; f++)
            one |= p->feedback[f].output == i;
        fed &= one;
    }
    *why = steps < 0 ? "the number of steps is negative" : "without a step there is no value for every output";
    return steps == 0 && !fed ? -1 : steps;
}

/* The memory of an array, as the whole knows it. */
static void *home(const struct walk *w, int array)
{
    const struct stage_array *a = &w->p->array[array];
    switch (a->place) {
    case PLACE_INPUT: return (void *)(uintptr_t)w->args->input[a->index];
    case PLACE_OUTPUT: return w->args->output[a->index];
    case PLACE_BETWEEN: break;
    }
    return w->memory + w->layout->offset[array];
}

/* What step `step` writes of feedback f.  Twin and home take turns so that the last step writes home, as far as the
 * last one is known. */
static void *fed(const struct walk *w, int f, int64_t step)
{
    const struct stage_feedback *b = &w->p->feedback[f];
    return b->twin && (w->steps - 1 - step) % 2 ? w->memory + w->layout->offset[STAGE_ARRAYS_MAX + f]
                                                : home(w, b->output);
}

static void *read_at(const struct walk *w, int array)
{
    for (int f = 0; f < w->p->nfeedback; f++)
        if (w->p->feedback[f].input == array && w->step > 0)
            return fed(w, f, w->step - 1);
        else if (w->p->feedback[f].output == array)
            return fed(w, f, w->step);
    return home(w, array);
}

static bool run_stage(const struct walk *w, int number, const struct stages_doer *doer)
{
    const struct prog_stage *s = &w->p->stage[number];
    int64_t size[STAGE_ARGS_MAX];
    union value param[STAGE_ARGS_MAX];
    const void *input[STAGE_ARGS_MAX];
    void *output[STAGE_ARGS_MAX];
    for (int i = 0; i < s->nsizes; i++)
        size[i] = w->args->size[s->size[i]];
    for (int i = 0; i < s->nparams; i++)
        param[i] = s->param[i] < 0 ? (union value){ .i = w->step } : w->args->param[s->param[i]];
    for (int i = 0; i < s->ninputs; i++)
        input[i] = read_at(w, s->input[i]);
    for (int i = 0; i < s->noutputs; i++)
        output[i] = read_at(w, s->output[i]);
    return doer->run(doer->user, number, &(struct run_args){ size, input, output, param });
}

/* Step `from` has written the last values (or, with -1, none has): they go home. */
static bool bring_home(const struct walk *w, int64_t from, const struct stages_doer *doer)
{
    for (int f = 0; f < w->p->nfeedback; f++) {
        const struct stage_feedback *b = &w->p->feedback[f];
        const struct prog_array *a = &w->p->array[b->output].array;
        const void *last = from < 0 ? home(w, b->input) : fed(w, f, from);
        const int64_t bytes = prog_array_elements(a, w->args->size) * a->stride;
        if (last != home(w, b->output) && bytes > 0 && !doer->copy(doer->user, home(w, b->output), last, bytes))
            return false;
    }
    return true;
}

static bool is_checked(const struct prog_stages *p, int64_t step)
{
    return p->until >= 0 && (step + 1) % p->check_every == 0;
}

bool stages_checks(const struct prog_stages *p, int64_t step, int64_t steps)
{
    return is_checked(p, step) && step + 1 < steps;
}

/* Without the condition's stage, the last one, where nobody reads what it writes. */
static bool run_step(const struct walk *w, const struct stages_doer *doer)
{
    const bool all = w->p->until < 0 || doer->all || is_checked(w->p, w->step);
    for (int i = 0; i < w->p->nstages - !all; i++)
        if (!run_stage(w, i, doer))
            return false;
    return true;
}

/* For a walk whose last step is not known: with an even number there, even steps write home. */
enum { SOME_EVEN_STEP = 2 };

bool stages_step(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                 void *memory, int64_t step, const struct stages_doer *doer)
{
    return run_step(&(struct walk){ p, args, layout, memory, step, SOME_EVEN_STEP + 1 }, doer);
}

bool stages_twins_home(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                       void *memory, const struct stages_doer *doer)
{
    return bring_home(&(struct walk){ p, args, layout, memory, 0, SOME_EVEN_STEP + 1 }, 1, doer);
}

bool stages_walk(const struct prog_stages *p, const struct run_args *args, const struct stages_layout *layout,
                 void *memory, const struct stages_doer *doer)
{
    const char *why;
    struct walk w = { p, args, layout, memory, 0, stages_steps(p, args->param, &why) };
    bool ends = false;
    for (; w.step < w.steps && !ends; w.step++) {
        if (!run_step(&w, doer))
            return false;
        if (stages_checks(p, w.step, w.steps) && !doer->holds(doer->user, home(&w, p->until), &ends))
            return false;
    }
    return bring_home(&w, w.step - 1, doer);
}
