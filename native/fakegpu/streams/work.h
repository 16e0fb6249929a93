/* Inside the fake libcuda.so.1: streams, functions, events, graphs and copies, to each other and to
 * module.c, pool.c and ipc.c. The timing is the engine's (engine.h); these are the driver's handles and
 * rules. Locks: fg_mutex guards lists; a launch takes none of this process but only the engine's. */
#ifndef FG_WORK_H
#define FG_WORK_H

#include "driver/core.h"
#include "driver/handles.h"

struct fg_stream;
struct fg_graph;
struct fg_capture;
struct fg_node;

/* ---- kernel.c --------------------------------------------------------------------------------------- */
struct fg_function {
    struct fg_handle handle;
    struct fg_function *next;        /* of its module */
    struct fg_context *context;      /* NULL: a CUkernel, which works in any */
    void *module;
    char name[128];
    uint64_t ns, other_ns, per_block_ns;  /* other_ns: of the second mode */
    int jitter_pct;                  /* -1: as option jitter says */
    unsigned other_pct;              /* how often the second mode */
    unsigned sms;                    /* SMs that it can use; 0: all */
    int dynamic_shared, carveout;
    unsigned old_block[3];           /* cuFuncSetBlockShape */
};
/* For module.c: a function of this name (fakegpu.h says which there are; NULL: not such a name, or no
 * memory), and the end of all functions of a module. A CUkernel is one with context NULL. */
struct fg_function *fg_function_new(struct fg_context *context, void *module, const char *name);
void fg_functions_end(void *module);
struct fg_function *fg_function_of(const void *handle);  /* CUfunction or CUkernel; NULL: not live */

/* ---- one piece of work: what a stream queues, and what a node of a graph is ------------------------------ */
struct fg_work {
    CUgraphNodeType type;
    union {
        CUDA_KERNEL_NODE_PARAMS kernel;
        struct { CUDA_MEMCPY3D shape; uint32_t kind; } copy; /* kind: FG_OP_TO_HOST, ... */
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS host;
        struct fg_event *event;
        struct fg_graph *child;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUdeviceptr address;         /* of a free */
    };
};
/* Moves the bytes that it moves, and gives the operation to queue. */
CUresult fg_work_to_op(const struct fg_work *work, struct fg_context *context, struct fg_op *op);
/* Queues it, or, where the stream captures, adds a node. *seq (may be NULL): to be waited for; 0: captured. */
CUresult fg_stream_submit(struct fg_stream *stream, const struct fg_work *work, uint64_t *seq);

/* copy.c: of a copy's shape, where it goes (FG_OP_...; 0: an address is not the fake's), and its bytes moved. */
uint32_t fg_copy_kind(const CUDA_MEMCPY3D *shape);
void fg_copy_move(const CUDA_MEMCPY3D *shape);

/* ---- stream.c ------------------------------------------------------------------------------------------ */
struct fg_stream {
    struct fg_handle handle;
    struct fg_stream *next;          /* of its context */
    struct fg_context *context;
    uint64_t context_id;
    int engine;                      /* the engine's index */
    unsigned flags;                  /* CU_STREAM_NON_BLOCKING */
    int priority;
    bool is_default;                 /* the legacy or a per-thread one */
    uint64_t id;
    struct fg_capture *capture;      /* NULL: not capturing */
    struct fg_node **leaves;         /* capture: what its next node depends on */
    size_t n_leaves;
};
/* The stream that a handle means to the calling thread (NULL, CU_STREAM_LEGACY and _PER_THREAD
 * included), made at need. An error where the handle is stale or its context gone. */
CUresult fg_stream_of(CUstream handle, struct fg_stream **stream);
uint32_t fg_host_call_number(CUhostFn function, void *data);  /* the engine's number for a call of it; runs once */
void fg_host_thread_start(void);            /* the thread that calls host functions runs */

/* ---- event.c --------------------------------------------------------------------------------------------- */
struct fg_event {
    struct fg_handle handle;
    struct fg_context *context;
    uint64_t context_id;
    int engine;                      /* the engine's index; ipc.c sends it to another process */
    unsigned flags;
    uint64_t capture_id;             /* last recorded in this capture, 0: in none; what came before: */
    struct fg_node **nodes;
    size_t n_nodes;
};
struct fg_event *fg_event_of(CUevent handle);  /* NULL: not live */
/* engine: the index of another process's event (held for it), or -1 for a new one. */
CUresult fg_event_new(int engine, unsigned flags, CUevent *out);

/* ---- capture.c ---------------------------------------------------------------------------------------------- */
/* Before a call that waits, or that a capture of this thread's mode forbids: the error, after it has
 * invalidated the capture. For cuMemAlloc and others that synchronise, too. */
CUresult fg_capture_forbids(void);
/* stream: about to be used. Legacy use beside a capture of a blocking stream is an error. */
CUresult fg_capture_check(struct fg_stream *stream);
CUresult fg_capture_add(struct fg_stream *stream, const struct fg_work *work, struct fg_node **node);
CUresult fg_capture_record(struct fg_stream *stream, struct fg_event *event);
CUresult fg_capture_wait(struct fg_stream *stream, struct fg_event *event);
void fg_capture_event_gone(struct fg_event *event);
bool fg_event_captured(const struct fg_event *event);
void fg_capture_stream_gone(struct fg_stream *stream);
CUresult fg_capture_break(struct fg_stream *stream); /* invalidates; gives STREAM_CAPTURE_UNSUPPORTED */

CUresult fg_capture_memory_alloc(struct fg_stream *stream, uint64_t bytes, CUdeviceptr *out); /* graph_memory.c */
CUresult fg_capture_memory_free(struct fg_stream *stream, CUdeviceptr address);

/* ---- graph.c -------------------------------------------------------------------------------------------------- */
struct fg_graph *fg_graph_of(CUgraph handle);
struct fg_graph *fg_graph_new(void);
void fg_graph_end(struct fg_graph *graph);
/* Adds a node; *node is its handle. Dependencies must be nodes of the same graph. */
CUresult fg_graph_add(struct fg_graph *graph, struct fg_node *const *dependencies, size_t n,
                      const struct fg_work *work, struct fg_node **node);
#endif
