/* One step of the simulation, and what its parts share. All under the engine's lock. */
#ifndef FG_SIMULATE_H
#define FG_SIMULATE_H
#include "state/engine_state.h"

/* Simulates until that time; true where it stopped early, because it woke a thread that may act
 * now. */
bool fg_simulate(uint64_t until);
void fg_engine_stream_clear(int stream); /* forgets what is queued */
/* The least time until operation `seq` of a stream can be done, as things stand. */
uint64_t fg_engine_least_ns(int stream, uint64_t seq, int depth);

/* ---- heads: the first operation of each stream, and what it gets ----------------------------- */
struct fg_head { /* the first operation of a stream, and what it gets */
    struct fg_op *op;
    struct fg_engine_context *context;
    int32_t stream, index; /* index: of its context */
    uint32_t got;          /* part of the SMs, 16.16 */
    uint64_t rate;         /* its nanoseconds per nanosecond, 16.16 */
};
struct fg_heads {
    int n;
    struct fg_head at[FG_ENGINE_STREAMS];
};

void fg_heads_collect(struct fg_engine *e, struct fg_heads *heads);
/* Gives the compute engine of a GPU to heads; the next time at which that changes by itself. */
uint64_t fg_compute_share(struct fg_engine *e, int gpu, struct fg_heads *heads);

static inline struct fg_op *fg_operation(struct fg_engine_stream *stream, uint64_t seq)
{
    return &stream->ring[seq % FG_ENGINE_DEPTH];
}

/* Whether only the last blocks of a kernel run, which leave SMs to others. */
static inline bool fg_op_in_tail(const struct fg_op *op)
{
    return op->kind == FG_OP_KERNEL && op->ref && op->left <= op->ref_seq;
}

static inline bool fg_op_is_compute(const struct fg_op *op)
{
    return op->kind == FG_OP_KERNEL || op->kind == FG_OP_FILL || op->kind == FG_OP_MARK;
}
#endif
