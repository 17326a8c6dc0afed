/* SPDX-License-Identifier: Apache-2.0 */
/* launch_graph.h - nodes of a CUDA graph, as stages are captured into it. */
#ifndef PTXGEN_LAUNCH_GRAPH_H
#define PTXGEN_LAUNCH_GRAPH_H

#include "launch_impl.h"
#include "program/stages.h"

/* A set of nodes: what the next one follows. */
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

/* Stages side by side in a capture (branches.c): a stage follows those whose memory it touches.  NULL: out of memory. */
struct branches *branches_new(const struct driver *cu, cu_stream stream, struct fault *f);
bool branches_before(struct branches *b, int stage, const struct program *p, const struct run_args *args,
                     struct fault *f);
bool branches_after(struct branches *b, int stage, struct fault *f);
/* What comes next in the stream follows all of them. */
bool branches_join(struct branches *b, struct fault *f);
void branches_free(struct branches *b);

#endif
