/* SPDX-License-Identifier: Apache-2.0 */
/* native.h - what the files of the extension module share.
 *
 *     module.c    the module, what other libraries are found by, errors
 *     function.c  ptxgen.Function: from a spec; its Python attributes
 *     work.c      what is no call: explanations, variants, laws, code
 *     words.c     arguments of a call
 *     call.c      a call: sizes, where it runs, what comes back
 *     again.c     a call like the one before
 *     take.c      arrays of callers: DLPack, CUDA array interface, buffers
 *     place.c     where arrays may lie
 *     give.c      results in arrays of the caller's kind
 *     results.c   types of several results
 *     array.c     ptxgen.Array: results for callers without a library of arrays
 *     verify.c    a call beside the sequential reference
 *     tune.c      how long a call takes; entries of a tuning file
 *     jax.c       calls from programs that JAX compiled
 *     jax_arrays.c   streams of JAX's arrays; results in them
 *
 * The limited API of Python 3.11: one module for all versions from there on.  All static data is guarded by the GIL.
 */
#ifndef PTXGEN_PY_NATIVE_H
#define PTXGEN_PY_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>

#include <ptxgen/launch.h>
#include <ptxgen/stages.h>

#include "dlpack.h"

enum { NAMES_MAX = 96, RANK_MAX = 7, DEVICES_MAX = 64 }; /* RANK_MAX: of a problem, and the fields of a structure */
enum { AGAIN = 4 };                                      /* calls that a function remembers */

/* ---- libraries and types (module.c) ------------------------------------------------------------------------------ */
enum family { FAMILY_OTHER, FAMILY_NUMPY, FAMILY_TORCH, FAMILY_CUPY, FAMILY_JAX };

/* What is known of a type of arrays. */
struct kind {
    PyTypeObject *type; /* owned */
    enum family family;
    const struct dl_exchange *exchange; /* or NULL */
    bool masked;                        /* a masked array of NumPy's */
    PyObject *from_dlpack;              /* of its module of functions, as the array API standard has it; or NULL */
};
/* Of the type of an object; looked up once.  NULL: an exception is set.  Borrowed until the next look-up, which may be one
 * of another thread's. */
const struct kind *kind_of(PyObject *object);
/* A copy that owns what it names, and its end. */
struct kind kind_keep(const struct kind *kind);
void kind_drop(struct kind *kind);
/* `a.b.c` in a module that was imported by others; NULL without an exception where that is not so.  A new reference. */
PyObject *find_imported(const char *module, const char *path);
/* An attribute whose name is made once, and kept in *name. NULL for a NULL object. A new reference. */
PyObject *attribute(PyObject *object, const char *text, PyObject **name);

/* ---- errors (module.c) ------------------------------------------------------------------------------------------- */
/* Raises what the session says; gives NULL. */
PyObject *raise_status(ptxgen_status status, ptxgen_session *s);
/* Raises ptxgen.UsageError; gives false. */
bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The messages of a session as a tuple of ptxgen.Diagnostic. */
PyObject *diagnostics_of(ptxgen_session *s);
/* A text of the library's as a str; frees it.  NULL: MemoryError, or what the session says. */
PyObject *take_text(char *text, ptxgen_session *s);

/* ---- functions (function.c) -------------------------------------------------------------------------------------- */
struct slot {
    ptxgen_array_info info;
    PyObject *name;          /* interned */
    size_t alignment;        /* of its elements, a power of two */
    struct dl_type type;     /* of the first field */
    bool packed;             /* a structure of equal fields without gaps: also a dimension of them */
    PyObject *dtype;         /* torch's, looked up at first need */
    PyObject *args;          /* how the last result was made: positional arguments, */
    PyObject *kwargs;        /* and those by keyword, */
    enum family family;      /* by this library, */
    int device;              /* on this device, */
    int64_t shape[RANK_MAX]; /* of this shape */
};

/* A program on a device. */
struct loaded {
    ptxgen_loaded *program;
    int users;            /* launches without the GIL */
    uint64_t warm[AGAIN]; /* hashes of sizes of the last launches: others may have to load code first; 0: of none */
    int next_warm;
};

typedef PyObject *(*vectorcall)(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

typedef struct {
    PyObject_HEAD vectorcall call;
    PyObject *text, *name;     /* the spec */
    PyObject *choice;          /* dict of what plans are made with: arch, variant, tuning, settings, sizes, cache */
    PyObject *diagnostics;     /* warnings of the spec */
    PyTypeObject *result_type; /* of several outputs */
    ptxgen_session *session;   /* of `problem` */
    ptxgen_problem *problem;
    int sizes, inputs, outputs, params;
    PyObject **size_name, **param_name; /* interned */
    int64_t *size_given;                /* of `choice`; -1: not given */
    ptxgen_param_info *param;
    struct slot *slot;       /* inputs, then outputs */
    unsigned char *in_place; /* per input and output: what place.c knows */
    ptxgen_host *host;
    PyThread_type_lock lock;    /* of making programs, and of the host executor */
    struct again *again[AGAIN]; /* of calls before (again.c); NULL from the first that is not there on */
    int next_again;
    struct loaded on[DEVICES_MAX];
    ptxgen_loaded **old; /* programs that were in use when they were to be forgotten: end with the function */
    int olds;
    PyObject *weak; /* list of weak references */
} Function;

extern PyTypeObject *Function_type;
bool function_ready(PyObject *module);
/* Where functions run. NULL: an exception is set. */
ptxgen_gpu *gpu_at(int device);
/* With f->lock, which is taken without the GIL. */
void function_lock(Function *f);
void function_unlock(Function *f);
struct loaded *function_on(Function *f, int device);
ptxgen_host *function_host(Function *f);

/* ---- several results (results.c) ------------------------------------------------------------------------------- */
/* The type for outputs of these names.  A new reference. */
PyObject *results_type(PyObject *names);
PyObject *results_type_for(PyObject *self, PyObject *names);

/* ---- work besides calls (work.c) --------------------------------------------------------------------------------- */
extern PyMethodDef work_methods[];
/* A session and plan options of their own, so that nothing grows from call to call. */
struct work {
    ptxgen_session *session;
    ptxgen_problem *problem;
    ptxgen_plan_options options;
    ptxgen_setting setting[NAMES_MAX];
    int64_t size[NAMES_MAX];
    PyObject *cache; /* borrowed; str or None */
};
/* choice: a dict over f->choice, or NULL. */
bool work_begin(struct work *w, Function *f, PyObject *choice);
/* Are the architecture and the GPU known ones? */
bool work_target(const struct work *w);
void work_end(struct work *w);
const char *work_cache(const struct work *w);

/* ---- arrays (take.c, give.c, array.c) ---------------------------------------------------------------------------- */
struct call;
enum holder { HOLDS_NOTHING, HOLDS_BUFFER, HOLDS_OBJECT, HOLDS_MANAGED };
struct taken {
    void *data;
    struct dl_type type;
    bool structure; /* a buffer that says the fields in `buffer.format` */
    bool read_only, contiguous, has_stream;
    int ndim;
    int64_t shape[RANK_MAX];
    struct dl_device device; /* id -1: it does not say */
    ptxgen_stream stream;    /* of the CUDA array interface */
    enum holder holds;
    union {
        Py_buffer buffer;
        PyObject *object;
        struct dl_versioned *managed;
    };
};
/* `name`: of the array, for messages. stream: what a producer without a stream of its own shall order its work in. */
bool take(PyObject *object, const struct kind *kind, PyObject *name, ptxgen_stream stream, struct taken *to);
/* An array of JAX's on a GPU. */
bool take_jax(PyObject *object, PyObject *name, ptxgen_stream stream, struct taken *to);
void release(struct taken *t);
bool take_type(const struct taken *t, const struct slot *slot);
bool on_gpu(struct dl_device device);

/* A new array for an output, and its memory. */
PyObject *give(struct slot *slot, const int64_t *size, PyObject *like, const struct kind *kind, struct dl_device device,
               ptxgen_stream stream, void **data);

/* The result as the caller's library has it, where that takes our memory; steals `own`. */
PyObject *give_converted(PyObject *own, const struct slot *slot, const struct call *c);

struct dl_type type_of(ptxgen_type t);
extern PyTypeObject *Array_type;
bool array_ready(PyObject *module);
PyObject *array_new(const struct slot *slot, const int64_t *shape, int ndim, struct dl_device device,
                    ptxgen_stream stream, void **data);
PyObject *array_capsule(PyObject *array); /* of DLPack */
/* Work on other streams than its own may use it from now on. */
void array_elsewhere(PyObject *array);
/* The format of the buffer protocol. A new bytes object. */
PyObject *format_of(const ptxgen_array_info *info);
/* Dimensions of a slot at sizes; their number. */
int shape_of(const struct slot *slot, const int64_t *size, int64_t *shape);

/* ---- calls (call.c) ---------------------------------------------------------------------------------------------- */
struct call {
    Function *f;
    PyObject *object[NAMES_MAX]; /* inputs and outputs; borrowed, but results that were made here are owned */
    PyObject *out, *stream_object;
    struct taken array[NAMES_MAX];
    int64_t size[NAMES_MAX];
    const char *size_from[NAMES_MAX]; /* the array that says so, or what does */
    ptxgen_value param[NAMES_MAX];
    bool has_param[NAMES_MAX];
    const void *pointer[NAMES_MAX];
    struct dl_device device;
    ptxgen_stream stream;
    struct kind leader;   /* of the first array; its type NULL: there was none */
    PyObject *jax_device; /* of JAX's arrays on a GPU, borrowed; or NULL */
    bool made;            /* outputs were made here */
    bool words;           /* more than out= was given by keyword */
};
/* Is the call like one of the last that again_learn() was told of?  Then it is as call_begin() leaves it, but for new outputs;
 * else nothing is known of it, and no exception is set. */
bool again(struct call *c, Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
/* A call that ran. */
void again_learn(const struct call *c);
void again_free(Function *f);
enum purpose { CALL, PREPARE };
/* Nothing is known yet. */
void call_clear(struct call *c, Function *f);
/* Does array i, which was taken, have the type, the shape and the place of the call? */
bool call_accept(struct call *c, int i, bool first);
/* For arrays that are not there: addresses that are aligned and do not overlap. */
void call_pretend(struct call *c);
/* Arguments by position and keyword (words.c). */
bool call_words(struct call *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names, enum purpose why);
/* A number, or a stream of torch, CuPy, or of the protocol __cuda_stream__. */
bool stream_given(PyObject *stream, ptxgen_stream *out);
/* Do the arrays lie where the call may read and write them? (place.c) */
bool call_places(struct call *c);
size_t alignment_of(const ptxgen_array_info *a);
/* The stream that the producer works on now. */
bool producer_stream(const struct kind *kind, const struct taken *t, int device, ptxgen_stream *out);
bool call_begin(struct call *c, Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                enum purpose why);
/* visit: after each stage of a program, or NULL. */
bool call_run(struct call *c, enum purpose why, ptxgen_stage_visitor *visit, void *user);
ptxgen_arguments call_arguments(struct call *c);
/* A new reference. */
PyObject *call_result(struct call *c);
void call_end(struct call *c);
PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *function_prepare(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *function_verify(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *function_seconds(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *function_entry(PyObject *self, PyObject *args);

/* ---- JAX's arrays (jax_arrays.c) --------------------------------------------------------------------------------- */
/* The device of an array of JAX's, borrowed, and the stream on which JAX looks for foreign work.  NULL without an exception:
 * there is none, or this JAX does not say. */
PyObject *jax_device(PyObject *array, ptxgen_stream *stream);
/* A capsule of DLPack, whose memory is ready for the stream's next work; NULL without an exception where __dlpack__() has to
 * make it. */
PyObject *jax_capsule(PyObject *array, ptxgen_stream stream);
/* An array of JAX's that is ready when the stream's work is done; NULL without an exception where from_dlpack() has to make
 * it. */
PyObject *jax_array(PyObject *own, size_t element, PyObject *device, ptxgen_stream stream);
/* Wait for the work of a call. */
bool jax_wait(struct call *c);

/* ---- JAX (jax.c) ------------------------------------------------------------------------------------------------- */
PyObject *jax_handlers(PyObject *module, PyObject *nothing);
PyObject *jax_record(PyObject *module, PyObject *args);

#endif
