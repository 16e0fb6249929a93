/* Changes of an executable graph: nodes on and off, and another graph of the same shape. */
#include <stdlib.h>

#include "graph_exec/exec.h"
#include "graphs/graph_memory.h"

CUresult FG(cuGraphNodeSetEnabled)(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    struct fg_item *item = fg_exec_item(fg_exec_of(exec), node);
    if (!item || (item->work.type != CU_GRAPH_NODE_TYPE_KERNEL &&
                  item->work.type != CU_GRAPH_NODE_TYPE_MEMSET &&
                  item->work.type != CU_GRAPH_NODE_TYPE_MEMCPY))
        return CUDA_ERROR_INVALID_VALUE;
    item->disabled = !enabled;
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphNodeGetEnabled)(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    struct fg_item *item = fg_exec_item(fg_exec_of(exec), node);
    if (!item || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !item->disabled;
    return CUDA_SUCCESS;
}

/* The graph must have the nodes that the executable one was made of, in the same shape. */
CUresult FG(cuGraphExecUpdate_v2)(CUgraphExec handle, CUgraph hgraph,
                                  CUgraphExecUpdateResultInfo *info)
{
    struct fg_exec *exec = fg_exec_of(handle);
    struct fg_graph *graph = fg_graph_of(hgraph);
    if (!exec || !graph || !info)
        return CUDA_ERROR_INVALID_VALUE;
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    pthread_mutex_lock(&fg_mutex);
    struct fg_item *items = NULL;
    size_t n = 0;
    CUgraphNode wrong = NULL;
    if (fg_graph_flatten(graph, &items, &n, &wrong)) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    } else if (n != exec->n) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < n && !info->result; i++) {
        if (items[i].work.type != exec->item[i].work.type)
            info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        else if (items[i].n_before != exec->item[i].n_before)
            info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (info->result)
            wrong = (CUgraphNode)items[i].origin;
    }
    for (size_t i = 0; i < n && !info->result; i++) {
        fg_graph_memory_uses(&items[i].work, 1);
        fg_graph_memory_uses(&exec->item[i].work, -1);
        exec->item[i].work = items[i].work;
    }
    info->errorNode = wrong;
    free(items);
    pthread_mutex_unlock(&fg_mutex);
    return info->result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}
CUresult FG(cuGraphExecUpdate)(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong,
                               CUgraphExecUpdateResult *out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = FG(cuGraphExecUpdate_v2)(exec, graph, &info);
    if (wrong)
        *wrong = result == CUDA_ERROR_INVALID_VALUE ? NULL : info.errorNode;
    if (out)
        *out = result == CUDA_ERROR_INVALID_VALUE ? CU_GRAPH_EXEC_UPDATE_ERROR : info.result;
    return result;
}
