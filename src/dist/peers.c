/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - exchanges of ranks whose GPUs write into each other's memory.  All ranks take this way, or none does.
 *
 * What decides is found when launches are prepared: the walk notes how large exchanges are, the ranks make windows of the
 * largest, and each tries to reach all others.
 */
#include "launch.h"

#include <stdlib.h>

#include "nccl.h"

enum {
    WINDOW_MAX = 256 << 20
}; /* bytes of one exchange; larger ones are left to NCCL, which needs no memory of ours */

struct needs {
    int64_t status, messages, most;
};

/* What a rank sends to itself needs a place in the window only where all messages are short. */
void peers_note(struct launch *l, const struct exchange_message *m, int n)
{
    struct dist_peers *peers = l->room->peers;
    int64_t most = 0, others = 0, messages = 0;
    for (int i = 0; i < n; i++) {
        const int64_t bytes = (int64_t)(m[i].send_bytes > m[i].get_bytes ? m[i].send_bytes : m[i].get_bytes);
        const bool other = m[i].to != l->d->comm->rank;
        most = bytes > most ? bytes : most;
        others = other && bytes > others ? bytes : others;
        messages = other ? i + 1 : messages;
    }
    if (messages && most <= EXCHANGE_SHORT) {
        messages = n;
        others = most;
    }
    peers->messages = messages > peers->messages ? messages : peers->messages;
    peers->most = others > peers->most ? others : peers->most;
}

/* The largest of all ranks. */
static ptxgen_status agree_on_needs(struct launch *l, struct needs *needs)
{
    const struct needs own = { .messages = l->room->peers->messages, .most = l->room->peers->most };
    const struct needs *const all = (const struct needs *)(const void *)l->d->comm->hello;
    const ptxgen_status status = dist_exchange(l->s, l->d->comm, &own, l->d->comm->hello, sizeof own);
    *needs = own;
    for (int r = 0; r < l->d->comm->size && status == PTXGEN_OK; r++) {
        needs->messages = all[r].messages > needs->messages ? all[r].messages : needs->messages;
        needs->most = all[r].most > needs->most ? all[r].most : needs->most;
    }
    if (needs->messages > EXCHANGE_MESSAGES)
        needs->messages = EXCHANGE_MESSAGES;
    return status;
}

/* *reached: this rank can write to all others. */
static ptxgen_status show_windows(struct launch *l, const struct needs *needs, bool *reached)
{
    struct ptxgen_comm *comm = l->d->comm;
    struct dist_peers *peers = l->room->peers;
    const struct nccl *with = comm->self;
    struct exchange_card own = { 0 };
    if (!with->only_nccl)
        exchange_open(comm->gpu, comm->rank, comm->size, (int)needs->messages, (size_t)needs->most, with->seconds, &own,
                      &peers->exchange);
    _Static_assert(sizeof own <= sizeof *comm->hello, "cards have room where hellos have");
    const ptxgen_status status = dist_exchange(l->s, comm, &own, comm->hello, sizeof own);
    *reached = status == PTXGEN_OK && peers->exchange &&
               exchange_reach(peers->exchange, (const struct exchange_card *)(const void *)comm->hello);
    return status;
}

ptxgen_status all_say(struct launch *l, bool so, bool *all_so)
{
    const int64_t own[HEAD / sizeof(int64_t)] = { PTXGEN_OK, so };
    const int64_t *const told = (const int64_t *)(const void *)l->d->comm->hello;
    const ptxgen_status status = dist_exchange(l->s, l->d->comm, own, l->d->comm->hello, sizeof own);
    *all_so = status == PTXGEN_OK;
    for (int r = 0; r < l->d->comm->size && *all_so; r++)
        *all_so = told[2 * r + 1] != 0;
    return status;
}

struct exchange_message *gather_messages(const struct ptxgen_comm *comm, char *own, char *all, size_t bytes)
{
    const int size = comm->size, rank = comm->rank;
    struct exchange_message *message = calloc((size_t)size, sizeof *message);
    for (int shift = 0; shift < size && message; shift++) {
        const int from = (rank + size - shift) % size;
        message[shift] = (struct exchange_message){ .send = own,
                                                    .get = all + (size_t)from * bytes,
                                                    .send_bytes = bytes,
                                                    .get_bytes = bytes,
                                                    .to = (rank + shift) % size,
                                                    .from = from };
    }
    return message;
}

/* Writes how the states of this room travel in a fold, if they do.  False after a message. */
static bool write_table(struct launch *l, struct dist_room *m)
{
    struct exchange_table table;
    struct exchange_message *message = m->table ? gather_messages(m->d->comm, m->own, m->all, m->block) : NULL;
    bool good = !m->table || message;
    if (message && exchange_table(l->room->peers->exchange, message, m->d->comm->size, &table)) {
        good = machine_of(m->d)->write(l->s, m->d, m->table, &table, sizeof table) == PTXGEN_OK;
        m->tabled = good;
    }
    free(message);
    for (int i = 0; good && m->program && i < m->d->program->nstages && m->program->of[i]; i++)
        good = write_table(l, m->program->of[i]);
    return good;
}

ptxgen_status peers_open(struct launch *l)
{
    struct needs needs = { 0 };
    bool reached = false, all = false;
    ptxgen_status status = l->d->comm->size > 1 ? agree_on_needs(l, &needs) : PTXGEN_OK;
    if (status != PTXGEN_OK || needs.messages == 0 || needs.most > WINDOW_MAX / needs.messages)
        return status;
    status = show_windows(l, &needs, &reached);
    if (status == PTXGEN_OK)
        status = all_say(l, reached && write_table(l, l->room), &all);
    if (!all)
        peers_drop(l->room);
    return status;
}

void peers_drop(struct dist_room *m)
{
    exchange_close(m->peers->exchange);
    m->peers->exchange = NULL;
}

ptxgen_status peers_send(struct launch *l, const struct exchange_message *m, int n, ptxgen_stream stream)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < n && status == PTXGEN_OK; i += EXCHANGE_MESSAGES)
        status = exchange_launch(l->s, l->room->peers->exchange, m + i,
                                 n - i < EXCHANGE_MESSAGES ? n - i : EXCHANGE_MESSAGES, stream);
    return status == PTXGEN_OK ? status : dist_broken(l->s, l->d->comm, "an exchange with the other ranks failed");
}

const char *dist_transport_name(const struct ptxgen_dist *d)
{
    if (!machine_of(d)->open)
        return "host";
    return d->rooms && d->rooms->peers->exchange ? "peers" : "nccl";
}

bool dist_late(const struct ptxgen_dist *d)
{
    bool late = false;
    for (const struct dist_room *m = d->rooms; m; m = m->next)
        late |= m->peers && exchange_failed(m->peers->exchange);
    return late;
}
