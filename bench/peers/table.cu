/* SPDX-License-Identifier: Apache-2.0 */
/* table.cu - all rows, in the order in which the files' constructors ran. */
#include "peer_rows.cuh"

std::vector<peer> &peer_table()
{
    static std::vector<peer> table;
    return table;
}

extern "C" const peer *ptxgen_peers(int *count)
{
    *count = static_cast<int>(peer_table().size());
    return peer_table().data();
}
