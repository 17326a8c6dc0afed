/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tests.h - what the files of the GPU test program share.
 *
 *     gpu_tests.c  options, the device
 *     specs.c      the walk over specs, strategies and sizes
 *     summary.c    what passed and failed
 *     run.c        one loaded program at one size: alignments, repetition, streams, a graph
 *     data.c       arrays on the host: random data, comparison with the reference
 *     large.c      more than 2^31 elements, more than 2^32 bytes
 *     stress.c     scans a thousand times on a busy device
 *
 * Only the public API is used, and the names of the strategies.  With --host the same walk runs on the host executor.
 */
#ifndef PTXGEN_GPU_TESTS_H
#define PTXGEN_GPU_TESTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ptxgen/launch.h"

enum { ARRAYS_MAX = 16, SIZES_MAX = 8, PARAMS_MAX = 16, STREAMS = 4, THREADS_MAX = 16 };
/* What outputs hold before a launch; also what nobody writes: elements that belong to no segment. */
enum { POISON = 0xa5 };

/* What one thread works with. */
struct suite {
    ptxgen_session *s;
    ptxgen_gpu *gpu; /* NULL: the host executor */
    ptxgen_stream stream[STREAMS];
    bool full, sanitize;
    const char *filter; /* only specs whose path contains it */
    const char *modes;  /* of the host executor */
};

/* A problem at one size: inputs, the reference's outputs, how far from them a result may be. */
struct sample {
    const ptxgen_problem *problem;
    int ninputs, noutputs, nsizes, nparams;
    ptxgen_array_info input[ARRAYS_MAX], output[ARRAYS_MAX];
    int64_t size[SIZES_MAX];
    ptxgen_value param[PARAMS_MAX];
    void *in[ARRAYS_MAX], *expected[ARRAYS_MAX];
    double *bound[ARRAYS_MAX];
    bool refused; /* the reference refuses these sizes, so a launch must too */
};
bool sample_create(struct suite *t, const ptxgen_problem *problem, const int64_t *size, struct sample *out);
void sample_finish(struct sample *x);
size_t array_bytes(const ptxgen_array_info *a, const int64_t *size);
/* Compares a whole output; on a difference `why` says where. */
bool sample_check(const struct sample *x, int output, const void *got, char *why, size_t length);
bool only_integers(const struct sample *x);

/* A program ready to run: loaded, or host code. */
struct target {
    const char *name; /* of the strategy */
    ptxgen_plan *plan;
    ptxgen_program *program;
    ptxgen_loaded *loaded;
    ptxgen_host *host;
    bool same_bits; /* promised by its determinism */
};
/* All checks of one target at one size. */
enum outcome {
    OUTCOME_FAILED, /* `why` says how */
    OUTCOME_PASSED,
    OUTCOME_REFUSED,     /* by the reference and, as it must, by the launch */
    OUTCOME_OUT_OF_RANGE /* a strategy that was asked for by name is for other sizes, and said so */
};
enum outcome run_target(struct suite *t, const struct target *target, const struct sample *x, char *why, size_t length);
/* Around what waits for the whole context: allocating, freeing, unloading. */
void begin_context_work(void);
void end_context_work(void);
/* Alone: the big ones. */
void run_large(struct suite *t, const char *specs);
void run_stress(struct suite *t, const char *specs);

/* Every .yaml file of a folder, in order of name, and then all of them. */
void add_folder(struct suite *t, const char *folder);
void run_specs(struct suite *t, int threads);

/* From any thread.  A failure takes the session's first message along; all clear the session's messages. */
void note_failure(struct suite *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `strategy` must outlive the program; a failed outcome is noted by note_failure(). */
void note_outcome(struct suite *t, const char *strategy, enum outcome outcome);
void note_skip(struct suite *t, const char *path);
/* It is a failure if this one never passes. */
void expect_strategy(const char *strategy);
/* The number of failures. */
int show_summary(FILE *to);

#endif
