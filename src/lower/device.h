/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - what planning and code generation know about a target. */
#ifndef PTXGEN_DEVICE_H
#define PTXGEN_DEVICE_H

#include <stdbool.h>

/* A target architecture: one row of device.c per sm number. */
struct device {
    const char *arch;      /* "sm_90" */
    int sm;                /* 90 */
    int ptx;               /* PTX version to emit, 80 for 8.0: max of the architecture's minimum and what features need */
    int ptx_min;           /* lowest the architecture accepts */
    int shared_per_block;  /* opt-in maximum, bytes */
    int shared_per_sm;
    int threads_per_sm, blocks_per_sm, registers_per_sm;
    bool host;             /* the host executor: same capabilities as the sm number says */
};

/* The row for "sm_90", "90", "sm_90a"; false when unknown. ptx 0: by policy; else checked against the minimum. */
bool device_by_name(const char *arch, int ptx, struct device *out);
int  device_names(const char *const **names);

#endif
