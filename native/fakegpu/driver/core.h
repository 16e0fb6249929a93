/* Inside the fake libcuda.so.1: what its modules offer each other.
 *
 * A model of a driver function is written `CUresult FG(cuMemAlloc_v2)(...)`; the generator makes the
 * exported function, which counts the call, refuses it before cuInit, injects faults, and calls the
 * model. A per-thread variant (_ptsz, _ptds) without a model of its own calls the plain one with
 * fg_per_thread set: NULL then means the thread's own stream. What has no model answers
 * CUDA_ERROR_NOT_SUPPORTED.
 *
 * Handles are pointers into this process, checked against its tables: a stale or foreign one gives an
 * error, never a crash. fg_mutex guards the tables; it may be taken before fg_lock(), never after.
 */
#ifndef FG_CORE_H
#define FG_CORE_H

#define __CUDA_API_VERSION_INTERNAL 1   /* declare every ABI by its own name */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "state/ledger.h"
#include "state/process_table.h"
#include "state/state.h"
#include "clock/clock.h"
#include "engine/engine.h"

#define FG(name) fgi_##name
#include "fg_declarations.h"

extern __thread bool fg_per_thread;     /* this call came by a per-thread variant */
extern pthread_mutex_t fg_mutex;        /* recursive; of this process's tables */
extern int fg_presented;                /* driver version, as in 13050 */

/* ---- process.c, device.c ----------------------------------------------------------------------- */
CUresult fg_initialized(void);                 /* CUDA_SUCCESS once cuInit has succeeded in this process */
void fg_read_visible_devices(int *devices);      /* reads CUDA_VISIBLE_DEVICES; how many */
int fg_gpu_of_device(CUdevice device);         /* index in fg_state->gpu; -1: no such ordinal */
CUdevice fg_device_of_gpu(int gpu);         /* ordinal here; -1: not visible */
CUresult fg_gpu_status(int gpu);        /* CUDA_ERROR_DEVICE_UNAVAILABLE... where it is lost */

/* ---- context.c --------------------------------------------------------------------------------- */
struct fg_range;
struct fg_context {
    struct fg_context *next;
    uint64_t id;
    int gpu;
    CUdevice device;
    unsigned flags, api_version;
    bool alive, primary;
    int retained;                       /* of a primary context */
    uint64_t charged;                   /* bytes beside its allocations */
    size_t limit[16];
    int engine;                         /* fg_engine_context_open's index */
    void *streams;                      /* stream.c's */
    struct fg_block *blocks;            /* memory.c: blocks that small allocations share */
    struct fg_range *ranges;            /* what was allocated in it */
    int sm_count;                       /* of a green context; 0: all */
};
struct fg_context *fg_current_context(void);    /* the calling thread's, NULL: none (or destroyed) */
/* The current one, or the error that calls without one give. */
CUresult fg_need_context(struct fg_context **context);
struct fg_context *fg_context_of(CUcontext handle);   /* NULL: not a live context */

/* With fg_mutex held; see green.c. */
CUresult fg_green_context_make(CUdevice device, int sm_count, struct fg_context **out);
void fg_green_context_end(struct fg_context *context);

/* ---- stream.c, for context.c ----------------------------------------------------------------------- */
void fg_streams_context_made(struct fg_context *context);
void fg_streams_context_gone(struct fg_context *context);  /* before its memory goes */

/* ---- memory.c ---------------------------------------------------------------------------------- */
enum fg_kind {
    FG_DEVICE, FG_MANAGED,
    FG_POOLED,                          /* owner: pool */
    FG_MAPPED,                          /* owner: struct fg_physical */
    FG_IMPORTED,                        /* another process's memory */
    FG_HOST, FG_REGISTERED,             /* page-locked */
    FG_GLOBAL,                          /* part of a module */
    FG_GRAPHED,                         /* of a graph's allocation node */
};
struct fg_range {                       /* one allocation as the program sees it */
    uint64_t base, size;                /* size: as asked for */
    enum fg_kind kind;
    int gpu;
    struct fg_context *context;         /* NULL: outlives contexts */
    uint64_t charged;                   /* bytes of the GPU that go with it; 0: part of something bigger */
    uint64_t id;                        /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    unsigned flags;
    void *owner;                        /* pool, handle, module: by kind */
    void *backing;                      /* its data, made at the first copy; NULL: reads as zero */
    struct fg_range *next, *previous;   /* of the same context */
    int shared;                         /* index in fg_state->shared, -1: private */
    uint64_t shared_id;
};
struct fg_range *fg_range_overlapping(uint64_t base, uint64_t size); /* any range that overlaps it */
struct fg_range *fg_range_at(uint64_t address);  /* the range that holds it; NULL: ordinary host memory */
/* All with fg_mutex held. take: from the driver's heap of a context (small ones share blocks). */
CUresult fg_heap_allocate(struct fg_context *context, uint64_t bytes, enum fg_kind kind, struct fg_range **range);
CUresult fg_range_free(struct fg_range *range);    /* ends it as its kind demands */
struct fg_range *fg_range_new(enum fg_kind kind, int gpu, struct fg_context *context, uint64_t base,
                              uint64_t size);
void fg_range_end(struct fg_range *range);   /* forgets it; its bytes are the caller's affair */
void fg_memory_context_gone(struct fg_context *context);
CUresult fg_take_gpu_memory(int gpu, uint64_t bytes);   /* fg_charge with faults and as a CUresult */
CUresult fg_take_gpu_memory_in_pieces(int gpu, uint64_t bytes, uint64_t largest); /* need not be in one piece */
uint64_t fg_va_reserve(uint64_t bytes, uint64_t align); /* device addresses; 0: none left */
bool fg_va_reserve_at(uint64_t at, uint64_t bytes);
void fg_va_release(uint64_t at, uint64_t bytes);
bool fg_va_ours(uint64_t address);           /* only the fake gives out such addresses */

/* ---- pool.c ------------------------------------------------------------------------------------- */
void fg_pools_synchronized(void);            /* the host waited for GPU work: pools let go what they may */
bool fg_pools_trim(int gpu);                 /* under need; true: something was released */
CUresult fg_pool_free(struct fg_range *range);
/* graph_memory.c: ends an allocation that a launch of a graph made; false: there is none there now. */
bool fg_graph_memory_free(uint64_t address);
CUresult fg_memory_free(CUdeviceptr address);       /* memory.c: cuMemFree without waiting for the GPU */

/* ---- vmm.c -------------------------------------------------------------------------------------- */
struct fg_physical {                    /* physical memory: lives while held, mapped, or exported */
    uint64_t number;                    /* CUmemGenericAllocationHandle */
    struct fg_physical *next;
    int gpu;                            /* -1: of the host */
    uint64_t size;
    unsigned held, mapped;
    CUmemAllocationProp properties;
    bool multicast;                     /* no memory, but binds that of several GPUs */
    unsigned devices;                   /* of a multicast object: bits by GPU */
    int shared;                         /* as in struct fg_range */
    uint64_t shared_id;
    void *backing;
};
struct fg_physical *fg_physical_of(CUmemGenericAllocationHandle number); /* held; NULL: no such handle */
struct fg_physical *fg_multicast_new(uint64_t size);
void fg_physical_end_if_unheld(struct fg_physical *physical);  /* ends it where nothing holds it */
void fg_bindings_end(const void *owner);                 /* bindings.c: of an array or a multicast object */

/* ---- module.c ----------------------------------------------------------------------------------- */
void fg_modules_context_gone(struct fg_context *context);

/* ---- array.c ------------------------------------------------------------------------------------ */
bool fg_array_takes_mappings(const void *handle, bool mipmapped); /* sparse, or for deferred mapping */
void fg_arrays_context_gone(struct fg_context *context);

/* ---- data.c: the bytes themselves, for copy.c ----------------------------------------------------- */
/* Device memory has content as far as it was written by copies of up to FAKEGPU_DATA bytes (default
 * 64 MiB); what was not reads as zero. Addresses of host memory are used as they are. */
bool fg_address_valid(uint64_t address, uint64_t bytes);     /* false: reaches out of an allocation */
void fg_copy_bytes(uint64_t to, uint64_t from, uint64_t bytes);
void fg_fill_bytes(uint64_t at, uint32_t value, unsigned width, uint64_t count); /* width 1, 2, 4 */

/* ---- space.c: first fit over free intervals ------------------------------------------------------- */
struct fg_gap { uint64_t at, bytes; };
struct fg_space { struct fg_gap *gap; unsigned gaps, room; uint64_t free; };
void fg_space_add(struct fg_space *space, uint64_t at, uint64_t bytes); /* free interval, or one given back */
uint64_t fg_space_take(struct fg_space *space, uint64_t bytes, uint64_t align); /* 0: none */
bool fg_space_take_at(struct fg_space *space, uint64_t at, uint64_t bytes);
void fg_space_end(struct fg_space *space);

uint64_t fg_round_up(uint64_t bytes, uint64_t step);

#endif
