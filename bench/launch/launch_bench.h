/* SPDX-License-Identifier: Apache-2.0 */
/* launch_bench.h - what the files of the launch benchmark share.
 *
 *     launch_bench.c  options, child processes, table and JSON
 *     first.c         from source text to the first result
 *     cost.c          the host's time for one launch
 */
#ifndef PTXGEN_LAUNCH_BENCH_H
#define PTXGEN_LAUNCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "ptxgen/launch.h"

enum { N = 1 << 20 };

/* The driver, for what is not ptxgen's; entry points by name, in the primary context of device 0. */
struct raw_driver {
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, ptxgen_stream stream, void **params, void **extra);
    int (*capturing)(ptxgen_stream stream, int *status);
    int (*stream_id)(ptxgen_stream stream, unsigned long long *id);
};
bool raw_open(struct raw_driver *cu);

/* A device with two vectors of N ones and twos, warm: it has copied and launched. */
struct bench_device {
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    void *x, *y, *out;
    char arch[16];
    const char *specs; /* the folder; NULL: no application is measured */
};
bool device_open(struct bench_device *d);

/* ---- first.c ---- */
enum subject { PTXGEN_COLD, PTXGEN_WARM, NVRTC_PLAIN, NVRTC_CUB, KMEANS_COLD, KMEANS_WARM, SUBJECTS };
/* Milliseconds from source text to loaded code, and to the result on the host; false when it could not be done. */
bool first_result(enum subject subject, struct bench_device *d, double *loaded, double *result);

/* ---- cost.c ---- */
struct cost {
    const char *what;
    double median, p90; /* microseconds of the host, per call */
};
enum { COSTS = 7 };
bool launch_costs(struct bench_device *d, struct cost cost[COSTS]);

double now_ms(void);
double median_of(double *values, int n); /* sorts them */

#endif
