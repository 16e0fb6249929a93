/* Memory of one process in another: IPC handles and external memory. It is charged to the process that
 * allocated it, until the last process that has it open lets go. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver/core.h"
#include "memory/memory.h"

#define MAGIC 0x637069656b616621ull
struct wire { uint64_t magic, id, size, offset; int32_t shared, gpu, pid; };
_Static_assert(sizeof(struct wire) <= sizeof(CUipcMemHandle), "fits the handle");

CUresult FG(cuIpcGetMemHandle)(CUipcMemHandle *out, CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (out && range && range->kind == FG_DEVICE) {
        struct wire wire = {.magic = MAGIC, .gpu = range->gpu, .pid = fg_state->process[fg_own_process()].pid};
        wire.size = fg_range_share(range, &wire.shared, &wire.id, &wire.offset);
        memset(out, 0, sizeof *out);
        memcpy(out, &wire, sizeof wire);
        result = wire.size ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuIpcOpenMemHandle_v2)(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    struct wire wire;
    struct fg_context *context;
    memcpy(&wire, &handle, sizeof wire);
    if (!out || wire.magic != MAGIC || flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result && wire.pid == fg_state->process[fg_own_process()].pid)
        result = CUDA_ERROR_INVALID_CONTEXT;   /* not within one process */
    if (!result && fg_shared_hold(wire.shared, wire.id))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        uint64_t size = fg_round_up(wire.size, 2 << 20), base = fg_va_reserve(size, 2 << 20);
        struct fg_range *range = fg_range_new(FG_IMPORTED, wire.gpu, context, base, wire.size);
        if (!range)
            abort();
        range->shared = wire.shared;
        range->shared_id = wire.id;
        *out = base + wire.offset;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuIpcOpenMemHandle)(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return FG(cuIpcOpenMemHandle_v2)(out, handle, flags);
}

CUresult FG(cuIpcCloseMemHandle)(CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (range && range->kind == FG_IMPORTED && range->shared >= 0)
        result = fg_range_free(range);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- external memory: somebody else's (a graphics API's), so nobody is charged ----------------------- */

struct external { struct external *next; int gpu; uint64_t size; };
static struct external *externals;

static struct external *find_external(CUexternalMemory handle)
{
    struct external *each = externals;
    while (each && each != (struct external *)handle)
        each = each->next;
    return each;
}

CUresult FG(cuImportExternalMemory)(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *wanted)
{
    struct fg_context *context;
    if (!out || !wanted || !wanted->size)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    struct external *made = result ? NULL : malloc(sizeof *made);
    if (made) {
        *made = (struct external){externals, context->gpu, wanted->size};
        externals = made;
        *out = (CUexternalMemory)made;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuExternalMemoryGetMappedBuffer)(CUdeviceptr *out, CUexternalMemory handle,
                                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *wanted)
{
    pthread_mutex_lock(&fg_mutex);
    struct external *external = find_external(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (external && out && wanted && wanted->size && wanted->offset + wanted->size <= external->size) {
        uint64_t base = fg_va_reserve(fg_round_up(wanted->size, 2 << 20), 2 << 20);
        *out = fg_range_new(FG_IMPORTED, external->gpu, fg_current_context(), base, wanted->size)->base;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuDestroyExternalMemory)(CUexternalMemory handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct external *external = find_external(handle), **at = &externals;
    if (external) {
        while (*at != external)
            at = &(*at)->next;
        *at = external->next;
        free(external);
    }
    pthread_mutex_unlock(&fg_mutex);
    return external ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
