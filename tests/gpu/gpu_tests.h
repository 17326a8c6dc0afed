/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tests.h - what the files of the GPU test program share.
 *
 *     gpu_tests.c  options, what is run
 *     workers.c    processes and threads that take specs; what died or hung
 *     specs.c      one spec: its strategies, each at each size
 *     sizes.c      which sizes
 *     run.c        one loaded program at one size: alignments, repetition, streams, a graph
 *     bed.c        memory of one sample on the device, for several launches
 *     data.c       arrays on the host: random data, comparison with the reference
 *     summary.c    what passed, failed, was refused, never ran; where the time went
 *     devices.c    one program on two devices
 *     graphs.c     stages in CUDA graphs
 *     large.c      reductions of more than 2^31 elements, more than 2^32 bytes
 *     closed.c     the same of scans, segments and stencils
 *     stress.c     what waits for other blocks, a thousand times on a busy device
 *
 * Only the public API is used, and the names of the strategies.  With --host the same walk runs on the host executor.
 */
#ifndef PTXGEN_GPU_TESTS_H
#define PTXGEN_GPU_TESTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ptxgen/launch.h"

enum { ARRAYS_MAX = 16, SIZES_MAX = 8, PARAMS_MAX = 16, STREAMS = 4, THREADS_MAX = 16, PROCESSES_MAX = 64 };
/* What outputs hold before a launch; also what nobody writes: elements that belong to no segment. */
enum { POISON = 0xa5 };

/* What a problem goes over: a strategy may have other kernels for each. */
enum form { FORM_WHOLE, FORM_ROWS, FORM_COLUMNS, FORM_OFFSETS, FORM_FLAGS, FORMS };

/* What one thread works with. */
struct suite {
    ptxgen_session *s;
    ptxgen_gpu *gpu; /* NULL: the host executor */
    ptxgen_stream stream[STREAMS];
    bool full, sanitize;
    const char *filter;  /* only specs whose path contains it */
    const char *without; /* not this strategy by name */
    const char *modes;   /* of the host executor */
    int device;          /* -1: process k takes device k modulo their number */
    int slot;            /* of this thread, for watch() */
    int fields;          /* most of an output of the spec at hand */
    enum form form;      /* of the spec at hand */
    int part, parts;     /* of the sizes of the spec at hand */
    struct bed *bed;
};

/* ---- data.c ---------------------------------------------------------------------------------- */
/* A problem at one size: inputs, the reference's outputs, how far from them a result may be. */
struct sample {
    const ptxgen_problem *problem;
    int ninputs, noutputs, nsizes, nparams;
    ptxgen_array_info input[ARRAYS_MAX], output[ARRAYS_MAX];
    int64_t size[SIZES_MAX];
    ptxgen_value param[PARAMS_MAX];
    void *in[ARRAYS_MAX], *expected[ARRAYS_MAX];
    double *bound[ARRAYS_MAX];
    int64_t values, undecided; /* of all outputs; whose bound is infinite, so that nothing can be said of them */
    void *right[ARRAYS_MAX];   /* what was compared last and right, NULL: nothing yet; the next one is often the same */
    bool refused;              /* the reference refuses these sizes, so a launch must too */
};
bool sample_create(struct suite *t, const ptxgen_problem *problem, const int64_t *size, struct sample *out);
void sample_finish(struct sample *x);
size_t array_bytes(const ptxgen_array_info *a, const int64_t *size);
/* Compares a whole output; on a difference `why` says where. */
bool sample_check(struct sample *x, int output, const void *got, char *why, size_t length);
bool only_integers(const struct sample *x);

/* ---- bed.c ----------------------------------------------------------------------------------- */
/* Inputs once and outputs several times, `shift` elements off an aligned beginning, poison around every output.  A
 * thread keeps its memory from sample to sample, as allocating waits for the device; where every array must be an
 * allocation of its own, so that a tool sees what lies beyond its ends, there are no margins and one copy. */
enum { COPIES_MAX = 16 };
struct bed;
bool bed_create(struct suite *t);
void bed_destroy(struct suite *t);
/* The sample's arrays are given up: before it is finished. */
void bed_clear(struct suite *t);
/* `in_place`: number of the input that output 0 of each copy lies in, a copy of the input each; -1: none. */
bool bed_lay(struct suite *t, struct sample *x, int shift, int copies, int in_place);
ptxgen_arguments bed_arguments(const struct bed *b, int copy);
/* Fill all copies of the outputs with poison (in place: with the input); done when it returns. */
bool bed_poison(struct suite *t);
/* Read everything back. */
bool bed_fetch(struct suite *t);
/* Compare a copy's outputs with the reference, and what lies around them with poison.  `keep`: also bit by bit with the
 * first copy that was ever checked with it, or NULL; the caller frees keep[i]. */
bool bed_check(struct suite *t, int copy, void **keep, char *why, size_t length);
/* No launch has written to an input. */
bool bed_check_inputs(struct suite *t, char *why, size_t length);

/* ---- run.c ----------------------------------------------------------------------------------- */
/* A program ready to run: loaded, or host code. */
struct target {
    const char *name; /* of the strategy */
    ptxgen_plan *plan;
    ptxgen_program *program;
    ptxgen_loaded *loaded;
    ptxgen_host *host;
    bool pinned;    /* by the suite or by the spec: may be for a range of sizes */
    bool same_bits; /* promised by its determinism */
    int in_place;   /* the input that output 0 may lie in, or -1 */
};
/* All checks of one target at one size. */
enum outcome {
    OUTCOME_FAILED, /* `why` says how */
    OUTCOME_PASSED,
    OUTCOME_UNDECIDED,   /* ran, but nothing is known of any of its values */
    OUTCOME_REFUSED,     /* by the reference and, as it must, by the launch */
    OUTCOME_OUT_OF_RANGE /* a strategy that was asked for by name is for other sizes, and said so */
};
/* Of a sample whose every check went well. */
enum outcome sample_outcome(const struct sample *x);
enum outcome run_target(struct suite *t, const struct target *target, struct sample *x, char *why, size_t length);
/* Around what waits for the whole context: allocating, freeing, unloading. */
void begin_context_work(void);
void end_context_work(void);
/* Around a capture, which none of these may meet. */
void begin_capture(void);
void end_capture(void);

/* ---- specs.c, sizes.c, workers.c -------------------------------------------------------------- */
void run_spec(struct suite *t, const char *path);
/* It is a failure if a strategy never passes, or not on a form that it fits. */
void expect_strategies(void);
/* Every size of a problem: calls visit(context, size). */
void for_sizes(const struct suite *t, int nsizes, void (*visit)(void *context, const int64_t *size), void *context);

/* Every .yaml file of a folder, in order of name. */
void add_folder(struct suite *t, const char *folder);
/* Deal out every spec in so many parts of its sizes, each with a worker of its own, and only those of shard `shard` of
 * `shards`. */
void choose_work(int parts, int shard, int shards);
/* Run all specs: `processes` processes (0: in this one) of `threads` threads each. */
void run_specs(struct suite *t, int processes, int threads);
/* From now on SIGTERM and SIGINT end it early, and what was found so far is shown. */
void heed_signals(void);
/* Did one? */
bool was_stopped(void);
/* What this thread is at, for the message when it dies or hangs; NULL: between pieces of work. */
void watch(const struct suite *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void unwatch(const struct suite *t);
/* After a failure: ends a worker process whose context is lost; another takes its place. */
void leave_if_lost(struct suite *t);
bool open_device(struct suite *t, int device);
void close_device(struct suite *t);
/* Does it promise the same bits for every launch? */
bool promises_bits(const ptxgen_program *program);
/* Plan, compile and load what a file says; settings as in ptxgen_plan_options. */
bool load_spec(struct suite *t, const char *path, const char *strategy, ptxgen_program **program,
               ptxgen_loaded **loaded);
/* The same of a spec's text. */
bool load_text(struct suite *t, const char *text, const char *strategy, ptxgen_program **program,
               ptxgen_loaded **loaded);

/* Alone: the big ones, and what needs the whole device. */
void run_large(struct suite *t, const char *specs);
void run_closed(struct suite *t, const char *specs);
void run_stress(struct suite *t, const char *specs);
void run_devices(struct suite *t, const char *specs);
void run_graphs(struct suite *t);

/* ---- summary.c ------------------------------------------------------------------------------- */
/* Before all else, and before any fork: everything noted lands in memory that processes share. */
bool summary_create(void);
/* From any thread.  A failure takes the session's first message along; all clear the session's messages. */
void note_failure(struct suite *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `strategy` must outlive the program; a failed outcome is noted by note_failure(). */
void note_outcome(struct suite *t, const char *strategy, enum outcome outcome);
/* A strategy that was asked for by name refused pointers that are not aligned. */
void note_refused_shift(void);
/* Of a sample: its values, and those of which nothing is known. */
void note_values(int64_t values, int64_t undecided);
void note_skip(struct suite *t, const char *path);
/* What was not run, and why: it counts as neither passed nor failed. */
void note_not_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_device(const char *text);
/* It is a failure if this one never passes. */
void expect_strategy(const char *strategy);
/* It is a failure if a strategy passes at no size of a form of which it fits a spec. */
void expect_forms(void);
/* It fits the spec at hand. */
void note_fits(const struct suite *t, const char *strategy);
/* Where the time goes, summed over threads. */
enum phase { PHASE_PLAN, PHASE_LOAD, PHASE_REFERENCE, PHASE_DEVICE, PHASE_COMPARE, PHASES };
double seconds_now(void);
/* Add the time since `since`; now. */
double note_time(enum phase phase, double since);
/* Of a part of a spec. */
void note_spec_time(const char *path, double seconds);
/* The number of failures. */
int show_summary(FILE *to);

#endif
