/* SPDX-License-Identifier: Apache-2.0 */
/* launch_graph.h - stages in CUDA graphs.
 *
 *     graph.c      graphs that grow by captures and conditional nodes
 *     branches.c   stages side by side
 *     loop.c       a loop that ends on a condition, as nodes
 *     loop_ranks.c the same on several ranks
 *     kept_graphs.c graphs that launches start again
 */
#ifndef PTXGEN_LAUNCH_GRAPH_H
#define PTXGEN_LAUNCH_GRAPH_H

#include "launch_dist.h"
#include "launch_stages.h"

/* A set of nodes; the next node follows all of them. */
enum { GRAPH_NODES_MAX = 2 * STAGES_MAX };
struct graph_nodes {
    size_t count;
    cu_graph_node node[GRAPH_NODES_MAX];
};

/* A graph that grows at its end.  What is captured comes through `stream`, between graph_open() and graph_close(). */
struct growing {
    const struct driver *cu;
    cu_graph graph;
    cu_stream stream;
    bool callers; /* the caller captures the stream: neither begun nor ended here */
    struct graph_nodes last;
};
/* The graph that the caller of the launch captures. */
bool graph_of_capture(struct growing *g, const struct driver *cu, cu_stream stream, struct fault *f);
bool graph_open(struct growing *g, struct fault *f);
/* ok: what was captured is complete; then f is free for a fault of the closing. */
bool graph_close(struct growing *g, bool ok, struct fault *f);
/* A node that runs *body where `condition` is not 0 (CU_CONDITION_IF), or as long as it is not. */
bool graph_add_condition(struct growing *g, int kind, cu_condition condition, cu_context context, cu_graph *body,
                         struct fault *f);

/* With these flags, or without where the driver does not know them. */
bool graph_instantiate(const struct driver *cu, cu_graph graph, unsigned long long flags, cu_graph_exec *out,
                       struct fault *f);

/* In a capture: what the stream's next node follows. */
bool graph_get_last(const struct driver *cu, cu_stream stream, struct graph_nodes *out, struct fault *f);
bool graph_set_last(const struct driver *cu, cu_stream stream, struct graph_nodes *nodes, struct fault *f);

/* In a capture, the work of a stage follows the work whose memory it touches (branches.c).  Workers are the stages and
 * one more.  NULL: out of memory. */
enum { BRANCH_DECIDE = STAGES_MAX, BRANCHES_MAX };
struct touched {
    const void *at;
    int64_t bytes;
    bool written;
};
struct branches *branches_new(const struct driver *cu, cu_stream stream, struct fault *f);
bool branches_before(struct branches *b, int worker, const struct touched *memory, int count, struct fault *f);
bool branches_before_stage(struct branches *b, int stage, const struct program *p, const struct run_args *args,
                           struct fault *f);
bool branches_after(struct branches *b, int worker, struct fault *f);
/* The next node of the stream follows all of these. */
bool branches_join(struct branches *b, struct fault *f);
void branches_free(struct branches *b);

/* Launches whose nodes become part of a graph. */
struct staging {
    struct ptxgen_session *s; /* told of faults; NULL: nobody is */
    struct ptxgen_gpu *gpu;
    struct ptxgen_loaded *l;       /* NULL: of several ranks */
    const struct loop_code *code;  /* of a loop that ends on a condition */
    const struct loop_rank *ranks; /* launches this rank's stages; NULL: there is one GPU */
    const struct loop_place *place;
    cu_function agree;
    int told; /* conditions since the ranks told each other */
    const struct run_args *args;
    const struct stages_layout *layout;
    char *memory;            /* of layout and loop */
    cu_stream inner, stream; /* inner: of what conditional nodes hold; stream: of the launches now */
    struct branches *branches;
    bool prepares;
    ptxgen_status status; /* of a call that has told its fault */
    struct fault *f;
};
/* Doers of stages: `user` is a struct staging. */
bool staging_run(void *user, int stage, const struct run_args *given);
bool staging_copy(void *user, void *to, const void *from, int64_t bytes);

/* The nodes of a loop, at the end of g.  Its steps have been prepared on the inner stream. */
bool loop_fill(struct staging *m, const struct loop_place *place, struct growing *g);
bool loop_prepare(struct staging *m, const struct loop_place *place);
/* The first steps alone, on m->stream: up to the first decision. */
bool loop_first_steps(struct staging *m, const struct loop_place *place);
/* The kernels that decide; one call at a time. */
bool loop_load(const struct ptxgen_gpu *gpu, struct loop_code *c, struct fault *f);
extern const char *const loop_code, *const loop_agree_code;
/* What the device counts: as the kernels of loop.c say. */
enum { LOOP_STATE_BYTES = 16 };
void *loop_flag(const struct staging *m, const struct loop_place *place);
/* A launch of one thread. */
bool loop_single(const struct staging *m, cu_function f, void **params);
/* Of several ranks (loop_ranks.c): a stage; and a decision, as rank 0 says, about the conditions since the last one. */
bool loop_run_rank(struct staging *m, int stage, const struct run_args *given);
bool loop_agree(struct staging *m, const struct loop_place *place, bool is_first, cu_condition again);

/* Graphs that a stream of the caller's keeps, by the arguments of launches (kept_graphs.c). */
struct kept_graph {
    struct kept_graph *next; /* used longer ago */
    cu_graph_exec exec;      /* NULL: not made yet */
    int walks;
    bool refused;
    int64_t key[];
};
struct kept {
    cu_stream inner;
    struct kept_graph *first;
};
/* What is known of these arguments, now the first of the list; NULL: out of memory.  Where there are as many as there may be,
 * the one that was used least is given up, when the stream has done its work. */
struct kept_graph *kept_find(struct kept *of, const struct driver *cu, const struct program *shape,
                             const struct run_args *args, cu_stream stream);
/* All of them. */
void kept_forget(struct kept *of, const struct driver *cu);
/* The graph of a launch: of the loop at `place`, or with NULL, of all steps. */
bool kept_make(struct staging *m, const struct loop_place *place, unsigned long long flags, cu_graph_exec *exec);

#endif
