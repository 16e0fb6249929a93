/* Memory of graphs. A node's address is fixed when it is added; bytes are taken when a launch
 * (or an upload) needs them, stay reserved for graphs of this process when they are freed, and
 * go back to the GPU only by cuDeviceGraphMemTrim. The driver does so, too. */
#include "graphs/graph_memory.h"

#include <stdlib.h>

#include "memory/gpu_memory.h"
#include "memory/ranges.h"
#include "memory/space.h"
#include "state/ledger.h"
#include "streams/capture.h"

struct block { /* of one address; goes with the last that can mean it */
    struct block *next;
    uint64_t address, bytes;
    int gpu, uses; /* uses: nodes, and nodes of executable graphs */
    bool live;     /* a launch has allocated it, and nothing has freed it */
};
static struct block *blocks; /* fg_mutex */
static struct { uint64_t used, used_high, reserved, reserved_high; } memory[FG_GPUS];

static struct block *block_at(uint64_t address)
{
    struct block *each = blocks;
    while (each && each->address != address)
        each = each->next;
    return each;
}

static void give_back(struct block *block)
{
    memory[block->gpu].used -= block->bytes;
    block->live = false;
}

static void end_if_unused(struct block *block)
{
    if (block->uses || block->live)
        return;
    for (struct block **at = &blocks; *at; at = &(*at)->next)
        if (*at == block) {
            *at = block->next;
            break;
        }
    fg_range_end(fg_range_at(block->address));
    fg_va_release(block->address, block->bytes);
    free(block);
}

/* What a launch allocated, freed by cuMemFree; an error where there is none there now. */
static CUresult free_at(struct fg_range *range)
{
    pthread_mutex_lock(&fg_mutex);
    struct block *block = block_at(range->base);
    bool freed = block && block->live;
    if (freed) {
        give_back(block);
        end_if_unused(block);
    }
    pthread_mutex_unlock(&fg_mutex);
    return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fg_graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    if (!p->bytesize || p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = fg_gpu_of_device(p->poolProps.location.id);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t step = fg_state->gpu[gpu].profile.block_bytes;
    pthread_mutex_lock(&fg_mutex);
    struct block *block = calloc(1, sizeof *block);
    block->bytes = fg_round_up(p->bytesize, step);
    block->gpu = gpu;
    block->address = fg_va_reserve(block->bytes, step);
    struct fg_range *range =
        block->address ? fg_range_new(FG_GRAPHED, gpu, NULL, block->address, p->bytesize) : NULL;
    CUresult result = range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        free(block);
    } else {
        range->free = free_at;
        block->next = blocks;
        blocks = block;
        p->dptr = block->address;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static CUresult reserve(int gpu, uint64_t bytes)
{
    bytes = fg_round_up(bytes, fg_state->gpu[gpu].profile.pool_step_bytes);
    if (bytes <= memory[gpu].reserved)
        return CUDA_SUCCESS;
    CUresult result = fg_take_gpu_memory(gpu, bytes - memory[gpu].reserved);
    if (result)
        return result;
    memory[gpu].reserved = bytes;
    if (bytes > memory[gpu].reserved_high)
        memory[gpu].reserved_high = bytes;
    return CUDA_SUCCESS;
}

void fg_graph_memory_uses(const struct fg_work *work, int more)
{
    if (work->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return;
    pthread_mutex_lock(&fg_mutex);
    struct block *block = block_at(work->alloc.dptr);
    if (block) {
        block->uses += more;
        end_if_unused(block);
    }
    pthread_mutex_unlock(&fg_mutex);
}

/* All that the launch allocates and frees is reckoned at once: a launch that cannot have its memory
 * changes nothing. */
CUresult fg_graph_memory_take(const struct fg_item *item, size_t n, uint64_t flags,
                              bool only_reserve)
{
    uint64_t now[FG_GPUS], most[FG_GPUS];
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fg_mutex);
    bool again = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    for (size_t i = 0; i < n && !only_reserve && !result; i++) {
        struct block *block = item[i].work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
                                  ? block_at(item[i].work.alloc.dptr)
                                  : NULL;
        if (block && block->live && again)
            give_back(block);
        else if (block && block->live)
            result = CUDA_ERROR_INVALID_VALUE; /* not freed since the last launch */
    }
    for (int gpu = 0; gpu < FG_GPUS; gpu++)
        now[gpu] = most[gpu] = memory[gpu].used;
    for (size_t i = 0; i < n; i++) {
        const struct fg_work *work = &item[i].work;
        bool alloc = work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC,
             release = work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
        struct block *block = alloc     ? block_at(work->alloc.dptr)
                              : release ? block_at(work->address)
                                        : NULL;
        if (!block)
            continue;
        now[block->gpu] += alloc ? block->bytes : -block->bytes;
        if (now[block->gpu] > most[block->gpu] && now[block->gpu] < 1ull << 60)
            most[block->gpu] = now[block->gpu];
    }
    for (int gpu = 0; gpu < fg_state->gpus && !result; gpu++)
        result = reserve(gpu, most[gpu]);
    for (size_t i = 0; i < n && !only_reserve && !result; i++) {
        const struct fg_work *work = &item[i].work;
        struct block *block = work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
                                  ? block_at(work->alloc.dptr)
                              : work->type == CU_GRAPH_NODE_TYPE_MEM_FREE ? block_at(work->address)
                                                                          : NULL;
        if (block && work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            memory[block->gpu].used += block->bytes;
            block->live = true;
        } else if (block && block->live) {
            give_back(block);
        }
    }
    for (int gpu = 0; gpu < FG_GPUS && !only_reserve && !result; gpu++)
        if (most[gpu] > memory[gpu].used_high)
            memory[gpu].used_high = most[gpu];
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- captured cuMemAllocAsync and cuMemFreeAsync --------------------------------------------- */

CUresult fg_capture_memory_alloc(struct fg_stream *stream, uint64_t bytes, CUdeviceptr *out)
{
    struct fg_work work = {
        .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        .alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
                  .bytesize = bytes}};
    work.alloc.poolProps.location.id = stream->context->device;
    CUresult result = fg_graph_memory_new(&work.alloc);
    if (result)
        return result;
    result = fg_capture_add(stream, &work, NULL);
    fg_graph_memory_uses(&work, 0); /* none where it was refused */
    if (!result)
        *out = work.alloc.dptr;
    return result;
}

CUresult fg_capture_memory_free(struct fg_stream *stream, CUdeviceptr address)
{
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
    return fg_range_at(address) ? fg_capture_add(stream, &work, NULL) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the driver's functions ------------------------------------------------------------------ */

CUresult FG(cuDeviceGraphMemTrim)(CUdevice device)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fg_mutex);
    fg_uncharge(gpu, memory[gpu].reserved - memory[gpu].used);
    memory[gpu].reserved = memory[gpu].used;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attribute,
                                          void *value)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    *(cuuint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? memory[gpu].used
                           : attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH  ? memory[gpu].used_high
                           : attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
                               ? memory[gpu].reserved
                               : memory[gpu].reserved_high;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceSetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attribute,
                                          void *value)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value ||
        (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
         attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE; /* the marks can only be put back to now */
    pthread_mutex_lock(&fg_mutex);
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        memory[gpu].used_high = memory[gpu].used;
    else
        memory[gpu].reserved_high = memory[gpu].reserved;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}
