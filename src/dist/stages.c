/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - the arguments of the stages of a split problem; and the host executor, as what runs them. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

bool dist_compile(struct ptxgen_session *s, struct ptxgen_dist *d, const struct llvmgen_options *o)
{
    const struct plan_options usual = { 0 };
    struct device device;
    int nsymbols;
    const struct host_symbol *symbols = simt_symbols(&nsymbols);
    bool good = device_by_name("sm_80", 0, &device);
    for (int i = 0; d->program && i < d->program->nstages && good; i++) {
        d->of[i]->modes = d->modes;
        good = dist_compile(s, d->of[i], o);
    }
    if (d->program)
        return good;
    for (int i = 0; i < DIST_STAGES && good; i++) {
        if (!d->split->stage[i].problem || (dist_stage_joins((enum dist_stage)i) && !d->comm->gpu))
            continue;
        const struct plan *plan = plan_create(s, d->split->stage[i].problem, &device, &usual);
        d->control[i] = plan ? simt_control_create() : NULL;
        d->code[i] = d->control[i] ? llvmgen_host(s, plan, o, symbols, nsymbols) : NULL;
        good = d->code[i] != NULL;
    }
    return good;
}

void dist_release(struct ptxgen_dist *d)
{
    for (struct dist_room *m = d->rooms, *next; m; m = next) {
        next = m->next;
        room_free(m);
    }
    for (int i = 0; d->program && i < d->program->nstages && d->of[i]; i++)
        dist_release(d->of[i]);
    for (int i = 0; i < DIST_STAGES; i++) {
        if (d->code[i])
            host_destroy(d->code[i]);
        simt_control_destroy(d->control[i]);
        ptxgen_loaded_destroy(d->loaded[i]);
    }
}

/* Elements of the array for one of the split dimension, which is its first; 0: it has none. */
static int64_t step(const struct dist_split *sp, const struct prog_array *a, const int64_t *size)
{
    struct prog_array row = *a;
    if (!a->rank || a->dim[0].size != sp->size)
        return 0;
    row.dim[0] = (struct prog_dim){ -1, 1 };
    return prog_array_elements(&row, size);
}

static const void *at(const struct dist_split *sp, const struct prog_array *a, const struct dist_run *run,
                      const void *memory)
{
    const int64_t behind = run->behind ? run->behind * step(sp, a, run->args->size) * a->stride : 0;
    return memory ? (const char *)memory + behind : NULL;
}

enum { PARAMS_MOST = 9 };

ptxgen_status dist_run_stage(struct launch *l, enum dist_stage stage, const struct dist_run *run)
{
    const struct dist_split *sp = l->d->split;
    const struct dist_derived *from = &sp->stage[stage];
    const struct problem *whole = sp->problem, *p = from->problem;
    int64_t size[PROBLEM_ARGS_MAX];
    union value param[PROBLEM_ARGS_MAX + PARAMS_MOST];
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    for (int i = 0; i < whole->nsizes; i++)
        size[i] = run->args->size[i];
    size[sp->size] = from->folds ? l->room->total : run->count;
    size[whole->nsizes] = run->states;
    for (int i = 0; i < whole->nparams; i++)
        param[i] = run->args->param[i];
    param[whole->nparams].i = from->folds ? (int64_t)(uintptr_t)run->exchange : run->first;
    param[whole->nparams + 1].i = l->room->total;
    param[whole->nparams + 2].i = run->own_first;
    param[whole->nparams + 3].i = run->own_first + run->own_count;
    param[whole->nparams + 4].i = run->steps;
    param[whole->nparams + 5].i = run->stride;
    for (int i = 0; i < 3; i++)
        param[whole->nparams + 6 + i].i = (int64_t)run->halo[i];
    for (int i = 0; i < p->ninputs; i++)
        input[i] =
            from->input[i] < 0 ? run->states_in : at(sp, &p->input[i].array, run, run->args->input[from->input[i]]);
    for (int i = 0; i < p->noutputs; i++)
        output[i] = from->output[i] < 0
                        ? run->states_out
                        : (void *)(uintptr_t)at(sp, &p->output[i].array, run, run->args->output[from->output[i]]);
    const struct run_args args = { size, input, output, param };
    return machine_of(l->d)->run(l, stage, &args);
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static ptxgen_status host_run(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    struct simt_report report;
    simt_run(l->d->code[stage], args, l->d->control[stage], &l->d->modes, &report);
    return simt_status(l->s, &report);
}

static ptxgen_status host_alloc(struct ptxgen_session *s, struct ptxgen_dist *d, size_t bytes, void **out)
{
    (void)s, (void)d;
    *out = calloc(1, bytes + 1);
    return *out ? PTXGEN_OK : PTXGEN_NO_MEMORY;
}

static void host_free(struct ptxgen_dist *d, void *memory)
{
    (void)d;
    free(memory);
}

static ptxgen_status host_write(struct ptxgen_session *s, struct ptxgen_dist *d, void *to, const void *host,
                                size_t bytes)
{
    (void)s, (void)d;
    memcpy(to, host, bytes);
    return PTXGEN_OK;
}

static ptxgen_status host_read(struct launch *l, void *host, const void *from, size_t bytes)
{
    (void)l;
    memcpy(host, from, bytes);
    return PTXGEN_OK;
}

static ptxgen_status host_copy(struct launch *l, const struct dist_copy *c)
{
    (void)l;
    for (int64_t i = 0; i < c->rows; i++)
        memmove(c->to + (size_t)i * c->to_pitch, c->from + (size_t)i * c->from_pitch, c->width);
    return PTXGEN_OK;
}

/* With what happened here, so that all ranks come to the same verdict. */
static ptxgen_status host_gather(struct launch *l)
{
    const int64_t own = l->failed;
    memcpy(l->room->own, &own, sizeof own);
    return dist_exchange(l->s, l->d->comm, l->room->own, l->room->all, l->room->block);
}

static ptxgen_status host_swap(struct launch *l, const struct exchange_message *m, int n)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < n && status == PTXGEN_OK; i++)
        if (m[i].to == l->d->comm->rank)
            memmove(m[i].get, m[i].send, m[i].send_bytes);
        else
            status = dist_sendrecv(l->s, l->d->comm, m[i].send, m[i].send_bytes, m[i].to, m[i].get, m[i].get_bytes,
                                   m[i].from);
    return status;
}

const struct dist_machine dist_machine_host = { .tells = true,
                                                .run = host_run,
                                                .alloc = host_alloc,
                                                .free = host_free,
                                                .write = host_write,
                                                .read = host_read,
                                                .copy = host_copy,
                                                .gather = host_gather,
                                                .swap = host_swap };
