/* Nodes of a graph and the edges between them: asked, made, cut. */
#include <stdlib.h>
#include <string.h>

#include "graphs/graph.h"

/* The driver's way to give a list: *n is room in and length out; without an array, only the
 * length. */
static void give(CUgraphNode *out, size_t *n, size_t *count, struct fg_node *node)
{
    if (out && *count < *n)
        out[*count] = (CUgraphNode)node;
    ++*count;
}
static CUresult given(CUgraphNode *out, size_t *n, size_t count)
{
    for (size_t i = count; out && i < *n; i++)
        out[i] = NULL;
    if (!out || count < *n)
        *n = count;
    return CUDA_SUCCESS;
}

static CUresult list(CUgraph handle, CUgraphNode *out, size_t *n, bool roots)
{
    struct fg_graph *graph = fg_graph_of(handle);
    size_t count = 0;
    if (!graph || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->n; i++)
        if (!roots || !graph->node[i]->n_before)
            give(out, n, &count, graph->node[i]);
    return given(out, n, count);
}
CUresult FG(cuGraphGetNodes)(CUgraph graph, CUgraphNode *out, size_t *n)
{
    return list(graph, out, n, false);
}
CUresult FG(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode *out, size_t *n)
{
    return list(graph, out, n, true);
}

CUresult FG(cuGraphGetEdges_v2)(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *data, size_t *n)
{
    struct fg_graph *graph = fg_graph_of(handle);
    size_t count = 0, copy = 0;
    if (!graph || !n || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    if (data && from)
        memset(data, 0, *n * sizeof *data);
    for (size_t i = 0; i < graph->n; i++)
        for (size_t k = 0; k < graph->node[i]->n_before; k++) {
            give(from, n, &count, graph->node[i]->before[k]);
            give(to, n, &copy, graph->node[i]);
        }
    return given(from, n, count);
}
CUresult FG(cuGraphGetEdges)(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return FG(cuGraphGetEdges_v2)(graph, from, to, NULL, n);
}

CUresult FG(cuGraphNodeGetDependencies_v2)(CUgraphNode handle, CUgraphNode *out,
                                           CUgraphEdgeData *data, size_t *n)
{
    struct fg_node *node = fg_node_of(handle);
    size_t count = 0;
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (data && out)
        memset(data, 0, *n * sizeof *data);
    for (size_t i = 0; i < node->n_before; i++)
        give(out, n, &count, node->before[i]);
    return given(out, n, count);
}
CUresult FG(cuGraphNodeGetDependencies)(CUgraphNode node, CUgraphNode *out, size_t *n)
{
    return FG(cuGraphNodeGetDependencies_v2)(node, out, NULL, n);
}

CUresult FG(cuGraphNodeGetDependentNodes_v2)(CUgraphNode handle, CUgraphNode *out,
                                             CUgraphEdgeData *data, size_t *n)
{
    struct fg_node *node = fg_node_of(handle);
    size_t count = 0;
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (data && out)
        memset(data, 0, *n * sizeof *data);
    for (size_t i = 0; i < node->graph->n; i++)
        for (size_t k = 0; k < node->graph->node[i]->n_before; k++)
            if (node->graph->node[i]->before[k] == node)
                give(out, n, &count, node->graph->node[i]);
    return given(out, n, count);
}
CUresult FG(cuGraphNodeGetDependentNodes)(CUgraphNode node, CUgraphNode *out, size_t *n)
{
    return FG(cuGraphNodeGetDependentNodes_v2)(node, out, NULL, n);
}

static bool cut(struct fg_node *node, const struct fg_node *needed)
{
    for (size_t i = 0; i < node->n_before; i++)
        if (node->before[i] == needed) {
            node->before[i] = node->before[--node->n_before];
            return true;
        }
    return false;
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             size_t n, bool add)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (!graph || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        struct fg_node *first = fg_node_of(from[i]), *second = fg_node_of(to[i]);
        if (!first || !second || first->graph != graph || second->graph != graph || first == second)
            return CUDA_ERROR_INVALID_VALUE;
        if (!add) {
            if (!cut(second, first))
                return CUDA_ERROR_INVALID_VALUE;
            continue;
        }
        second->before = realloc(second->before, (second->n_before + 1) * sizeof(struct fg_node *));
        second->before[second->n_before++] = first;
    }
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphAddDependencies_v2)(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
    (void)data;
    return change_edges(graph, from, to, n, true);
}
CUresult FG(cuGraphAddDependencies)(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t n)
{
    return change_edges(graph, from, to, n, true);
}
CUresult FG(cuGraphRemoveDependencies_v2)(CUgraph graph, const CUgraphNode *from,
                                          const CUgraphNode *to, const CUgraphEdgeData *data,
                                          size_t n)
{
    (void)data;
    return change_edges(graph, from, to, n, false);
}
CUresult FG(cuGraphRemoveDependencies)(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, size_t n)
{
    return change_edges(graph, from, to, n, false);
}

CUresult FG(cuGraphDestroyNode)(CUgraphNode handle)
{
    struct fg_node *node = fg_node_of(handle);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_graph *graph = node->graph;
    size_t at = fg_graph_place(graph, node);
    memmove(&graph->node[at], &graph->node[at + 1], (graph->n - at - 1) * sizeof(struct fg_node *));
    graph->n--;
    for (size_t i = 0; i < graph->n; i++)
        while (cut(graph->node[i], node))
            continue;
    fg_node_end(node);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}
