/* The making and the end of contexts, to the shelf's files. With fg_mutex held. */
#ifndef FG_CONTEXT_H
#define FG_CONTEXT_H
#include "driver/current_context.h"

/* sm_count: of a green context, which shares what its GPU's primary context costs; 0: a real
 * one. */
CUresult fg_context_make(CUdevice device, unsigned flags, bool is_primary, int sm_count,
                         struct fg_context **out);
void fg_context_end(struct fg_context *context);
#endif
