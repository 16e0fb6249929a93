/* Between memory.c, data.c and the modules that end ranges. */
#ifndef FG_MEMORY_H
#define FG_MEMORY_H
#include "core.h"
void fg_backing_end(struct fg_range *range);
#endif
