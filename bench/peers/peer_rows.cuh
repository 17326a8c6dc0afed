/* SPDX-License-Identifier: Apache-2.0 */
/* peer_rows.cuh - how a file of peers joins the table: `static const Row row{ "sum_f32", "cub", [](PEER_ARGS) {…} };` */
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "peers.h"

#define PEER_ARGS                                                                                              \
    void *temp, size_t *bytes, const void *const *in, void *const *out, const peer_size *size, cudaStream_t stream
/* For peers that need no temporary memory. */
#define PEER_NO_TEMP       \
    if (temp == nullptr) { \
        *bytes = 1;        \
        return 0;          \
    }

std::vector<peer> &peer_table();
struct Row {
    Row(const char *problem, const char *name, peer_run_fn *run, int synchronous = 0)
    {
        peer_table().push_back(peer{ problem, name, synchronous, run });
    }
};
