/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - what is left after compilation: code, and data that says how to launch it.
 *
 * The launcher (src/launch) and the host executor (src/simt) walk this and know no strategy; the manifest is its
 * JSON form.  lower/ fills the cases (struct plan embeds them), llvmgen/ adds the code.
 *
 *   program   cases in order; the first whose guard holds at the launch's sizes is taken
 *   case      kernels, workspace buffers, and steps: what the host does, in order
 *   step      launch a kernel with a grid formula
 *
 * Workspace has two regions.  `control` (counters, epochs, tile states) is zeroed once when it is allocated, kept
 * between launches and left ready by every complete launch; one launch at a time may use it.  `scratch` has no
 * content between launches.  Ranges of different cases overlap in scratch but never in control.
 */
#ifndef PTXGEN_PROGRAM_H
#define PTXGEN_PROGRAM_H

#include "formula.h"
#include "base/types.h"

enum { PROG_RANK_MAX = 6, PROG_ARG_MAX = 80 };

/* A field of an array of structures; an ordinary array has one field with an empty name. */
struct prog_field {
    const char *name;
    enum ty type;
    int offset; /* bytes, as in C */
};

/* One dimension of a shape: size number `size` plus `add` (an output may be NAME-INTEGER), or the constant `add` when
 * size is -1. */
struct prog_dim {
    int size;
    int64_t add;
};

/* An input or output array, row-major. rank 0: one element. */
struct prog_array {
    const char *name;
    int nfields;
    const struct prog_field *field;
    int stride; /* bytes of one element */
    int rank;
    struct prog_dim dim[PROG_RANK_MAX];
    bool continued; /* an output: what it holds before the launch counts */
};

struct prog_param {
    const char *name;
    enum ty type;
    bool has_default;
    union value value;
};

/* What a launch must satisfy: otherwise it is refused with the message (n >= 1 for an identity-free operator, …). */
struct prog_check {
    struct formula condition;
    const char *message;
};

enum prog_arg_kind {
    ARG_INPUT,  /* pointer to input `index` */
    ARG_OUTPUT, /* pointer to output `index` */
    ARG_PARAM,  /* param `index`, by value in its own type */
    ARG_BUFFER, /* pointer to workspace buffer `index` of the case */
    ARG_VALUE,  /* the formula, as type (TY_I32 or TY_I64) */
    ARG_FED,    /* pointer to input `index` in the first sweep, later to what the sweep before wrote as ARG_NEXT */
    ARG_NEXT,   /* pointer to output `output` in the last sweep and every second one before it, else to `buffer` */
};
struct prog_arg {
    enum prog_arg_kind kind;
    int index;
    int id;               /* ARG_BUFFER, ARG_VALUE: what emitters know it by (lower/arguments.h); 0: nothing */
    enum ty type;         /* ARG_VALUE */
    struct formula value; /* ARG_VALUE */
    const char *name;     /* of the kernel's parameter */
    int output, buffer;   /* ARG_FED, ARG_NEXT */
};

struct prog_kernel {
    const char *name;  /* entry point, unique in the program */
    int threads;       /* block size, one-dimensional, exact */
    int shared;        /* bytes, filled by llvmgen: static ones, or what the launches ask for */
    int shared_static; /* bytes, filled by llvmgen */
    int cluster;       /* blocks per cluster, 0: none */
    int module;        /* which prog_module holds it */
    int nargs;
    const struct prog_arg *arg;
};

enum prog_region { REGION_CONTROL, REGION_SCRATCH };
struct prog_buffer {
    const char *name;
    enum prog_region region;
    struct formula bytes; /* rounded up to 256 when laid out */
};

/* A launch. */
struct prog_step {
    int kernel;               /* index into the case's kernels */
    struct formula grid;      /* blocks; 0 blocks: the step is skipped */
    struct formula shared;    /* dynamic shared bytes; absent: 0 */
    struct formula cluster;   /* blocks per cluster where it depends on sizes; absent: the kernel's */
    bool dependent;           /* programmatic dependent launch: the kernel waits itself before its first access */
    bool nonportable_cluster; /* cluster of 16 */
    struct formula repeat;    /* times the step is executed (time steps); absent: once */
};

struct prog_case {
    const char *name;     /* unique in the program: "small", "large", … */
    const char *strategy; /* "reduce.last_block" */
    struct formula guard; /* absent: always */
    int nkernels, nbuffers, nsteps;
    struct prog_kernel *kernel;
    struct prog_buffer *buffer;
    struct prog_step *step;
};

/* Machine code of a module, on the heap. */
struct prog_code {
    struct prog_code *next; /* for an older architecture, or the same */
    int arch;               /* 90: sm_90 */
    size_t length;
    unsigned char data[];
};

/* Code of one case. */
struct prog_module {
    char *ptx; /* NUL-terminated, on the heap; NULL: not made yet */
    size_t length;
    struct prog_code *code;
};

struct program {
    struct arena *arena; /* owns everything below but PTX; on the heap, freed by program_destroy */
    const char *name;
    const char *kind; /* "reduce", "scan", "stencil" */
    const char *determinism;
    char arch[16];   /* "sm_90" */
    int ptx_version; /* 80 for 8.0 */
    int nsizes;
    const char *const *size; /* dimension names */
    int ninputs, noutputs, nparams, nchecks, ncases, nmodules;
    struct prog_array *input, *output;
    struct prog_param *param;
    struct prog_check *check;
    struct prog_case *cases;
    struct prog_module *module;
};

/* What a launch is given; the same form for the oracle, the host executor and the GPU. */
struct run_args {
    const int64_t *size;      /* nsizes */
    const void *const *input; /* ninputs */
    void *const *output;      /* noutputs */
    const union value *param; /* nparams */
};

/* Elements of an array at the given sizes; -1 for a negative shape, and where elements or bytes overflow. */
int64_t prog_array_elements(const struct prog_array *a, const int64_t *size);

/* Time steps: a *sweep* is one launch of a step that has `repeat`; they are counted through the case's steps, so that
 * the values of a sweep feed the next one whichever kernel computes it.  A step without `repeat` is no sweep and has no
 * ARG_FED or ARG_NEXT. */
int64_t prog_sweeps(const struct prog_case *c, const struct formula_env *env);
/* What the argument is in sweep `sweep` of `sweeps`: one of the kinds before ARG_FED, and the number it goes with. */
enum prog_arg_kind prog_arg_in_sweep(const struct prog_arg *a, int64_t sweep, int64_t sweeps, int *index);

/* The case to run, or -1; `why` gets the failing check's message (a string of the program). */
int program_select(const struct program *p, const struct formula_env *env, const char **why);
/* Why there is none though all checks hold: the strategies that the program has, which do not take every launch when
 * they were asked for by name, and the conditions of their cases that do not hold.  Cut off where it does not fit. */
void program_refusal(const struct program *p, const struct formula_env *env, char *text, size_t size);

/* Bytes of each region that a launch of case c needs, and where its buffers lie (offset[nbuffers], or NULL). A negative
 * c gives the maximum over all cases whose guard holds with env; offset is then NULL.  Bytes are -1 when they overflow.
 * See Note [Layout of the control region] in workspace.c. */
void program_workspace(const struct program *p, int c, const struct formula_env *env, int64_t *control,
                       int64_t *scratch, int64_t *offset);

/* Names for the formulas of case c (negative: of the checks, no kernels). The arrays are on the heap:
 * program_names_finish(). When memory is exhausted there are no names, and formulas show numbers. */
struct formula_names program_names(const struct program *p, int c);
void program_names_finish(struct formula_names *names);

void program_manifest(const struct program *p, struct str *out); /* JSON, docs/manifest.schema.json */
void program_header(const struct program *p, struct str *out);  /* C header: embedded PTX and a typed launch function */
void program_tvm_ffi(const struct program *p, struct str *out); /* C file that calls the header (tvm_ffi.c) */
void program_ptx(const struct program *p, struct str *out);     /* one combined file */

/* The data inside a public program object. */
struct ptxgen_program;
const struct program *ptxgen_program_data(const struct ptxgen_program *program);

/* What the code of a case's kernel needs of shared memory: static as far as that goes; what is more the launches of the
 * kernel ask for. */
enum { PROG_SHARED_STATIC = 48 * 1024 };
void program_place_shared(struct prog_case *code, int kernel, int bytes);

/* Adds a copy of machine code.  False: memory is exhausted. */
bool program_add_code(struct program *p, int module, int arch, const void *data, size_t length);

struct program *program_create(void); /* NULL: out of memory */
void program_destroy(struct program *p);

#endif
