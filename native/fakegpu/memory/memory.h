/* Between memory.c, data.c and the modules that end ranges. */
#ifndef FG_MEMORY_H
#define FG_MEMORY_H
#include "driver/core.h"
void fg_range_content_end(struct fg_range *range);
void fg_page_locked_end(struct fg_range *range);
uint64_t fg_range_share(struct fg_range *range, int *shared, uint64_t *id, uint64_t *offset);
#endif
