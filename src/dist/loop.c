/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - loops that end on a condition, as a graph on each rank: the host takes no part (src/launch/loop_ranks.c).
 *
 * All ranks take this way, or none does.  That is decided when launches are prepared, after the windows are there: each rank
 * makes its graph, and the ranks tell each other whether they could.  What the graph repeats is captured on a stream of its
 * own.  So the stages are prepared for that stream, too, without exchanges, which have been prepared already.
 */
#include "launch.h"

#include <stdlib.h>

#include "launch/launch_dist.h"

/* Of one call; a rank that gives up goes on, to exchange as the graphs of the others do. */
struct looping {
    struct launch *l;
    bool gives_up;
};

static ptxgen_status run(void *user, int stage, const struct run_args *args, ptxgen_stream stream, bool prepares)
{
    const struct looping *x = user;
    struct launch of = program_stage(x->l, stage, args);
    of.stream = stream;
    of.prepares = of.silent = prepares;
    of.inside = x->gives_up || stream == rank_loop_stream(x->l->room->program->loop);
    did(x->l, dist_walk(&of));
    return x->gives_up ? PTXGEN_OK : x->l->failed;
}

static ptxgen_status copy(void *user, void *to, const void *from, int64_t bytes, ptxgen_stream stream)
{
    const struct looping *x = user;
    return launch_copy(x->l->s, x->l->d->comm->gpu, to, 0, from, 0, (size_t)bytes, 1, stream);
}

static ptxgen_status gather(void *user, void *own, void *all, size_t bytes, ptxgen_stream stream)
{
    const struct looping *x = user;
    const struct ptxgen_comm *comm = x->l->d->comm;
    struct exchange_message *message = gather_messages(comm, own, all, bytes);
    const ptxgen_status status =
        message ? peers_send(x->l, message, comm->size, stream)
                : dist_broken(x->l->s, x->l->d->comm, "there is no memory for an exchange with the other ranks");
    free(message);
    return status;
}

static struct loop_rank how(struct looping *x)
{
    return (struct loop_rank){ .user = x,
                               .ranks = x->l->d->comm->size,
                               .exchange = x->l->room->peers->exchange,
                               .run = run,
                               .copy = copy,
                               .gather = gather };
}

void loop_note(struct launch *l)
{
    static char nothing[1];
    struct exchange_message *message = gather_messages(l->d->comm, nothing, nothing, RANK_LOOP_TELLS);
    if (message)
        peers_note(l, message, l->d->comm->size);
    free(message);
}

/* Its memory, which serves launches without the graph as well. */
static bool make(struct launch *l)
{
    struct program_room *of = l->room->program;
    struct looping x = { .l = l };
    const struct loop_rank rank = how(&x);
    struct ptxgen_gpu *gpu = l->d->comm->gpu;
    const int64_t bytes = rank_loop_bytes(gpu, l->d->program, l->args, rank.ranks);
    void *memory = NULL;
    if (!bytes || machine_of(l->d)->alloc(NULL, l->d, (size_t)bytes + PROGRAM_ALIGNMENT, &memory) != PTXGEN_OK)
        return false;
    machine_of(l->d)->free(l->d, of->memory);
    program_place(of, memory);
    return rank_loop_open(l->s, gpu, l->d->program, l->args, of->between, &rank, &of->loop);
}

ptxgen_status loop_open(struct launch *l)
{
    bool all = false;
    if (!l->d->program || l->d->program->until < 0 || !l->room->peers->exchange)
        return PTXGEN_OK;
    const bool made = make(l);
    l->failed = PTXGEN_OK; /* the host can do it nonetheless */
    const ptxgen_status status = all_say(l, made, &all);
    if (!all)
        loop_close(l->room);
    return status;
}

void loop_close(struct dist_room *m)
{
    struct rank_loop *loop = m->program->loop;
    const ptxgen_stream inner = loop ? rank_loop_stream(loop) : NULL;
    for (int i = 0; i < m->d->program->nstages && inner; i++)
        for (int k = 0; k < DIST_STAGES; k++)
            if (m->d->of[i]->loaded[k])
                ptxgen_stream_release(NULL, m->d->of[i]->loaded[k], inner);
    rank_loop_close(loop);
    m->program->loop = NULL;
}

ptxgen_status loop_launch(struct launch *l)
{
    struct looping x = { .l = l };
    const struct loop_rank rank = how(&x);
    struct rank_loop *loop = l->room->program->loop;
    bool captures = false;
    did(l, launch_captures(l->s, l->d->comm->gpu, l->stream, &captures));
    if (l->failed == PTXGEN_OK)
        did(l, rank_loop_launch(l->s, loop, l->args, &rank, l->stream));
    if (l->failed != PTXGEN_OK && !captures) {
        x.gives_up = true;
        rank_loop_give_up(loop, l->args, &rank, l->stream);
    }
    return l->failed;
}

bool dist_enqueues(const struct ptxgen_dist *d, const int64_t *size, ptxgen_stream stream)
{
    const struct dist_room *m = d->program && d->program->until >= 0 && size ? room_of(d, size, stream) : NULL;
    return !d->program || d->program->until < 0 || (m && m->program->loop);
}
