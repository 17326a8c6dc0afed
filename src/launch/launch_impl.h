/* SPDX-License-Identifier: Apache-2.0 */
/* launch_impl.h - what the files of the launcher share.
 *
 *     driver.c    the entry points of libcuda.so.1, and faults: what went wrong, in words
 *     versions.c  which driver a PTX version needs
 *     gpu.c       devices and contexts
 *     memory.c    memory, streams, events, graphs for the user
 *     load.c      preflight; modules and kernels of a case, loaded on first use
 *     code.c      the driver's compiler
 *     stream_memory.c   the memory that a loaded program keeps per stream
 *     formula_values.c  what formulas gave in an earlier launch
 *     exec.c      one launch: select the case, marshal, walk the steps
 *     stages.c    one launch of a spec with stages: a launch of each
 *     stages_workspace.c   the same in a caller's workspace
 *     graph.c, branches.c, loop.c, loop_ranks.c, kept_graphs.c   stages in CUDA graphs (launch_graph.h)
 *     open.c      from ptxgen_program to struct program
 *
 * Failure: functions return false after filling a `struct fault` that lives on the caller's stack; the public entry
 * point turns it into a diagnostic of the session.  So nothing below the entry points keeps memory for errors, and
 * threads share nothing.
 */
#ifndef PTXGEN_LAUNCH_IMPL_H
#define PTXGEN_LAUNCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "program/program.h"
#include "cuda_abi.h"
#include "ptxgen/launch.h"

/* ---- faults ---------------------------------------------------------------------------------- */
struct fault {
    ptxgen_status status;
    int code; /* enum diag_code */
    char text[4096];
};

/* Always false, for `return fault_set(…)`. */
bool fault_set(struct fault *f, ptxgen_status status, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Report to the session (NULL: nowhere); the fault's status. */
ptxgen_status fault_report(struct ptxgen_session *s, const struct fault *f);

/* ---- driver ---------------------------------------------------------------------------------- */
struct driver {
    void *library;
    int version; /* 13000 for CUDA 13.0 */
#define X(name, symbol, required, params) int(*name) params;
    CUDA_TABLE(X)
#undef X
};

/* Open the driver and initialise it. Nothing to close after false. */
bool driver_open(struct driver *cu, struct fault *f);
void driver_close(struct driver *cu);
/* Another thread's capture, in the driver's default mode, forbids this thread cuMemAlloc and cuMemFree, and is spoiled by
 * them, unless this thread is in the mode CU_CAPTURE_RELAXED.  Gives back the mode that was. */
static inline int driver_capture_mode(const struct driver *cu, int mode)
{
    if (cu->ThreadCaptureMode)
        cu->ThreadCaptureMode(&mode);
    return mode;
}

/* CU(f, cu, MemAlloc(&p, n)): call cuMemAlloc; false with a fault that quotes call, place and the driver's words. */
#define CU(f, cu, call) driver_check((f), (cu), (cu)->call, "cu" #call, __FILE__, __LINE__)
bool driver_fault(struct fault *f, const struct driver *cu, int result, const char *call, const char *file, int line);
static inline bool driver_check(struct fault *f, const struct driver *cu, int result, const char *call,
                                const char *file, int line)
{
    return result == CU_OK || driver_fault(f, cu, result, call, file, line);
}

/* The newest PTX version (90 for 9.0) that a driver of this CUDA version loads. */
int ptx_of_driver(int version);
/* What a PTX version needs: the CUDA version of the driver (12080), and the first Linux driver ("570.26"), or 0 and
 * NULL when it is newer than this table. */
int driver_of_ptx(int ptx, const char **release);

/* ---- devices --------------------------------------------------------------------------------- */
struct ptxgen_gpu {
    struct driver cu;
    cu_device device;
    cu_context context;
    bool retained; /* the primary context, to be released */
    bool pools;    /* stream-ordered allocation works */
    ptxgen_gpu_info info;
};

/* Make the gpu's context current. Pair with gpu_leave, which undoes it. */
bool gpu_enter(const struct ptxgen_gpu *gpu, bool *pushed, struct fault *f);
void gpu_leave(const struct ptxgen_gpu *gpu, bool pushed);

/* Does a caller's workspace have these bytes, aligned? */
bool launch_check_workspace(const ptxgen_workspace *w, size_t control, size_t scratch, struct fault *f);

/* ---- values of formulas ---------------------------------------------------------------------- */
enum { VALUES_KEY_MAX = 24, VALUES_MAX = 64, VALUES_KEPT = 4 };

struct values_kept;

/* Of one launch. */
struct launch_values {
    struct values_kept *kept; /* of the loaded program; NULL: the key is too long, nothing is kept */
    int nkey, at;
    bool known; /* the values are those of an earlier launch, else they are computed and kept */
    int64_t key[VALUES_KEY_MAX];
    int64_t value[VALUES_MAX];
};

/* The values of earlier launches. All zero: of none, as every launch has a pointer and so a key. */
struct values_kept {
    _Atomic bool taken; /* a thread is reading or writing them */
    int found, next;    /* where the last question found its values, and where new ones go */
    struct launch_values values[VALUES_KEPT];
};

/* Plays where a kept launch had the same sizes, integer params and low bits of addresses.  kept NULL: nothing is kept, and
 * env may be incomplete. */
void values_open(struct launch_values *t, struct values_kept *kept, const struct program *p,
                 const struct formula_env *env);
/* Keeps a value that is not a formula's; read back as values_next().  Returns it. */
int64_t values_put(struct launch_values *t, int64_t value);
static inline int64_t values_next(struct launch_values *t) { return t->value[t->at++]; }
/* The next value: of the formula, or the one of the earlier launch. */
static inline int64_t values_formula(struct launch_values *t, const struct formula *f, const struct formula_env *env)
{
    return t->known ? values_next(t) : values_put(t, formula_eval(f, env));
}
/* The launch is complete: later ones may take its values. */
void values_keep(const struct launch_values *t);

/* ---- loaded programs ------------------------------------------------------------------------- */
/* Bounds of what is marshalled on the stack; load refuses a program beyond them. */
enum { LAUNCH_POINTERS_MAX = 64, LAUNCH_PARAMS_MAX = 64, LAUNCH_KERNELS_MAX = 16, LAUNCH_BUFFERS_MAX = 64 };

struct kernel_state {
    cu_function function;
    int dynamic_limit;          /* most dynamic shared memory that a launch may ask for */
    _Atomic uint64_t occupancy; /* (dynamic shared bytes + 1) << 16 | blocks, of the last question; 0: none yet */
};

struct case_state {
    _Atomic bool ready;
    bool uses_resident; /* a formula of its steps, arguments or buffers reads an occupancy */
    struct kernel_state kernel[LAUNCH_KERNELS_MAX];
};

/* The memory kept for one stream. Lives until the stream is released or the program destroyed. */
struct control_block {
    struct control_block *next;
    uint64_t id;          /* the stream's */
    cu_stream handle;     /* the stream's; a later stream may have the same */
    const void *thread;   /* for the per-thread default stream: whose */
    pthread_mutex_t lock; /* held while a launch enqueues its steps */
    cu_pointer control, scratch;
    size_t control_bytes, scratch_bytes;
    struct retired *retired; /* outgrown memory that captured graphs may still use */
    struct kept *kept;       /* graphs of a spec with stages (kept_graphs.c), or NULL */
};
/* Graphs, and a stream.  stream: whose work is waited for before; NULL: the device is idle. */
void kept_free(struct ptxgen_loaded *l, struct kept *of, const cu_stream *stream);
/* After a launch that did not complete: what stages keep for the stream inside. */
bool kept_reset(struct ptxgen_loaded *l, const struct kept *of, struct fault *f);

/* Makes code that a program does not have yet: of case `c`, or of all cases with a negative number.  Any number of
 * threads may ask at once; s (NULL: nowhere) is told in its log.  end: nobody asks any more. */
struct code_source {
    void *user;
    bool (*make)(void *user, struct ptxgen_session *s, int c, struct fault *f);
    void (*end)(void *user);
};

struct ptxgen_loaded {
    struct ptxgen_gpu *gpu;
    const struct program *program;
    struct program *owned;     /* the same, when it goes with this object, or NULL */
    struct code_source source; /* make NULL: the program has all code */
    int *alignment;            /* per pointer: of its element */
    struct case_state *cases;
    cu_module *module;    /* per module of the program, NULL: not loaded */
    pthread_mutex_t lock; /* of module, and of case_state before ready */
    pthread_mutex_t blocks_lock;
    struct control_block *blocks;
    struct values_kept kept;
    struct loaded_stages *stages; /* of a spec with stages, whose `program` has no cases; else NULL */
};

/* An object without code, for a program that needs no look at the gpu; NULL: out of memory. */
struct ptxgen_loaded *launch_new(struct ptxgen_gpu *gpu, const struct program *p);
/* ptxgen_load() for the program inside. */
ptxgen_status launch_load(struct ptxgen_session *s, struct ptxgen_gpu *gpu, const struct program *program,
                          struct ptxgen_loaded **out);
/* The loaded program, which is `program`, goes with l, and so does what makes its code. */
void launch_own(struct ptxgen_loaded *l, struct program *program, const struct code_source *source);
/* Load machine code, or have the driver make some of the PTX; the fault holds the log of the driver's compiler. */
bool code_load(struct ptxgen_loaded *l, const struct prog_module *code, cu_module *out, struct fault *f);
/* Modules and kernels of case c, whose code is made before where there is none. stream: refused while it is being
 * captured. s: for the log, or NULL. */
bool load_case(struct ptxgen_loaded *l, struct ptxgen_session *s, int c, cu_stream stream, struct fault *f);
/* Resident blocks per multiprocessor of a loaded kernel. */
bool load_occupancy(struct ptxgen_loaded *l, int c, int kernel, size_t dynamic_shared, int *blocks, struct fault *f);
/* False with a fault when the stream is being captured: what `what` needs cannot happen now. */
bool load_outside_capture(struct ptxgen_loaded *l, cu_stream stream, const char *what, struct fault *f);

/* The stream's memory, at least this large, with its lock held. A grown control region is zeroed in stream order. */
bool control_acquire(struct ptxgen_loaded *l, cu_stream stream, size_t control, size_t scratch,
                     struct control_block **out, struct fault *f);
void control_release(struct control_block *b);
/* Frees all blocks; the device is idle. */
void control_destroy(struct ptxgen_loaded *l);

#endif
