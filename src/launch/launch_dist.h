/* SPDX-License-Identifier: Apache-2.0 */
/* launch_dist.h - what src/dist needs of a GPU beyond launch.h. */
#ifndef PTXGEN_LAUNCH_DIST_H
#define PTXGEN_LAUNCH_DIST_H

#include <stdbool.h>

#include "program/stages.h"
#include "ptxgen/launch.h"

/* Device to device, in stream order: `rows` times `width` bytes, the pitches apart. */
ptxgen_status launch_copy(ptxgen_session *s, ptxgen_gpu *gpu, void *to, size_t to_pitch, const void *from,
                          size_t from_pitch, size_t width, size_t rows, ptxgen_stream stream);
/* Has the stream done all that it was given?  Does not wait. */
ptxgen_status launch_poll(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, bool *done);
ptxgen_status launch_captures(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, bool *captures);
/* A stream whose kernels come before others that wait for room on the device, and an event to order streams with. */
ptxgen_status launch_urgent_stream(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream *out);
ptxgen_status launch_order_event(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event *out);
/* What the stream gets from now on begins after what was there when the event was recorded, if it was. */
ptxgen_status launch_follow(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event event, ptxgen_stream stream);
/* Until the device has done all that it was given. */
ptxgen_status launch_settle(ptxgen_session *s, ptxgen_gpu *gpu);
/* What `later` gets from now on begins after all that `earlier` was given. */
ptxgen_status launch_order(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event with, ptxgen_stream earlier,
                           ptxgen_stream later);
/* The gpu's context is current between the two, for calls of other libraries.  False after a message. */
bool launch_enter(ptxgen_session *s, ptxgen_gpu *gpu, bool *pushed);
void launch_leave(ptxgen_gpu *gpu, bool pushed);
/* The number of the device. */
int launch_ordinal(const ptxgen_gpu *gpu);

/* ---- loops that end on a condition, on several ranks (loop_ranks.c) -------------------------------------------------- */
struct exchange;
/* What a loop has this rank enqueue.  prepares: load what the stage needs on the stream, and enqueue nothing. */
struct loop_rank {
    void *user;
    int ranks;
    const struct exchange *exchange; /* of the ranks: did a wait take too long? */
    ptxgen_status (*run)(void *user, int stage, const struct run_args *args, ptxgen_stream stream, bool prepares);
    ptxgen_status (*copy)(void *user, void *to, const void *from, int64_t bytes, ptxgen_stream stream);
    /* `bytes` bytes of each rank to `all` on every rank. */
    ptxgen_status (*gather)(void *user, void *own, void *all, size_t bytes, ptxgen_stream stream);
};
struct rank_loop;
enum { RANK_LOOP_TELLS = 32 }; /* bytes that ranks gather */
/* Of memory, aligned to 256, for the loop and the arrays between its stages; 0: it cannot be in a graph. */
int64_t rank_loop_bytes(const ptxgen_gpu *gpu, const struct prog_stages *p, const struct run_args *args, int ranks);
/* Also makes the graph of these arguments, to see whether the driver can.  False: it cannot, and *out only has to be closed. */
bool rank_loop_open(ptxgen_session *s, ptxgen_gpu *gpu, const struct prog_stages *p, const struct run_args *args,
                    void *memory, const struct loop_rank *how, struct rank_loop **out);
/* On it, what is in the body of the loop was captured. */
ptxgen_stream rank_loop_stream(const struct rank_loop *x);
/* Enqueue; or, while the caller captures, become part of what is captured.  After a failure nothing was enqueued. */
ptxgen_status rank_loop_launch(ptxgen_session *s, struct rank_loop *x, const struct run_args *args,
                               const struct loop_rank *how, ptxgen_stream stream);
/* After a launch that failed: take part in the exchanges up to the first decision, and say that this rank has failed. */
void rank_loop_give_up(struct rank_loop *x, const struct run_args *args, const struct loop_rank *how,
                       ptxgen_stream stream);
void rank_loop_close(struct rank_loop *x);

#endif
