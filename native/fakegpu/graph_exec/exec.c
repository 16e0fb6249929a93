/* Executable graphs: made of a graph, asked, and ended. */
#include "graph_exec/exec.h"

#include <stdlib.h>

#include "clock/clock.h"
#include "graphs/graph_memory.h"
#include "streams/stream.h"

static struct fg_handles handles = FG_HANDLES(struct fg_exec, 7);
static unsigned next_id;

struct fg_exec *fg_exec_of(CUgraphExec handle)
{
    return fg_handle_is(&handles, handle) ? (struct fg_exec *)handle : NULL;
}

struct fg_item *fg_exec_item(struct fg_exec *exec, CUgraphNode handle)
{
    for (size_t i = 0; exec && i < exec->n; i++)
        if ((CUgraphNode)exec->item[i].origin == handle)
            return &exec->item[i];
    return NULL;
}

CUresult fg_graph_flatten(const struct fg_graph *graph, struct fg_item **items, size_t *n,
                          CUgraphNode *wrong)
{
    struct fg_node **sorted = calloc(graph->n + 1, sizeof(struct fg_node *));
    CUresult result = fg_graph_order(graph, sorted) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->n && !result; i++) {
        struct fg_node *node = sorted[i];
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            result = fg_graph_flatten(node->work.child, items, n, wrong);
            continue;
        }
        result = fg_work_check(&node->work);
        if (result && wrong)
            *wrong = (CUgraphNode)node;
        if ((*n & (*n - 1)) == 0)
            *items = realloc(*items, (*n ? 2 * *n : 1) * sizeof **items);
        (*items)[(*n)++] =
            (struct fg_item){.origin = node, .work = node->work, .n_before = node->n_before};
    }
    free(sorted);
    return result;
}

static CUresult instantiate(CUgraphExec *out, CUgraph hgraph, uint64_t flags, CUgraphNode *wrong)
{
    struct fg_graph *graph = fg_graph_of(hgraph);
    if (wrong)
        *wrong = NULL;
    if (!out || !graph || flags & ~15ull)
        return CUDA_ERROR_INVALID_VALUE;
    fg_clock_spend(10000 + 500 * graph->n); /* instantiating is slow on the driver, too */
    pthread_mutex_lock(&fg_mutex);
    struct fg_item *items = NULL;
    size_t n = 0;
    CUresult result = fg_graph_flatten(graph, &items, &n, wrong);
    struct fg_exec *exec = result ? NULL : fg_handle_take(&handles);
    if (exec) {
        exec->id = ++next_id;
        exec->flags = flags;
        exec->item = items;
        exec->n = n;
        exec->last_stream = -1;
        for (size_t i = 0; i < n; i++)
            exec->allocates |= items[i].work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                               items[i].work.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
        for (size_t i = 0; i < n; i++)
            fg_graph_memory_uses(&items[i].work, 1);
        *out = (CUgraphExec)exec;
    } else {
        free(items);
        result = result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuGraphUpload)(CUgraphExec handle, CUstream hstream)
{
    struct fg_exec *exec = fg_exec_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    return exec ? fg_graph_memory_take(exec->item, exec->n, exec->flags, true)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuGraphInstantiateWithFlags)(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    return instantiate(out, graph, flags, NULL);
}
CUresult FG(cuGraphInstantiate_v2)(CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log,
                                   size_t size)
{
    if (log && size)
        *log = 0;
    return instantiate(out, graph, 0, wrong);
}
CUresult FG(cuGraphInstantiate)(CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log,
                                size_t size)
{
    return FG(cuGraphInstantiate_v2)(out, graph, wrong, log, size);
}
CUresult FG(cuGraphInstantiateWithParams)(CUgraphExec *out, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate(out, graph, p->flags, &p->hErrNode_out);
    p->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (!result && p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        result = FG(cuGraphUpload)(*out, p->hUploadStream);
    return result;
}

CUresult FG(cuGraphExecDestroy)(CUgraphExec handle)
{
    struct fg_exec *exec = fg_exec_of(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    for (size_t i = 0; i < exec->n; i++)
        fg_graph_memory_uses(&exec->item[i].work, -1);
    free(exec->item);
    fg_handle_give(&handles, exec);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphExecGetFlags)(CUgraphExec handle, cuuint64_t *flags)
{
    struct fg_exec *exec = fg_exec_of(handle);
    if (!exec || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphExecGetId)(CUgraphExec handle, unsigned int *id)
{
    struct fg_exec *exec = fg_exec_of(handle);
    if (!exec || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = exec->id;
    return CUDA_SUCCESS;
}
