/* What nodes do: adding each kind, reading and changing their parameters, in a graph and in an
 * executable graph. */
#include "graphs/graph.h"

#include <string.h>

CUresult fg_work_check(const struct fg_work *work)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS *k = &work->kernel;
        if (!fg_function_of(k->func ? (const void *)k->func : (const void *)k->kern))
            return CUDA_ERROR_INVALID_HANDLE;
        uint64_t threads = (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ;
        return !threads || threads > 1024 || !k->gridDimX || !k->gridDimY || !k->gridDimZ ? CUDA_ERROR_INVALID_VALUE
                                                                                           : CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return work->copy.kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS *f = &work->fill;
        if ((f->elementSize != 1 && f->elementSize != 2 && f->elementSize != 4) || !f->width || !f->height)
            return CUDA_ERROR_INVALID_VALUE;
        return fg_address_valid(f->dst, (f->height - 1) * f->pitch + f->width * f->elementSize) ? CUDA_SUCCESS
                                                                                        : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        return work->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return work->child ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return fg_event_of((CUevent)work->event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *before, size_t n, const struct fg_work *work)
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

/* ---- each kind's work from its parameters ----------------------------------------------------------- */

static struct fg_work kernel_work(const CUDA_KERNEL_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p};
}
static struct fg_work kernel_work_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_KERNEL,
                            .kernel = {.func = p->func, .gridDimX = p->gridDimX, .gridDimY = p->gridDimY,
                                       .gridDimZ = p->gridDimZ, .blockDimX = p->blockDimX,
                                       .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ,
                                       .sharedMemBytes = p->sharedMemBytes, .kernelParams = p->kernelParams,
                                       .extra = p->extra}};
}
static struct fg_work copy_work(const CUDA_MEMCPY3D *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = {*p, fg_copy_kind(p)}};
}
static struct fg_work fill_work(const CUDA_MEMSET_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = *p};
}
static struct fg_work host_work(const CUDA_HOST_NODE_PARAMS *p)
{
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p};
}
static struct fg_work event_work(CUevent event, bool record)
{
    return (struct fg_work){.type = record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                            .event = fg_event_of(event)};
}
static struct fg_work child_work(CUgraph handle, bool move)
{
    struct fg_graph *graph = fg_graph_of(handle);
    if (graph && move)
        graph->inside = true;
    else if (graph)
        graph = fg_graph_clone(graph, true);
    return (struct fg_work){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph};
}

/* The general form of the same. */
static CUresult general_work(CUgraphNodeParams *p, struct fg_work *work)
{
    *work = (struct fg_work){.type = p->type};
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        memcpy(&work->kernel, &p->kernel, sizeof work->kernel);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        *work = copy_work(&p->memcpy.copyParams);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&work->fill, &p->memset, sizeof work->fill);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST:
        work->host = (CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        *work = child_work(p->graph.graph, p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        *work = event_work(p->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? p->eventRecord.event : p->eventWait.event,
                           p->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        memcpy(&work->alloc, &p->alloc, sizeof work->alloc);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        work->address = p->free.dptr;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* ---- adding ---------------------------------------------------------------------------------------------- */

CUresult FG(cuGraphAddKernelNode_v2)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                     const CUDA_KERNEL_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = kernel_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddKernelNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = kernel_work_v1(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemcpyNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                  const CUDA_MEMCPY3D *p, CUcontext context)
{
    if (!p || (context && !fg_context_of(context)))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = copy_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemsetNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                  const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    if (!p || (context && !fg_context_of(context)))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = fill_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddHostNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                const CUDA_HOST_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = host_work(p);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddChildGraphNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUgraph child)
{
    struct fg_work work = child_work(child, false);
    CUresult result = add(out, graph, before, n, &work);
    if (result && work.child)
        fg_graph_end(work.child);
    return result;
}
CUresult FG(cuGraphAddEmptyNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n)
{
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddEventRecordNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    struct fg_work work = event_work(event, true);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddEventWaitNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    struct fg_work work = event_work(event, false);
    return add(out, graph, before, n, &work);
}
CUresult FG(cuGraphAddMemAllocNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_graph_memory_new(p);
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *p};
    if (result)
        return result;
    result = add(out, graph, before, n, &work);
    fg_graph_memory_uses(&work, 0);                   /* none where it was refused */
    return result;
}
CUresult FG(cuGraphAddMemFreeNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUdeviceptr address)
{
    if (!fg_range_at(address))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
    return add(out, graph, before, n, &work);
}

static CUresult add_general(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUgraphNodeParams *p)
{
    struct fg_work work;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = general_work(p, &work);
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
CUresult FG(cuGraphAddNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t n, CUgraphNodeParams *p)
{
    return add_general(out, graph, before, n, p);
}
CUresult FG(cuGraphAddNode_v2)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
                               size_t n, CUgraphNodeParams *p)
{
    (void)data;
    return add_general(out, graph, before, n, p);
}
CUresult FG(cuGraphAddNode_v3)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
                               size_t n, CUgraphNodeParams *p)
{
    (void)data;
    return add_general(out, graph, before, n, p);
}

/* ---- reading ---------------------------------------------------------------------------------------------- */

static struct fg_work *of_type(CUgraphNode handle, CUgraphNodeType type)
{
    struct fg_node *node = fg_node_of(handle);
    return node && node->work.type == type ? &node->work : NULL;
}
#define GET(handle, type_, out, value) do { \
        struct fg_work *work = of_type(handle, CU_GRAPH_NODE_TYPE_##type_); \
        if (!work || !(out)) \
            return CUDA_ERROR_INVALID_VALUE; \
        *(out) = value; \
        return CUDA_SUCCESS; \
    } while (0)

CUresult FG(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p) { GET(node, KERNEL, p, work->kernel); }
CUresult FG(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    struct fg_work *work = of_type(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!work || !p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(p, &work->kernel, sizeof *p);       /* v2 only has more at its end */
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D *p) { GET(node, MEMCPY, p, work->copy.shape); }
CUresult FG(cuGraphMemsetNodeGetParams)(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *p) { GET(node, MEMSET, p, work->fill); }
CUresult FG(cuGraphHostNodeGetParams)(CUgraphNode node, CUDA_HOST_NODE_PARAMS *p) { GET(node, HOST, p, work->host); }
CUresult FG(cuGraphChildGraphNodeGetGraph)(CUgraphNode node, CUgraph *graph) { GET(node, GRAPH, graph, (CUgraph)work->child); }
CUresult FG(cuGraphEventRecordNodeGetEvent)(CUgraphNode node, CUevent *event) { GET(node, EVENT_RECORD, event, (CUevent)work->event); }
CUresult FG(cuGraphEventWaitNodeGetEvent)(CUgraphNode node, CUevent *event) { GET(node, WAIT_EVENT, event, (CUevent)work->event); }
CUresult FG(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p) { GET(node, MEM_ALLOC, p, work->alloc); }
CUresult FG(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr *address) { GET(node, MEM_FREE, address, work->address); }

/* ---- changing, in a graph ------------------------------------------------------------------------------------ */

static CUresult set(CUgraphNode handle, const struct fg_work *work)
{
    struct fg_work *old = of_type(handle, work->type);
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_work_check(work);
    if (!result)
        *old = *work;
    return result;
}
#define SET(expression) do { \
        if (!p) \
            return CUDA_ERROR_INVALID_VALUE; \
        struct fg_work work = expression; \
        return set(node, &work); \
    } while (0)

CUresult FG(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) { SET(kernel_work(p)); }
CUresult FG(cuGraphKernelNodeSetParams)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) { SET(kernel_work_v1(p)); }
CUresult FG(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D *p) { SET(copy_work(p)); }
CUresult FG(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p) { SET(fill_work(p)); }
CUresult FG(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) { SET(host_work(p)); }
CUresult FG(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent p) { SET(event_work(p, true)); }
CUresult FG(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent p) { SET(event_work(p, false)); }

static CUresult changeable(CUgraphNodeParams *p, struct fg_work *work)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->type == CU_GRAPH_NODE_TYPE_GRAPH || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return general_work(p, work);
}
CUresult FG(cuGraphNodeSetParams)(CUgraphNode node, CUgraphNodeParams *p)
{
    struct fg_work work;
    CUresult result = changeable(p, &work);
    return result ? result : set(node, &work);
}
CUresult FG(cuGraphNodeSetParams_v2)(CUgraphNode node, CUgraphNodeParams *p) { return FG(cuGraphNodeSetParams)(node, p); }

/* Launch attributes change nothing here. */
CUresult FG(cuGraphKernelNodeCopyAttributes)(CUgraphNode to, CUgraphNode from)
{
    return of_type(to, CU_GRAPH_NODE_TYPE_KERNEL) && of_type(from, CU_GRAPH_NODE_TYPE_KERNEL) ? CUDA_SUCCESS
                                                                                              : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuGraphKernelNodeGetAttribute)(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    (void)id;
    if (!value || !of_type(node, CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphKernelNodeSetAttribute)(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    (void)id;
    return value && of_type(node, CU_GRAPH_NODE_TYPE_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- changing, in an executable graph --------------------------------------------------------------------------- */

static CUresult exec_set(CUgraphExec handle, CUgraphNode node, const struct fg_work *work)
{
    struct fg_exec *exec = fg_exec_of(handle);
    CUresult result = exec ? fg_work_check(work) : CUDA_ERROR_INVALID_VALUE;
    return result ? result : fg_exec_set_node(exec, node, work);
}
#define EXEC_SET(expression) do { \
        if (!p) \
            return CUDA_ERROR_INVALID_VALUE; \
        struct fg_work work = expression; \
        return exec_set(exec, node, &work); \
    } while (0)

CUresult FG(cuGraphExecKernelNodeSetParams_v2)(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) { EXEC_SET(kernel_work(p)); }
CUresult FG(cuGraphExecKernelNodeSetParams)(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) { EXEC_SET(kernel_work_v1(p)); }
CUresult FG(cuGraphExecMemcpyNodeSetParams)(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext context)
{
    (void)context;
    EXEC_SET(copy_work(p));
}
CUresult FG(cuGraphExecMemsetNodeSetParams)(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    (void)context;
    EXEC_SET(fill_work(p));
}
CUresult FG(cuGraphExecHostNodeSetParams)(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) { EXEC_SET(host_work(p)); }
CUresult FG(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent p) { EXEC_SET(event_work(p, true)); }
CUresult FG(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent p) { EXEC_SET(event_work(p, false)); }
CUresult FG(cuGraphExecNodeSetParams)(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
    struct fg_work work;
    CUresult result = changeable(p, &work);
    return result ? result : exec_set(exec, node, &work);
}
CUresult FG(cuGraphExecChildGraphNodeSetParams)(CUgraphExec handle, CUgraphNode hnode, CUgraph hchild)
{
    struct fg_work *old = of_type(hnode, CU_GRAPH_NODE_TYPE_GRAPH);
    struct fg_graph *child = fg_graph_of(hchild);
    if (!fg_exec_of(handle) || !old || !child || child->n != old->child->n)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < child->n; i++) {
        CUresult result = exec_set(handle, (CUgraphNode)old->child->node[i], &child->node[i]->work);
        if (result)
            return result;
    }
    return CUDA_SUCCESS;
}
