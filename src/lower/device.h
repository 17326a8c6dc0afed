/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - what planning and code generation know about a target. */
#ifndef PTXGEN_DEVICE_H
#define PTXGEN_DEVICE_H

#include "base/diag.h"

#include <stdint.h>

/* A target architecture: one row of device.c per sm number. */
struct device {
    const char *arch; /* "sm_90" */
    int sm;           /* 90 */
    int ptx;          /* PTX version to emit, 80 for 8.0: max of the architecture's minimum and what features need */
    int ptx_min;      /* lowest the architecture accepts */
    int shared_per_block; /* opt-in maximum, bytes */
    int shared_per_sm;
    int threads_per_sm, blocks_per_sm, registers_per_sm;
    bool host; /* the host executor: same capabilities as the sm number says */
};

/* The row for "sm_90", "90", "sm_90a"; false when unknown. ptx 0: by policy; else checked against the minimum. */
bool device_by_name(const char *arch, int ptx, struct device *out);
int device_names(const char *const **names);

/* What a known GPU can do at best, for rooflines.  Rates are what programs reach, not what data sheets promise. */
struct gpu_model {
    char name[96];
    int sm, sms;
    int64_t l2;                /* bytes */
    double read, write, copy;  /* bytes per second; copy counts both directions */
    double launch, graph_node; /* seconds of an empty kernel, back to back in a stream and in a graph */
    double flops;              /* of f32, fused operations counted twice, per second */
    double clock, l2_rate;     /* cycles of a multiprocessor and bytes out of L2 per second */
    bool measured;             /* else from the data sheet, with the losses measured elsewhere */
};
/* What a driver tells about its device; zero where it does not. */
struct gpu_facts {
    const char *name;
    int sm, sms;
    int64_t l2;
    int memory_clock_khz, bus_bits;
};
/* By the name that users or drivers give ("H200", "NVIDIA H200"; NULL: the first of its architecture), else from the
 * facts (NULL: none); false when nothing is known: then
 * gpu_model_unknown() is the error, which lists those that are known. */
bool gpu_model_find(const char *name, int sm, const struct gpu_facts *facts, struct gpu_model *out);
void gpu_model_unknown(struct diags *d, const char *name);

#endif
