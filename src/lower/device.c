/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the architectures: one row each.
 *
 * Figures: CUDA C++ Programming Guide, table of technical specifications per compute capability.
 * PTX version: the lowest that has what the kernels use (nanosleep 6.3, cache hints 7.4, clusters and mbarriers 8.0),
 * never below the architecture's own minimum, so that the oldest possible driver loads the result.
 */
#include "device.h"

#include <string.h>

enum { KIB = 1024 };

/* shared memory: opt-in maximum per block, per multiprocessor, in KiB */
static const struct row {
    const char *arch;
    int sm, ptx, ptx_min, block_kib, sm_kib, threads, blocks;
} rows[] = {
    /* arch      sm  ptx min block  sm  threads blocks */
    { "sm_70", 70, 63, 60, 96, 96, 2048, 32 },      { "sm_72", 72, 63, 61, 96, 96, 2048, 32 },
    { "sm_75", 75, 74, 63, 64, 64, 1024, 16 },      { "sm_80", 80, 74, 70, 163, 164, 2048, 32 },
    { "sm_86", 86, 74, 71, 99, 100, 1536, 16 },     { "sm_87", 87, 74, 74, 163, 164, 1536, 16 },
    { "sm_89", 89, 78, 78, 99, 100, 1536, 24 },     { "sm_90", 90, 80, 78, 227, 228, 2048, 32 },
    { "sm_90a", 90, 80, 80, 227, 228, 2048, 32 },   { "sm_100", 100, 86, 86, 227, 228, 2048, 32 },
    { "sm_100a", 100, 86, 86, 227, 228, 2048, 32 }, { "sm_103", 103, 88, 88, 227, 228, 2048, 32 },
    { "sm_110", 110, 90, 90, 227, 228, 1536, 24 },  { "sm_120", 120, 87, 87, 99, 100, 1536, 24 },
    { "sm_121", 121, 88, 88, 99, 100, 1536, 24 },
};
enum { NROWS = sizeof rows / sizeof *rows, REGISTERS = 64 * KIB };

/* Versions that exist and that LLVM can write. */
static bool ptx_known(int ptx)
{
    return (ptx >= 60 && ptx <= 65) || (ptx >= 70 && ptx <= 78) || (ptx >= 80 && ptx <= 88) || ptx == 90;
}

bool device_by_name(const char *arch, int ptx, struct device *out)
{
    const char *number = strncmp(arch, "sm_", 3) == 0 ? arch + 3 : arch;
    const struct row *r = rows;
    while (r < rows + NROWS && strcmp(r->arch + 3, number) != 0)
        r++;
    if (r == rows + NROWS || (ptx != 0 && (!ptx_known(ptx) || ptx < r->ptx_min)))
        return false;
    *out = (struct device){
        .arch = r->arch,
        .sm = r->sm,
        .ptx = ptx ? ptx : r->ptx,
        .ptx_min = r->ptx_min,
        .shared_per_block = r->block_kib * KIB,
        .shared_per_sm = r->sm_kib * KIB,
        .threads_per_sm = r->threads,
        .blocks_per_sm = r->blocks,
        .registers_per_sm = REGISTERS,
    };
    return true;
}

int device_names(const char *const **names)
{
    static const char *const list[] = { "sm_70",  "sm_72",  "sm_75",   "sm_80",  "sm_86",  "sm_87",  "sm_89", "sm_90",
                                        "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_110", "sm_120", "sm_121" };
    _Static_assert(sizeof list / sizeof *list == NROWS, "every row is listed");
    *names = list;
    return NROWS;
}
