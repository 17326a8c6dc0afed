/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_versions.c - see ptx_versions.h.  From the release notes of the PTX ISA manual. */
#include "ptx_versions.h"

#include <stddef.h>

int ptx_oldest_cuda(int ptx)
{
    static const struct {
        int ptx, cuda;
    } rows[] = {
        { 60, 9000 },  { 61, 9010 },  { 62, 9020 },  { 63, 10000 }, { 64, 10010 }, { 65, 10020 }, { 70, 11000 },
        { 71, 11010 }, { 72, 11020 }, { 73, 11030 }, { 74, 11040 }, { 75, 11050 }, { 76, 11060 }, { 77, 11070 },
        { 78, 11080 }, { 80, 12000 }, { 81, 12010 }, { 82, 12020 }, { 83, 12030 }, { 84, 12040 }, { 85, 12050 },
        { 86, 12070 }, { 87, 12080 }, { 88, 12090 }, { 90, 13000 }, { 91, 13010 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].ptx >= ptx)
            return rows[i].cuda;
    return 0;
}
