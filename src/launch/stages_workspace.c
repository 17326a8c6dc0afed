/* SPDX-License-Identifier: Apache-2.0 */
/* stages_workspace.c - a caller's workspace for a spec with stages: a piece for each stage, and arrays between them.
 *
 *     control   piece of stage 0, of stage 1, ...
 *     scratch   arrays between stages and twins; piece of stage 0, of stage 1, ...
 *
 * Pieces of two stages are different memory, because stages may run side by side in a captured graph.
 */
#include "launch_stages.h"

enum { ALIGNMENT = 256, STEPS_SEEN = 3 };

struct measuring {
    struct ptxgen_session *s;
    struct ptxgen_loaded *l;
    const struct run_args *whole;
    struct stages_pieces *out;
    int64_t step; /* -1: before the first */
    ptxgen_status status;
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static bool query(struct measuring *m, int stage, const struct run_args *given)
{
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };
    ptxgen_workspace *piece = &m->out->piece[stage], need;

    m->status = ptxgen_workspace_query(m->s, m->l->stages->stage[stage], &args, &need);
    piece->control_bytes = larger(piece->control_bytes, need.control_bytes);
    piece->scratch_bytes = larger(piece->scratch_bytes, need.scratch_bytes);
    return m->status == PTXGEN_OK;
}

/* A stage may repeat itself as often as the number of the step says, and need more memory then. */
static bool query_later(struct measuring *m, int stage, const struct run_args *given)
{
    const struct prog_stages *p = m->l->stages->p;
    const struct prog_stage *s = &p->stage[stage];
    union value param[STAGE_ARGS_MAX];
    struct run_args later = *given;
    const char *why;
    const int64_t steps = stages_steps(p, m->whole->param, &why);
    bool reads = false, ok = true;

    for (int i = 0; i < s->nparams; i++)
        reads |= s->param[i] < 0;
    later.param = param;
    for (int64_t step = 1; reads && ok && step<steps; step = step> INT32_MAX / 2 ? steps : 2 * step + 1) {
        for (int i = 0; i < s->nparams; i++)
            param[i] = s->param[i] < 0 ? (union value){ .i = step } : given->param[i];
        ok = query(m, stage, &later);
    }
    return ok;
}

static bool measure_run(void *user, int stage, const struct run_args *given)
{
    struct measuring *m = user;

    m->step += stage == 0;
    return m->step < STEPS_SEEN && query(m, stage, given) && (m->step > 0 || query_later(m, stage, given));
}

static bool measure_copy(void *user, void *to, const void *from, int64_t bytes)
{
    (void)user, (void)to, (void)from, (void)bytes;
    return true;
}

static bool measure_holds(void *user, const void *flag, bool *holds)
{
    (void)user, (void)flag;
    *holds = false;
    return true;
}

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Each piece after those before it. */
static void lay_out(const struct prog_stages *p, char *control, char *scratch, int64_t between,
                    struct stages_pieces *out)
{
    out->control_bytes = 0;
    out->scratch_bytes = aligned((size_t)between);
    for (int i = 0; i < p->nstages; i++) {
        out->piece[i].control = control + out->control_bytes;
        out->piece[i].scratch = scratch + out->scratch_bytes;
        out->control_bytes += aligned(out->piece[i].control_bytes);
        out->scratch_bytes += aligned(out->piece[i].scratch_bytes);
    }
}

ptxgen_status stages_measure(struct ptxgen_session *s, struct ptxgen_loaded *l, const struct run_args *run,
                             const struct stages_layout *layout, const ptxgen_workspace *given,
                             struct stages_pieces *out)
{
    struct measuring m = { s, l, run, out, -1, PTXGEN_OK };
    const struct stages_doer doer = { &m, measure_run, measure_copy, measure_holds, true };
    char *const somewhere = (char *)ALIGNMENT; /* not NULL: an array may be at its beginning */
    char *control = given && given->control ? given->control : somewhere;
    char *scratch = given && given->scratch ? given->scratch : somewhere;

    *out = (struct stages_pieces){ 0 };
    stages_walk(l->stages->p, run, layout, scratch, &doer);
    lay_out(l->stages->p, control, scratch, layout->bytes, out);
    return m.status;
}
