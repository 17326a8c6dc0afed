/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - blocks that run together: the split barrier, addresses in each other's shared memory; dependent launch.
 *
 * The cluster's barrier has phases. A thread that has arrived `arrives` times and waited `waits` times may wait when
 * the cluster has completed more than `waits` phases.
 */
#include "simt_impl.h"

uint32_t simt_cluster_rank(void) { return (uint32_t)simt_current->block->rank; }

void *simt_cluster_map(void *shared, uint32_t rank)
{
    struct exec *x = simt_current;
    const struct cluster *c = x->block->cluster;
    if (rank >= (uint32_t)c->nblocks)
        finding(x, SIMT_BOUNDS, "maps shared memory of block %u of a cluster of %d", (unsigned)rank, c->nblocks);
    return (char *)shared - x->block->shared + c->block[rank]->shared;
}

/* ---- barrier --------------------------------------------------------------------------------- */
static void complete_if_all_arrived(struct exec *x, struct cluster *c)
{
    if (c->arrived == 0 || c->arrived < c->live)
        return;
    exec_progress(x);
    c->arrived = 0;
    c->phase++;
    for (int r = 0; r < c->nblocks; r++) {
        struct block *b = c->block[r];
        for (int i = 0; i < b->grid->threads / WARP_LANES; i++) {
            const uint32_t lanes = b->warp[i].at_cluster;
            b->warp[i].at_cluster = 0;
            exec_ready(x, &b->warp[i], lanes);
        }
    }
}

/* Nobody waits for a thread that has ended; its last arrival counts no longer, like the thread itself. */
void cluster_thread_exits(struct exec *x)
{
    struct cluster *c = x->block->cluster;
    if (x->thread->arrives > c->phase)
        c->arrived--;
    complete_if_all_arrived(x, c);
}

void simt_cluster_arrive(const char *site)
{
    struct exec *x = simt_current;
    struct cluster *c = x->block->cluster;
    if (x->thread->arrives > x->thread->waits)
        finding(x, SIMT_DIVERGENCE, "arrives at the cluster's barrier again without waiting, at %s", site ? site : "?");
    if (x->options.weak)
        weak_release(x, SIMT_SCOPE_CLUSTER);
    x->thread->arrives++;
    c->arrived++;
    complete_if_all_arrived(x, c);
    exec_interleave(x);
}

void simt_cluster_wait(const char *site)
{
    struct exec *x = simt_current;
    struct thread *t = x->thread;
    if (t->arrives == t->waits)
        finding(x, SIMT_DIVERGENCE, "waits at the cluster's barrier without having arrived, at %s", site ? site : "?");
    if (x->block->cluster->phase == t->waits) {
        x->warp->at_cluster |= UINT32_C(1) << x->lane;
        exec_suspend(x);
    }
    t->waits++;
    x->block->met = true;
    t->acquired = x->now;
}

/* ---- dependent launch ------------------------------------------------------------------------ */
void simt_dependency_launch(void)
{
    struct exec *x = simt_current;
    exec_interleave(x);
    exec_trigger(x);
}

void simt_dependency_wait(void)
{
    struct exec *x = simt_current;
    const struct grid *previous = x->block->grid->previous;
    if (previous && previous->finished < previous->nblocks) {
        x->warp->at_dependency |= UINT32_C(1) << x->lane;
        exec_suspend(x);
    }
    x->block->waited = true;
    x->block->since = x->now;
    x->thread->acquired = x->now;
}
