/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - exchanges of ranks whose GPUs write into each other's memory.  All ranks take this way, or none does.
 *
 * What decides is found when launches are prepared: the walk notes how large exchanges are, the ranks make windows of the
 * largest, and each tries to reach all others.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "nccl.h"

enum {
    WINDOW_MAX = 256 << 20
}; /* bytes of one exchange; larger ones are left to NCCL, which needs no memory of ours */

/* joined: a bit for each room that may be JOINED; `halo`: bytes for all of them. */
struct needs {
    int64_t status, messages, most, joined, halo;
};

enum { ROOMS_MOST = 63, HALO_MOST = 64 << 20, HALO_SHORT = 64 << 10, THICK = 16 };

/* The rooms of a launch: of the stages of a program, or the problem's own; each is followed by that for several steps. */
static struct dist_room *room_at(struct dist_room *m, int i)
{
    const int n = i >= ROOMS_MOST ? 0 : m->program ? m->d->program->nstages : 1;
    for (int k = 0; k < n; k++) {
        struct dist_room *const of = m->program ? m->program->of[k] : m;
        if (!of || i-- == 0)
            return of;
        if (of->deep && i-- == 0)
            return of->deep;
    }
    return NULL;
}

/* One block sends the rows of a part that is a few rows of boxes: then they are short. */
static bool sends_soon(const struct dist_room *m)
{
    const int64_t reach = m->d->split->before + m->d->split->after;
    bool thick = true;
    for (int r = 0; r < m->d->comm->size; r++)
        thick &= part_of(m, r) >= THICK * reach;
    return thick || halo_bytes(m) <= HALO_SHORT || m->depth > 1;
}

bool peers_may_join(const struct dist_room *m)
{
    const struct nccl *with = m->d->comm->self;
    return with->ends_apart == 0 || (with->ends_apart < 0 && m->depth <= 1);
}

/* A kernel for the part alone must not be another one, unless launches are what counts, of single steps. */
static bool would_join(const struct dist_room *m)
{
    return m->joined && m->d->comm->size <= HALO_RANKS && 2 * halo_bytes(m) <= HALO_MOST && sends_soon(m) &&
           (!m->taken[0] || !m->taken[1] || !strcmp(m->taken[0], m->taken[1]) ||
            (m->depth == 1 && !strcmp(m->taken[0], "small")));
}

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
    struct needs own = { .messages = l->room->peers->messages, .most = l->room->peers->most };
    for (int i = 0; room_at(l->room, i); i++)
        own.joined |= (int64_t)would_join(room_at(l->room, i)) << i;
    const struct needs *const all = (const struct needs *)(const void *)l->d->comm->hello;
    const ptxgen_status status = dist_exchange(l->s, l->d->comm, &own, l->d->comm->hello, sizeof own);
    *needs = own;
    for (int r = 0; r < l->d->comm->size && status == PTXGEN_OK; r++) {
        needs->messages = all[r].messages > needs->messages ? all[r].messages : needs->messages;
        needs->most = all[r].most > needs->most ? all[r].most : needs->most;
        needs->joined &= all[r].joined;
    }
    for (int i = 0; room_at(l->room, i); i++)
        if (needs->joined >> i & 1)
            needs->halo += exchange_halo_bytes(halo_bytes(room_at(l->room, i)));
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
        exchange_open(comm->gpu, comm->rank, comm->size, (int)needs->messages, (size_t)needs->most, (size_t)needs->halo,
                      with->seconds, &own, &peers->exchange);
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

struct exchange_message *gather_messages(const struct ptxgen_comm *comm, const char *own, char *all, size_t bytes)
{
    const int size = comm->size, rank = comm->rank;
    struct exchange_message *message = calloc((size_t)size, sizeof *message);
    for (int shift = 0; shift < size && message; shift++) {
        const int from = (rank + size - shift) % size;
        char *get = all + (size_t)from * bytes;
        message[shift] = (struct exchange_message){
            .send = own, .get = get, .send_bytes = bytes, .get_bytes = bytes, .to = (rank + shift) % size, .from = from
        };
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

/* The rooms' parts of the windows, one after the other.  Elsewhere ghosts are exchanged, and then the ends computed. */
static bool join_rooms(struct launch *l, const struct needs *needs)
{
    const int size = l->d->comm->size, rank = l->d->comm->rank;
    size_t at = 0;
    bool good = true;
    for (int i = 0; room_at(l->room, i) && good; i++) {
        struct dist_room *m = room_at(l->room, i);
        m->joined = needs->joined >> i & 1;
        if (!m->joined)
            continue;
        const bool wraps = m->d->split->wraps, first = rank == 0, last = rank == size - 1;
        good = exchange_halo(l->room->peers->exchange, at, first && !wraps ? -1 : (rank + size - 1) % size,
                             last && !wraps ? -1 : (rank + 1) % size, m->halo);
        at += (size_t)exchange_halo_bytes(halo_bytes(m));
    }
    return good;
}

bool peers_join(struct dist_room *m)
{
    bool joins = false;
    for (int i = 0; room_at(m, i); i++)
        joins |= room_at(m, i)->joined;
    return joins;
}

ptxgen_status peers_open(struct launch *l)
{
    struct needs needs = { 0 };
    bool reached = false, all = false;
    ptxgen_status status = l->d->comm->size > 1 ? agree_on_needs(l, &needs) : PTXGEN_OK;
    if (status != PTXGEN_OK || needs.messages == 0 || needs.most > WINDOW_MAX / needs.messages) {
        for (int i = 0; room_at(l->room, i); i++)
            room_at(l->room, i)->joined = false;
        return status;
    }
    status = show_windows(l, &needs, &reached);
    if (status == PTXGEN_OK)
        status = all_say(l, reached && write_table(l, l->room) && join_rooms(l, &needs), &all);
    if (all)
        return status;
    peers_drop(l->room);
    for (int i = 0; room_at(l->room, i); i++)
        room_at(l->room, i)->joined = false;
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
