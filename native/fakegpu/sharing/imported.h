/* Ranges of memory that is not this process's. */
#ifndef FG_IMPORTED_H
#define FG_IMPORTED_H
#include "memory/ranges.h"
CUresult fg_imported_free(struct fg_range *range);
#endif
