/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.h - a CUDA driver that records what it is asked and runs nothing.
 *
 * Built as a shared object with the entry points that the launcher looks up.  "Device" memory is host memory, so fills
 * and copies really happen.  A test opens the same object, sets what the driver shall pretend, and reads the calls.
 *
 * What is captured, and conditional nodes, become nodes of a graph (fake_graphs.c).  A launch of the graph goes through
 * them in order: kernels are recorded as "run", fills and copies happen, and loops of stages decide by the byte that they
 * would read.  Threads may capture, and launch graphs, at the same time: they are ranks.  Streams join a capture by events.
 *
 * For whole processes: the calls that do something go to the file that FAKE_CUDA_LOG names, a line for each, with all
 * arguments of kernels; an address is the number of its allocation plus an offset.  A single byte that the host reads
 * is 0, and 1 at each FAKE_CUDA_STEPS-th time.  FAKE_CUDA_DEVICES is how many devices there are, one without it.  With
 * FAKE_CUDA_COPIES=RANK every kernel copies its first array to its second one, i32 of so many dimensions, but for the
 * first byte on the device FAKE_CUDA_WRONG.
 */
#ifndef PTXGEN_FAKE_CUDA_H
#define PTXGEN_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* python/tests/stand_ins.py has the same structures. */
enum { FAKE_DEVICES = 8 };
enum { FAKE_FIRST_ALONE = 2 }; /* the first device reaches none of the others, which reach it */
enum { FAKE_CALLS = 4096, FAKE_PARAMS = 48, FAKE_KERNELS = 4096, FAKE_NAME = 160, FAKE_NODES = 4096, FAKE_AFTER = 64 };
enum { FAKE_TABLE = 1448 }; /* bytes of struct exchange_table */

struct fake_call {
    const char *name;    /* entry point */
    const char *kernel;  /* launches */
    const void *stream;  /* where there is one */
    const void *context; /* current at the call */
    uint64_t a, b;       /* first two numeric arguments: address and bytes, or function attribute and value */
    unsigned grid, block, shared, cluster;
    int programmatic;
    uint64_t param[FAKE_PARAMS]; /* kernel arguments, zero-extended from their size */
};

struct fake_kernel {
    char name[FAKE_NAME]; /* none: not used yet */
    int nparams;
    int bytes[FAKE_PARAMS]; /* of each parameter */
};

struct fake_node {
    const char *what; /* a kernel, "copy", "fill", "while" or "if" */
    int graph, body;  /* from 1; body of "while" and "if" */
    int condition;
    int nafter, after[FAKE_AFTER]; /* numbers of nodes, from 1 */
    struct fake_call call;
    void *table; /* of an exchange: its parameter; NULL: it is something else */
    unsigned grid[2];
    void (*calls)(void *user); /* fake_cuda_call() */
    void *user;
};

struct fake_cuda {
    int version, devices, sm, multiprocessors, shared_optin, pools;
    int shared_static, registers, local, blocks; /* of every kernel */
    int capturing;
    int capture_spoiled;                     /* a call that a capture forbids was made in it */
    void *next_handle;                       /* the next stream gets this handle, of a stream that is over */
    const char *fail;                        /* this entry point (at first that of FAKE_CUDA_FAIL) … */
    int fail_result;                         /* … returns this */
    struct fake_kernel kernel[FAKE_KERNELS]; /* others are added without parameters when they are looked up */
    int ncalls;
    struct fake_call call[FAKE_CALLS];
    int live; /* allocations, modules, retained contexts, streams, events, graphs that were not given back */
    int busy; /* no stream ever ends */
    /* From here python/tests/stand_ins.py does not know the fields. */
    int nnodes;
    struct fake_node node[FAKE_NODES];          /* number 1 is the first */
    void (*runs)(const struct fake_call *call); /* what kernels do, in streams and graphs; NULL: nothing */
    int peers;                                  /* devices reach each other's memory; FAKE_FIRST_ALONE */
    int foreign_capture;                        /* another thread captures, in the driver's default mode */
    unsigned long long graph_flags, no_flags;   /* those of the last graph; those that the driver does not know */
    /* What launches without attributes do, with all parameters; NULL: nothing. */
    void (*launched)(const char *kernel, const unsigned grid[2], unsigned threads, void *const *params);
};

/* In the shared object: the state, and the bytes of the fields that Python knows. */
/* If the stream is captured: true, and the graph calls f. */
typedef bool fake_cuda_call_fn(const void *stream, void (*f)(void *user), void *user);
bool fake_cuda_call(const void *stream, void (*f)(void *user), void *user);
typedef struct fake_cuda *fake_cuda_state_fn(void);
struct fake_cuda *fake_cuda_state(void);
size_t fake_cuda_python(void);

#endif
