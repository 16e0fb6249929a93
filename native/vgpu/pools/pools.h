/* Memory that the driver keeps in stock: pools, and the memory of graphs.
 *
 * What is charged is what the driver says it has reserved, not what the program uses of it. A stock
 * may grow inside a call and shrink at any synchronisation, so both are found by asking: before a call
 * the worst growth is reserved, after it the stock's true size is charged. */
#ifndef ALNAIR_VGPU_POOL_H
#define ALNAIR_VGPU_POOL_H

#include "ledger/memory.h"

#define VG_POOL_STEP (32ull << 20) /* pools grow by whole steps of this */

struct vg_range { uint64_t start, end; CUstream stream; };
struct vg_pool {
    struct vg_pool *next;
    CUmemoryPool handle;     /* NULL: the memory of graphs on this device */
    CUdevice device;
    int row;                 /* -1: not charged here (imported, host memory) */
    uint64_t charged;
    uint64_t live;           /* allocations not yet freed, and calls under way: they keep it */
    bool destroyed;          /* by the program, while some were live */
    unsigned int drawing;    /* calls under way that allocate from it */
    bool borrowed;           /* one of them, alone, was let pass for what is free in stock */
    _Atomic uint64_t changes; /* rises when something is taken from the stock, or leaves it */
    unsigned int n_ranges;
    struct vg_range range[64]; /* freed in stock: what the same stream may get without growth */
};

/* A call that allocates from a stock: begin, the call, end. No lock is held in between; the pool stays. */
struct vg_draw { struct vg_pool *pool; uint64_t reserved; bool borrowed; };
/* Reserves `growth`, after giving unused stock back where that is needed. Where there is no room, but
 * `bytes` (0: never) are free in the stock for this stream, the call may pass. False: refused. */
bool vg_draw_begin(struct vg_draw *draw, CUmemoryPool handle, CUdevice device, uint64_t growth, uint64_t bytes,
                   CUstream stream);
void vg_draw_end(struct vg_draw *draw, bool worked); /* charges the true size; `worked`: what the call said */

CUresult vg_pool_allocate(CUmemoryPool handle, CUdevice device, CUdeviceptr *address, size_t bytes, CUstream stream,
                          CUstream given, CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream));
/* The record of what is freed was taken out of the book. */
CUresult vg_pool_free_async(struct vg_record *record, CUstream stream, CUstream given,
                            CUresult (*call)(CUdeviceptr, CUstream));
void vg_pool_note(CUmemoryPool handle, CUdevice device); /* a pool of this device, -1: not charged here */
CUresult vg_pool_destroy(CUmemoryPool handle);
uint64_t vg_pool_steps(uint64_t bytes);

#endif
