/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand.c - a stencil on several devices as one writes it with NCCL: arrays with a row of ghosts at both ends.
 *
 *     stream           all rows but the first and the last one
 *     second stream    ncclSend() and ncclRecv() of the first and the last row, in a group; then these two rows
 *     stream           waits for the second stream
 *
 * The second stream has high priority.  All rows are computed by ptxgen's own code for one device.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "ranks.h"

/* The driver's own calls: ptxgen's streams have no priorities, and are not ordered with others. */
struct driver {
    int (*PrimaryCtxRetain)(void **context, int device);
    int (*CtxSetCurrent)(void *context);
    int (*StreamCreate)(ptxgen_stream *stream, unsigned flags, int priority);
    int (*PriorityRange)(int *least, int *greatest);
    int (*StreamWait)(ptxgen_stream stream, ptxgen_event event, unsigned flags);
};

struct hand {
    struct driver cu;
    ptxgen_stream beside;
    ptxgen_event order[2];
};

static bool open_driver(struct driver *cu)
{
    const char *name = getenv("PTXGEN_LIBCUDA");
    void *library = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)&cu->PrimaryCtxRetain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cu->CtxSetCurrent = dlsym(library, "cuCtxSetCurrent");
    *(void **)&cu->StreamCreate = dlsym(library, "cuStreamCreateWithPriority");
    *(void **)&cu->PriorityRange = dlsym(library, "cuCtxGetStreamPriorityRange");
    *(void **)&cu->StreamWait = dlsym(library, "cuStreamWaitEvent");
    return cu->PrimaryCtxRetain && cu->CtxSetCurrent && cu->StreamCreate && cu->PriorityRange && cu->StreamWait;
}

bool hand_open(struct rank *r, struct state *m)
{
    enum { NON_BLOCKING = 1 };
    struct hand *h = m->hand = calloc(1, sizeof *h);
    void *context;
    int least, greatest;
    return h && open_driver(&h->cu) && h->cu.PrimaryCtxRetain(&context, r->device) == 0 &&
           h->cu.CtxSetCurrent(context) == 0 && h->cu.PriorityRange(&least, &greatest) == 0 &&
           h->cu.StreamCreate(&h->beside, NON_BLOCKING, greatest) == 0 &&
           ptxgen_event_create(r->s, r->gpu, &h->order[0]) == PTXGEN_OK &&
           ptxgen_event_create(r->s, r->gpu, &h->order[1]) == PTXGEN_OK;
}

void hand_close(struct rank *r, struct state *m)
{
    if (!m->hand)
        return;
    for (int i = 0; i < 2; i++)
        ptxgen_event_destroy(r->gpu, m->hand->order[i]);
    if (m->hand->beside) {
        ptxgen_stream_wait(r->s, r->gpu, m->hand->beside);
        ptxgen_stream_release(r->s, m->loaded, m->hand->beside);
        ptxgen_stream_destroy(r->gpu, m->hand->beside);
    }
    free(m->hand);
}

/* What `later` gets from now on begins after all that `earlier` was given. */
static bool order(struct rank *r, const struct hand *h, int i, ptxgen_stream earlier, ptxgen_stream later)
{
    return ptxgen_event_record(r->s, r->gpu, h->order[i], earlier) == PTXGEN_OK &&
           h->cu.StreamWait(later, h->order[i], 0) == 0;
}

/* The points of `rows` rows that have a row before and after them among these. */
static bool compute(struct rank *r, const struct trial *t, struct state *m, const char *in, char *out, int64_t rows,
                    ptxgen_stream stream, bool prepares)
{
    const int64_t size[] = { rows, t->size[1], t->size[2] };
    const void *from[] = { in };
    void *to[] = { out };
    const ptxgen_arguments args = { size, from, to, NULL };
    return (prepares ? ptxgen_prepare(r->s, m->loaded, &args, stream)
                     : ptxgen_launch(r->s, m->loaded, &args, stream, NULL)) == PTXGEN_OK;
}

/* The first and the last row that the rank has to the ranks beside it, and theirs. */
static bool exchange(struct rank *r, char *in, size_t row, int64_t rows, ptxgen_stream stream)
{
    struct world *w = r->world;
    const size_t count = row / 4;
    char *const last = in + (size_t)rows * row;
    bool ok = w->GroupStart() == NCCL_OK;
    if (r->number > 0)
        ok = ok && w->Send(in + row, count, NCCL_FLOAT32, r->number - 1, r->nccl, stream) == NCCL_OK &&
             w->Recv(in, count, NCCL_FLOAT32, r->number - 1, r->nccl, stream) == NCCL_OK;
    if (r->number + 1 < w->ranks)
        ok = ok && w->Send(last, count, NCCL_FLOAT32, r->number + 1, r->nccl, stream) == NCCL_OK &&
             w->Recv(last + row, count, NCCL_FLOAT32, r->number + 1, r->nccl, stream) == NCCL_OK;
    return w->GroupEnd() == NCCL_OK && ok;
}

static bool step(struct rank *r, const struct trial *t, struct state *m, char *in, char *out)
{
    const struct hand *h = m->hand;
    const int64_t rows = t->size[0];
    const size_t row = (size_t)(t->elements / rows) * 4, end = (size_t)(rows - 1) * row;
    return order(r, h, 0, r->stream, h->beside) && exchange(r, in, row, rows, h->beside) &&
           compute(r, t, m, in + row, out + row, rows, r->stream, false) &&
           compute(r, t, m, in, out, 3, h->beside, false) &&
           compute(r, t, m, in + end, out + end, 3, h->beside, false) && order(r, h, 1, h->beside, r->stream);
}

bool hand_launch(struct rank *r, const struct trial *t, struct state *m, char *in, char *out, bool prepares)
{
    const size_t row = (size_t)(t->elements / t->size[0]) * 4;
    bool ok = true;
    if (prepares)
        return compute(r, t, m, in + row, out + row, t->size[0], r->stream, true) &&
               compute(r, t, m, in, out, 3, m->hand->beside, true);
    for (int64_t i = 0; i < t->steps && ok; i++)
        ok = i % 2 ? step(r, t, m, out, in) : step(r, t, m, in, out);
    return ok;
}
