/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - other implementations of the benchmark's problems, as a table.
 *
 * The peers are compiled by nvcc into libpeers.so, which gpubench opens.  They work on the same device memory and the
 * same stream as ptxgen's programs: both live in the device's primary context.
 */
#ifndef PTXGEN_PEERS_H
#define PTXGEN_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Sizes of one run: n elements; segments of `segment` elements for the segmented problems; for stencils the extents
 * along z, y and x (1 where there is no such dimension) and the numbers that the stencil has. */
struct peer_size {
    int64_t n, segment;
    int64_t extent[3];
    const double *param;
};

/* Like CUB: with temp NULL only *temp_bytes is written.  Returns a cudaError_t. */
typedef int peer_run_fn(void *temp, size_t *temp_bytes, const void *const *in, void *const *out,
                        const struct peer_size *size, struct CUstream_st *stream);

struct peer {
    const char *problem; /* a row of gpubench's table, or "read", "copy", "empty": limits */
    const char *name;
    int synchronous; /* waits for its result: no graph, and the host's time is the device's */
    peer_run_fn *run;
};

/* The whole table; exported by libpeers.so under this name. */
typedef const struct peer *ptxgen_peers_fn(int *count);
const struct peer *ptxgen_peers(int *count);

#ifdef __cplusplus
}
#endif
#endif
