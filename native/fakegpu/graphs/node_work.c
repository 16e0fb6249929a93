/* From the driver's parameters of a node to the work that it does. */
#include "graphs/node_work.h"

#include <string.h>

#include "memory/copy_shape.h"
#include "streams/event.h"

struct fg_work fg_kernel_work(const CUDA_KERNEL_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p};
}
struct fg_work fg_kernel_work_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_KERNEL,
                            .kernel = {.func = p->func,
                                       .gridDimX = p->gridDimX,
                                       .gridDimY = p->gridDimY,
                                       .gridDimZ = p->gridDimZ,
                                       .blockDimX = p->blockDimX,
                                       .blockDimY = p->blockDimY,
                                       .blockDimZ = p->blockDimZ,
                                       .sharedMemBytes = p->sharedMemBytes,
                                       .kernelParams = p->kernelParams,
                                       .extra = p->extra}};
}
struct fg_work fg_copy_work(const CUDA_MEMCPY3D *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = {*p, fg_copy_kind(p)}};
}
struct fg_work fg_fill_work(const CUDA_MEMSET_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = *p};
}
struct fg_work fg_host_work(const CUDA_HOST_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p};
}
struct fg_work fg_event_work(CUevent event, bool record)
{
    return (struct fg_work){.type = record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD
                                           : CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                            .event = fg_event_of(event)};
}
struct fg_work fg_child_work(CUgraph handle, bool move)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (graph && move)
        graph->inside = true;
    else if (graph)
        graph = fg_graph_clone(graph, true);
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph};
}

/* The general form of the same. */
CUresult fg_general_work(CUgraphNodeParams *p, struct fg_work *work)
{
    *work = (struct fg_work){.type = p->type};
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        memcpy(&work->kernel, &p->kernel, sizeof work->kernel);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        *work = fg_copy_work(&p->memcpy.copyParams);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&work->fill, &p->memset, sizeof work->fill);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST:
        work->host = (CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        *work = fg_child_work(p->graph.graph,
                              p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        *work = fg_event_work(p->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? p->eventRecord.event
                                                                         : p->eventWait.event,
                              p->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        memcpy(&work->alloc, &p->alloc, sizeof work->alloc);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: work->address = p->free.dptr; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult fg_changeable_work(CUgraphNodeParams *p, struct fg_work *work)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->type == CU_GRAPH_NODE_TYPE_GRAPH || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return fg_general_work(p, work);
}

struct fg_work *fg_node_work(CUgraphNode handle, CUgraphNodeType type)
{
    struct fg_node *node = fg_node_of(handle);
    return node && node->work.type == type ? &node->work : NULL;
}
