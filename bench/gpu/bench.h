/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the files of gpubench share.
 *
 *     problems.c   the table of problems: data, reference, comparison
 *     measure.c    implementations, batches, graphs: times
 *     report.c     table, JSON in google-benchmark's form, CSV
 *     options.c    the command line
 *     gpubench.c   one problem at one size from data to verified times
 *     stencils.c, stencil_run.c   the same two for stencils
 *
 * It uses ptxgen's public API only, and the peers through peers.h.
 */
#ifndef PTXGEN_GPU_BENCH_H
#define PTXGEN_GPU_BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include "../peers/peers.h"
#include "ptxgen/launch.h"

enum { INPUTS_MAX = 4, OUTPUTS_MAX = 4, SAMPLES_MAX = 101 };

/* ---- options --------------------------------------------------------------------------------- */
enum { LIST_MAX = 64, SETTINGS_MAX = 8 };
struct ours {
    const char *label;
    ptxgen_setting setting[SETTINGS_MAX];
    int nsettings;
};
struct options {
    const char *specs, *peers, *csv, *commit;
    const char *problem[LIST_MAX];
    int64_t size[LIST_MAX], segment[LIST_MAX];
    struct extent {
        int rank;
        int64_t at[3]; /* slowest first */
    } extent[LIST_MAX];
    struct ours ours[LIST_MAX];
    int nproblems, nsizes, nsegments, nextents, nours, samples, device;
    bool graph, quick, alone /* limits, but no competitors */;
};
bool parse_options(int argc, char **argv, struct options *o);

/* ---- problems -------------------------------------------------------------------------------- */
enum scalar { F16, BF16, F32, F64, I8, I32, I64, RUNS /* of equal i32, 32 on average */ };
int scalar_bytes(enum scalar t);
double scalar_load(enum scalar t, const void *p, int64_t i);

/* What a correct result is: the value, and how far any order of combination may be from it. */
struct expected {
    double value[OUTPUTS_MAX], tolerance[OUTPUTS_MAX];
};
/* Where the segments of a segmented problem lie (segments.c). */
enum layout { ROWS, COLUMNS, OFFSETS_EQUAL, OFFSETS_POWER, OFFSETS_HUGE, FLAGS_POWER };
struct problem {
    const char *name; /* of the row */
    enum scalar type; /* of every input */
    int ninputs, noutputs;
    enum scalar out[OUTPUTS_MAX];
    bool per_element; /* the output has an element per input element */
    bool segmented;   /* the output has an element per segment, unless it has one per element */
    /* Of the whole input, or of a run of it that is a segment.  Per-element problems have none: check_array compares
     * them. */
    void (*reference)(const struct problem *p, const void *const *in, int64_t n, struct expected *out);
    enum layout layout;
    const char *spec; /* specs/NAME.yaml; NULL: the name */
    /* Of per-element problems other than sums: output 0 after element i; state is zero before the first. */
    double (*step)(const void *const *in, int64_t i, double state[4]);
    double tolerance; /* of step */
    /* Of problems that keep some elements, the last output counting them: is element i kept, and with which values?
     * value[0] is element i of input 0 already. */
    bool (*keep)(const void *const *in, int64_t i, int64_t n, double state[4], double *value);
    double kept; /* the share that is */
};
extern const struct problem problems[];
extern const int nproblems;
/* Elements of output arrays; bytes that a perfect implementation reads and writes. */
int64_t output_elements(const struct problem *p, int output, const struct peer_size *size);
double problem_bytes(const struct problem *p, const struct peer_size *size);
void fill_random(enum scalar t, void *p, int64_t elements, uint64_t seed);
/* "" or what differs, in `why`. */
bool check_scalars(const struct problem *p, const struct expected *e, const void *const *out, char *why, size_t length);
bool check_kept(const struct problem *p, const void *const *in, int64_t n, const void *const *out, char *why,
                size_t length);
bool check_array(const struct problem *p, const void *const *in, const struct peer_size *size, const int64_t *offset,
                 const void *out, char *why, size_t length);
/* How far a sum of numbers of this type may be off, as a share of the sum of their magnitudes. */
double sum_unit(enum scalar t);

/* ---- segments -------------------------------------------------------------------------------- */
int64_t segment_count(const struct peer_size *size);
/* segment_count() + 1 offsets. */
bool fill_offsets(enum layout layout, const struct peer_size *size, int64_t *offset);
/* The same segments as bytes: 1 where a segment begins. */
void offsets_to_flags(const int64_t *offset, int64_t segments, int64_t n, uint8_t *flag);
/* Running sums of all segments. */
bool check_running_sums(const struct problem *p, const void *const *in, const struct peer_size *size,
                        const int64_t *offset, const void *out, char *why, size_t length);
/* One result per segment, compared for all of them. `offset`: NULL where segments have one size. */
bool check_segments(const struct problem *p, const void *const *in, const struct peer_size *size, const int64_t *offset,
                    const void *const *out, char *why, size_t length);

/* ---- measuring ------------------------------------------------------------------------------- */
struct impl {
    const char *name;
    bool synchronous;
    bool limit;              /* a limit, not a competitor: not verified */
    ptxgen_loaded *loaded;   /* ptxgen's, or */
    const struct peer *peer; /* a peer's */
    void *temp;
    size_t temp_bytes;
};
/* What fills the L2 cache between samples, on the device. */
struct cache {
    ptxgen_program *program;
    ptxgen_loaded *reader;
    void *other, *most; /* what it reads, and its result */
};
/* The device, the data and where in it the next launch reads and writes. */
struct arena_gpu {
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    ptxgen_stream stream;
    ptxgen_event begin, end;
    struct cache cache;
    int ninputs, noutputs;
    void *input[INPUTS_MAX], *output[OUTPUTS_MAX];
    void *offset; /* the input behind the others, offsets or flags, the same for all slices; or NULL */
    size_t input_stride[INPUTS_MAX], output_stride[OUTPUTS_MAX]; /* from slice to slice, slot to slot */
    int64_t slices, slots;
    int64_t next; /* launches so far: slice next % slices, slot next % slots */
    struct peer_size size;
    int64_t psize[3];          /* the spec's sizes */
    const ptxgen_value *param; /* the spec's params; NULL: their defaults */
};
struct timing {
    double median, p10, p90; /* seconds per launch */
    double host;             /* seconds of the host per launch, 0: not measured */
    int samples, batch;
};
bool cache_open(struct arena_gpu *a);
void cache_close(struct arena_gpu *a);
bool impl_prepare(struct arena_gpu *a, struct impl *impl);
bool impl_launch(struct arena_gpu *a, struct impl *impl);
/* All implementations, sample by sample in turn, so that drift meets all of them. time[i].samples 0: it failed. */
void measure_stream(struct arena_gpu *a, struct impl *impl, int n, int samples, struct timing *time);
/* The same launches recorded in a graph and replayed; on warm data. */
void measure_graph(struct arena_gpu *a, struct impl *impl, int n, int samples, struct timing *time);

/* ---- reporting ------------------------------------------------------------------------------- */
struct result {
    const char *problem;
    const char *impl;
    const char *mode; /* "stream", "graph" */
    struct peer_size size;
    struct timing time;
    double bytes; /* read and written by a perfect implementation */
    double limit; /* seconds that reading (or copying) those bytes takes in this run, 0: not measured */
    bool is_limit, verified;
    char why[160];
};
struct report {
    struct result *row;
    int count, capacity;
};
void report_add(struct report *r, const struct result *row);
void report_tables(const struct report *r, FILE *to);
/* One comment line that says where it was measured, one of names, then the rows. */
void report_csv(const struct report *r, const ptxgen_gpu_info *gpu, const char *commit, FILE *to);
/* 2^N or the number, with the segments' size, or the extents. */
void size_text(const struct peer_size *size, char *text, size_t length);

/* ---- the run (gpubench.c) ---------------------------------------------------------------------- */
enum { IMPLS_MAX = LIST_MAX + 16 }; /* ours and peers */
struct bench {
    struct options o;
    struct arena_gpu a;
    const struct peer *peer;
    int npeers;
    struct report report;
    void *host[INPUTS_MAX];
    int64_t *offset; /* of the problem at hand, or NULL */
    enum scalar pool_type;
    int pools;          /* how many inputs are there */
    size_t input_bytes; /* of each */
    bool failed;
};
void say_diagnostics(struct bench *b, const char *what);
/* Free the pool of inputs on both sides. */
void drop_inputs(struct bench *b);
bool asked_for(const struct options *o, const char *name);
/* Compile spec NAME with these settings and load it; false is not a failure of the benchmark. problem: or NULL. */
bool load_ours(struct bench *b, const char *name, const struct ours *ours, ptxgen_problem **problem,
               ptxgen_program **program, ptxgen_loaded **loaded);

/* ---- what is measured (subject.c) --------------------------------------------------------------- */
/* A problem at one size, or a stencil at one extent. */
struct subject {
    const char *name; /* of its peers, too */
    struct peer_size size;
    double bytes; /* read and written by a perfect implementation */
    /* Runs it into poisoned outputs and compares; false: `why` says what differs. */
    bool (*verify)(struct bench *b, void *of, struct impl *impl, char *why, size_t length);
    void *of;
};
void free_outputs(struct bench *b);
/* The best time of the peers of `kind` ("read", "copy") on the bytes of `a`, and a row for it; 0: not measured. */
double subject_limit(struct bench *b, const struct subject *s, struct arena_gpu *a, const char *kind, bool graph);
/* Ours that are loaded, and peers; how many.  What is wrong before it is timed is reported and left out. */
int subject_open(struct bench *b, const struct subject *s, ptxgen_loaded *const *loaded, struct impl *impl);
/* Times them in turn, verifies them again, and adds a row each. */
void subject_time(struct bench *b, const struct subject *s, struct impl *impl, int n, double limit, bool graph);
void subject_close(struct bench *b, struct impl *impl, int n);

#endif
