/* Whether a node may do a piece of work. */
#include "graphs/graph.h"
#include "memory/content.h"
#include "modules/function.h"
#include "streams/event.h"

CUresult fg_work_check(const struct fg_work *work)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS *k = &work->kernel;
        if (!fg_function_of(k->func ? (const void *)k->func : (const void *)k->kern))
            return CUDA_ERROR_INVALID_HANDLE;
        uint64_t threads = (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ;
        return !threads || threads > FG_MOST_THREADS || !k->gridDimX || !k->gridDimY || !k->gridDimZ
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return work->copy.kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS *f = &work->fill;
        if ((f->elementSize != 1 && f->elementSize != 2 && f->elementSize != 4) || !f->width ||
            !f->height)
            return CUDA_ERROR_INVALID_VALUE;
        return fg_address_valid(f->dst, (f->height - 1) * f->pitch + f->width * f->elementSize)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_HOST: return work->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH: return work->child ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return fg_event_of((CUevent)work->event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}
