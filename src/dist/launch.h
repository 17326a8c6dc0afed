/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - what the files of a launch share: the table of what computes, the memory of a launch, its walk. */
#ifndef PTXGEN_DIST_LAUNCH_H
#define PTXGEN_DIST_LAUNCH_H

#include "dist.h"
#include "launch/exchange.h"

/* Consecutive rows of an array, for each element of the dimensions before the split one. */
struct strip {
    int64_t to, from, count;
};

/* Ghosts of an input that the rank `shift` before this one has, and the rows that this rank sends on. */
struct ghosts {
    bool any; /* of any rank */
    int nout, nin;
    struct strip *out, *in; /* out: from rows of this rank; in: to ghosts.  shift 0: `in` is from the rank's own rows */
    int64_t out_rows, in_rows; /* that travel */
    char *send, *get;          /* where they are side by side; NULL: they are already, in the array */
};

/* Where a part is computed in the caller's arrays, its outermost rows are computed again, in memory with ghosts. */
struct side {
    int64_t first, count;  /* rows whose results are wanted, of the part */
    int64_t begin, extent; /* those in memory, likewise */
    char *array[PROBLEM_ARGS_MAX];
};

/* On a GPU, a stream for exchanges beside the part's kernel, and what orders it with the launch's. */
struct beside {
    ptxgen_stream stream;
    ptxgen_event order[2];
};

/* What ranks know of each other's parts at some sizes, and memory for launches with them.  On the host it lives for one
 * launch.  On a GPU it is prepared for a stream, and lives as long as what was loaded, because graphs may use it. */
struct dist_room {
    struct dist_room *next;
    struct ptxgen_dist *d;
    ptxgen_stream stream;
    int64_t number;                 /* from 1, in the order in which they were prepared */
    bool superseded;                /* another one was prepared with some part alike: see dist_prepare() */
    int64_t size[PROBLEM_ARGS_MAX]; /* of the rank's part */
    int64_t *first;                 /* where the parts of the ranks begin, and the last one ends, as if consecutive */
    int64_t total, piece;
    int64_t states;  /* of all ranks */
    int64_t state;   /* bytes of the state of a piece: of all its segments */
    size_t block;    /* bytes that a rank sends */
    char *own, *all; /* what is sent, and got */
    char *ordered;   /* the states of all ranks, as they are folded; may be `all` */
    char *carry;     /* a state; with CARRIES one for each block that a rank has at most */
    char *prefix;    /* with CARRIES: of each state, in the order of the elements, the fold up to it */
    void *table;     /* on a GPU: a struct exchange_table, for folds that exchange the states; NULL: none do */
    bool tabled;     /* it has been written: the states travel so */
    /* Where neighbours are on other ranks: arrays with ghosts, inputs and then outputs; NULL: without the dimension. */
    char *array[PROBLEM_ARGS_MAX];
    char *edge[PROBLEM_ARGS_MAX]; /* per input: a row of what is beyond the whole, where that is constant */
    int64_t begin, extent;        /* position of the first ghost or element; their number */
    struct ghosts *ghosts;        /* per input: of each shift, then of `edge` */
    bool direct, all_direct; /* time steps need only `side`: a single one, on this rank; any number, on all ranks */
    struct side side[2];
    /* May JOINED compute a single step?  Until ranks have agreed, whether this one would; then `halo` is as of dist_run. */
    bool joined;
    const char *taken[2]; /* cases that a GPU takes of INNER and JOINED; NULL: not known */
    uint64_t halo[3];
    int64_t depth;                 /* time steps for which ghosts are enough */
    bool clipped;                  /* there are no ghosts beyond the whole */
    struct dist_room *deep;        /* for `depth` > 1; NULL: each step has an exchange */
    char *spare[PROBLEM_ARGS_MAX]; /* per output that is fed back: what one exchange leaves to the next */
    struct beside beside[2]; /* of launches on `stream`, and of those inside of a loop: one stream joins one capture */
    struct program_room *program; /* in place of all from `piece` on, where there are stages */
    /* On GPUs that write into each other's memory.  Stages of a program have those of the program. */
    struct dist_peers *peers;
};

/* How bytes travel past NCCL.  A walk that prepares finds how many messages of how many bytes an exchange has. */
struct dist_peers {
    int64_t messages, most;
    struct exchange *exchange; /* NULL: through NCCL */
};

/* Of a program: memory for arrays between stages, and a room for each stage. */
struct program_room {
    struct stages_layout layout;
    char *memory, *between; /* between: aligned, in `memory` */
    struct dist_room *of[STAGES_MAX];
    struct rank_loop *loop; /* NULL: the host reads the condition */
};

struct launch {
    struct ptxgen_session *s;
    struct ptxgen_dist *d;
    const struct run_args *args;
    struct dist_room *room;
    ptxgen_stream stream;
    const struct dist_visitor *visitor; /* of the stages of a program; or NULL */
    char *array[PROBLEM_ARGS_MAX];      /* those of the room; a time step may swap them */
    bool direct;                        /* in the caller's arrays and the room's sides */
    bool beside;                        /* what is enqueued goes to the room's `beside` */
    bool inside;                        /* of a loop that is a graph */
    bool ends;                          /* the last time step: the caller gets the outputs */
    bool prepares;                      /* walks only to load what a launch needs; exchanges are real */
    bool silent;                        /* they are not */
    bool arrives;                       /* the states are still to be exchanged: by the next fold */
    bool over;                          /* an exchange has failed, or told all ranks that one has: none goes on */
    ptxgen_status failed;               /* of this rank, which goes on exchanging and tells it last */
};

/* What failed first is what is told. */
static inline void did(struct launch *l, ptxgen_status status)
{
    if (l->failed == PTXGEN_OK)
        l->failed = status;
}

/* A copy of `rows` times `width` bytes. */
struct dist_copy {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width;
    int64_t rows;
};

/* What computes a rank's stages, and where its arrays lie.  On the host, functions return when all is done; on a GPU,
 * those with a launch enqueue. */
struct dist_machine {
    bool tells;    /* ranks exchange whether they failed along with states: a block begins with HEAD bytes for that */
    bool prepared; /* a launch needs a room that was prepared */
    ptxgen_status (*run)(struct launch *l, enum dist_stage stage, const struct run_args *args);
    ptxgen_status (*alloc)(struct ptxgen_session *s, struct ptxgen_dist *d, size_t bytes, void **out); /* zeros */
    void (*free)(struct ptxgen_dist *d, void *memory);
    ptxgen_status (*write)(struct ptxgen_session *s, struct ptxgen_dist *d, void *to, const void *host, size_t bytes);
    ptxgen_status (*read)(struct launch *l, void *host, const void *from, size_t bytes); /* waits */
    ptxgen_status (*wait)(struct launch *l);                                             /* NULL: nothing is enqueued */
    ptxgen_status (*copy)(struct launch *l, const struct dist_copy *c);
    ptxgen_status (*gather)(struct launch *l); /* room->own of all ranks, to room->all */
    /* What the rank sends to itself comes last, and is a copy. */
    ptxgen_status (*swap)(struct launch *l, const struct exchange_message *m, int n);
    /* NULL: there is one stream.  Else what follows fork() goes beside the launch's stream as long as l->beside is set, and
     * what follows join() begins after it. */
    ptxgen_status (*fork)(struct launch *l);
    ptxgen_status (*join)(struct launch *l);
    /* Before a kernel that waits for rows of other ranks, and when it is over, as the host sees it.  NULL: nothing. */
    ptxgen_status (*take_turn)(struct launch *l, bool over);
    /* After the walk that prepares, on all ranks.  NULL: nothing. */
    ptxgen_status (*open)(struct launch *l);
    void (*close)(struct dist_room *m); /* what fork() and open() made */
};
enum { HEAD = 16 };
extern const struct dist_machine dist_machine_host, dist_machine_gpu;

static inline const struct dist_machine *machine_of(const struct ptxgen_dist *d) { return d->comm->transport->machine; }

/* Do states lie in the order of the scan, where that is from the last element to the first? */
static inline bool dist_turned(const struct dist_split *sp)
{
    return sp->problem->reverse && !sp->stage[STAGE_CARRIES].problem;
}

static inline bool has_halo(const struct dist_split *sp) { return sp->before + sp->after > 0; }

/* Elements of the split dimension that rank r has. */
static inline int64_t part_of(const struct dist_room *m, int r) { return m->first[r + 1] - m->first[r]; }

/* What a run of a stage gets: the user's arguments of the rank, or of the whole for what folds. */
struct dist_run {
    const struct run_args *args;
    int64_t first, count;         /* elements of the split dimension: where the stage begins in the whole, how many */
    int64_t behind;               /* elements of the rank's part before it; blocks, where count is of blocks */
    int64_t stride;               /* of rows: elements from a block to the next one of this rank */
    int64_t own_first, own_count; /* with ghosts: the elements that count */
    int64_t states;               /* of folds: how many */
    const void *exchange;         /* of folds that exchange the states first: the room's table; NULL: they have come */
    int64_t steps;                /* of STEPS */
    uint64_t halo[3];             /* of JOINED: where struct halo_head is, here, before and after */
    const void *states_in;
    void *states_out;
};
ptxgen_status dist_run_stage(struct launch *l, enum dist_stage stage, const struct dist_run *run);

/* Walks through a problem or a program; what a stage of a program does where l->failed says that this rank has failed is
 * to exchange. */
ptxgen_status dist_walk(struct launch *l);
enum { PREPARED_STEPS = 3 }; /* by then, each array has been in each place */
/* The room for these sizes on this stream; NULL: not prepared. */
struct dist_room *room_of(const struct ptxgen_dist *d, const int64_t *size, ptxgen_stream stream);
/* Tells all ranks what happened here; none gets PTXGEN_OK unless all have it. */
ptxgen_status dist_told(struct launch *l, ptxgen_status here);

/* peers.c: exchanges past NCCL, on all ranks alike.  A walk that prepares notes each exchange; then the ranks decide. */
void peers_note(struct launch *l, const struct exchange_message *m, int n);
/* Does the caller let kernels of this room take rows of other ranks (ptxgen_nccl_options.ends_apart)? */
bool peers_may_join(const struct dist_room *m);
ptxgen_status peers_open(struct launch *l);
/* Is it so on all ranks? */
ptxgen_status all_say(struct launch *l, bool so, bool *all_so);
void peers_drop(struct dist_room *m);
/* Is some room of the launch JOINED? */
bool peers_join(struct dist_room *m);
/* The messages of a gather: message `shift` goes to the rank that many after this one.  The caller frees them. */
struct exchange_message *gather_messages(const struct ptxgen_comm *comm, const char *own, char *all, size_t bytes);
/* Bytes of the words that JOINED of this room gets. */
int64_t halo_bytes(const struct dist_room *m);
/* Where room->peers->exchange is there. */
ptxgen_status peers_send(struct launch *l, const struct exchange_message *m, int n, ptxgen_stream stream);

/* program.c: the same for programs.  m->first is there. */
ptxgen_status program_make(struct ptxgen_session *s, struct dist_room *m);
void program_free(struct dist_room *m);
ptxgen_status program_walk(struct launch *l);
/* What a walk through a stage of the program begins with. */
struct launch program_stage(const struct launch *l, int stage, const struct run_args *args);
/* The memory between stages, with PROGRAM_ALIGNMENT bytes more than are needed. */
enum { PROGRAM_ALIGNMENT = 256 };
void program_place(struct program_room *of, void *memory);

/* loop.c: loops of programs as graphs, on GPUs that write into each other's memory.  note: as peers_note(). */
void loop_note(struct launch *l);
ptxgen_status loop_open(struct launch *l);
void loop_close(struct dist_room *m);
ptxgen_status loop_launch(struct launch *l);

/* room.c: from the hellos of all ranks at comm->hello.  What was made goes with room_free(), also after a failure. */
ptxgen_status room_make(struct ptxgen_session *s, struct ptxgen_dist *d, const int64_t *size, struct dist_room **out);
void room_free(struct dist_room *m);
/* Pieces of rank r's part: the multiples of m->piece cut it. */
int64_t room_pieces(const struct dist_room *m, int r);

/* halo.c: memory with ghosts, and which ghosts there are. */
ptxgen_status halo_make(struct ptxgen_session *s, struct dist_room *m);
void halo_free(struct dist_room *m);
/* The inputs with their ghosts. */
ptxgen_status halo_begin(struct launch *l);
/* The outputs become the inputs of the next time step, as the problem's feedback says. */
ptxgen_status halo_feed(struct launch *l);
/* Is the part of rank r direct, with ghosts for `depth` steps? */
bool halo_is_direct(const struct dist_room *m, int r, int64_t depth);
/* Time steps after one exchange, from l->args to l->args, where the room is direct: up to its depth. */
ptxgen_status halo_direct(struct launch *l, int64_t steps);

/* steps.c: a room for several time steps per exchange, where that pays. */
ptxgen_status steps_make(struct ptxgen_session *s, struct dist_room *m);
void steps_free(struct dist_room *m);
/* Time steps where the room is direct. */
ptxgen_status steps_direct(struct launch *l, int64_t count);
/* As dist_run_stage(), with neighbours: run->first, count, behind are of the elements whose results are wanted. */
ptxgen_status halo_run(struct launch *l, enum dist_stage stage, const struct dist_run *run);

/* ghosts.c */
struct rows {
    bool split; /* has the dimension */
    int64_t outer, inner;
};
/* An array as rows of `inner` bytes, one for each element of the split dimension, `outer` times. */
struct rows rows_of(const struct dist_room *m, const struct prog_array *a);
/* What a rank needs beside [from, to). */
void halo_reach(const struct dist_room *m, int64_t from, int64_t to, int64_t *begin, int64_t *end);
/* The ghosts of input i, at m->ghosts; with the memory in which they travel. */
ptxgen_status ghosts_make(struct ptxgen_session *s, struct dist_room *m, int i);
void ghosts_free(struct dist_room *m, int i);
/* `count` rows of one array to another. */
ptxgen_status copy_rows(struct launch *l, const struct rows *r, char *to, int64_t to_extent, const char *from,
                        int64_t from_extent, const struct strip *strip);
/* Those of these inputs, in one exchange, which copies `own` too: from this rank to itself. */
ptxgen_status ghosts_fill(struct launch *l, const int *input, int n, const struct exchange_message *own, int nown);

#endif
