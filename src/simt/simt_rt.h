/* SPDX-License-Identifier: Apache-2.0 */
/* simt_rt.h - what generated host code calls: the machine that a kernel sees.
 *
 * Every function acts for the calling thread's current executor and fiber.  Memory goes through address
 * functions: simt_load(), simt_store() and simt_rmw() check an access, may switch to other fibers first, and return the
 * address that the code then reads or writes with plain instructions.  In the ordinary case that is the address that
 * was given; a weak-memory mode answers with a place in a store buffer or with an old value.  So one compilation serves
 * every mode. The access must follow the call at once: no other runtime call in between.
 *
 * Names and sites are texts that live as long as the code; they appear in reports.
 */
#ifndef PTXGEN_SIMT_RT_H
#define PTXGEN_SIMT_RT_H

#include <stdint.h>

/* `how` of an access. */
enum simt_how {
    SIMT_GLOBAL = 0,
    SIMT_SHARED = 1,
    SIMT_CLUSTER = 2, /* shared memory of a block of the cluster */
    SIMT_SPACE = 3,   /* mask */
    SIMT_INVARIANT = 4,
    SIMT_ORDER_SHIFT = 4,
    SIMT_ORDER = 7 << SIMT_ORDER_SHIFT, /* mask */
    SIMT_ALIGN_SHIFT = 8,               /* log2 of the alignment that the code relies on */
};
enum simt_order { SIMT_WEAK, SIMT_RELAXED, SIMT_ACQUIRE, SIMT_RELEASE, SIMT_ACQ_REL };
enum simt_scope { SIMT_SCOPE_BLOCK, SIMT_SCOPE_CLUSTER, SIMT_SCOPE_DEVICE, SIMT_SCOPE_SYSTEM };
enum simt_shfl_mode { SIMT_SHFL_IDX, SIMT_SHFL_UP, SIMT_SHFL_DOWN, SIMT_SHFL_XOR };
enum simt_vote_mode { SIMT_VOTE_ANY, SIMT_VOTE_ALL, SIMT_VOTE_BALLOT, SIMT_VOTE_MATCH };
enum simt_redux_op { SIMT_REDUX_ADD, SIMT_REDUX_MIN, SIMT_REDUX_MAX, SIMT_REDUX_AND, SIMT_REDUX_OR, SIMT_REDUX_XOR };

/* Special registers. */
uint32_t simt_tid(void);
uint32_t simt_block(void);
uint32_t simt_blocks(void);
uint32_t simt_cluster_rank(void);
void *simt_shared(void); /* the block's shared bytes, static first */

/* Accesses; order RELEASE is for stores, ACQUIRE for loads, both for neither: a read-modify-write is relaxed. */
void *simt_load(void *at, uint32_t bytes, uint32_t how, const char *name);
void *simt_store(void *at, uint32_t bytes, uint32_t how, const char *name);
void *simt_rmw(void *at, uint32_t bytes, uint32_t how, const char *name);
/* Compare-and-swap of an element of 1 or 2 bytes, by that of the aligned word around it; what the element held. */
uint32_t simt_cas_part(void *at, uint32_t bytes, uint32_t how, const char *name, uint32_t expected, uint32_t desired);
/* The element with these indices, along `rank` dimensions, is about to be written to a computed place; another one must
 * not come there. */
void simt_placed(void *at, uint32_t bytes, uint32_t rank, int64_t i, int64_t j, int64_t l, const char *name);
void simt_fence(uint32_t order, uint32_t scope);

/* Warp collectives: all 32 lanes arrive, at the same operation. */
uint32_t simt_shfl(uint32_t mode, uint32_t word, uint32_t arg, uint32_t width);
uint32_t simt_vote(uint32_t mode, uint32_t predicate);
uint32_t simt_redux(uint32_t op, uint32_t is_signed, uint32_t value);
void simt_warp_sync(const char *site);

/* Block and cluster. */
void simt_barrier(const char *site);
void simt_team_barrier(const char *site, uint32_t id, uint32_t threads); /* of the first threads of the block */
void *simt_cluster_map(void *shared, uint32_t rank);
void simt_cluster_arrive(const char *site);
void simt_cluster_wait(const char *site);

/* Dependent launch. */
void simt_dependency_wait(void);
void simt_dependency_launch(void);

/* Asynchronous copies and what they report to (async.c). Names: of the mbarrier; of where to and where from. */
void simt_mbar_init(void *bar, uint32_t arrivals, const char *name);
void simt_mbar_ready(void);
void simt_mbar_arrive(void *bar, uint32_t bytes, const char *name);
void simt_mbar_wait(void *bar, uint32_t parity, const char *name);
void simt_prefetch(void *from, uint32_t bytes, const char *name);
void simt_bulk_load(void *to, void *from, uint32_t bytes, void *bar, const char *to_name, const char *from_name);
void simt_bulk_store(void *to, void *from, uint32_t bytes, const char *to_name, const char *from_name);
void simt_bulk_commit(void);
void simt_bulk_wait(uint32_t pending, uint32_t read);
void simt_proxy_fence(void);
void simt_copy(void *to, void *from, uint32_t bytes, uint32_t exists, const char *to_name, const char *from_name);
void simt_copy_commit(void);
void simt_copy_wait(uint32_t pending);

void simt_backoff(uint32_t nanoseconds);

/* All threads of the block; table: the address of a struct exchange_table (exchange.c). */
void simt_exchange(uint64_t table);
/* One thread.  window: the address of a struct halo_head; e: the number of the exchange. */
uint32_t simt_halo_number(uint64_t window);
void simt_halo_send(uint64_t to, uint32_t word, uint32_t e);
void simt_halo_wait(uint64_t window, uint64_t from, uint32_t e);
uint32_t simt_halo_read(uint64_t from);
uint64_t simt_halo_peek(uint64_t from, uint32_t e); /* the word, and above it its number */
void simt_halo_done(uint64_t window, uint32_t e, uint32_t amount, uint32_t total);

#endif
