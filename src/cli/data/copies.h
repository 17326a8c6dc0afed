/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h - the arrays of a run on a GPU, and what is measured with them. */
#ifndef PTXGEN_CLI_COPIES_H
#define PTXGEN_CLI_COPIES_H

#include "cli.h"
#include "ptxgen/launch.h"

/* ---- copies.c ---- */
struct copies {
    ptxgen_gpu *gpu;
    int n;         /* arrays: inputs, then outputs */
    int64_t count; /* copies of each */
    void **block, **data;
};
/* Bytes of one copy of everything. */
size_t copies_bytes(const struct job *j);
/* Filled from the host's arrays. copies_finish() also after failure. */
ptxgen_status copies_create(const struct job *j, ptxgen_gpu *gpu, int64_t count, struct copies *c);
/* The pointers of copy k (modulo their number); they stay until the next call. */
void **copies_at(struct copies *c, const struct job *j, int64_t k);
/* The outputs of copy 0 back to the host. */
ptxgen_status copies_read(const struct job *j, struct copies *c);
void copies_finish(struct copies *c);

/* ---- device.c: a job's program on a device ---- */
/* The GPU that --device names (auto: the first), open; its name goes into the job. */
int device_open(struct job *j, int ordinal, ptxgen_gpu **gpu);
/* The job's spec, compiled for the GPU and loaded. */
int device_load(struct job *j, ptxgen_gpu *gpu, ptxgen_program **program, ptxgen_loaded **loaded);

/* ---- timing.c ---- */
enum { SAMPLES_MAX = 1001 };
struct timing {
    double median, p10, p90; /* seconds per launch */
    double host;             /* of the host, per launch */
    int samples, launches;   /* launches of one sample */
};
struct subject {
    struct job *job;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    struct copies copies;
    ptxgen_stream stream;
    ptxgen_event begin, end;
    int samples;
    int64_t next;  /* launches so far */
    int turn;      /* 1 + the descriptor of the lock, while held; 0: none */
    double waited; /* seconds, for other programs' turns */
};
/* Programs that share a GPU measure in turn: between the two this one holds the lock of the file PTXGEN_GPU_LOCK, if the
 * environment names one.  What opens, launches and times a subject takes its turn. */
void turn_begin(struct subject *x);
void turn_end(struct subject *x);
/* ---- measure.c: between opening and closing, one program after the other can be loaded and timed ---- */
ptxgen_status subject_open(struct job *j, ptxgen_gpu *gpu, struct subject *x); /* subject_close() also after failure */
void subject_close(struct subject *x);
/* Ready to launch; the job gets the name of the case. subject_unload() before the program is destroyed. */
ptxgen_status subject_load(struct subject *x, ptxgen_loaded *loaded);
void subject_unload(struct subject *x);
/* One launch on the first copy, whose outputs were zeros; waits for it. */
ptxgen_status subject_launch(struct subject *x);
/* The same, and its results into the job's arrays. */
ptxgen_status subject_results(struct subject *x);
/* What a perfect implementation moves per launch. */
double job_bytes(const struct job *j);

/* Two launches, enough to tell the slow from the rest. */
ptxgen_status time_probe(struct subject *x, double *seconds);
ptxgen_status time_stream(struct subject *x, struct timing *out);
ptxgen_status time_graph(struct subject *x, struct timing *out);

#endif
