/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what the files of the command line share.
 *
 *   main.c       finds the command
 *   options.c    the tables of commands and options, and parsing
 *   options_show.c   help, reference and completion from them
 *   progress.c   what is shown of steps that take long, and Ctrl-C
 *   message.c    messages on standard error, exit statuses
 *   file.c       whole files in, atomic files out
 *   sizes.c      numbers and sizes as users write them
 *   data.c       DATA: where an input's elements come from
 *   npy.c        .npy files
 *   journal.c    lines of a journal of `tune`
 *   arrays.c     inputs, outputs, sizes and params of a run
 *   target.c     which device and architecture the options mean
 *   device.c     where a run happens
 *   distributed.c    a run that several ranks share
 *   several.c    a run that several GPUs share
 *   comms.c      communicators of NCCL
 *   parts.c      the parts that ranks have of arrays
 *   mpi.c        ranks that mpirun has started
 *   stages.c     specs with stages, verified stage by stage
 *   copies.c     the arrays of a run on a GPU
 *   timing.c     measuring on a GPU
 *   parallel.c   work on all cores
 *   space.c      the variants of a spec
 *   measure.c    what is measured: programs on copies of a job's arrays
 *   ptxas.c      machine code and registers, by ptxas
 *   verify.c     comparison with the reference
 *   report.c     printing of results
 *   cmd_*.c      one per command
 *
 * The command line is a user of the public API and of nothing else of the library.
 */
#ifndef PTXGEN_CLI_H
#define PTXGEN_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "ptxgen/ptxgen.h"

enum exit_status {
    EXIT_OK = 0,
    EXIT_WRONG = 1,
    EXIT_USAGE = 2,
    EXIT_DEVICE = 3,
    EXIT_DIFFERENT = 4,
    EXIT_INTERNAL = 70,
    EXIT_INTERRUPTED = 130
};

/* ---- options ---- */
struct list {
    int n;
    const char **item;
};

struct command;
struct options {
    const struct command *command;
    struct list operands; /* what is not an option */
    struct list emit, set, input, size, param, output;
    const char *samples, *cache, *gpu, *jobs, *tuning, *journal, *reference, *limit, *strategy, *budget, *seed,
        *emit_def, *export, *html;
    const char *prover, *out, *arch, *with, *ptx, *device, *plan, *variant, *simt, *diagnostics, *color, *math_library,
        *unaligned, *shard, *shard_block, *stage, *devices, *ranks;
    bool distributed, verify, json, split, keep, no_graph, no_verify, compile, all, main, laws, no_laws, help, version,
        named; /* named: the command is */
};

struct command {
    const char *name, *operands, *summary, *details;
    int (*run)(const struct options *o);
};
extern const struct command command_table[];
extern const int command_count;

/* EXIT_OK, or the exit status after a message. */
int options_parse(struct options *o, int argc, char **argv);
void options_finish(struct options *o);
void options_help(FILE *to, const struct command *c); /* NULL: of the program */
void options_reference(FILE *to);                     /* all commands and options, as Markdown */
void options_manual(FILE *to);                        /* the same, as sections of the manual page */

const struct command *command_by_name(const char *name); /* or NULL */
int unknown_command(const char *name);                   /* the message, with the nearest command */

/* "name=value" of a list item: the value, and the length of the name; NULL without '='. */
const char *setting_value(const char *item, int *name_length);
/* The nearest of the names, for "did you mean", or NULL. */
const char *nearest(const char *name, int length, const char *const *names, int count);

/* ---- messages ---- */
void message_style(const struct options *o); /* json, colour */
void say(const char *severity, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The message as an error; returns `status`. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print the session's diagnostics and clear them. */
void show_diagnostics(ptxgen_session *s);
/* Print the diagnostics; the exit status of a call that failed. */
int fail_call(ptxgen_session *s, ptxgen_status status, const char *what);
void json_text(FILE *to, const char *s); /* with quotes */
void json_number(FILE *to, double x);    /* inf and nan as strings */

/* ---- files ---- */
/* malloc, NUL-terminated; NULL: errno.  "-": standard input. */
char *read_file(const char *path, size_t *length);
/* Up to `length` bytes of a file; how many there were. */
size_t read_part(FILE *from, void *to, size_t length);
/* All or nothing: a temporary file in the same directory takes the name when complete, and the permissions of the file
 * that it replaces.  Links stay.  "-": standard output. */
int write_file(const char *path, const void *data, size_t length);
bool is_directory(const char *path);
void make_directories(const char *path); /* those above a file; writing the file says what is wrong */

/* ---- numbers ---- */
/* 1000000, 1e6, 2^20, 1Mi: NULL, or what is wrong. */
const char *parse_count(const char *text, int64_t *out);
/* A scalar of a type, rounded to it; range-checked. */
const char *parse_value(const char *text, ptxgen_type type, ptxgen_value *out);
bool type_is_float(ptxgen_type t);
bool type_is_signed(ptxgen_type t);
/* Shortest text that reads back as the same value of the type. */
void print_value(FILE *to, ptxgen_type type, ptxgen_value v);

/* ---- arrays of a run ---- */
struct array {
    ptxgen_array_info info;
    const char *source; /* DATA of an input, FILE of an output; NULL */
    struct npy *file;   /* an input read from a file */
    int64_t elements;
    size_t bytes;
    char *block, *data; /* data lies in block, at the requested misalignment */
    double *bound;      /* verification of outputs */
    char *expected;
};

struct job {
    const struct options *options;
    ptxgen_session *session;
    ptxgen_problem *problem;
    int nsizes, ninputs, noutputs, nparams;
    int64_t *size; /* -1: not known */
    struct array *input, *output;
    ptxgen_value *param;
    ptxgen_arguments args;
    char device[128], case_name[64]; /* what ran it */
    double seconds;
    struct stage_checks *checks; /* of a spec with stages */
    /* Of a spec with stages: called after each stage of a run with the job, or NULL. */
    int (*visit)(int stage, int64_t step, const ptxgen_arguments *args, void *job);
    void *visitor;          /* what a visit works for */
    struct ptxgen_gpu *gpu; /* whose memory a visit sees; NULL: the host's */
};

int job_prepare(struct job *j);                  /* sizes, params, inputs filled, outputs zeroed */
const char *input_source(const struct array *a); /* DATA, also of an input that none is given for */
/* The params alone, as far as they are known: given, default, or 1. */
int job_params(struct job *j);
void job_finish(struct job *j);
int64_t array_dim(const ptxgen_array_info *a, int d, const int64_t *size);

/* A whole number of digits alone, of which there is one at least; *at moves on. */
bool read_digits(const char **at, int64_t *out);
/* Sizes that --size gives, into size[] (-1 elsewhere). */
int parse_sizes(const struct options *o, const ptxgen_problem *p, int64_t *size);
/* Elements and bytes of an array at these sizes; fails in words where there is no such array. */
int shape_of(const ptxgen_array_info *a, const int64_t *size, int64_t *elements, size_t *bytes);

/* ---- data ---- */
/* Fill an input from iota, const:V or random[:seed]; offsets_end: n of segment offsets. */
int data_fill(struct array *a, const char *data, int64_t offsets_end);
bool data_is_file(const char *data);
uint64_t data_key(uint64_t seed, const char *name);
uint64_t data_bits(uint64_t key, uint64_t counter);
ptxgen_value data_random(ptxgen_type t, uint64_t w);

/* ---- .npy ---- */
enum { NPY_RANK_MAX = 8, NPY_FIELD_MAX = 16, NPY_PREFIX = 12, NPY_HEADER_MAX = 1 << 20 };
#define NPY_EXTENT_MAX ((int64_t)1 << 62)
struct npy {
    int rank;
    int64_t shape[NPY_RANK_MAX];
    int nfields; /* 0: plain */
    char field[NPY_FIELD_MAX][64];
    char descr[NPY_FIELD_MAX][16];
    size_t offset[NPY_FIELD_MAX];
    size_t element_size;
    bool fortran;
    size_t data, bytes; /* where the elements begin in the file; of all of them */
    char *elements;     /* malloc; NULL: not read */
};
/* Where the header ends, from the first NPY_PREFIX bytes of a file.  NULL, or what is wrong with it (static text). */
const char *npy_header_end(const char *text, size_t length, size_t *end);
/* A whole header.  NULL, or what is wrong with the file (static text). */
const char *npy_parse(const char *text, size_t length, struct npy *out);
/* Do the elements fit the declared type?  NULL, or a text in `buffer`. */
const char *npy_matches(const struct npy *f, const ptxgen_array_info *a, char *buffer, size_t capacity);
/* The header of an array; malloc; NULL: out of memory. */
char *npy_header(const ptxgen_array_info *a, const int64_t *size, size_t *length);

/* ---- compilation ---- */
/* The problem of a file, or of standard input ("-"), which is called stdin. */
/* Sizes of a stage among those of the whole; malloc, NULL: out of memory. */
int64_t *stage_sizes(const ptxgen_problem *whole, const int64_t *size, const ptxgen_problem *stage);
/* The options of a program, for one of its stages as a spec of its own: --stage, the sizes as far as they are known, and
 * of --param and --set what the stage has.  given: its inputs will be filled by the caller. */
struct stage_options {
    struct options of;
    struct list texts; /* malloc, each */
};
/* EXIT_OK, or the exit status after a message.  stage_options_finish() also then. */
int stage_options(const struct options *o, const ptxgen_problem *whole, const int64_t *size, int stage, bool given,
                  struct stage_options *out);
void stage_options_finish(struct stage_options *x);
/* The file with the journal of a stage, beside that of the program: d/a.journal is d/a.STAGE.journal; malloc. */
char *stage_journal(const char *path, const char *stage);
/* Does a stage say when the loop ends?  It is none of the user's. */
bool stage_is_condition(const ptxgen_problem *whole, int stage);
/* Names of stages, with commas between them, then of those that are part of others; empty: the spec is one problem. */
void name_stages(const ptxgen_problem *p, char *out, size_t room);
/* The nearest of these names to the first bytes of a text, or NULL. */
const char *nearest_stage(const ptxgen_problem *p, const char *name, int length);
/* In place of a spec its stage `name`; PTXGEN_USAGE: it has none, which was told. */
ptxgen_status choose_stage(const char *name, const char *path, ptxgen_problem **p);
/* PTXGEN_USAGE: --stage names none of its stages, which was told. */
ptxgen_status problem_of(ptxgen_session *s, const struct options *o, const char *path, ptxgen_problem **out);
/* With --laws the operators are judged, and those that are proved commutative are marked. */
int load_problem(ptxgen_session *s, const struct options *o, const char *path, ptxgen_problem **out);
int make_plan(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
              ptxgen_plan **out);
/* --set as settings; their names are copied into `names`. */
enum { SETTINGS_MAX = 64 };
int plan_settings(const struct options *o, ptxgen_setting *setting, char *names, size_t capacity);
void compile_options(const struct options *o, ptxgen_compile_options *out);
/* Machine code of a PTX text; malloc.  arch NULL: for the PTX's own target. */
int cubin_assemble(const char *ptx, const char *arch, char **out, size_t *length);
/* The same of each case of a program, on all cores; `code` has room for all, and holds what was made, or NULL. */
struct cubin {
    char *code;
    size_t length;
};
int cubins_assemble(const ptxgen_program *program, const char *arch, bool packed, struct cubin *cubin);
/* The architecture that the PTX names in `.target sm_NN`; false: none. */
bool ptx_target(const char *ptx, char *arch, size_t capacity);
/* The same by nvJitLink.  False: the library is not installed; else *status is EXIT_OK or what was said. */
bool nvjitlink_assemble(const char *ptx, const char *arch, char **out, size_t *length, int *status);
bool ptxas_there(void);
/* What ptxas says about the kernels of a PTX text: how many; 0 without it.  resources_finish() frees their names. */
int ptxas_resources(const char *ptx, ptxgen_kernel_resources *out, int capacity);
void resources_finish(ptxgen_kernel_resources *of, int count);
/* Its machine code as text, where the toolkit can show it; NULL; free(). */
char *sass_of(const char *ptx);
/* What --arch says, with `native` looked up; NULL: the default. */
int choose_arch(ptxgen_session *s, const struct options *o, const char **arch);
/* The tuning file at the usual place, for runs on a GPU, if it is there and no other is named; malloc. */
char *usual_tuning(const struct options *o);
/* K of "cuda:K". */
int device_ordinal(const char *device, int *ordinal);

void laws_options(const struct options *o, ptxgen_laws_options *out);
/* Is there a cache that can be used?  Says once that its directory cannot be: before what is kept there. */
bool warn_cache(void);

/* ---- running ---- */
/* Seconds that a call will take at the sizes of the job, by one with a 64th of the largest size; 0: not known, or not
 * shown.  What the call writes is the caller's to clear. */
double expect_seconds(struct job *j, ptxgen_status (*call)(struct job *j, const int64_t *size, void *user), void *user);
int device_run(struct job *j);
/* The same on the ranks that mpirun has started; *shows: this one has to show the results of all. */
int distributed_run(struct job *j, bool *shows);
/* The same on the GPUs that --devices names. */
int several_run(struct job *j);
/* Evaluate the reference with bounds. */
int verify_evaluate(struct job *j);
struct verdict {
    int64_t compared, different, unknown; /* unknown: the bound is infinite */
    double worst;                         /* largest difference, as a fraction of its bound */
    int64_t first;                        /* element of the first difference, or -1 */
    int field;
    ptxgen_value got, expected;
    double bound;
};
void verify_output(const struct array *a, struct verdict *out);
/* What comes after the elements of `out`. */
void verdict_add(struct verdict *out, const struct verdict *v);
/* All outputs against the reference, with a message for each that differs; verdict: one per output and one for
 * all, or NULL. */
int verify_job(struct job *j, struct verdict *verdict);

/* ---- results ---- */
void report_text(const struct job *j, const struct verdict *verdict);
void report_json(const struct job *j, const struct verdict *verdict);
/* The line that says that the data is random, where no --input is given. */
void report_random(FILE *to, const struct job *j);
/* {"name": ..., "device": ..., "case": ..., "sizes": {...}, "inputs": {...}: the object stays open; the case only where
 * it is given. */
void report_json_head(const struct job *j, const char *case_name);
void report_difference(const struct job *j, const struct array *a, const struct verdict *v);
int report_files(const struct job *j);

/* ---- commands ---- */
int cmd_compile(const struct options *o);
int cmd_check(const struct options *o);
int cmd_explain(const struct options *o);
int cmd_run(const struct options *o);
int cmd_schema(const struct options *o);
int cmd_reference(const struct options *o);
int cmd_devices(const struct options *o);
int cmd_bench(const struct options *o);
int cmd_cache(const struct options *o);
int cmd_variants(const struct options *o);
int cmd_tune(const struct options *o);
int cmd_new(const struct options *o);
int cmd_help(const struct options *o);
int cmd_complete(const struct options *o);

#endif
