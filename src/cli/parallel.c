/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.c - see parallel.h.  Threads take the next item from a counter. */
#define _GNU_SOURCE
#include "parallel.h"

#include "progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS_MAX = 256 };

struct crew {
    atomic_int next, done;
    int n;
    void (*work)(int i, void *user);
    void *user;
};

int core_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n;
}

static void *take(void *user)
{
    struct crew *c = user;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->n;) {
        c->work(i, c->user);
        progress_at((double)(atomic_fetch_add(&c->done, 1) + 1) / c->n);
    }
    return NULL;
}

void parallel_for(int n, int threads, void (*work)(int i, void *user), void *user)
{
    struct crew crew = { .n = n, .work = work, .user = user };
    pthread_t thread[THREADS_MAX];
    int started = 0;
    threads = threads < 1 ? core_count() : threads;
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    while (started + 1 < threads && started + 1 < n && pthread_create(&thread[started], NULL, take, &crew) == 0) {
        started++;
    }
    take(&crew);
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
    }
}
