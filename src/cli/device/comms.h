/* SPDX-License-Identifier: Apache-2.0 */
/* comms.h - NCCL's communicators of the GPUs of this process, by an NCCL that is opened at run time. */
#ifndef PTXGEN_CLI_COMMS_H
#define PTXGEN_CLI_COMMS_H

#include <stdbool.h>
#include <stddef.h>

struct comms;
/* One for each device.  NULL: no NCCL is installed, or it refuses; why: the message, with room for so many bytes. */
struct comms *comms_open(int n, const int *device, char *why, size_t room);
void *comms_at(const struct comms *c, int rank); /* an ncclComm_t */
/* After a failure: kernels that still wait for other ranks end. */
void comms_abort(struct comms *c);
void comms_close(struct comms *c);

#endif
