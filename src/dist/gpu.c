/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - the stages of a rank on a GPU, and its arrays in device memory, which travel through NCCL.
 *
 * All that a launch does is enqueued on its stream.  A walk that prepares loads the stages' code and makes exchanges, so
 * that NCCL has its connections, on the communicator's own stream; it runs nothing and copies nothing.
 */
#include "launch.h"

#include <stdlib.h>

#include "launch/launch_dist.h"
#include "nccl.h"

static ptxgen_stream stream_of(const struct launch *l)
{
    return l->beside ? l->room->beside[l->inside].stream : l->stream;
}

static struct nccl *nccl_of(const struct launch *l) { return l->d->comm->self; }

static ptxgen_status run(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    const ptxgen_arguments with = { args->size, args->input, args->output,
                                    (const ptxgen_value *)(const void *)args->param };
    struct ptxgen_loaded *loaded = l->d->loaded[stage];
    if (!l->prepares)
        return ptxgen_launch(l->s, loaded, &with, stream_of(l), NULL);
    if (stage == STAGE_INNER || stage == STAGE_STEPS || dist_stage_joins(stage))
        l->room->taken[dist_stage_joins(stage)] = ptxgen_launch_case(l->s, loaded, &with);
    return ptxgen_prepare(l->s, loaded, &with, stream_of(l));
}

/* The caller waits once for all of them, on the default stream. */
static ptxgen_status alloc(struct ptxgen_session *s, struct ptxgen_dist *d, size_t bytes, void **out)
{
    ptxgen_status status = ptxgen_gpu_alloc(s, d->comm->gpu, bytes, out);
    if (status == PTXGEN_OK)
        status = ptxgen_gpu_fill(s, d->comm->gpu, *out, 0, bytes, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_stream_wait(s, d->comm->gpu, NULL);
    return status;
}

static void release(struct ptxgen_dist *d, void *memory) { ptxgen_gpu_free(d->comm->gpu, memory); }

static ptxgen_status write(struct ptxgen_session *s, struct ptxgen_dist *d, void *to, const void *host, size_t bytes)
{
    return ptxgen_gpu_write(s, d->comm->gpu, to, host, bytes);
}

static ptxgen_status wait(struct launch *l)
{
    bool pushed;
    if (!launch_enter(l->s, l->d->comm->gpu, &pushed))
        return PTXGEN_NO_DEVICE;
    const bool done = nccl_wait(nccl_of(l), l->stream) && !exchange_failed(l->room->peers->exchange);
    launch_leave(l->d->comm->gpu, pushed);
    return done ? PTXGEN_OK : dist_broken(l->s, l->d->comm, "an exchange with the other ranks failed");
}

static ptxgen_status read(struct launch *l, void *host, const void *from, size_t bytes)
{
    const ptxgen_status status = wait(l);
    return status == PTXGEN_OK ? ptxgen_gpu_read(l->s, l->d->comm->gpu, host, from, bytes) : status;
}

static ptxgen_status copy(struct launch *l, const struct dist_copy *c)
{
    return l->prepares ? PTXGEN_OK
                       : launch_copy(l->s, l->d->comm->gpu, c->to, c->to_pitch, c->from, c->from_pitch, c->width,
                                     (size_t)c->rows, stream_of(l));
}

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

static ptxgen_stream exchange_stream(const struct launch *l) { return l->prepares ? nccl_of(l)->stream : stream_of(l); }

/* f with the gpu's context. */
static ptxgen_status exchange(struct launch *l, bool (*f)(struct launch *l, const struct exchange_message *m, int n),
                              const struct exchange_message *m, int n)
{
    bool pushed;
    if (!launch_enter(l->s, l->d->comm->gpu, &pushed))
        return PTXGEN_NO_DEVICE;
    const bool good = f(l, m, n);
    launch_leave(l->d->comm->gpu, pushed);
    return good ? PTXGEN_OK : dist_broken(l->s, l->d->comm, "an exchange with the other ranks failed");
}

static bool gather_all(struct launch *l, const struct exchange_message *m, int n)
{
    struct nccl *with = nccl_of(l);
    (void)m, (void)n;
    return nccl_did(
        with, with->AllGather(l->room->own, l->room->all, l->room->block, NCCL_INT8, with->comm, exchange_stream(l)),
        "ncclAllGather");
}

/* Do exchanges go past NCCL? */
static bool direct(const struct launch *l) { return !l->prepares && l->room->peers->exchange; }

static ptxgen_status gather(struct launch *l)
{
    const struct dist_room *m = l->room;
    struct exchange_message *message =
        m->block && !l->silent ? gather_messages(l->d->comm, m->own, m->all, m->block) : NULL;
    ptxgen_status status = PTXGEN_OK;
    if (l->silent)
        return status;
    if (l->room->block && direct(l)) /* NCCL would wait for ranks that do not come */
        status = message ? peers_send(l, message, l->d->comm->size, stream_of(l))
                         : dist_broken(l->s, l->d->comm, "there is no memory for an exchange with the other ranks");
    else if (l->room->block)
        status = exchange(l, gather_all, NULL, 0);
    if (message && l->prepares)
        peers_note(l, message, l->d->comm->size);
    free(message);
    return status;
}

/* In a group, where nothing is done before its end. */
static bool queued(struct nccl *with, int result, const char *call)
{
    return result == NCCL_IN_PROGRESS || nccl_did(with, result, call);
}

static bool swap_one(struct nccl *with, const struct exchange_message *m, ptxgen_stream stream)
{
    return (!m->send_bytes ||
            queued(with, with->Send(m->send, m->send_bytes, NCCL_INT8, m->to, with->comm, stream), "ncclSend")) &&
           (!m->get_bytes ||
            queued(with, with->Recv(m->get, m->get_bytes, NCCL_INT8, m->from, with->comm, stream), "ncclRecv"));
}

/* All at once.  A group that was begun ends, whatever happens. */
static bool swap_all(struct launch *l, const struct exchange_message *m, int n)
{
    struct nccl *with = nccl_of(l);
    bool good = nccl_did(with, with->GroupStart(), "ncclGroupStart");
    if (!good)
        return false;
    for (int i = 0; i < n && good; i++)
        good = swap_one(with, &m[i], exchange_stream(l));
    const int ended = with->GroupEnd();
    return good && nccl_did(with, ended, "ncclGroupEnd");
}

static ptxgen_status swap(struct launch *l, const struct exchange_message *m, int n)
{
    if (direct(l) && n && m[0].to != l->d->comm->rank) /* where no rank needs another, only some have a message */
        return peers_send(l, m, n, stream_of(l));
    if (l->silent)
        return PTXGEN_OK;
    if (l->prepares)
        peers_note(l, m, n);
    while (n && m[n - 1].to == l->d->comm->rank) {
        const struct exchange_message *own = &m[--n];
        did(l,
            copy(l, &(struct dist_copy){ own->get, own->send, own->get_bytes, own->send_bytes, own->send_bytes, 1 }));
    }
    return n ? exchange(l, swap_all, m, n) : PTXGEN_OK;
}

/* ---- beside the launch's stream ---------------------------------------------------------------------------------- */

/* A preparation makes what launches need. */
static ptxgen_status make_beside(struct launch *l, struct beside *b)
{
    struct ptxgen_gpu *gpu = l->d->comm->gpu;
    ptxgen_status status = b->stream ? PTXGEN_OK : launch_urgent_stream(l->s, gpu, &b->stream);
    for (int i = 0; i < 2 && status == PTXGEN_OK && !b->order[i]; i++)
        status = launch_order_event(l->s, gpu, &b->order[i]);
    return status;
}

static ptxgen_status fork_off(struct launch *l)
{
    struct beside *b = &l->room->beside[l->inside];
    const ptxgen_status status =
        l->prepares ? make_beside(l, b) : launch_order(l->s, l->d->comm->gpu, b->order[0], l->stream, b->stream);
    l->beside = status == PTXGEN_OK;
    return status;
}

static ptxgen_status join(struct launch *l)
{
    const struct beside *b = &l->room->beside[l->inside];
    l->beside = false;
    return l->prepares ? PTXGEN_OK : launch_order(l->s, l->d->comm->gpu, b->order[1], b->stream, l->stream);
}

/* Kernels that wait for rows may fill the device.  Two of them on two streams could begin in another order on another rank,
 * and all wait for kernels that find no room.  So they follow each other in the order of calls, which all ranks have in common.
 * On a single stream they do anyway.  Graphs are left to the caller. */
static ptxgen_status take_turn(struct launch *l, bool over)
{
    const struct nccl *with = nccl_of(l);
    bool captures = false;
    if (!with->in_turn)
        return PTXGEN_OK;
    const ptxgen_status status = launch_captures(l->s, with->gpu, l->stream, &captures);
    if (status != PTXGEN_OK || captures)
        return status;
    return over ? ptxgen_event_record(l->s, with->gpu, with->turn, l->stream)
                : launch_follow(l->s, with->gpu, with->turn, l->stream);
}

/* After the ranks have agreed which rooms join.  The first launch that takes turns follows those that did not.  Which rank
 * has several streams is its own affair, so all tell each other whether that went well. */
static ptxgen_status know_stream(struct launch *l)
{
    struct nccl *with = nccl_of(l);
    const bool other = with->joins && with->joined != l->stream, first = other && !with->in_turn;
    if (!peers_join(l->room))
        return PTXGEN_OK;
    const ptxgen_status status = dist_told(l, first ? launch_settle(l->s, with->gpu) : PTXGEN_OK);
    if (status != PTXGEN_OK)
        return status;
    with->joins = true;
    with->joined = l->stream;
    with->in_turn |= other;
    return PTXGEN_OK;
}

static void close_beside(struct dist_room *m, const struct beside *b)
{
    struct ptxgen_gpu *gpu = m->d->comm->gpu;
    for (int i = 0; i < DIST_STAGES && b->stream; i++)
        if (m->d->loaded[i])
            ptxgen_stream_release(NULL, m->d->loaded[i], b->stream);
    for (int i = 0; i < 2; i++)
        ptxgen_event_destroy(gpu, b->order[i]);
    ptxgen_stream_destroy(gpu, b->stream);
}

static ptxgen_status open_all(struct launch *l)
{
    ptxgen_status status = peers_open(l);
    if (status == PTXGEN_OK)
        status = loop_open(l);
    return status == PTXGEN_OK ? know_stream(l) : status;
}

static void close_all(struct dist_room *m)
{
    for (int i = 0; i < 2; i++)
        close_beside(m, &m->beside[i]);
    if (m->peers)
        peers_drop(m);
}

const struct dist_machine dist_machine_gpu = { .prepared = true,
                                               .run = run,
                                               .alloc = alloc,
                                               .free = release,
                                               .write = write,
                                               .read = read,
                                               .wait = wait,
                                               .copy = copy,
                                               .gather = gather,
                                               .swap = swap,
                                               .fork = fork_off,
                                               .join = join,
                                               .take_turn = take_turn,
                                               .open = open_all,
                                               .close = close_all };
