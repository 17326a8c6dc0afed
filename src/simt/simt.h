/* SPDX-License-Identifier: Apache-2.0 */
/* simt.h - the host executor: runs the kernels of a program on this machine, one fiber per GPU thread, and checks them.
 *
 * A launch walks the steps of the case like the GPU launcher does.  Per step: `resident` blocks at a time (or
 * clusters), threads in a seeded random order (or round robin), yields before atomics and while spinning.  Findings
 * stop the launch and are text: what, kernel, block, threads, the named value, source of the seed.
 */
#ifndef PTXGEN_SIMT_H
#define PTXGEN_SIMT_H

#include "program/program.h"
#include "ptxgen/ptxgen.h"

struct host_code;

struct simt_options {
    uint64_t seed;            /* 0: round robin; else random order from this seed */
    int resident;             /* blocks resident per simulated multiprocessor, default 2 */
    int sms;                  /* simulated multiprocessors, default 4 */
    bool race;                /* shared-memory (and cluster) race detector */
    bool weak;                /* store buffers per block: finds missing release ordering */
    bool stale;               /* loads may see old values until an acquire: finds missing acquire ordering */
    bool uninit;              /* reads of shared memory never written by the block */
    bool bounds;              /* global accesses must lie in an argument's extent (default on) */
    bool late;                /* dependent launches overlap; asynchronous copies land late */
    bool guard;               /* run in a forked child with guard pages around buffers */
    int (*watch)(void *user); /* called from time to time, on the stack of the caller; not 0: the run ends. Or NULL */
    void *watch_user;
};
void simt_options_default(struct simt_options *o);
/* "seed:7,race,weak,resident:3": NULL on success, else a message. */
const char *simt_options_parse(const char *text, struct simt_options *o);

struct simt_report {
    enum {
        SIMT_OK,
        SIMT_DEADLOCK,
        SIMT_DIVERGENCE,
        SIMT_RACE,
        SIMT_BOUNDS,
        SIMT_UNINIT,
        SIMT_CRASH,
        SIMT_CHECK,
        SIMT_TWICE,
        SIMT_NO_MEMORY,
        SIMT_STOPPED
    } what;
    char text[1024];
    int case_index; /* the case that was taken; -1: none */
    uint64_t switches, launches;
};

/* Control memory kept between launches, like the launcher's control block. */
struct simt_control;
struct simt_control *simt_control_create(void);
void simt_control_destroy(struct simt_control *c);

/* Run once.  control: NULL for a fresh one.  `bytes`: extent of each input and output for bounds checks. */
int simt_run(struct host_code *h, const struct run_args *args, struct simt_control *control,
             const struct simt_options *o, struct simt_report *out);

/* What the report means for a caller; what is wrong is told. */
ptxgen_status simt_status(struct ptxgen_session *s, const struct simt_report *r);

/* The runtime functions that generated code calls, for llvmgen_host(). */
struct host_symbol;
const struct host_symbol *simt_symbols(int *count);

#endif
