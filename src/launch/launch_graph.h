/* SPDX-License-Identifier: Apache-2.0 */
/* launch_graph.h - stages in CUDA graphs.
 *
 *     graph.c      graphs that grow by captures and conditional nodes
 *     branches.c   stages side by side
 *     loop.c       a loop that ends on a condition, as nodes
 *     kept_graphs.c graphs that launches start again
 */
#ifndef PTXGEN_LAUNCH_GRAPH_H
#define PTXGEN_LAUNCH_GRAPH_H

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
    struct ptxgen_loaded *l;
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
/* The kernels that decide. */
bool loop_load(struct ptxgen_loaded *l, struct fault *f);

#endif
