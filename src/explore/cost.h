/* SPDX-License-Identifier: Apache-2.0 */
/* cost.h - what a problem costs at best, and what a plan is expected to take: a model, for explanations and for
 * ordering variants. */
#ifndef PTXGEN_COST_H
#define PTXGEN_COST_H

#include "lower/plan.h"
#include "lower/work.h"

/* The least time at known sizes: every array moved once between memory and the cores, one launch. */
struct roofline {
    int64_t read, written; /* bytes */
    double points;
    double memory, arithmetic; /* seconds */
    double seconds;            /* the larger of both, behind one launch */
};
struct roofline roofline_of(const struct problem *p, const int64_t *size, const struct gpu_model *m);
double point_count(const struct problem *p, const int64_t *size);
bool sizes_known(const struct problem *p, const int64_t *size);

/* What a pass by one kernel of a case takes of memory and caches: bytes, sectors that serve a lane each, and cycles of
 * L1. */
struct traffic {
    double read, written, l2;
    double memory_sectors, l2_sectors, l1_cycles;
};
struct traffic traffic_of(const struct problem *p, const int64_t *size, const struct gpu_model *m,
                          const struct plan_case *c, int kernel);

/* Blocks of a kernel that one multiprocessor holds. */
struct occupancy {
    int blocks;
    double warps;      /* part of the warps that the multiprocessor can hold */
    const char *limit; /* what runs out first */
};
struct occupancy occupancy_of(const struct device *d, int threads, int registers /* 0: unknown */, int shared);

/* What is known of the compiled kernels. */
struct resources {
    int count;
    const ptxgen_kernel_resources *of;
};
const ptxgen_kernel_resources *resources_find(const struct resources *r, const char *kernel);

/* A plan at known sizes. */
struct prediction {
    int case_index;             /* the case that a launch takes (arrays aligned and apart), or -1 */
    int launches;               /* kernels, time steps counted */
    int64_t grid[PROG_ARG_MAX]; /* blocks of each kernel of the case; 0: not launched */
    double passes;              /* over the arrays: launches of many blocks */
    double read, written;       /* bytes of all passes */
    double in_flight;  /* part of the loads in flight that memory wants; 1 where all loads are in flight at once */
    const char *bound; /* what most of the time goes to */
    double seconds, graph_seconds; /* of a launch in a stream, whose data come from memory; of one in a graph that is
                                      replayed: they are in the L2 cache, if they fit */
};
/* Does case c take such a launch, were there no case before it?  If not, its unmet conditions are appended. */
bool case_takes(const struct plan *plan, int c, const int64_t *size, const union value *param,
                const struct gpu_model *m, const struct formula_names *names, struct str *unmet);
struct prediction predict(const struct plan *plan, const int64_t *size, const union value *param,
                          const struct gpu_model *m, const struct resources *r);

#endif
