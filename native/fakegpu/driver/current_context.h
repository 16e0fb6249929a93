/* A context, and which one is current to the calling thread. What making and ending one means for
 * streams, modules and memory is in contexts/. */
#ifndef FG_CURRENT_CONTEXT_H
#define FG_CURRENT_CONTEXT_H
#include "driver/driver.h"

struct fg_range;
struct fg_block;
struct fg_streams;
struct fg_context {
    struct fg_context *next;
    uint64_t id;
    int gpu;
    CUdevice device;
    unsigned flags, api_version;
    bool alive, primary;
    int retained;     /* of a primary context */
    uint64_t charged; /* bytes beside its allocations */
    size_t limit[16];
    int engine;                 /* fg_engine_context_open's index */
    struct fg_streams *streams; /* streams/stream.c's */
    struct fg_block *blocks;    /* of its heap: small allocations share them */
    struct fg_range *ranges;    /* what was allocated in it */
    int sm_count;               /* of a green context; 0: all */
};
struct fg_context *fg_current_context(void); /* the calling thread's, NULL: none (or destroyed) */
/* The current one, or the error that calls without one give. */
CUresult fg_need_context(struct fg_context **context);
struct fg_context *fg_context_of(CUcontext handle); /* NULL: not a live context */

/* fg_mutex held. A dead context to be filled, `next` and a new `id` set; NULL: no memory. */
struct fg_context *fg_context_vacant(void);
CUresult fg_context_push(struct fg_context *context); /* makes it current */
void fg_context_pop_if_current(const struct fg_context *context);
#endif
