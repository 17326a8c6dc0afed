/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - the transport by callbacks in host memory. */
#include "launch.h"
#include "ptxgen/dist.h"

#include <stdlib.h>

static int allgather(void *self, const void *own, void *all, size_t bytes)
{
    const ptxgen_comm_callbacks *with = self;
    return with->allgather(with->user, own, all, bytes);
}

static int sendrecv(void *self, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes, int from)
{
    const ptxgen_comm_callbacks *with = self;
    char nothing = 0; /* a callback may give its addresses to memcpy, which takes no NULL, not for 0 bytes either */

    return with->sendrecv(with->user, send_bytes ? send : &nothing, send_bytes, to, get_bytes ? get : &nothing,
                          get_bytes, from);
}

static bool sends(void *self) { return ((const ptxgen_comm_callbacks *)self)->sendrecv != NULL; }

const struct dist_transport dist_transport_host = {
    .machine = &dist_machine_host, .allgather = allgather, .sendrecv = sendrecv, .sends = sends, .close = free
};
