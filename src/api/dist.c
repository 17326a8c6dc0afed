/* SPDX-License-Identifier: Apache-2.0 */
/* dist.c - the public API: problems and programs on several ranks. */
#include <stdlib.h>
#include <string.h>

#include "api_impl.h"
#include "dist/nccl.h"
#include "launch/launch_dist.h"
#include "ptxgen/dist.h"

enum { RANKS_MAX = 1 << 16, NCCL_SECONDS = 300, BLOCK_MULTIPLE = 16 };
static const int64_t BLOCK_MOST = INT64_C(1) << 40;

ptxgen_status ptxgen_comm_from_host(ptxgen_session *s, const ptxgen_comm_callbacks *callbacks, int rank, int size,
                                    ptxgen_comm **out)
{
    ptxgen_comm_callbacks with;
    bool fits = false;
    CLEAR(out);
    if (LACKS(s, s, callbacks, out) || !TAKE(s, callbacks, &with))
        return PTXGEN_USAGE;
    WITH_MEMORY(s, fits = api_fit_number(s, "size", size, 1, RANKS_MAX) &&
                          api_fit_number(s, "rank", rank, 0, size - 1) &&
                          api_fit_given(s, "allgather", with.allgather ? &with : NULL));
    if (!fits)
        return PTXGEN_USAGE;
    ptxgen_comm_callbacks *kept = malloc(sizeof *kept);
    if (!kept)
        return PTXGEN_NO_MEMORY;
    *kept = with;
    *out = dist_comm_create(&dist_transport_host, kept, rank, size);
    return *out ? PTXGEN_OK : PTXGEN_NO_MEMORY;
}

ptxgen_status ptxgen_comm_from_nccl(ptxgen_session *s, ptxgen_gpu *gpu, void *nccl_comm,
                                    const ptxgen_nccl_options *options, ptxgen_comm **out)
{
    ptxgen_nccl_options o;
    bool fits = false;
    CLEAR(out);
    if (LACKS(s, s, gpu, nccl_comm, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    WITH_MEMORY(s, fits = api_fit_seconds(s, "seconds", o.seconds));
    if (o.seconds <= 0)
        o.seconds = NCCL_SECONDS;
    return fits ? nccl_open(s, gpu, nccl_comm, &o, out) : PTXGEN_USAGE;
}

int ptxgen_comm_rank(const ptxgen_comm *comm) { return comm ? comm->rank : -1; }
int ptxgen_comm_size(const ptxgen_comm *comm) { return comm ? comm->size : 0; }

void ptxgen_comm_destroy(ptxgen_comm *comm)
{
    if (!comm)
        return;
    comm->transport->close(comm->self);
    free(comm->hello);
    free(comm);
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

/* FNV-1a of what all ranks must have alike. */
static uint64_t hash_of(const ptxgen_problem *p, const char *split, int64_t block)
{
    struct str text = { 0 };
    uint64_t hash = 14695981039346656037u;
    if (p->stages)
        stages_print(p->stages, &text);
    else
        problem_print(p->problem, &text);
    str_add(&text, split ? split : "");
    str_printf(&text, " %lld", (long long)block);
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.text[i]) * 1099511628211u;
    str_finish(&text);
    return hash;
}

static bool sends_what_it_needs(ptxgen_session *s, const ptxgen_dist *d)
{
    bool good = true;
    for (int i = 0; d->program && i < d->program->nstages && good; i++)
        good = sends_what_it_needs(s, d->of[i]);
    if (d->program || d->split->before + d->split->after == 0 || d->comm->transport->sends(d->comm->self))
        return good;
    diag_error(&s->diags, D_DISTRIBUTED, d->split->problem->at,
               "neighbours are on other ranks, and the communicator has no `sendrecv`");
    return false;
}

/* As any problem. */
static ptxgen_status load_stage(ptxgen_session *s, ptxgen_dist *d, int i)
{
    const ptxgen_problem *stage = NULL;
    WITH_MEMORY(s, stage = api_problem_handle(s, d->split->stage[i].problem));
    return ptxgen_jit(s, d->comm->gpu, stage, NULL, &d->loaded[i]);
}

static ptxgen_status load_on_gpu(ptxgen_session *s, ptxgen_dist *d)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; d->program && i < d->program->nstages && status == PTXGEN_OK; i++)
        status = load_on_gpu(s, d->of[i]);
    for (int i = 0; !d->program && i < DIST_STAGES && status == PTXGEN_OK; i++)
        if (d->split->stage[i].problem)
            status = load_stage(s, d, i);
    return status;
}

static ptxgen_status compile(ptxgen_session *s, const ptxgen_problem *p, const char *split, ptxgen_dist *d)
{
    struct llvmgen_options o;
    bool compiled = false;
    if (!api_compile_options(s, NULL, &o))
        return PTXGEN_NO_MEMORY;
    WITH_MEMORY(s, {
        compiled =
            p->stages ? dist_derive_program(s, d, p->stages, split) : dist_derive_problem(s, d, p->problem, split);
        compiled = compiled && sends_what_it_needs(s, d) && (d->comm->gpu || dist_compile(s, d, &o));
    });
    if (compiled && d->comm->gpu)
        return load_on_gpu(s, d);
    if (compiled)
        return PTXGEN_OK;
    const struct diag *last = s->diags.last;
    return last && last->code >= D_CODEGEN ? api_codegen_failure(s) : PTXGEN_UNSUPPORTED;
}

/* All ranks have compiled the same, or none has loaded. */
static ptxgen_status load(ptxgen_session *s, ptxgen_dist *d, const ptxgen_problem *p, const char *split)
{
    struct dist_hello own = { .operation = DIST_LOAD };
    ptxgen_status status = PTXGEN_OK;
    own.status = compile(s, p, split, d);
    strncpy(own.name, d->shape->name, PROBLEM_NAME_MAX);
    d->problem = own.problem = hash_of(p, split, d->block);
    WITH_MEMORY(s, status = dist_agree(s, d->comm, d->shape, &own));
    return status;
}

static ptxgen_status alive(ptxgen_session *s, const ptxgen_comm *comm)
{
    if (!comm->broken)
        return PTXGEN_OK;
    session_report(s, D_RANKS,
                   comm->transport->ends ? "an earlier exchange failed: the communicator cannot be used any more"
                                         : "an earlier exchange failed: all ranks must call ptxgen_dist_reset() first");
    return PTXGEN_RANKS;
}

static bool fit_block(ptxgen_session *s, int64_t block)
{
    if (!api_fit_number(s, "block", block, 0, BLOCK_MOST))
        return false;
    if (block % BLOCK_MULTIPLE == 0)
        return true;
    diag_error(&s->diags, D_BAD_ARGUMENT, span_none(), "block: %lld is not a multiple of %d", (long long)block,
               BLOCK_MULTIPLE);
    return false;
}

ptxgen_status ptxgen_dist_load(ptxgen_session *s, ptxgen_comm *comm, const ptxgen_problem *p,
                               const ptxgen_dist_options *options, ptxgen_dist **out)
{
    ptxgen_dist_options o;
    CLEAR(out);
    if (LACKS(s, s, comm, p, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    struct simt_options modes;
    bool fits = false;
    WITH_MEMORY(s, fits = fit_block(s, o.block));
    ptxgen_status status = fits ? api_read_modes(s, o.modes, &modes) : PTXGEN_USAGE;
    if (status == PTXGEN_OK)
        status = alive(s, comm);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_dist *d = calloc(1, sizeof *d);
    if (!d)
        return PTXGEN_NO_MEMORY;
    d->comm = comm;
    d->shape = p->shape;
    d->modes = modes;
    d->block = o.block;
    status = load(s, d, p, o.split);
    if (status == PTXGEN_OK)
        *out = d;
    else
        ptxgen_dist_destroy(d);
    return status;
}

void ptxgen_dist_destroy(ptxgen_dist *dist)
{
    if (!dist)
        return;
    dist_release(dist);
    free(dist);
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

const char *ptxgen_dist_split(const ptxgen_dist *dist) { return dist ? dist_split_name(dist) : NULL; }

ptxgen_status ptxgen_dist_share(ptxgen_session *s, const ptxgen_dist *dist, int64_t total, int rank, int64_t *first,
                                int64_t *count)
{
    bool fits = false;
    NEED(PTXGEN_USAGE, s, s, dist, first, count);
    WITH_MEMORY(s, fits = api_fit_number(s, "total", total, 0, INT64_MAX / 2) &&
                          api_fit_number(s, "rank", rank, 0, dist->comm->size - 1));
    if (fits && dist->block)
        dist_deal(dist->block, total, rank, dist->comm->size, first, count);
    else if (fits)
        dist_share(dist->pieces, total, rank, dist->comm->size, first, count);
    return fits ? PTXGEN_OK : PTXGEN_USAGE;
}

/* The arguments of this rank, checked; the status goes to all ranks, where they tell each other. */
static ptxgen_status fit(ptxgen_session *s, ptxgen_dist *d, const ptxgen_arguments *args, struct fit_arguments *to)
{
    bool fits = api_fit_arguments(s, d->shape, args, to);
    for (int i = 0; args->size && i < d->shape->nsizes; i++)
        fits = fits && api_fit_number(s, d->shape->size[i], args->size[i], 0, INT64_MAX);
    return fits ? PTXGEN_OK : PTXGEN_USAGE;
}

/* why: what a stream capture does not allow. */
static ptxgen_status outside_capture(ptxgen_session *s, const ptxgen_dist *d, ptxgen_stream stream, const char *why)
{
    bool captures = false;
    const ptxgen_status status = launch_captures(s, d->comm->gpu, stream, &captures);
    if (status != PTXGEN_OK || !captures)
        return status;
    session_report(s, D_CAPTURE, why);
    return PTXGEN_USAGE;
}

static ptxgen_status launch(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args, ptxgen_stream stream,
                            const struct dist_visitor *visitor)
{
    struct fit_arguments a;
    ptxgen_status status = alive(s, dist->comm);
    const bool waits = dist->comm->gpu && ((dist->program && visitor) || !dist_enqueues(dist, args->size, stream));
    if (status == PTXGEN_OK && waits)
        status = outside_capture(
            s, dist, stream,
            visitor ? "visits to stages need a stream that is not captured"
                    : "the loop has `until`, and ranks tell each other after each step whether it holds, which "
                      "a stream capture does not allow");
    if (status != PTXGEN_OK)
        return status;
    WITH_MEMORY(s, status = dist_launch(s, dist, &a.args, stream, fit(s, dist, args, &a), visitor));
    return status;
}

ptxgen_status ptxgen_dist_launch_on(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                    ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, s, dist, args);
    return launch(s, dist, args, stream, NULL);
}

ptxgen_status ptxgen_dist_launch_stages(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                        ptxgen_stream stream, ptxgen_stage_visitor *visit, void *user)
{
    NEED(PTXGEN_USAGE, s, s, dist, args, visit ? dist : NULL);
    return launch(s, dist, args, stream, &(struct dist_visitor){ visit, user });
}

ptxgen_status ptxgen_dist_launch(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args)
{
    NEED(PTXGEN_USAGE, s, s, dist, args);
    return ptxgen_dist_launch_on(s, dist, args, NULL);
}

ptxgen_status ptxgen_dist_prepare(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                  ptxgen_stream stream)
{
    struct fit_arguments a;
    NEED(PTXGEN_USAGE, s, s, dist, args);
    ptxgen_status status = alive(s, dist->comm), own = PTXGEN_OK;
    if (status != PTXGEN_OK)
        return status;
    WITH_MEMORY(s, own = fit(s, dist, args, &a));
    if (!dist->comm->gpu)
        return own;
    if (own == PTXGEN_OK)
        own = outside_capture(s, dist, stream, "ptxgen_dist_prepare() waits, which a stream capture does not allow");
    WITH_MEMORY(s, status = dist_prepare(s, dist, &a.args, stream, own));
    return status;
}

const char *ptxgen_dist_transport(const ptxgen_dist *dist) { return dist ? dist_transport_name(dist) : NULL; }

ptxgen_status ptxgen_dist_check(ptxgen_session *s, const ptxgen_dist *dist)
{
    NEED(PTXGEN_USAGE, s, s, dist);
    ptxgen_comm *comm = dist->comm;
    if (!comm->broken && comm->transport->fault && comm->transport->fault(comm->self))
        WITH_MEMORY(s, dist_broken(s, comm, "NCCL reports an error"));
    if (!comm->broken && dist_late(dist))
        WITH_MEMORY(
            s,
            dist_broken(
                s, comm,
                "a GPU waited too long for what another rank sends, or a rank could not launch a kernel or its loop"));
    return alive(s, comm);
}

ptxgen_status ptxgen_dist_reset(ptxgen_session *s, ptxgen_dist *dist)
{
    struct dist_hello own = { .operation = DIST_RESET };
    ptxgen_status status = PTXGEN_OK;
    NEED(PTXGEN_USAGE, s, s, dist);
    if (dist->comm->transport->ends) {
        session_report(s, D_RANKS, "NCCL's communicators end with an error: call ncclCommAbort(), and make a new one");
        return PTXGEN_UNSUPPORTED;
    }
    WITH_MEMORY(s, status = dist_agree(s, dist->comm, dist->shape, &own));
    if (status == PTXGEN_OK) {
        dist->comm->broken = false;
        dist->comm->sequence = 0;
    }
    return status;
}
