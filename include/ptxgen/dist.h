/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dist.h
 * One problem or program on several ranks: threads, processes, machines.  docs/distributed.md is the guide.
 *
 *     #include <ptxgen/dist.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     static int alone(void *user, const void *own, void *all, size_t bytes) // of one rank; MPI_Allgather() of more
 *     {
 *         (void)user;
 *         memcpy(all, own, bytes);
 *         return 0;
 *     }
 *
 *     int main(void)
 *     {
 *         static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n";
 *         const float part[3] = { 1, 2, 3 }; // the elements of this rank
 *         float sum = 0;                     // of all ranks, on each of them
 *         const int64_t n = 3;
 *         const ptxgen_arguments args = { &n, (const void *[]){ part }, (void *[]){ &sum }, NULL };
 *         ptxgen_session *s = NULL;
 *         ptxgen_problem *problem = NULL;
 *         ptxgen_comm *comm = NULL;
 *         ptxgen_dist *dist = NULL;
 *         ptxgen_comm_callbacks with = PTXGEN_COMM_CALLBACKS_INIT;
 *         with.allgather = alone;
 *         if (ptxgen_session_create(&s) == PTXGEN_OK &&
 *             ptxgen_problem_from_string(s, spec, sizeof spec - 1, "sum", &problem) == PTXGEN_OK &&
 *             ptxgen_comm_from_host(s, &with, 0, 1, &comm) == PTXGEN_OK &&
 *             ptxgen_dist_load(s, comm, problem, NULL, &dist) == PTXGEN_OK &&
 *             ptxgen_dist_launch(s, dist, &args) == PTXGEN_OK) {
 *             printf("%g\n", sum);
 *         } else {
 *             char *text = ptxgen_diagnostics_text(s, 0);
 *             puts(text ? text : "out of memory");
 *             ptxgen_free(text);
 *         }
 *         ptxgen_dist_destroy(dist);
 *         ptxgen_comm_destroy(comm);
 *         ptxgen_session_destroy(s);
 *         return 0;
 *     }
 *
 * Parts: one dimension of the problem is split.  Each rank has consecutive elements of it, its part; parts follow each
 * other in the order of the ranks, and may be unequal or empty.  An array that has the dimension is, on each rank, an
 * array of the part's elements; any other array is whole on every rank, with the same content.  The sizes of a launch
 * are those of the part.  Expressions of the spec see the whole: `n` is the size of all parts together, `index(n)` the
 * position in the whole.  In the cyclic layout (ptxgen_dist_options.block), blocks of elements are dealt to the ranks in
 * turn instead, and a rank's part is its blocks one after the other.
 *
 * A program of stages (docs/stages.md) is split along one dimension in all stages and steps.  A stage without that
 * dimension is computed by every rank, with the same bits.  Arrays between stages are cut as those of the program are.  A
 * loop with `until` ends on all ranks after the same step.
 *
 * Results: those without the split dimension, as the result of a reduction along it, are on every rank, with the same
 * bits.  Those with the split dimension are where their elements are.  States of ranks are combined in the order of the
 * ranks by the operator of the spec, so ordered operators are as right as others, and no result depends on timing.
 *
 * Calls marked collective are made by all ranks of a communicator in the same order, with the same spec, options and
 * params.  Every rank tells the others what it calls with what, before any data travels: where they disagree, or one
 * refuses its arguments, each gets PTXGEN_RANKS and a message that names the rank.  A collective call returns when the
 * results are there.  On GPUs, loading and preparing are such calls; a launch only enqueues, and compares nothing.
 *
 * Ownership: communicators and what was loaded belong to the caller, until ptxgen_comm_destroy() and
 * ptxgen_dist_destroy(); what was loaded goes first, then the communicator, then the session.  One thread uses a rank's
 * communicator and what was loaded with it at a time; ranks may be threads of one process.
 */
#ifndef PTXGEN_DIST_H
#define PTXGEN_DIST_H

#include "stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ----------------------------------------------------------------------------------------------- */
typedef struct ptxgen_comm ptxgen_comm;
/** Every rank gives `bytes` bytes, the same number on all ranks, and gets those of all ranks in their order. */
typedef int ptxgen_allgather_function(void *user, const void *own, void *all, size_t bytes);
/** Send to rank `to`, and get what rank `from` sends with the same call; either may have no bytes. */
typedef int ptxgen_sendrecv_function(void *user, const void *send, size_t send_bytes, int to, void *get,
                                     size_t get_bytes, int from);
/** How ranks exchange data in host memory.  Every function gives 0, or another value when the exchange failed: a rank
 * died, or a time limit was reached.  They bound their waits; ptxgen adds no clock of its own. */
typedef struct ptxgen_comm_callbacks {
    size_t struct_size; /**< PTXGEN_COMM_CALLBACKS_INIT sets it */
    ptxgen_allgather_function *allgather;
    ptxgen_sendrecv_function *sendrecv; /**< NULL: problems whose neighbours may be on other ranks are refused */
    void *user;                         /**< the first argument of the functions; not used otherwise */
} ptxgen_comm_callbacks;
/** This rank's end of a communicator of `size` ranks.  Not collective.  callbacks: copied. */
PTXGEN_API ptxgen_status ptxgen_comm_from_host(ptxgen_session *s, const ptxgen_comm_callbacks *callbacks, int rank,
                                               int size, ptxgen_comm **out);
typedef struct ptxgen_nccl_options {
    size_t struct_size; /**< PTXGEN_NCCL_OPTIONS_INIT sets it */
    double seconds;     /**< the longest wait of a collective call for other ranks; 0: 300 */
    int only_nccl; /**< 1: all bytes travel through NCCL, also between GPUs that can write into each other's memory */
    int ends_apart; /**< rows of a stencil beside other ranks are computed by kernels of their own: 0: only where no kernel
                         can compute all rows; 1: always; -1: always where a launch has several time steps */
} ptxgen_nccl_options;
/**
 * A rank whose arrays lie in the memory of a GPU.  nccl_comm: the caller's ncclComm_t on the device of `gpu`, borrowed as
 * gpu is; both must outlive the result.  Rank and size are the communicator's.  Not collective.  Each rank is a thread or
 * a process of its own.  libnccl.so.2 (or the file that the environment variable PTXGEN_LIBNCCL names) is opened at run
 * time; PTXGEN_NO_DEVICE: it is not there.
 *
 * Calls of ptxgen count as collective calls of the communicator: all ranks make all of them in the same order.  None is
 * made between ncclGroupStart() and ncclGroupEnd().
 */
PTXGEN_API ptxgen_status ptxgen_comm_from_nccl(ptxgen_session *s, ptxgen_gpu *gpu, void *nccl_comm,
                                               const ptxgen_nccl_options *PTXGEN_OPTIONAL options, ptxgen_comm **out);
PTXGEN_API int ptxgen_comm_rank(const ptxgen_comm *comm);
PTXGEN_API int ptxgen_comm_size(const ptxgen_comm *comm);
PTXGEN_API void ptxgen_comm_destroy(ptxgen_comm *PTXGEN_OPTIONAL comm);

/* ---- distributed problems and programs --------------------------------------------------------------------------- */
typedef struct ptxgen_dist_options {
    size_t struct_size; /**< PTXGEN_DIST_OPTIONS_INIT sets it */
    const char
        *split; /**< name of the dimension that is split; NULL: the first of the iteration space with a name, of a
                             program the first of its first stage */
    const char *modes; /**< of the host executor, as in ptxgen_host_run(); NULL: the usual ones; GPUs ignore it */
    /** 0: parts are consecutive.  Else a multiple of 16: the whole is cut into blocks of so many elements, the last of
     * which may be shorter, and block b is on rank b modulo the number of ranks, after the rank's blocks before b.  Arrays
     * that have the split dimension have it first, and no element reads its neighbours. */
    int64_t block;
} ptxgen_dist_options;
/** A problem or program, compiled for a rank. */
typedef struct ptxgen_dist ptxgen_dist;
/** Plan and compile.  Collective.  PTXGEN_UNSUPPORTED: the spec cannot be split along that dimension, and the message
 * says what stands against it, and where; of a program, in which stage.  options: NULL for defaults; borrowed. */
PTXGEN_API ptxgen_status ptxgen_dist_load(ptxgen_session *s, ptxgen_comm *comm, const ptxgen_problem *p,
                                          const ptxgen_dist_options *PTXGEN_OPTIONAL options, ptxgen_dist **out);
PTXGEN_API void ptxgen_dist_destroy(ptxgen_dist *PTXGEN_OPTIONAL dist);
/** Name of the dimension that is split. Borrowed. */
PTXGEN_API const char *ptxgen_dist_split(const ptxgen_dist *dist);
/**
 * An even share of `total` elements of the split dimension: rank `rank` has `count` of them, from `first` on.  Other
 * parts are as good, with two exceptions: with `determinism: device`, parts begin where such shares may begin; and with
 * ptxgen_dist_options.block, parts have the elements of their blocks, of which `first` is the first.  Not collective.
 */
PTXGEN_API ptxgen_status ptxgen_dist_share(ptxgen_session *s, const ptxgen_dist *dist, int64_t total, int rank,
                                           int64_t *first, int64_t *count);
/**
 * What a launch is expected to take on numbers of ranks, a row for each after that of one: a table, or with
 * PTXGEN_FORM_JSON an object.  No rank is needed, and nothing is measured: a rank's part takes what `plan` is predicted to
 * take at that size, and exchanges what their bytes take over measured and assumed links, which the table names.  Not
 * collective.  split: as in ptxgen_dist_options.  options: `size`, of the whole, is needed; gpu or device, param and form
 * count, too.  ranks: `count` numbers.  Of a program a row is one step, with the bytes of all its exchanges.  NULL after a
 * message: the problem, or a stage, cannot be split.
 * Owned by the caller: ptxgen_free().
 */
PTXGEN_API char *ptxgen_dist_explain(ptxgen_session *s, const ptxgen_plan *plan, const char *PTXGEN_OPTIONAL split,
                                     const ptxgen_explain_options *options, const int *ranks, int count);
/** Run once on all ranks.  Collective.  args: of this rank's part.  On GPUs: ptxgen_dist_launch_on() the default stream. */
PTXGEN_API ptxgen_status ptxgen_dist_launch(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args);
/**
 * On GPUs, before launches with these sizes on this stream: all ranks agree on their parts, load code, allocate memory, and
 * connect.  Collective; waits for the device and the other ranks; not in a stream capture.  args: as of a launch, with
 * arrays that are aligned alike; nothing is run, and no array is read or written.  What is prepared is kept until
 * ptxgen_dist_destroy().  Preparing parts of which some, but not all, are as before (one rank's grew, another's did not)
 * gives up what was prepared for the older ones.  In host memory there is nothing to prepare: PTXGEN_OK.
 */
PTXGEN_API ptxgen_status ptxgen_dist_prepare(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                             ptxgen_stream PTXGEN_OPTIONAL stream);
/**
 * On GPUs: enqueue a run on the stream.  Collective, and returns at once; a stream capture may record it, and all ranks
 * then replay their graphs.  Replays must not overlap other launches with the same sizes and stream, nor, where kernels take
 * rows of other ranks themselves, any launch of the communicator on another stream.  PTXGEN_USAGE: these
 * sizes were not prepared for this stream.  The params are the same on all ranks; here nobody compares them.  A rank whose
 * launch fails after that takes part in the exchanges nonetheless; then the results of the others mean nothing.  A rank
 * that does not launch leaves the others' streams waiting, as with NCCL: ncclCommAbort() ends that.  In host memory: as
 * ptxgen_dist_launch(), without a stream.
 *
 * A program whose loop has `until`: where bytes travel as "peers" and all ranks have found in ptxgen_dist_prepare() that
 * their drivers can (CUDA 12.4), the GPUs decide, each launch is a graph, and all of the above holds.  A rank whose launch
 * fails tells the others at the first decision, and a wait for another rank that takes too long ends the loop; on the ranks
 * that learn it so, ptxgen_dist_check() gives PTXGEN_RANKS.  Elsewhere, and where an expression reads `step`, the host
 * decides: after each step (with `check_every: K`, after every K) the call waits for the stream, and the ranks tell each
 * other whether the condition holds, and whether one has failed (PTXGEN_RANKS).  PTXGEN_USAGE: a stream capture then.
 */
PTXGEN_API ptxgen_status ptxgen_dist_launch_on(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                               ptxgen_stream PTXGEN_OPTIONAL stream);
/**
 * How the bytes of the launches that were prepared last travel: "host"; "nccl"; or "peers": by kernels that write into the
 * memory of the other GPUs.  All ranks have the same answer.  Before a preparation on a GPU: "nccl".  Borrowed.
 */
PTXGEN_API const char *ptxgen_dist_transport(const ptxgen_dist *dist);
/**
 * ptxgen_dist_launch_on() of a program of stages, with a visit after each stage on every rank; on GPUs it waits for each
 * stage.  Collective.  `args` of a visit: the rank's parts, in the order of the stage's own problem, whose split size has
 * the name of the program's.  All ranks visit the same stages in the same order, also where one has failed, whose arrays
 * then mean nothing: so visits may exchange data.  Another value than 0, which all ranks return alike, ends the run,
 * without an error.  PTXGEN_USAGE: a stream capture.  What is not a program is run without visits.
 */
PTXGEN_API ptxgen_status ptxgen_dist_launch_stages(ptxgen_session *s, ptxgen_dist *dist, const ptxgen_arguments *args,
                                                   ptxgen_stream PTXGEN_OPTIONAL stream, ptxgen_stage_visitor *visit,
                                                   void *PTXGEN_OPTIONAL user);
/** PTXGEN_OK; PTXGEN_RANKS after an exchange failed, a rank told that it could not launch a kernel, NCCL reports an error, or
 * the ranks disagreed: from this call on every launch with the communicator is refused, and this call gives the same each
 * time.  Of waits on GPUs, it asks for those of `dist`.  Not collective. */
PTXGEN_API ptxgen_status ptxgen_dist_check(ptxgen_session *s, const ptxgen_dist *dist);
/** Begin anew after such an error, when the transport works again.  Collective.  PTXGEN_UNSUPPORTED with NCCL, whose
 * communicators end with an error: call ncclCommAbort() first, then ptxgen_dist_destroy() and ptxgen_comm_destroy(), and
 * make new ones. */
PTXGEN_API ptxgen_status ptxgen_dist_reset(ptxgen_session *s, ptxgen_dist *dist);

/* clang-format off */
#define PTXGEN_COMM_CALLBACKS_INIT { sizeof(ptxgen_comm_callbacks), NULL, NULL, NULL }
#define PTXGEN_NCCL_OPTIONS_INIT { sizeof(ptxgen_nccl_options), 0, 0, 0 }
#define PTXGEN_DIST_OPTIONS_INIT { sizeof(ptxgen_dist_options), NULL, NULL, 0 }
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
