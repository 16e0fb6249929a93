/* Memory that the driver keeps in stock: pools, and the memory of graphs.
 *
 * What is charged is what the driver says it has reserved, not what the program uses of it. A stock
 * may grow inside a call and shrink at any synchronisation, so both are found by asking: before a
 * call the worst growth is reserved, after it the stock's true size is charged. */
#ifndef ALNAIR_VGPU_POOLS_H
#define ALNAIR_VGPU_POOLS_H

#include "ledger/ledger.h"

#define VG_POOL_STEP (32ull << 20) /* pools grow by whole steps of this */

struct vg_range {
    uint64_t start, end;
    CUstream stream;
};
struct vg_pool {
    struct vg_pool *next;
    CUmemoryPool handle; /* NULL: the memory of graphs on this device */
    CUdevice device;
    int row; /* -1: not charged here (imported, host memory) */
    uint64_t charged;
    uint64_t live;            /* allocations not yet freed, and calls under way: they keep it */
    bool destroyed;           /* by the program, while some were live */
    unsigned int drawing;     /* calls under way that allocate from it */
    bool borrowed;            /* one of them, alone, was let pass for what is free in stock */
    _Atomic uint64_t changes; /* rises when something is taken from the stock, or leaves it */
    unsigned int n_ranges;
    struct vg_range range[64]; /* freed in stock: what the same stream may get without growth */
};

/* A call that allocates from a stock: begin, the call, end. No lock is held in between; the pool
 * stays. */
struct vg_draw {
    struct vg_pool *pool;
    uint64_t reserved;
    bool borrowed;
};
/* Reserves `growth`, after giving unused stock back where that is needed. Where there is no room,
 * but `bytes` (0: never) are free in the stock for this stream, the call may pass. False:
 * refused. */
bool vg_draw_begin(struct vg_draw *draw, CUmemoryPool handle, CUdevice device, uint64_t growth,
                   uint64_t bytes, CUstream stream);
/* Charges the true size; `worked`: what the call said. */
void vg_draw_end(struct vg_draw *draw, bool worked);

CUresult vg_pool_allocate(CUmemoryPool handle, CUdevice device, CUdeviceptr *address, size_t bytes,
                          CUstream stream, CUstream given,
                          CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream));
/* The record of what is freed was taken out before. */
CUresult vg_pool_free_async(struct vg_record *record, CUstream stream, CUstream given,
                            CUresult (*call)(CUdeviceptr, CUstream));
/* a pool of this device, -1: not charged here */
void vg_pool_note(CUmemoryPool handle, CUdevice device);
CUresult vg_pool_destroy(CUmemoryPool handle);
uint64_t vg_pool_steps(uint64_t bytes);

/* ---- pools.c, for this shelf; all but the first three under the lock of all stocks ----------- */
void vg_pools_begin(void);
void vg_pools_end(void);
/* The stock, kept alive, when no call is under way that may rely on what is free in it. */
struct vg_pool *vg_pool_enter(CUmemoryPool handle, CUdevice device);
/* One allocation, or one call under way, less; the last of a destroyed stock ends it. */
void vg_pool_leave(struct vg_pool *pool);
/* asks the driver; false: it does not say */
bool vg_pool_size(const struct vg_pool *pool, uint64_t *bytes);
void vg_pool_refresh(struct vg_pool *pool); /* charges the true size */
bool vg_pools_trim(int row); /* gives unused stock back to the GPU; whether there was any */

/* ---- free_ranges.c --------------------------------------------------------------------------- */
void vg_range_freed(struct vg_pool *pool, uint64_t start, uint64_t end, CUstream stream);
/* whether all of it was free in stock */
bool vg_range_taken(struct vg_pool *pool, uint64_t start, uint64_t end);
/* What is free in stock is no longer known: the driver may have given some of it back. */
void vg_ranges_forget(struct vg_pool *pool);
bool vg_range_fits(const struct vg_pool *pool, uint64_t bytes, CUstream stream);

/* ---- pools.c, for others --------------------------------------------------------------------- */
/* Around a call that waits for the GPU: pools may give memory back in it. `only`: one pool, NULL:
 * all; `keep`: what stays in stock, NULL: what each pool's threshold says. */
struct vg_expected {
    bool any;
    uint64_t bytes[VG_DEVICES];
};
void vg_pools_expect(struct vg_expected *expected, CUmemoryPool only, const uint64_t *keep);
void vg_pools_settle(const struct vg_expected *expected);
/* Whether it is time for these two around a call that only asks, which programs make without end:
 * once in a millisecond. What is charged too much until then is looked at before a refusal. */
bool vg_pools_are_due(void);
/* cuMemFree of memory from a pool, whose record was taken out before. */
CUresult vg_pool_free(struct vg_record *record, CUresult (*free_it)(uint64_t));
void vg_pools_refresh(void);      /* charges the true size of every stock */
bool vg_pools_give_back(int row); /* gives unused stock back to the GPU; whether there was any */
void vg_pools_forked(void);

/* ---- graph_memory.c -------------------------------------------------------------------------- */
/* Calls (upload or launch) with the memory that the graph allocates reserved; OUT_OF_MEMORY:
 * refused. */
CUresult vg_graph_run(CUresult (*call)(CUgraphExec, CUstream), CUgraphExec exec, CUstream stream);

/* ---- pending_frees.c ------------------------------------------------------------------------- */
/* cuMemFreeAsync of memory that is not from a pool: credited when the stream has come to it. */
CUresult vg_free_in_stream(struct vg_record *record, CUstream stream, CUstream given,
                           CUresult (*call)(CUdeviceptr, CUstream));
/* credits it when the stream has come to this moment */
void vg_pending_free(const struct vg_record *record, CUstream stream);
bool vg_pending_frees_settle(void); /* credits those that are done; whether there were any */
/* the same, and none is left to another thread that just asks about it: before a refusal */
bool vg_pending_frees_settle_all(void);
/* Around the end of a context: those of it are taken out before, and then have come, or are put
 * back where the driver refused. */
struct pending_free;
struct pending_free *vg_pending_frees_take(const void *context);
void vg_pending_frees_gone(struct pending_free *taken, const void *context);
void vg_pending_frees_put_back(struct pending_free *taken);
void vg_pending_frees_forked(void);

#endif
