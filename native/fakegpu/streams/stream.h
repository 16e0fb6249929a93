/* Streams: handles and default streams. The timing is the engine's (engine/engine.h). */
#ifndef FG_STREAM_H
#define FG_STREAM_H
#include "driver/current_context.h"
#include "driver/handles.h"

struct fg_capture;
struct fg_node;
struct fg_stream {
    struct fg_handle handle;
    struct fg_stream *next; /* of its context */
    struct fg_context *context;
    uint64_t context_id;
    int engine;     /* the engine's index */
    unsigned flags; /* CU_STREAM_NON_BLOCKING */
    int priority;
    bool is_default; /* the legacy or a per-thread one */
    uint64_t id;
    struct fg_capture *capture; /* NULL: not capturing */
    struct fg_node **leaves;    /* capture: what its next node depends on */
    size_t n_leaves;
};
/* The stream that a handle means to the calling thread (NULL, CU_STREAM_LEGACY and _PER_THREAD
 * included), made at need. An error where the handle is stale or its context gone. */
CUresult fg_stream_of(CUstream handle, struct fg_stream **stream);
/* priority: as asked for; how: of enum fg_engine_stream_flags. NULL: no memory, or no room. */
struct fg_stream *fg_stream_new(struct fg_context *context, unsigned flags, int priority,
                                unsigned how);
struct fg_stream *fg_streams_of(const struct fg_context *context); /* the first; fg_mutex held */
#define FG_MOST_URGENT (-5) /* priorities as on recent GPUs: 0 to -5 */

void fg_streams_context_made(struct fg_context *context);
void fg_streams_context_gone(struct fg_context *context); /* before its memory goes */
#endif
