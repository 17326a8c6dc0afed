/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.c - the runtime's functions by name. */
#include "simt_impl.h"

#define SYMBOL(f)                                                                                                      \
    {                                                                                                                  \
#f, (void *)(uintptr_t)(f)                                                                                     \
    }

static const struct host_symbol symbols[] = {
    SYMBOL(simt_tid),
    SYMBOL(simt_block),
    SYMBOL(simt_blocks),
    SYMBOL(simt_cluster_rank),
    SYMBOL(simt_shared),
    SYMBOL(simt_load),
    SYMBOL(simt_store),
    SYMBOL(simt_rmw),
    SYMBOL(simt_cas_part),
    SYMBOL(simt_placed),
    SYMBOL(simt_fence),
    SYMBOL(simt_shfl),
    SYMBOL(simt_vote),
    SYMBOL(simt_redux),
    SYMBOL(simt_warp_sync),
    SYMBOL(simt_barrier),
    SYMBOL(simt_team_barrier),
    SYMBOL(simt_cluster_map),
    SYMBOL(simt_cluster_arrive),
    SYMBOL(simt_cluster_wait),
    SYMBOL(simt_dependency_wait),
    SYMBOL(simt_dependency_launch),
    SYMBOL(simt_mbar_init),
    SYMBOL(simt_mbar_ready),
    SYMBOL(simt_mbar_arrive),
    SYMBOL(simt_mbar_wait),
    SYMBOL(simt_prefetch),
    SYMBOL(simt_bulk_load),
    SYMBOL(simt_bulk_store),
    SYMBOL(simt_bulk_commit),
    SYMBOL(simt_bulk_wait),
    SYMBOL(simt_proxy_fence),
    SYMBOL(simt_copy),
    SYMBOL(simt_copy_commit),
    SYMBOL(simt_copy_wait),
    SYMBOL(simt_backoff),
    SYMBOL(simt_exchange),
    SYMBOL(simt_halo_number),
    SYMBOL(simt_halo_send),
    SYMBOL(simt_halo_wait),
    SYMBOL(simt_halo_read),
    SYMBOL(simt_halo_peek),
    SYMBOL(simt_halo_done),
};

const struct host_symbol *simt_symbols(int *count)
{
    *count = (int)(sizeof symbols / sizeof *symbols);
    return symbols;
}
