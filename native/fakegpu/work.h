/* Inside the fake libcuda.so.1: streams, functions, events, graphs and copies, to each other and to
 * module.c. The timing itself is the engine's (engine.h); these are the driver's handles and rules. */
#ifndef FG_WORK_H
#define FG_WORK_H

#include "core.h"

/* ---- stream.c -------------------------------------------------------------------------------------- */
struct fg_stream {
    uint64_t magic;
    struct fg_stream *next;          /* of its context */
    struct fg_context *context;
    int engine;                      /* engine's index */
    unsigned flags;                  /* CU_STREAM_NON_BLOCKING */
    int priority;
    uint64_t id;
    pthread_t owner;                 /* of a per-thread default stream */
    struct fg_capture *capture;      /* graph.c's; NULL: not capturing */
    struct fg_node **leaves;         /* capture: what the next captured node depends on */
    int n_leaves;
};
/* The stream that a handle means to the calling thread (NULL, CU_STREAM_LEGACY and _PER_THREAD
 * included), made at need. An error where the handle is stale or the context is gone. */
CUresult fg_stream_of(CUstream handle, struct fg_stream **stream);
/* Before a call that waits or reads back: refused while this thread's capture forbids it. */
CUresult fg_capture_forbids(void);
/* Queues, or, where the stream captures, adds a node. */
CUresult fg_stream_add(struct fg_stream *stream, const struct fg_op *op);
int fg_host_function(CUhostFn function, void *data);  /* a number for it; runs once; -1: no memory */

/* ---- kernel.c --------------------------------------------------------------------------------------- */
struct fg_function {
    uint64_t magic;
    struct fg_function *next;
    struct fg_context *context;      /* NULL: a CUkernel, which works in any */
    void *module;                    /* module.c's */
    char name[96];
    uint64_t ns, other_ns, per_block_ns;  /* other_ns: of the second mode */
    unsigned jitter_pct, other_pct;  /* other_pct: how often the second mode */
    unsigned sms;                    /* SMs that it can use; 0: all */
    int attributes[24];
};
/* module.c: a function for this name (fakegpu.h says which there are; NULL: unknown, or no memory), and
 * the end of all functions of a module. Handles stay checked after that. */
struct fg_function *fg_function_new(struct fg_context *context, void *module, const char *name);
void fg_functions_end(void *module);
struct fg_function *fg_function_of(CUfunction handle);  /* also of a CUkernel; NULL: not live */
/* One launch of so many blocks: its operation, random numbers drawn from `context`. */
struct fg_op fg_kernel_op(const struct fg_function *function, const struct fg_context *context, uint64_t blocks);

/* ---- event.c ------------------------------------------------------------------------------------------ */
struct fg_event {
    uint64_t magic;
    struct fg_event *next;
    struct fg_context *context;
    int engine;                      /* engine's index; ipc.c sends it to another process */
    unsigned flags;
    bool captured;                   /* last recorded in a capture: */
    struct fg_capture *capture;
    struct fg_node **nodes;
    int n_nodes;
};
struct fg_event *fg_event_of(CUevent handle);           /* NULL: not live */
CUresult fg_event_new(struct fg_context *context, int engine, unsigned flags, CUevent *out); /* engine: -1, a new one */
#endif
