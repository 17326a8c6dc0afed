/* SPDX-License-Identifier: Apache-2.0 */
/* launch_dist.h - what src/dist needs of a GPU beyond launch.h. */
#ifndef PTXGEN_LAUNCH_DIST_H
#define PTXGEN_LAUNCH_DIST_H

#include <stdbool.h>

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
/* What `later` gets from now on begins after all that `earlier` was given. */
ptxgen_status launch_order(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event with, ptxgen_stream earlier,
                           ptxgen_stream later);
/* The gpu's context is current between the two, for calls of other libraries.  False after a message. */
bool launch_enter(ptxgen_session *s, ptxgen_gpu *gpu, bool *pushed);
void launch_leave(ptxgen_gpu *gpu, bool pushed);
/* The number of the device. */
int launch_ordinal(const ptxgen_gpu *gpu);

#endif
