/* Parameters of nodes, changed in an executable graph. */
#include "graph_exec/exec.h"
#include "graphs/node_work.h"

static CUresult set_item(struct fg_exec *exec, CUgraphNode node, const struct fg_work *work)
{
    struct fg_item *item = fg_exec_item(exec, node);
    if (!item || item->work.type != work->type)
        return CUDA_ERROR_INVALID_VALUE;
    item->work = *work;
    return CUDA_SUCCESS;
}

static CUresult exec_set(CUgraphExec handle, CUgraphNode node, const struct fg_work *work)
{
    struct fg_exec *exec = fg_exec_of(handle);
    CUresult result = exec ? fg_work_check(work) : CUDA_ERROR_INVALID_VALUE;
    return result ? result : set_item(exec, node, work);
}
#define EXEC_SET(expression)                                                                       \
    do {                                                                                           \
        if (!p)                                                                                    \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        struct fg_work work = expression;                                                          \
        return exec_set(exec, node, &work);                                                        \
    } while (0)

CUresult FG(cuGraphExecKernelNodeSetParams_v2)(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS *p)
{
    EXEC_SET(fg_kernel_work(p));
}
CUresult FG(cuGraphExecKernelNodeSetParams)(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    EXEC_SET(fg_kernel_work_v1(p));
}
CUresult FG(cuGraphExecMemcpyNodeSetParams)(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMCPY3D *p, CUcontext context)
{
    (void)context;
    EXEC_SET(fg_copy_work(p));
}
CUresult FG(cuGraphExecMemsetNodeSetParams)(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    (void)context;
    EXEC_SET(fg_fill_work(p));
}
CUresult FG(cuGraphExecHostNodeSetParams)(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS *p)
{
    EXEC_SET(fg_host_work(p));
}
CUresult FG(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent p)
{
    EXEC_SET(fg_event_work(p, true));
}
CUresult FG(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent p)
{
    EXEC_SET(fg_event_work(p, false));
}
CUresult FG(cuGraphExecNodeSetParams)(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
    struct fg_work work;
    CUresult result = fg_changeable_work(p, &work);
    return result ? result : exec_set(exec, node, &work);
}
CUresult FG(cuGraphExecChildGraphNodeSetParams)(CUgraphExec handle, CUgraphNode hnode,
                                                CUgraph hchild)
{
    struct fg_work *old = fg_node_work(hnode, CU_GRAPH_NODE_TYPE_GRAPH);
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
