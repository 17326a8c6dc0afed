/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.c - the runtime's functions by name. */
#include "simt_impl.h"

#define SYMBOL(f)                                                                                                      \
    {                                                                                                                  \
#f, (void *)(uintptr_t)(f)                                                                                     \
    }

const struct host_symbol *simt_symbols(int *count)
{
    static const struct host_symbol table[] = {
        SYMBOL(simt_tid),
        SYMBOL(simt_block),
        SYMBOL(simt_blocks),
        SYMBOL(simt_cluster_rank),
        SYMBOL(simt_cluster_size),
        SYMBOL(simt_shared),
        SYMBOL(simt_load),
        SYMBOL(simt_store),
        SYMBOL(simt_rmw),
        SYMBOL(simt_fence),
        SYMBOL(simt_shfl),
        SYMBOL(simt_vote),
        SYMBOL(simt_redux),
        SYMBOL(simt_warp_sync),
        SYMBOL(simt_barrier),
        SYMBOL(simt_cluster_map),
        SYMBOL(simt_cluster_arrive),
        SYMBOL(simt_cluster_wait),
        SYMBOL(simt_dependency_wait),
        SYMBOL(simt_dependency_launch),
        SYMBOL(simt_backoff),
        SYMBOL(simt_assert),
    };
    *count = (int)(sizeof table / sizeof *table);
    return table;
}
