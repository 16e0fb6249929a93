/* Arrays, to what maps memory into them and to contexts that end. With fg_mutex held. */
#ifndef FG_ARRAY_H
#define FG_ARRAY_H
#include "driver/current_context.h"
/* sparse, or for deferred mapping */
bool fg_array_takes_mappings(const void *handle, bool mipmapped);
void fg_arrays_context_gone(struct fg_context *context);
#endif
