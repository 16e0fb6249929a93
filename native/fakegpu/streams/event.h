/* Events: handles. */
#ifndef FG_EVENT_H
#define FG_EVENT_H
#include "driver/current_context.h"
#include "driver/handles.h"

struct fg_node;
struct fg_event {
    struct fg_handle handle;
    struct fg_context *context;
    uint64_t context_id;
    int engine; /* the engine's index */
    unsigned flags;
    uint64_t capture_id; /* last recorded in this capture, 0: in none; what came before: */
    struct fg_node **nodes;
    size_t n_nodes;
};
struct fg_event *fg_event_of(CUevent handle); /* NULL: not live */
/* engine: the index of another process's event (held for it), or -1 for a new one. */
CUresult fg_event_new(int engine, unsigned flags, CUevent *out);
#endif
