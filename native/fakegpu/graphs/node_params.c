/* Parameters of nodes: read, and changed in a graph. */
#include <string.h>

#include "graphs/node_work.h"

#define GET(handle, type_, out, value)                                                             \
    do {                                                                                           \
        struct fg_work *work = fg_node_work(handle, CU_GRAPH_NODE_TYPE_##type_);                   \
        if (!work || !(out))                                                                       \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        *(out) = value;                                                                            \
        return CUDA_SUCCESS;                                                                       \
    } while (0)

CUresult FG(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
    GET(node, KERNEL, p, work->kernel);
}
CUresult FG(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    struct fg_work *work = fg_node_work(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!work || !p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(p, &work->kernel, sizeof *p); /* v2 only has more at its end */
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D *p)
{
    GET(node, MEMCPY, p, work->copy.shape);
}
CUresult FG(cuGraphMemsetNodeGetParams)(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *p)
{
    GET(node, MEMSET, p, work->fill);
}
CUresult FG(cuGraphHostNodeGetParams)(CUgraphNode node, CUDA_HOST_NODE_PARAMS *p)
{
    GET(node, HOST, p, work->host);
}
CUresult FG(cuGraphChildGraphNodeGetGraph)(CUgraphNode node, CUgraph *graph)
{
    GET(node, GRAPH, graph, (CUgraph)work->child);
}
CUresult FG(cuGraphEventRecordNodeGetEvent)(CUgraphNode node, CUevent *event)
{
    GET(node, EVENT_RECORD, event, (CUevent)work->event);
}
CUresult FG(cuGraphEventWaitNodeGetEvent)(CUgraphNode node, CUevent *event)
{
    GET(node, WAIT_EVENT, event, (CUevent)work->event);
}
CUresult FG(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    GET(node, MEM_ALLOC, p, work->alloc);
}
CUresult FG(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr *address)
{
    GET(node, MEM_FREE, address, work->address);
}

/* ---- changing, in a graph -------------------------------------------------------------------- */

static CUresult set(CUgraphNode handle, const struct fg_work *work)
{
    struct fg_work *old = fg_node_work(handle, work->type);
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_work_check(work);
    if (!result)
        *old = *work;
    return result;
}
#define SET(expression)                                                                            \
    do {                                                                                           \
        if (!p)                                                                                    \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        struct fg_work work = expression;                                                          \
        return set(node, &work);                                                                   \
    } while (0)

CUresult FG(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    SET(fg_kernel_work(p));
}
CUresult FG(cuGraphKernelNodeSetParams)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    SET(fg_kernel_work_v1(p));
}
CUresult FG(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D *p)
{
    SET(fg_copy_work(p));
}
CUresult FG(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p)
{
    SET(fg_fill_work(p));
}
CUresult FG(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    SET(fg_host_work(p));
}
CUresult FG(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent p)
{
    SET(fg_event_work(p, true));
}
CUresult FG(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent p)
{
    SET(fg_event_work(p, false));
}

CUresult FG(cuGraphNodeSetParams)(CUgraphNode node, CUgraphNodeParams *p)
{
    struct fg_work work;
    CUresult result = fg_changeable_work(p, &work);
    return result ? result : set(node, &work);
}
CUresult FG(cuGraphNodeSetParams_v2)(CUgraphNode node, CUgraphNodeParams *p)
{
    return FG(cuGraphNodeSetParams)(node, p);
}

/* Launch attributes change nothing here. */
CUresult FG(cuGraphKernelNodeCopyAttributes)(CUgraphNode to, CUgraphNode from)
{
    return fg_node_work(to, CU_GRAPH_NODE_TYPE_KERNEL) &&
                   fg_node_work(from, CU_GRAPH_NODE_TYPE_KERNEL)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuGraphKernelNodeGetAttribute)(CUgraphNode node, CUkernelNodeAttrID id,
                                           CUkernelNodeAttrValue *value)
{
    (void)id;
    if (!value || !fg_node_work(node, CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphKernelNodeSetAttribute)(CUgraphNode node, CUkernelNodeAttrID id,
                                           const CUkernelNodeAttrValue *value)
{
    (void)id;
    return value && fg_node_work(node, CU_GRAPH_NODE_TYPE_KERNEL) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}
