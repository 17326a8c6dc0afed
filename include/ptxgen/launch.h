/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file launch.h
 * Running compiled programs on GPUs through the CUDA driver API.
 *
 *     static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n";
 *     const float host[3] = { 1, 2, 3 };
 *     float sum = 0;
 *     const int64_t n = 3;
 *     void *x = NULL, *out = NULL;
 *     ptxgen_session *s = NULL;
 *     ptxgen_gpu *gpu = NULL;
 *     ptxgen_loaded *loaded = NULL;
 *     if (ptxgen_session_create(&s) == PTXGEN_OK && ptxgen_gpu_open(s, 0, &gpu) == PTXGEN_OK &&
 *         ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "sum", NULL, &loaded) == PTXGEN_OK &&
 *         ptxgen_gpu_alloc(s, gpu, sizeof host, &x) == PTXGEN_OK &&
 *         ptxgen_gpu_alloc(s, gpu, sizeof sum, &out) == PTXGEN_OK &&
 *         ptxgen_gpu_write(s, gpu, x, host, sizeof host) == PTXGEN_OK &&
 *         ptxgen_launch(s, loaded, &(ptxgen_arguments){ &n, (const void *[]){ x }, (void *[]){ out }, NULL }, NULL,
 *                       NULL) == PTXGEN_OK && // returns at once, like a kernel launch
 *         ptxgen_gpu_read(s, gpu, &sum, out, sizeof sum) == PTXGEN_OK) {
 *         printf("%g\n", sum);
 *     } else {
 *         char *text = ptxgen_diagnostics_text(s, 0);
 *         puts(text ? text : "out of memory");
 *         ptxgen_free(text);
 *     }
 *     ptxgen_gpu_free(gpu, x);
 *     ptxgen_gpu_free(gpu, out);
 *     ptxgen_loaded_destroy(loaded);
 *     ptxgen_gpu_close(gpu);
 *     ptxgen_session_destroy(s);
 *
 * The driver (libcuda.so.1) is opened at run time; nothing links against it.  On a machine without it every call here
 * returns PTXGEN_NO_DEVICE with a message.  The environment variable PTXGEN_LIBCUDA names another file to open.
 *
 * Sessions: `s` receives the messages of a failing call, which are lost where it is optional and NULL.  A session is
 * used by one thread at a time, as always; threads that launch the same loaded program bring a session each.
 *
 * Threads: a `ptxgen_gpu` and a `ptxgen_loaded` may be used by any number of threads at once, except while being closed
 * or destroyed.
 *
 * Contexts: every call makes the context of its gpu current for its own duration and leaves the caller's context as it
 * was.
 *
 * Synchronisation: no call waits for the device, except those whose description says so.
 */
#ifndef PTXGEN_LAUNCH_H
#define PTXGEN_LAUNCH_H

#include "ptxgen.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A CUstream or cudaStream_t as it is, without a cast.  NULL is the default stream. */
typedef struct CUstream_st *ptxgen_stream;

/* ---- devices --------------------------------------------------------------------------------- */
typedef struct ptxgen_gpu_info {
    char name[96];
    int sm; /**< 90 for compute capability 9.0 */
    int multiprocessors;
    int driver;           /**< newest CUDA version that the driver supports: 13000 for 13.0 */
    int ptx;              /**< newest PTX version that the driver is known to load: 90 for 9.0 */
    uint64_t memory;      /**< bytes */
    uint64_t l2;          /**< bytes */
    int shared_per_block; /**< largest that a block can ask for, bytes */
    int memory_clock_khz, bus_bits;
} ptxgen_gpu_info;
/** Number of devices. PTXGEN_NO_DEVICE (and 0) when there is no driver or no device; the message says which. */
PTXGEN_API ptxgen_status ptxgen_gpu_count(ptxgen_session *PTXGEN_OPTIONAL s, int *count);
/** What device `ordinal` is. Creates no context. */
PTXGEN_API ptxgen_status ptxgen_gpu_query(ptxgen_session *PTXGEN_OPTIONAL s, int ordinal, ptxgen_gpu_info *out);

/** One device, and the context in which everything of it happens. */
typedef struct ptxgen_gpu ptxgen_gpu;
/** Pass this as the ordinal to work in the calling thread's current context, or on device 0 when there is none. */
#define PTXGEN_GPU_CURRENT (-1)
/** ordinal >= 0: that device, in its primary context (the one of the CUDA runtime), which stays retained until the
 * close. */
PTXGEN_API ptxgen_status ptxgen_gpu_open(ptxgen_session *PTXGEN_OPTIONAL s, int ordinal, ptxgen_gpu **out);
/** Everything made from it must have been destroyed. NULL is fine. */
PTXGEN_API void ptxgen_gpu_close(ptxgen_gpu *PTXGEN_OPTIONAL gpu);
/** Borrowed from the gpu. */
PTXGEN_API const ptxgen_gpu_info *ptxgen_gpu_describe(const ptxgen_gpu *gpu);
/** The device of a stream that others made; `gpu` may be another device.  NULL, the default stream, is of `gpu` itself. */
PTXGEN_API ptxgen_status ptxgen_stream_device(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu,
                                              ptxgen_stream PTXGEN_OPTIONAL stream, int *out);

/* ---- programs on a device -------------------------------------------------------------------- */
/**
 * A program made ready for one gpu.  Its cases are loaded (compiled by the driver, some 20 ms each) when first needed.
 * The program and the gpu must outlive it.
 */
typedef struct ptxgen_loaded ptxgen_loaded;
/** Checks driver, architecture and shared memory; the message of a refusal names the driver that is needed. Loads no
 * code yet. */
PTXGEN_API ptxgen_status ptxgen_load(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, const ptxgen_program *program,
                                     ptxgen_loaded **out);
/** Waits for the work of the context, then unloads; not while another thread captures a stream of that context, which
 * the driver would end. NULL is fine. */
PTXGEN_API void ptxgen_loaded_destroy(ptxgen_loaded *PTXGEN_OPTIONAL loaded);

/** Memory that a launch works in, supplied by the caller.  Both pointers are aligned to 256 bytes. */
typedef struct ptxgen_workspace {
    void
        *control; /**< filled with zeros once, before its first use; kept from launch to launch; one launch at a time */
    size_t control_bytes;
    void *scratch; /**< no content between launches */
    size_t scratch_bytes;
} ptxgen_workspace;
/**
 * Bytes that a launch at these sizes needs, as control_bytes and scratch_bytes; the pointers become NULL.  With the
 * same loaded program a control region serves every launch for which it is large enough.  Only sizes, params and (where
 * a case depends on alignment or overlap) pointers of `args` are looked at; nothing is loaded unless a formula needs a
 * kernel's occupancy.
 */
PTXGEN_API ptxgen_status ptxgen_workspace_query(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                                const ptxgen_arguments *args, ptxgen_workspace *out);
/** Fill the control region with zeros, in stream order: before its first use, and after a launch that did not complete.
 */
PTXGEN_API ptxgen_status ptxgen_workspace_reset(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                                const ptxgen_workspace *workspace,
                                                ptxgen_stream PTXGEN_OPTIONAL stream);

/**
 * Load what a launch with these arguments on this stream needs, so that the launch only launches.  Needed once before
 * a launch is captured into a graph; optional otherwise.  args NULL: the code of all cases, no memory.
 */
PTXGEN_API ptxgen_status ptxgen_prepare(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                        const ptxgen_arguments *PTXGEN_OPTIONAL args,
                                        ptxgen_stream PTXGEN_OPTIONAL stream);

/**
 * Launch.  `args` holds device pointers and is not kept.  The work is ordered in `stream`.
 *
 * workspace NULL: memory that the loaded program keeps for this stream, allocated in stream order on first use and
 * when a launch needs more.  Launches on one stream may then come from several threads.  A graph that captured such a
 * launch uses the memory of the stream that it was captured on: replays must not overlap other launches on that stream.
 * With a workspace nothing is allocated.  A spec with stages then starts no graph of its own, and where it has `until`
 * the host reads the condition, so such a launch cannot be captured.
 *
 * In a capture of a case that is not loaded, or whose memory is not there yet: PTXGEN_USAGE; call ptxgen_prepare()
 * first.
 */
PTXGEN_API ptxgen_status ptxgen_launch(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                       const ptxgen_arguments *args, ptxgen_stream PTXGEN_OPTIONAL stream,
                                       const ptxgen_workspace *PTXGEN_OPTIONAL workspace);

/** Which case a launch with these arguments takes: a name borrowed from the program, or NULL. */
PTXGEN_API const char *ptxgen_launch_case(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                          const ptxgen_arguments *args);

/** After a launch on this stream did not complete: zero the memory kept for the stream, in stream order. */
PTXGEN_API ptxgen_status ptxgen_stream_reset(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                             ptxgen_stream PTXGEN_OPTIONAL stream);
/** Before a stream is destroyed: give up the memory kept for it. May wait for the device. No graph that captured it may
 * be replayed any more. */
PTXGEN_API ptxgen_status ptxgen_stream_release(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded,
                                               ptxgen_stream PTXGEN_OPTIONAL stream);

/** What the driver made of a kernel. */
typedef struct ptxgen_kernel_info {
    const char *name;                 /**< borrowed from the program */
    int threads, registers, resident; /**< resident: blocks per multiprocessor, without dynamic shared memory */
    int shared_static, local;         /**< bytes; local is per thread: spills and arrays */
} ptxgen_kernel_info;
/** Kernel `kernel` of case `case_index`; loads the case. PTXGEN_USAGE past the end. */
PTXGEN_API ptxgen_status ptxgen_kernel_query(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_loaded *loaded, int case_index,
                                             int kernel, ptxgen_kernel_info *out);

/* ---- from a spec to something to launch, in one call ----------------------------------------- */
typedef struct ptxgen_jit_options {
    size_t struct_size;              /**< PTXGEN_JIT_OPTIONS_INIT sets it */
    const ptxgen_plan_options *plan; /**< NULL: defaults; arch NULL: the gpu's own, with PTX that its driver loads */
    const ptxgen_compile_options *compile; /**< NULL: defaults */
    const char *cache;                     /**< directory of the disk cache, "off", or NULL: see below */
    int background;                        /**< 1: a thread compiles all cases at once, beside launches; it ends before
                                              the loaded program is destroyed */
} ptxgen_jit_options;
/* clang-format off */
#define PTXGEN_JIT_OPTIONS_INIT { sizeof(ptxgen_jit_options), NULL, NULL, NULL, 0 }
/* clang-format on */
/**
 * Plan a problem for the gpu, and make it ready as ptxgen_load() does.  A case is compiled, in a few milliseconds, when a
 * launch first takes it or ptxgen_prepare() asks; threads that need the same case compile it once.  What fails then is
 * the launch's failure, and the next one tries again.  The PTX of a case comes from the disk cache when the same was
 * made before, and the driver has one of its own for the machine code.  The program goes with the result, and keeps the
 * memory of the session, which may be destroyed before; the gpu must outlive it.  options: NULL for defaults; borrowed.
 */
PTXGEN_API ptxgen_status ptxgen_jit(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_problem *problem,
                                    const ptxgen_jit_options *PTXGEN_OPTIONAL options, ptxgen_loaded **out);
/** The same from a spec's text (name as in ptxgen_problem_from_string()), and from a file. */
PTXGEN_API ptxgen_status ptxgen_jit_string(ptxgen_session *s, ptxgen_gpu *gpu, const char *text, size_t length,
                                           const char *PTXGEN_OPTIONAL name,
                                           const ptxgen_jit_options *PTXGEN_OPTIONAL options, ptxgen_loaded **out);
PTXGEN_API ptxgen_status ptxgen_jit_file(ptxgen_session *s, ptxgen_gpu *gpu, const char *path,
                                         const ptxgen_jit_options *PTXGEN_OPTIONAL options, ptxgen_loaded **out);
/** The architecture to generate code for: the device's own, or the newest before it that this ptxgen and the driver
 * know. NULL when there is none. */
PTXGEN_API const char *ptxgen_gpu_arch(const ptxgen_gpu_info *info);

/* ---- the disk cache --------------------------------------------------------------------------- */
/*
 * Holds the code of programs: what ptxgen_jit() and ptxgen_compile_cached() made.  `place`: a directory, "off", or NULL
 * for what the environment says: PTXGEN_CACHE (a directory or "off"), else $XDG_CACHE_HOME/ptxgen, else
 * $HOME/.cache/ptxgen.  Processes may share it; one that cannot be read or written only makes starts slower.
 */
/** ptxgen_compile(), or the program that it made of the same problem and plan before. */
PTXGEN_API ptxgen_status ptxgen_compile_cached(ptxgen_session *s, const ptxgen_problem *problem,
                                               const ptxgen_plan *plan,
                                               const ptxgen_compile_options *PTXGEN_OPTIONAL options,
                                               const char *PTXGEN_OPTIONAL place, ptxgen_program **out);
/** The machine code that ptxgen_program_add_code() gave the program goes into the disk cache.  From then on ptxgen_jit()
 * loads the machine code on a GPU of the same architecture wherever it finds or generates the same PTX.  Code of another
 * assembler replaces it.  A cache that is off keeps nothing.  PTXGEN_IO where not all of it could be kept. */
PTXGEN_API ptxgen_status ptxgen_program_keep_code(const ptxgen_program *program, const char *PTXGEN_OPTIONAL place);
typedef struct ptxgen_cache_info {
    int enabled;
    char path[3072]; /**< "" when the environment names no place */
    int64_t entries, bytes;
    int64_t limit; /**< bytes; the least recently used entries beyond it are deleted */
} ptxgen_cache_info;
PTXGEN_API ptxgen_status ptxgen_cache_query(const char *PTXGEN_OPTIONAL place, ptxgen_cache_info *out);
/** Delete all entries. PTXGEN_IO with errno when some could not be deleted. */
PTXGEN_API ptxgen_status ptxgen_cache_clear(const char *PTXGEN_OPTIONAL place);

/* ---- memory, streams, events, graphs: for programs that use no other CUDA library ------------ */
/** At least 256-byte aligned. PTXGEN_NO_DEVICE when the device's memory is exhausted. bytes 0 gives a valid pointer. */
PTXGEN_API ptxgen_status ptxgen_gpu_alloc(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, size_t bytes, void **out);
/** Waits for the device. NULL is fine. */
PTXGEN_API void ptxgen_gpu_free(ptxgen_gpu *gpu, void *PTXGEN_OPTIONAL p);
/** Host to device, device to host; return when the copy is done. */
PTXGEN_API ptxgen_status ptxgen_gpu_write(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, void *device,
                                          const void *host, size_t bytes);
PTXGEN_API ptxgen_status ptxgen_gpu_read(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, void *host,
                                         const void *device, size_t bytes);
/** Device to device, and a byte everywhere, in stream order. */
PTXGEN_API ptxgen_status ptxgen_gpu_copy(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, void *to, const void *from,
                                         size_t bytes, ptxgen_stream PTXGEN_OPTIONAL stream);
PTXGEN_API ptxgen_status ptxgen_gpu_fill(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, void *device, int byte,
                                         size_t bytes, ptxgen_stream PTXGEN_OPTIONAL stream);
/** A stream that does not wait for the default stream. */
PTXGEN_API ptxgen_status ptxgen_stream_create(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_stream *out);
PTXGEN_API void ptxgen_stream_destroy(ptxgen_gpu *gpu, ptxgen_stream PTXGEN_OPTIONAL stream);
/** Wait for the stream; reports faults of earlier launches. */
PTXGEN_API ptxgen_status ptxgen_stream_wait(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu,
                                            ptxgen_stream PTXGEN_OPTIONAL stream);

/** A CUevent with timing. */
typedef struct CUevent_st *ptxgen_event;
PTXGEN_API ptxgen_status ptxgen_event_create(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_event *out);
PTXGEN_API void ptxgen_event_destroy(ptxgen_gpu *gpu, ptxgen_event PTXGEN_OPTIONAL event);
PTXGEN_API ptxgen_status ptxgen_event_record(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_event event,
                                             ptxgen_stream PTXGEN_OPTIONAL stream);
/** Waits for `end`, then the seconds between both. */
PTXGEN_API ptxgen_status ptxgen_event_seconds(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_event begin,
                                              ptxgen_event end, double *seconds);

/** A CUgraphExec: what was launched on the stream between begin and end, as one object. The stream is not the default
 * one. */
typedef struct CUgraphExec_st *ptxgen_graph;
PTXGEN_API ptxgen_status ptxgen_capture_begin(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_stream stream);
PTXGEN_API ptxgen_status ptxgen_capture_end(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_stream stream,
                                            ptxgen_graph *out);
PTXGEN_API ptxgen_status ptxgen_graph_launch(ptxgen_session *PTXGEN_OPTIONAL s, ptxgen_gpu *gpu, ptxgen_graph graph,
                                             ptxgen_stream PTXGEN_OPTIONAL stream);
PTXGEN_API void ptxgen_graph_destroy(ptxgen_gpu *gpu, ptxgen_graph PTXGEN_OPTIONAL graph);

#ifdef __cplusplus
}
#endif
#endif
