/* Calls, bytes and time per API class; launches in thread-local batches. */
#ifndef ALNAIR_VGPU_CALL_COUNTS_H
#define ALNAIR_VGPU_CALL_COUNTS_H

#include "vgpu.h"

uint64_t vg_count_begin(void); /* 0, or a time when this call is sampled (1 in 64) */
void vg_count_end(enum vg_class cls, uint64_t begun, uint64_t bytes);
uint64_t vg_count_launch(int row); /* as vg_count_begin, for launches */
void vg_count_graph(void);         /* the launch that was counted last was a graph's */
void vg_count_flush(void);         /* what the calling thread has not told its slot yet */

#endif
