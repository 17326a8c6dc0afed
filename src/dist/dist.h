/* SPDX-License-Identifier: Apache-2.0 */
/* dist.h - one problem, or the stages of a program, on several ranks: what src/api sees of this folder. */
#ifndef PTXGEN_SRC_DIST_H
#define PTXGEN_SRC_DIST_H

#include "derive.h"
#include "frontend/stages/stages.h"
#include "llvmgen/llvmgen.h"
#include "ptxgen/stages.h"
#include "simt/simt.h"

struct dist_machine;
struct dist_room;

/* The transport.  Functions give 0, or another value when an exchange failed. */
struct dist_transport {
    const struct dist_machine *machine; /* what ranks compute on, and how the arrays of a launch travel: launch.h */
    int (*allgather)(void *self, const void *own, void *all, size_t bytes); /* in host memory; what ranks tell */
    int (*sendrecv)(void *self, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes, int from);
    bool (*sends)(void *self);        /* can neighbours exchange? */
    const char *(*fault)(void *self); /* the reason of a failure, or NULL; the row may be NULL */
    bool ends;                        /* after a failure, the caller's communicator is of no use any more */
    void (*close)(void *self);
};

/* What a rank tells the others before anything else travels; all must be equal but `status` and `count`. */
enum dist_operation { DIST_LOAD, DIST_LAUNCH, DIST_RESET, DIST_PREPARE };
struct dist_hello {
    uint64_t operation, sequence, problem; /* problem: a hash of the spec */
    char name[PROBLEM_NAME_MAX + 1];
    int64_t status, count;
    uint64_t value[PROBLEM_ARGS_MAX]; /* sizes, 0 for the split one, then params */
};

struct ptxgen_comm {
    const struct dist_transport *transport;
    void *self;             /* the transport's */
    struct ptxgen_gpu *gpu; /* where arrays lie; NULL: in host memory */
    int rank, size;
    uint64_t sequence;        /* collective operations so far */
    bool broken;              /* an exchange failed, or the ranks disagreed */
    struct dist_hello *hello; /* of all ranks, at the last operation */
};
/* NULL: memory is exhausted, and `self` is closed. */
struct ptxgen_comm *dist_comm_create(const struct dist_transport *transport, void *self, int rank, int size);
extern const struct dist_transport dist_transport_host, dist_transport_nccl;
/* After a failure that other ranks may not know of: the communicator refuses further work. */
ptxgen_status dist_broken(struct ptxgen_session *s, struct ptxgen_comm *comm, const char *why);

/* Every rank must call.  Exchange hellos: PTXGEN_OK on all ranks if all make the same call and none has failed; else on
 * no rank, and each rank has a message.  shape: names of what the values of launches are of. */
ptxgen_status dist_agree(struct ptxgen_session *s, struct ptxgen_comm *comm, const struct program *shape,
                         struct dist_hello *own);
/* Exchange `bytes` bytes per rank, of which the first eight are this rank's status: as above. */
ptxgen_status dist_exchange(struct ptxgen_session *s, struct ptxgen_comm *comm, const void *own, void *all,
                            size_t bytes);

/* Send to one rank and get from another. */
ptxgen_status dist_sendrecv(struct ptxgen_session *s, struct ptxgen_comm *comm, const void *send, size_t send_bytes,
                            int to, void *get, size_t get_bytes, int from);

/* A problem, whose stages are host code or loaded on a GPU; or a program, each stage of which is a problem. */
struct ptxgen_dist {
    struct ptxgen_comm *comm;
    const struct program *shape; /* of what the user has, for its arguments */
    int size;                    /* the one of its sizes that is split */
    int64_t block;               /* of its elements: as of dist_split */
    bool pieces;                 /* even shares are cut at pieces: of any stage */
    uint64_t problem;            /* hash */
    struct simt_options modes;
    const struct prog_stages *program;  /* or NULL */
    struct ptxgen_dist *of[STAGES_MAX]; /* in the arena */
    const struct dist_split *split;     /* of a problem, with all that follows but the rooms */
    struct host_code *code[DIST_STAGES];
    struct simt_control *control[DIST_STAGES];
    struct ptxgen_loaded *loaded[DIST_STAGES];
    struct dist_room *rooms; /* on a GPU: what was prepared */
    int64_t nrooms;          /* so far */
};
static inline const char *dist_split_name(const struct ptxgen_dist *d) { return d->shape->size[d->size]; }
/* From what the user has: which dimension is split (NULL: the first), and what each rank computes.  False after a message. */
bool dist_derive_problem(struct ptxgen_session *s, struct ptxgen_dist *d, const struct problem *p, const char *split);
bool dist_derive_program(struct ptxgen_session *s, struct ptxgen_dist *d, const struct stages *p, const char *split);
/* Plan and compile the stages as host code; false after a message. */
bool dist_compile(struct ptxgen_session *s, struct ptxgen_dist *d, const struct llvmgen_options *o);
void dist_release(struct ptxgen_dist *d);

/* Who is called after each stage of a program, as ptxgen_dist_launch_stages() says. */
struct dist_visitor {
    ptxgen_stage_visitor *visit;
    void *user;
};
/* Run on all ranks; own_status: what is wrong with this rank's arguments, which the others are told.  On a GPU: enqueue
 * on the stream.  visitor: or NULL. */
ptxgen_status dist_launch(struct ptxgen_session *s, struct ptxgen_dist *d, const struct run_args *args,
                          ptxgen_stream stream, ptxgen_status own_status, const struct dist_visitor *visitor);
/* On a GPU: agree on the parts, and make all that launches with these sizes on this stream need. */
ptxgen_status dist_prepare(struct ptxgen_session *s, struct ptxgen_dist *d, const struct run_args *args,
                           ptxgen_stream stream, ptxgen_status own_status);
/* On a GPU: do launches only enqueue?  Otherwise the host reads the condition of a loop.  size NULL: unknown. */
bool dist_enqueues(const struct ptxgen_dist *d, const int64_t *size, ptxgen_stream stream);
/* By which way the launches that were prepared last exchange bytes, in a word for users. */
const char *dist_transport_name(const struct ptxgen_dist *d);
/* Has this rank's GPU waited too long for another one? */
bool dist_late(const struct ptxgen_dist *d);
/* Bytes of the states of a part, of all its segments. */
int64_t dist_state_bytes(const struct dist_split *sp, const int64_t *size);
/* Begin and number of elements of an even share. */
void dist_share(bool pieces, int64_t total, int rank, int size, int64_t *first, int64_t *count);
/* The same where blocks are dealt out; first: of the rank's first block. */
void dist_deal(int64_t block, int64_t total, int rank, int size, int64_t *first, int64_t *count);

#endif
