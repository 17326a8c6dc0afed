/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - threads as ranks, with a communicator inside the process; a spec's run on them against the oracle.
 *
 * A struct harness holds the whole problem.  Each rank is a thread with a session of its own, copies its part out of the
 * whole inputs, and its results into the whole outputs; what every rank has must have the same bits on all of them.
 */
#ifndef PTXGEN_TEST_RANKS_H
#define PTXGEN_TEST_RANKS_H

#include <pthread.h>
#include <time.h>

#include "support/harness.h"
#include "ptxgen/dist.h"

enum { RANKS_MAX = 8 };

/* Where the ranks meet.  A wait ends after `limit_ms`; then the meeting is over for all. */
struct mail {
    struct mail *next; /* sent before */
    int from, to;
    size_t bytes; /* behind this */
};
struct hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, arrived, limit_ms;
    uint64_t meeting;
    bool dead;
    size_t bytes;
    char *gathered, *result;
    struct mail *mail;
    int calls[RANKS_MAX];       /* of allgather */
    int messages;               /* of all ranks */
    int fails_rank, fails_call; /* this call of that rank fails; -1: none */
    int late_rank;              /* comes a little late to each exchange; -1: none */
};
struct hub_end {
    struct hub *hub;
    int rank;
};

static inline void hub_open(struct hub *h, int size)
{
    *h = (struct hub){ .size = size, .limit_ms = 60000, .fails_rank = -1, .fails_call = -1, .late_rank = -1 };
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
}

static inline void hub_close(struct hub *h)
{
    free(h->gathered);
    free(h->result);
    for (struct mail *m = h->mail, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
}

static inline struct timespec hub_until(const struct hub *h)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += h->limit_ms % 1000 * 1000000L;
    until.tv_sec += h->limit_ms / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return until;
}

/* With the lock held. */
static inline void hub_put(struct hub *h, int rank, const void *own, size_t bytes)
{
    if (h->arrived++ == 0) {
        h->bytes = bytes;
        h->gathered = realloc(h->gathered, bytes * (size_t)h->size + 1);
    }
    if (bytes != h->bytes)
        h->dead = true;
    else
        memcpy(h->gathered + (size_t)rank * bytes, own, bytes);
    if (h->arrived == h->size) {
        char *done = h->gathered;
        h->gathered = h->result;
        h->result = done;
        h->arrived = 0;
        h->meeting++;
    }
    pthread_cond_broadcast(&h->changed);
}

static inline int hub_allgather(void *user, const void *own, void *all, size_t bytes)
{
    const struct hub_end *end = user;
    struct hub *h = end->hub;
    if (h->late_rank == end->rank)
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    if (h->calls[end->rank]++ == h->fails_call && h->fails_rank == end->rank)
        return 1;
    const struct timespec until = hub_until(h);
    pthread_mutex_lock(&h->lock);
    const uint64_t mine = h->meeting;
    hub_put(h, end->rank, own, bytes);
    while (h->meeting == mine && !h->dead)
        if (pthread_cond_timedwait(&h->changed, &h->lock, &until) != 0)
            h->dead = true;
    const int failed = h->meeting == mine || h->dead;
    pthread_cond_broadcast(&h->changed);
    if (!failed)
        memcpy(all, h->result, bytes * (size_t)h->size);
    pthread_mutex_unlock(&h->lock);
    return failed;
}

/* In turn: all send by way of everybody. */
static inline int hub_sendrecv(void *user, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes,
                               int from)
{
    const struct hub_end *end = user;
    struct hub *h = end->hub;
    pthread_mutex_lock(&h->lock);
    h->messages++;
    struct mail *mail = malloc(sizeof *mail + send_bytes);
    *mail = (struct mail){ .next = h->mail, .from = end->rank, .to = to, .bytes = send_bytes };
    memcpy(mail + 1, send, send_bytes);
    h->mail = mail;
    pthread_cond_broadcast(&h->changed);
    struct timespec until = hub_until(h);
    int failed = -1;
    while (failed < 0) {
        struct mail **oldest = NULL;
        for (struct mail **m = &h->mail; *m; m = &(*m)->next)
            if ((*m)->from == from && (*m)->to == end->rank)
                oldest = m;
        if (oldest) {
            mail = *oldest;
            failed = mail->bytes != get_bytes;
            memcpy(get, mail + 1, failed ? 0 : get_bytes);
            *oldest = mail->next;
            free(mail);
        } else if (h->dead || pthread_cond_timedwait(&h->changed, &h->lock, &until) != 0) {
            failed = h->dead = true;
        }
    }
    pthread_mutex_unlock(&h->lock);
    return failed;
}

/* ---- one problem on all ranks ------------------------------------------------------------------------------------ */

struct rank;
/* What the ranks exchange data over, where it is not the hub. */
struct world_over {
    void (*begin)(int ranks);
    ptxgen_status (*comm)(struct rank *r);
    ptxgen_status (*loaded)(struct rank *r);
};
struct world {
    struct hub hub;
    const struct world_over *over; /* NULL: the hub */
    struct harness *whole;
    const char *name, *spec, *split, *modes;
    int ranks;
    int64_t block;               /* of the cyclic layout; 0: consecutive parts */
    ptxgen_stage_visitor *visit; /* of the stages, with the rank; or NULL */
};
struct rank {
    struct world *world;
    struct hub_end end;
    ptxgen_session *s;
    ptxgen_problem *problem;
    ptxgen_comm *comm;
    ptxgen_dist *dist;
    ptxgen_gpu *gpu;
    ptxgen_stream stream;
    ptxgen_status status;
    int64_t first, count; /* of its part */
    void *input[HARNESS_ARRAYS], *output[HARNESS_ARRAYS];
    char text[1024];
};

static inline void rank_open(struct rank *r)
{
    ptxgen_comm_callbacks with = PTXGEN_COMM_CALLBACKS_INIT;
    ptxgen_dist_options o = PTXGEN_DIST_OPTIONS_INIT;
    const struct world *w = r->world;
    with.allgather = hub_allgather;
    with.sendrecv = hub_sendrecv;
    with.user = &r->end;
    o.split = w->split;
    o.modes = w->modes;
    o.block = w->block;
    r->status = ptxgen_session_create(&r->s);
    if (r->status == PTXGEN_OK)
        r->status = ptxgen_problem_from_string(r->s, w->spec, strlen(w->spec), w->name, &r->problem);
    ptxgen_diagnostics_clear(r->s); /* of warnings */
    if (r->status == PTXGEN_OK)
        r->status = w->over ? w->over->comm(r) : ptxgen_comm_from_host(r->s, &with, r->end.rank, w->ranks, &r->comm);
    if (r->status == PTXGEN_OK)
        r->status = ptxgen_dist_load(r->s, r->comm, r->problem, &o, &r->dist);
    if (r->status == PTXGEN_OK && w->over)
        r->status = w->over->loaded(r);
}

static inline void rank_text(struct rank *r)
{
    char *text = ptxgen_diagnostics_text(r->s, 0);
    snprintf(r->text, sizeof r->text, "%s", text ? text : "");
    ptxgen_free(text);
}

static inline void *rank_opens(void *user)
{
    struct rank *r = user;
    rank_open(r);
    rank_text(r);
    return NULL;
}

static inline void rank_close(struct rank *r)
{
    ptxgen_dist_destroy(r->dist);
    ptxgen_comm_destroy(r->comm);
    ptxgen_stream_destroy(r->gpu, r->stream);
    ptxgen_gpu_close(r->gpu);
    ptxgen_session_destroy(r->s);
}

/* The number of the split size. */
static inline int world_split(const struct world *w)
{
    for (int i = 0; i < ptxgen_problem_size_count(w->whole->problem); i++)
        if (!strcmp(ptxgen_problem_size_name(w->whole->problem, i), w->split))
            return i;
    return -1;
}

/* Between an array of the whole and that of a part; an array without the split dimension is the same in both. */
static inline void rank_copy(const struct rank *r, const ptxgen_array_info *a, char *whole, char *part, bool out)
{
    const struct harness *h = r->world->whole;
    const int split = world_split(r->world);
    int64_t outer = 1, inner = (int64_t)a->element_size, extent = 1, first = 0, count = 1;
    bool seen = false;
    for (int d = 0; d < a->rank; d++) {
        const int64_t n = (a->size_index[d] < 0 ? 0 : h->size[a->size_index[d]]) + a->size_add[d];
        if (a->size_index[d] == split)
            seen = true, extent = n, first = r->first, count = r->count;
        else if (seen)
            inner *= n;
        else
            outer *= n;
    }
    const int64_t block = r->world->block && seen ? r->world->block : count;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t at = 0; at < count; at += block) { /* from one block of the rank to the next */
            const int64_t n = count - at < block ? count - at : block,
                          place = first + (block < count ? at * r->world->ranks : at);
            char *w = whole + (i * extent + place) * inner, *p = part + (i * count + at) * inner;
            memcpy(out ? w : p, out ? p : w, (size_t)(n * inner));
        }
}

static inline bool has_split(const struct world *w, const ptxgen_array_info *a)
{
    bool has = false;
    for (int d = 0; d < a->rank; d++)
        has |= a->size_index[d] == world_split(w);
    return has;
}

/* The sizes of rank r's part. */
static inline void rank_sizes(const struct rank *r, int64_t *size)
{
    memcpy(size, r->world->whole->size, sizeof r->world->whole->size);
    size[world_split(r->world)] = r->count;
}

static inline void *rank_runs(void *user)
{
    struct rank *r = user;
    struct harness *h = r->world->whole;
    ptxgen_array_info a;
    int64_t size[8];
    rank_sizes(r, size);
    const ptxgen_arguments args = { size, (const void *const *)r->input, r->output, h->param };
    for (int i = 0; i < ptxgen_problem_input_count(h->problem); i++) {
        ptxgen_problem_input(h->problem, i, &a);
        r->input[i] = malloc((size_t)ptxgen_array_elements(&a, size) * a.element_size + 1);
        rank_copy(r, &a, h->input[i], r->input[i], false);
    }
    for (int i = 0; i < ptxgen_problem_output_count(h->problem); i++) {
        ptxgen_problem_output(h->problem, i, &a);
        const size_t bytes = (size_t)ptxgen_array_elements(&a, size) * a.element_size;
        r->output[i] = memset(malloc(bytes + 1), 0xA5, bytes + 1);
    }
    ptxgen_diagnostics_clear(r->s);
    if (r->world->over)
        r->status = ptxgen_dist_prepare(r->s, r->dist, &args, r->stream);
    if (r->status == PTXGEN_OK || !r->world->over)
        r->status = r->world->visit ? ptxgen_dist_launch_stages(r->s, r->dist, &args, r->stream, r->world->visit, r)
                                    : ptxgen_dist_launch_on(r->s, r->dist, &args, r->stream);
    rank_text(r);
    return NULL;
}

/* f on all ranks at once. */
static inline void world_all(struct world *w, struct rank *rank, void *(*f)(void *rank))
{
    pthread_t thread[RANKS_MAX];
    for (int r = 0; r < w->ranks; r++)
        pthread_create(&thread[r], NULL, f, &rank[r]);
    for (int r = 0; r < w->ranks; r++)
        pthread_join(thread[r], NULL);
}

static inline void world_open(struct world *w, struct rank *rank)
{
    hub_open(&w->hub, w->ranks);
    if (w->over)
        w->over->begin(w->ranks);
    for (int r = 0; r < w->ranks; r++)
        rank[r] = (struct rank){ .world = w, .end = { &w->hub, r } };
    world_all(w, rank, rank_opens);
}

static inline void world_close(struct world *w, struct rank *rank)
{
    for (int r = 0; r < w->ranks; r++)
        rank_close(&rank[r]);
    hub_close(&w->hub);
}

/* Results go into the whole; those that all ranks have must be alike: NULL, or the name of one that is not. */
static inline const char *world_collect(struct world *w, struct rank *rank)
{
    struct harness *h = w->whole;
    const char *odd = NULL;
    for (int i = 0; i < ptxgen_problem_output_count(h->problem); i++) {
        const ptxgen_array_info *a;
        ptxgen_array_info info;
        ptxgen_problem_output(h->problem, i, &info);
        a = ptxgen_problem_array(h->problem, info.name);
        for (int r = 0; r < w->ranks; r++) {
            const size_t bytes = (size_t)h->count[i] * a->element_size;
            if (!has_split(w, a) && memcmp(rank[r].output[i], rank[0].output[i], bytes))
                odd = a->name;
            rank_copy(&rank[r], a, h->output[i], rank[r].output[i], true);
        }
    }
    return odd;
}

static inline void world_free(struct world *w, struct rank *rank)
{
    for (int r = 0; r < w->ranks; r++)
        for (int i = 0; i < HARNESS_ARRAYS; i++) {
            free(rank[r].input[i]);
            free(rank[r].output[i]);
            rank[r].input[i] = rank[r].output[i] = NULL;
        }
}

/* Parts of `total` elements: even shares, or unequal ones of which some are empty. */
static inline void world_parts(struct world *w, struct rank *rank, int64_t total, uint64_t seed)
{
    int64_t left = total;
    for (int r = 0; r < w->ranks; r++) {
        const int64_t even = left / (w->ranks - r);
        const uint64_t draw = harness_random(&seed);
        rank[r].first = total - left;
        rank[r].count = r == w->ranks - 1 ? left : draw % 3 == 0 ? 0 : draw % 3 == 1 ? even : left / 2;
        left -= rank[r].count;
    }
}

#endif
