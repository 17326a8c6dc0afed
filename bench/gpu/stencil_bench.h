/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_bench.h - the stencil problems (stencils.c) and how they are run (stencil_run.c). */
#ifndef PTXGEN_STENCIL_BENCH_H
#define PTXGEN_STENCIL_BENCH_H

#include "bench.h"

enum bound { CLAMP, WRAP, REFLECT, MIRROR, INTERIOR };
enum {
    STENCIL_PARTS = 5,
    STENCIL_PARAMS = 6,
    STENCIL_PERIOD = (1 << 24) + 768 /* no multiple of a row; whole cache lines of every type */
};

struct field;
struct stencil {
    const char *name; /* also the spec's */
    int rank;
    enum scalar type;                  /* of everything */
    int ninputs, in_parts[INPUTS_MAX]; /* parts: scalars of an element */
    int noutputs, out_parts[OUTPUTS_MAX];
    enum bound bound;
    double tolerance;
    /* All parts of all outputs at one point. */
    void (*point)(const struct field *f, const int64_t *at, double *out);
    double param[STENCIL_PARAMS]; /* what of the spec's params comes before `steps` */
};
extern const struct stencil stencils[];
extern const int nstencils;

/* Inputs of one run. Extents are those of z, y, x; 1 where there is no such dimension. */
struct field {
    const struct stencil *stencil;
    const void *block;
    const double *param;
    int64_t extent[3];
};
/* STENCIL_PERIOD scalars, malloc'd; NULL: no memory. Input k is this block from stencil_first(k) on, again and again. */
void *stencil_block(enum scalar type);
int64_t stencil_first(int input);
double stencil_element(const struct field *f, int input, int64_t element);
/* Every stride-th of the points [first, first + count) of an output; got: the first point's memory. */
bool stencil_check(const struct field *f, int output, int64_t first, int64_t count, int64_t stride, const void *got,
                   char *why, size_t length);

/* All stencils that the options ask for; appends to the report. */
void run_stencils(struct bench *b);

#endif
