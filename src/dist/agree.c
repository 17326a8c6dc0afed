/* SPDX-License-Identifier: Apache-2.0 */
/* agree.c - what ranks exchange before and after they compute, so that all come to the same verdict.
 *
 * A rank that fails still takes part in the exchanges.  So the other ranks learn of the failure, and no rank waits for one
 * that has returned.  A communicator is broken only after a failed exchange, or if ranks are not at the same call.
 */
#include "dist.h"

#include <stdlib.h>
#include <string.h>

struct ptxgen_comm *dist_comm_create(const struct dist_transport *transport, void *self, int rank, int size)
{
    struct ptxgen_comm *comm = calloc(1, sizeof *comm);
    struct dist_hello *hello = calloc((size_t)size, sizeof *hello);
    if (comm && hello) {
        *comm =
            (struct ptxgen_comm){ .transport = transport, .self = self, .rank = rank, .size = size, .hello = hello };
        return comm;
    }
    free(comm);
    free(hello);
    transport->close(self);
    return NULL;
}

ptxgen_status dist_broken(struct ptxgen_session *s, struct ptxgen_comm *comm, const char *why)
{
    const char *fault = comm->transport->fault ? comm->transport->fault(comm->self) : NULL;
    comm->broken = true;
    diag_hint(&s->diags,
              diag_error(&s->diags, D_RANKS, span_none(), "%s%s%s", why, fault ? ": " : "", fault ? fault : ""), "%s",
              comm->transport->ends
                  ? "the communicator refuses further work: end it with ncclCommAbort(), and make a new one"
                  : "the communicator refuses further work until all ranks have called ptxgen_dist_reset()");
    return PTXGEN_RANKS;
}

static ptxgen_status gather(struct ptxgen_session *s, struct ptxgen_comm *comm, const void *own, void *all,
                            size_t bytes)
{
    if (comm->transport->allgather(comm->self, own, all, bytes) == 0)
        return PTXGEN_OK;
    return dist_broken(s, comm, "an exchange with the other ranks failed");
}

/* own: the status of this rank, whose message exists already. */
static ptxgen_status failed(struct ptxgen_session *s, int64_t own, int rank, int64_t status)
{
    if (own != PTXGEN_OK)
        return (ptxgen_status)own;
    diag_error(&s->diags, D_RANKS, span_none(), "rank %d failed: %s", rank, ptxgen_status_text((ptxgen_status)status));
    return PTXGEN_RANKS;
}

/* Where is another rank, and where this one? */
static ptxgen_status elsewhere(struct ptxgen_session *s, struct ptxgen_comm *comm, const struct dist_hello *own,
                               const struct dist_hello *other, int rank)
{
    static const char *const words[] = { "loads", "launches", "resets", "prepares" };
    const char *what = other->operation <= DIST_PREPARE ? words[other->operation] : "does something unknown with";
    if (other->operation == own->operation && other->sequence == own->sequence && !strcmp(other->name, own->name))
        return dist_broken(s, comm,
                           arena_printf(&s->arena, "rank %d has another spec of the name '%s'", rank, own->name));
    return dist_broken(
        s, comm,
        arena_printf(&s->arena,
                     "rank %d %s '%.*s' as call %llu, this rank %s '%s' as call %llu: all ranks make the same "
                     "calls in the same order",
                     rank, what, PROBLEM_NAME_MAX, other->name, (unsigned long long)other->sequence,
                     words[own->operation], own->name, (unsigned long long)own->sequence));
}

/* Sizes and params are alike but for the split one. */
static bool same_values(struct ptxgen_session *s, const struct program *shape, const struct dist_hello *own,
                        const struct dist_hello *other, int rank)
{
    for (int i = 0; i < shape->nsizes + shape->nparams; i++)
        if (own->value[i] != other->value[i]) {
            const bool size = i < shape->nsizes;
            diag_error(&s->diags, D_RANKS, span_none(), "rank %d has another %s '%s' than this rank", rank,
                       size ? "size" : "param", size ? shape->size[i] : shape->param[i - shape->nsizes].name);
            return false;
        }
    return true;
}

ptxgen_status dist_agree(struct ptxgen_session *s, struct ptxgen_comm *comm, const struct program *shape,
                         struct dist_hello *own)
{
    const struct dist_hello *all = comm->hello;
    const bool runs = own->operation == DIST_LAUNCH || own->operation == DIST_PREPARE;
    own->sequence = own->operation == DIST_RESET ? 0 : comm->sequence++;
    ptxgen_status status = gather(s, comm, own, comm->hello, sizeof *own);
    for (int r = 0; r < comm->size && status == PTXGEN_OK; r++) {
        const struct dist_hello *other = &all[r];
        if (other->operation != own->operation || other->sequence != own->sequence || other->problem != own->problem)
            status = elsewhere(s, comm, own, other, r);
    }
    for (int r = 0; r < comm->size && status == PTXGEN_OK; r++)
        if (all[r].status != PTXGEN_OK)
            status = failed(s, own->status, r, all[r].status);
    for (int r = 0; r < comm->size && status == PTXGEN_OK && runs; r++)
        if (!same_values(s, shape, own, &all[r], r))
            status = PTXGEN_RANKS;
    return status;
}

ptxgen_status dist_sendrecv(struct ptxgen_session *s, struct ptxgen_comm *comm, const void *send, size_t send_bytes,
                            int to, void *get, size_t get_bytes, int from)
{
    if (comm->transport->sendrecv(comm->self, send, send_bytes, to, get, get_bytes, from) == 0)
        return PTXGEN_OK;
    return dist_broken(s, comm, "an exchange with a neighbour failed");
}

ptxgen_status dist_exchange(struct ptxgen_session *s, struct ptxgen_comm *comm, const void *own, void *all,
                            size_t bytes)
{
    ptxgen_status status = gather(s, comm, own, all, bytes);
    int64_t here, other;
    memcpy(&here, own, sizeof here);
    for (int r = 0; r < comm->size && status == PTXGEN_OK; r++) {
        memcpy(&other, (const char *)all + (size_t)r * bytes, sizeof other);
        if (other != PTXGEN_OK)
            status = failed(s, here, r, other);
    }
    return status;
}
