/* Page-locked host memory, to contexts that end. */
#ifndef FG_PAGE_LOCKED_H
#define FG_PAGE_LOCKED_H
#include "memory/ranges.h"
void fg_page_locked_end(struct fg_range *range); /* of FG_HOST or FG_REGISTERED */
#endif
