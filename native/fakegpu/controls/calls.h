/* Counts of calls by name. */
#ifndef FG_CALL_COUNTS_H
#define FG_CALL_COUNTS_H
#include <stdint.h>

#pragma GCC visibility push(default)
_Atomic uint64_t *fg_call_counter(const char *name); /* keep the pointer; never NULL */
#pragma GCC visibility pop
#endif
