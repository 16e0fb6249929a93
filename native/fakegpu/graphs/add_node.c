/* Adding nodes of each kind. */
#include <string.h>

#include "graphs/graph_memory.h"
#include "graphs/node_work.h"
#include "memory/ranges.h"

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *before, size_t n,
                    const struct fg_work *work)
{
    struct fg_graph *graph = fg_graph_of(handle);
    struct fg_node *node;
    if (!out || !graph || (n && !before))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_graph_add(graph, (struct fg_node *const *)before, n, work, &node);
    pthread_mutex_unlock(&fg_mutex);
    if (!result)
        *out = (CUgraphNode)node;
    return result;
}

CUresult FG(cuGraphAddKernelNode_v2)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                     size_t n, const CUDA_KERNEL_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fg_kernel_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddKernelNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                  size_t n, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fg_kernel_work_v1(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemcpyNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                  size_t n, const CUDA_MEMCPY3D *p, CUcontext context)
{
    if (!p || (context && !fg_context_of(context)))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fg_copy_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemsetNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                  size_t n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    if (!p || (context && !fg_context_of(context)))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fg_fill_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddHostNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                size_t n, const CUDA_HOST_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fg_host_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddChildGraphNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                      size_t n, CUgraph child)
{
    struct fg_work work = fg_child_work(child, false);
    CUresult result = add(out, graph, before, n, &work);
    if (result && work.child)
        fg_graph_end(work.child);
    return result;
}
CUresult FG(cuGraphAddEmptyNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                 size_t n)
{
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddEventRecordNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                       size_t n, CUevent event)
{
    struct fg_work work = fg_event_work(event, true);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddEventWaitNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                     size_t n, CUevent event)
{
    struct fg_work work = fg_event_work(event, false);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemAllocNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                    size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_graph_memory_new(p);
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *p};
    if (result)
        return result;
    result = add(out, graph, before, n, &work);
    fg_graph_memory_uses(&work, 0); /* none where it was refused */
    return result;
}
CUresult FG(cuGraphAddMemFreeNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                   size_t n, CUdeviceptr address)
{
    if (!fg_range_at(address))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
    return add(out, graph, before, n, &work);
}

static CUresult add_general(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                            CUgraphNodeParams *p)
{
    struct fg_work work;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_general_work(p, &work);
    if (!result && p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        result = fg_graph_memory_new(&work.alloc);
        p->alloc.dptr = work.alloc.dptr;
    }
    if (result)
        return result;
    result = add(out, graph, before, n, &work);
    fg_graph_memory_uses(&work, 0);
    return result;
}
CUresult FG(cuGraphAddNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                            CUgraphNodeParams *p)
{
    return add_general(out, graph, before, n, p);
}
CUresult FG(cuGraphAddNode_v2)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                               const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *p)
{
    (void)data;
    return add_general(out, graph, before, n, p);
}
CUresult FG(cuGraphAddNode_v3)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                               const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *p)
{
    (void)data;
    return add_general(out, graph, before, n, p);
}
