/* One piece of work: what a stream queues, and what a node of a graph is. */
#ifndef FG_WORK_H
#define FG_WORK_H
#include "driver/current_context.h"
#include "state/engine_state.h"

struct fg_event;
struct fg_graph;
struct fg_work {
    CUgraphNodeType type;
    union {
        CUDA_KERNEL_NODE_PARAMS kernel;
        struct {
            CUDA_MEMCPY3D shape;
            uint32_t kind;
        } copy; /* kind: FG_OP_TO_HOST, ... */
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS host;
        struct fg_event *event;
        struct fg_graph *child;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUdeviceptr address; /* of a free */
    };
};
/* Moves the bytes that it moves, and gives the operation to queue. */
CUresult fg_work_to_op(const struct fg_work *work, struct fg_context *context, struct fg_op *op);
#endif
