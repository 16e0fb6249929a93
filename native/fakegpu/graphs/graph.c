/* Graphs and how their nodes depend on each other. */
#include "graphs/graph.h"

#include <stdlib.h>
#include <string.h>

#include "graphs/graph_memory.h"
#include "graphs/user_object.h"

static struct fg_handles graphs = FG_HANDLES(struct fg_graph, 4);
static struct fg_handles nodes = FG_HANDLES(struct fg_node, 5);
static unsigned next_graph;

struct fg_graph *fg_graph_of(CUgraph handle)
{
    return fg_handle_is(&graphs, handle) ? (struct fg_graph *)handle : NULL;
}
struct fg_node *fg_node_of(CUgraphNode handle)
{
    return fg_handle_is(&nodes, handle) ? (struct fg_node *)handle : NULL;
}

struct fg_graph *fg_graph_new(void)
{
    struct fg_graph *graph = fg_handle_take(&graphs);
    if (graph)
        graph->id = __atomic_add_fetch(&next_graph, 1, __ATOMIC_RELAXED);
    return graph;
}

void fg_node_end(struct fg_node *node)
{
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH && node->work.child)
        fg_graph_end(node->work.child);
    fg_graph_memory_uses(&node->work, -1);
    free(node->before);
    fg_handle_give(&nodes, node);
}

/* ---- structure ------------------------------------------------------------------------------- */

void fg_graph_end(struct fg_graph *graph)
{
    for (size_t i = 0; i < graph->n; i++)
        fg_node_end(graph->node[i]);
    for (size_t i = 0; i < graph->n_held; i++)
        if (graph->held[i].count)
            fg_user_object_release(graph->held[i].object, graph->held[i].count);
    free(graph->held);
    free(graph->node);
    fg_handle_give(&graphs, graph);
}

CUresult fg_graph_add(struct fg_graph *graph, struct fg_node *const *before, size_t n,
                      const struct fg_work *work, struct fg_node **out)
{
    CUresult result = fg_work_check(work);
    if (result)
        return result;
    for (size_t i = 0; i < n; i++) {
        if (!before || !fg_node_of((CUgraphNode)before[i]) || before[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < i; k++)
            if (before[k] == before[i])
                return CUDA_ERROR_INVALID_VALUE;
    }
    struct fg_node *node = fg_handle_take(&nodes);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (graph->n == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->node = realloc(graph->node, graph->room * sizeof(struct fg_node *));
    }
    node->graph = graph;
    node->id = graph->next_node++;
    node->work = *work;
    node->before = calloc(n + 1, sizeof(struct fg_node *));
    if (n)
        memcpy(node->before, before, n * sizeof(struct fg_node *));
    node->n_before = n;
    graph->node[graph->n++] = node;
    fg_graph_memory_uses(work, 1);
    if (out)
        *out = node;
    return CUDA_SUCCESS;
}

struct fg_graph *fg_graph_clone(const struct fg_graph *graph, bool inside)
{
    struct fg_graph *clone = fg_graph_new();
    if (!clone)
        return NULL;
    clone->inside = inside;
    for (size_t i = 0; i < graph->n; i++) {
        struct fg_work work = graph->node[i]->work;
        if (work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            work.child = fg_graph_clone(work.child, true);
        struct fg_node *node;
        if (fg_graph_add(clone, NULL, 0, &work, &node)) {
            fg_graph_end(clone);
            return NULL;
        }
        node->original = graph->node[i];
        node->id = graph->node[i]->id;
    }
    for (size_t i = 0; i < graph->n; i++) { /* edges may lead to nodes made later */
        const struct fg_node *from = graph->node[i];
        struct fg_node *to = clone->node[i];
        to->before = realloc(to->before, (from->n_before + 1) * sizeof(struct fg_node *));
        to->n_before = from->n_before;
        for (size_t k = 0; k < from->n_before; k++)
            for (size_t m = 0; m < graph->n; m++)
                if (graph->node[m] == from->before[k])
                    to->before[k] = clone->node[m];
    }
    return clone;
}

size_t fg_graph_place(const struct fg_graph *graph, const struct fg_node *node)
{
    size_t at = 0;
    while (at < graph->n && graph->node[at] != node)
        at++;
    return at;
}

bool fg_graph_order(const struct fg_graph *graph, struct fg_node **sorted)
{
    size_t n = 0, before = 1;
    bool *done = calloc(graph->n + 1, 1);
    while (n < graph->n && before != n) {
        before = n;
        for (size_t i = 0; i < graph->n; i++) {
            bool ready = !done[i];
            /* Nodes are mostly made after those that they depend on: one pass is enough for
             * them. */
            for (size_t k = 0; k < graph->node[i]->n_before && ready; k++) {
                const struct fg_node *needed = graph->node[i]->before[k];
                size_t at = needed->id < graph->n && graph->node[needed->id] == needed
                                ? needed->id
                                : fg_graph_place(graph, needed);
                ready = done[at];
            }
            if (ready) {
                done[i] = true;
                sorted[n++] = graph->node[i];
            }
        }
    }
    free(done);
    return n == graph->n;
}

/* ---- the driver's functions ------------------------------------------------------------------ */

CUresult FG(cuGraphCreate)(CUgraph *out, unsigned int flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)fg_graph_new();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FG(cuGraphDestroy)(CUgraph handle)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (!graph || graph->inside)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    fg_graph_end(graph);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphClone)(CUgraph *out, CUgraph handle)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (!out || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    *out = (CUgraph)fg_graph_clone(graph, false);
    pthread_mutex_unlock(&fg_mutex);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FG(cuGraphNodeFindInClone)(CUgraphNode *out, CUgraphNode handle, CUgraph hclone)
{
    struct fg_graph *clone = fg_graph_of(hclone);
    struct fg_node *node = fg_node_of(handle);
    if (!out || !clone || !node)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < clone->n; i++)
        if (clone->node[i]->original == node) {
            *out = (CUgraphNode)clone->node[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuGraphNodeGetType)(CUgraphNode handle, CUgraphNodeType *type)
{
    struct fg_node *node = fg_node_of(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work.type;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphNodeGetContainingGraph)(CUgraphNode handle, CUgraph *graph)
{
    struct fg_node *node = fg_node_of(handle);
    if (!node || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = (CUgraph)node->graph;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphNodeGetLocalId)(CUgraphNode handle, unsigned int *id)
{
    struct fg_node *node = fg_node_of(handle);
    if (!node || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = node->id;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphGetId)(CUgraph handle, unsigned int *id)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (!graph || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = graph->id;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphRetainUserObject)(CUgraph hgraph, CUuserObject handle, unsigned int count,
                                     unsigned int flags)
{
    struct fg_graph *graph = fg_graph_of(hgraph);
    if (!graph || !fg_user_object_of(handle) || !count || flags > CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    void *more = realloc(graph->held, (graph->n_held + 1) * sizeof *graph->held);
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fg_user_object *object = (struct fg_user_object *)handle;
    graph->held = more;
    graph->held[graph->n_held].object = object;
    graph->held[graph->n_held++].count = count;
    if (!flags)
        object->count += count;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphReleaseUserObject)(CUgraph hgraph, CUuserObject handle, unsigned int count)
{
    struct fg_graph *graph = fg_graph_of(hgraph);
    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->n_held; i++)
        if (graph->held[i].object == (struct fg_user_object *)handle &&
            graph->held[i].count >= count) {
            graph->held[i].count -= count;
            fg_user_object_release((struct fg_user_object *)handle, count);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
