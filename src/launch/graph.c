/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - a CUDA graph that grows at its end, by captures and by conditional nodes. */
#include <string.h>

#include "base/session.h"
#include "launch_graph.h"

static bool capture_info(const struct driver *cu, cu_stream stream, cu_graph *graph, struct graph_nodes *last,
                         struct fault *f)
{
    const cu_graph_node *node = NULL;
    int status;

    if (!CU(f, cu, GetCaptureInfo(stream, &status, NULL, graph, &node, &last->count)))
        return false;
    if (last->count > GRAPH_NODES_MAX)
        return fault_set(f, PTXGEN_UNSUPPORTED, D_CAPTURE, "the stream waits for %zu nodes of the capture at once",
                         last->count);
    memcpy(last->node, node, last->count * sizeof *node);
    return true;
}

bool graph_get_last(const struct driver *cu, cu_stream stream, struct graph_nodes *out, struct fault *f)
{
    cu_graph graph;

    return capture_info(cu, stream, &graph, out, f);
}

bool graph_set_last(const struct driver *cu, cu_stream stream, struct graph_nodes *nodes, struct fault *f)
{
    return CU(f, cu, UpdateCapture(stream, nodes->node, nodes->count, CU_CAPTURE_SET));
}

bool graph_of_capture(struct growing *g, const struct driver *cu, cu_stream stream, struct fault *f)
{
    *g = (struct growing){ .cu = cu, .stream = stream, .callers = true };
    return capture_info(cu, stream, &g->graph, &g->last, f);
}

bool graph_open(struct growing *g, struct fault *f)
{
    return g->callers ||
           CU(f, g->cu,
              BeginCaptureTo(g->stream, g->graph, g->last.node, NULL, g->last.count, CU_CAPTURE_THREAD_LOCAL));
}

bool graph_close(struct growing *g, bool ok, struct fault *f)
{
    struct fault other;
    cu_graph same;

    ok = ok && graph_get_last(g->cu, g->stream, &g->last, f);
    return (g->callers || CU(ok ? f : &other, g->cu, StreamEndCapture(g->stream, &same))) && ok;
}

bool graph_add_condition(struct growing *g, int kind, cu_condition condition, cu_context context, cu_graph *body,
                         struct fault *f)
{
    struct cu_condition_node params = {
        .type = CU_NODE_CONDITIONAL, .condition = condition, .kind = kind, .size = 1, .context = context
    };
    cu_graph_node node;

    if (!CU(f, g->cu, GraphAddNode(&node, g->graph, g->last.node, NULL, g->last.count, &params)))
        return false;
    *body = params.body[0];
    g->last.count = 1;
    g->last.node[0] = node;
    return !g->callers || graph_set_last(g->cu, g->stream, &g->last, f);
}

bool graph_instantiate(const struct driver *cu, cu_graph graph, unsigned long long flags, cu_graph_exec *out,
                       struct fault *f)
{
    return (flags && cu->GraphInstantiate(out, graph, flags) == CU_OK) || CU(f, cu, GraphInstantiate(out, graph, 0));
}
