/* Device addresses, and the ranges that a program allocated or mapped at them. With fg_mutex
 * held. */
#ifndef FG_RANGES_H
#define FG_RANGES_H
#include "driver/current_context.h"

enum fg_kind {
    FG_DEVICE,
    FG_MANAGED,
    FG_POOLED,   /* owner: pool */
    FG_MAPPED,   /* owner: struct fg_physical */
    FG_IMPORTED, /* another process's memory */
    FG_HOST,
    FG_REGISTERED, /* page-locked */
    FG_GLOBAL,     /* part of a module */
    FG_GRAPHED,    /* of a graph's allocation node */
};
/* data: made at the first copy; NULL: reads as zero */
struct fg_content {
    void *data;
    uint64_t bytes;
};
struct fg_range {        /* one allocation as the program sees it */
    uint64_t base, size; /* size: as asked for */
    enum fg_kind kind;
    int gpu;
    struct fg_context *context; /* NULL: outlives contexts */
    uint64_t charged;           /* bytes of the GPU that go with it; 0: part of something bigger */
    uint64_t id;                /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    uint64_t block_id;          /* CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID */
    unsigned flags, handle_types; /* handle_types: that its physical memory may be exported as */
    void *owner;                  /* pool, handle, module: by kind */
    CUresult (*free)(struct fg_range *range); /* what cuMemFree does to it; NULL: refuses */
    /* content: its own, or that of the physical memory mapped there */
    struct fg_content own, *content;
    struct fg_range *next, *previous; /* of the same context */
    int shared;                       /* index in fg_state->shared, -1: private */
    uint64_t shared_id;
};
struct fg_range *fg_range_at(uint64_t address); /* that holds it; NULL: ordinary host memory */
struct fg_range *fg_range_overlapping(uint64_t base, uint64_t size); /* any */
struct fg_range *fg_range_new(enum fg_kind kind, int gpu, struct fg_context *context, uint64_t base,
                              uint64_t size);
void fg_range_end(struct fg_range *range);      /* forgets it; its bytes are the caller's affair */
CUresult fg_range_free(struct fg_range *range); /* ends it as who made it says */
/* cuMemFree without waiting for the GPU; takes fg_mutex */
CUresult fg_memory_free(CUdeviceptr address);

uint64_t fg_va_reserve(uint64_t bytes, uint64_t align); /* device addresses; 0: none left */
uint64_t fg_va_reserve_low(uint64_t bytes);             /* below 4 GiB, for the ABI of CUDA 3.1 */
bool fg_va_reserve_at(uint64_t at, uint64_t bytes);
void fg_va_release(uint64_t at, uint64_t bytes);
bool fg_va_ours(uint64_t address); /* only the fake gives out such addresses */
#endif
