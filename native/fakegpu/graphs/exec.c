/* Executable graphs. A launch queues the nodes in an order of their dependencies, kernels that follow each
 * other as one operation: branches run one after the other, as kernels that fill the GPU do. Launches of
 * one executable graph never overlap, as on the driver. */
#include "graphs/graph.h"

#include <stdlib.h>
#include <string.h>

static struct fg_handles handles = FG_HANDLES(struct fg_exec, 7);
static unsigned next_id;

struct fg_exec *fg_exec_of(CUgraphExec handle) { return fg_handle_is(&handles, handle) ? (struct fg_exec *)handle : NULL; }

/* ---- making --------------------------------------------------------------------------------------------- */

/* Appends a graph's nodes, those of children in their place. */
static CUresult flatten(const struct fg_graph *graph, struct fg_item **items, size_t *n, CUgraphNode *wrong)
{
    struct fg_node **sorted = calloc(graph->n + 1, sizeof(struct fg_node *));
    CUresult result = fg_graph_order(graph, sorted) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->n && !result; i++) {
        struct fg_node *node = sorted[i];
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            result = flatten(node->work.child, items, n, wrong);
            continue;
        }
        result = fg_work_check(&node->work);
        if (result && wrong)
            *wrong = (CUgraphNode)node;
        if ((*n & (*n - 1)) == 0)
            *items = realloc(*items, (*n ? 2 * *n : 1) * sizeof **items);
        (*items)[(*n)++] = (struct fg_item){.origin = node, .work = node->work, .n_before = node->n_before};
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
    fg_clock_spend(10000 + 500 * graph->n);    /* instantiating is slow on the driver, too */
    pthread_mutex_lock(&fg_mutex);
    struct fg_item *items = NULL;
    size_t n = 0;
    CUresult result = flatten(graph, &items, &n, wrong);
    struct fg_exec *exec = result ? NULL : fg_handle_take(&handles);
    if (exec) {
        exec->id = ++next_id;
        exec->flags = flags;
        exec->item = items;
        exec->n = n;
        exec->last_stream = -1;
        for (size_t i = 0; i < n; i++)
            exec->allocates |= items[i].work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || items[i].work.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
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

CUresult FG(cuGraphInstantiateWithFlags)(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    return instantiate(out, graph, flags, NULL);
}
CUresult FG(cuGraphInstantiate_v2)(CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    if (log && size)
        *log = 0;
    return instantiate(out, graph, 0, wrong);
}
CUresult FG(cuGraphInstantiate)(CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    return FG(cuGraphInstantiate_v2)(out, graph, wrong, log, size);
}
CUresult FG(cuGraphInstantiateWithParams)(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
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

/* ---- changing ----------------------------------------------------------------------------------------------- */

static struct fg_item *item_of(struct fg_exec *exec, CUgraphNode handle)
{
    for (size_t i = 0; exec && i < exec->n; i++)
        if ((CUgraphNode)exec->item[i].origin == handle)
            return &exec->item[i];
    return NULL;
}

CUresult fg_exec_set_node(struct fg_exec *exec, CUgraphNode node, const struct fg_work *work)
{
    struct fg_item *item = item_of(exec, node);
    if (!item || item->work.type != work->type)
        return CUDA_ERROR_INVALID_VALUE;
    item->work = *work;
    return CUDA_SUCCESS;
}

CUresult FG(cuGraphNodeSetEnabled)(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    struct fg_item *item = item_of(fg_exec_of(exec), node);
    if (!item || (item->work.type != CU_GRAPH_NODE_TYPE_KERNEL && item->work.type != CU_GRAPH_NODE_TYPE_MEMSET &&
                  item->work.type != CU_GRAPH_NODE_TYPE_MEMCPY))
        return CUDA_ERROR_INVALID_VALUE;
    item->disabled = !enabled;
    return CUDA_SUCCESS;
}
CUresult FG(cuGraphNodeGetEnabled)(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    struct fg_item *item = item_of(fg_exec_of(exec), node);
    if (!item || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !item->disabled;
    return CUDA_SUCCESS;
}

/* The graph must have the nodes that the executable one was made of, in the same shape. */
CUresult FG(cuGraphExecUpdate_v2)(CUgraphExec handle, CUgraph hgraph, CUgraphExecUpdateResultInfo *info)
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
    if (flatten(graph, &items, &n, &wrong)) {
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
CUresult FG(cuGraphExecUpdate)(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong, CUgraphExecUpdateResult *out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = FG(cuGraphExecUpdate_v2)(exec, graph, &info);
    if (wrong)
        *wrong = result == CUDA_ERROR_INVALID_VALUE ? NULL : info.errorNode;
    if (out)
        *out = result == CUDA_ERROR_INVALID_VALUE ? CU_GRAPH_EXEC_UPDATE_ERROR : info.result;
    return result;
}

/* ---- running ------------------------------------------------------------------------------------------------- */

CUresult FG(cuGraphUpload)(CUgraphExec handle, CUstream hstream)
{
    struct fg_exec *exec = fg_exec_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    return exec ? fg_graph_memory_take(exec, true) : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t queue(struct fg_stream *stream, struct fg_op *op)
{
    uint64_t seq = op->kind ? fg_engine_stream_queue(stream->engine, op) : 0;
    op->kind = FG_OP_NONE;
    return seq;
}

static CUresult run(struct fg_exec *exec, struct fg_stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    struct fg_op kernels = {.kind = FG_OP_NONE}, op;
    if (exec->last_stream >= 0 && exec->last_stream != stream->engine) {
        op = (struct fg_op){.kind = FG_OP_JOIN, .ref = (uint32_t)exec->last_stream, .ref_seq = exec->last_seq};
        queue(stream, &op);
    }
    for (size_t i = 0; i < exec->n && !result; i++) {
        const struct fg_work *work = &exec->item[i].work;
        if (exec->item[i].disabled || work->type == CU_GRAPH_NODE_TYPE_EMPTY || work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            work->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            continue;
        if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
            queue(stream, &kernels);
            if (!fg_event_of((CUevent)work->event))
                return CUDA_ERROR_INVALID_HANDLE;
            uint64_t record = fg_engine_event_recorded(work->event->engine);
            if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
                fg_engine_event_record(work->event->engine, stream->engine);
            else if (record)
                fg_engine_stream_queue(stream->engine, &(struct fg_op){.kind = FG_OP_WAIT, .ref = (uint32_t)work->event->engine,
                                                                .ref_seq = record});
            continue;
        }
        result = fg_work_to_op(work, stream->context, &op);
        if (result)
            break;
        if (op.kind == FG_OP_KERNEL && kernels.kind && kernels.share == op.share) {
            kernels.left += op.left;
            kernels.count++;
        } else {
            queue(stream, &kernels);
            if (op.kind == FG_OP_KERNEL)
                kernels = op;
            else
                queue(stream, &op);
        }
    }
    queue(stream, &kernels);
    exec->last_stream = stream->engine;
    exec->last_seq = fg_engine_stream_tail(stream->engine);
    return result;
}

CUresult FG(cuGraphLaunch)(CUgraphExec handle, CUstream hstream)
{
    struct fg_exec *exec = fg_exec_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    result = fg_capture_check(stream);
    if (result)
        return result;
    if (stream->capture)                       /* its nodes become a child graph: not modelled */
        return fg_capture_break(stream);
    if (exec->allocates)
        result = fg_graph_memory_take(exec, false);
    if (!result)
        result = run(exec, stream);
    return result ? result : fg_gpu_status(stream->context->gpu);
}
