/* Memory of one process in another by an IPC handle. It is charged to the process that allocated
 * it, until the last process that has it open lets go. */
#include <stdlib.h>
#include <string.h>

#include "memory/heap.h"
#include "memory/space.h"
#include "sharing/imported.h"
#include "state/ledger.h"
#include "state/process_table.h"

#define MAGIC 0x637069656b616621ull
struct wire {
    uint64_t magic, id, size, offset;
    int32_t shared, gpu, pid;
};
_Static_assert(sizeof(struct wire) <= sizeof(CUipcMemHandle), "fits the handle");

CUresult FG(cuIpcGetMemHandle)(CUipcMemHandle *out, CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (out && range && range->kind == FG_DEVICE) {
        struct wire wire = {
            .magic = MAGIC, .gpu = range->gpu, .pid = fg_state->process[fg_own_process()].pid};
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
        result = CUDA_ERROR_INVALID_CONTEXT; /* not within one process */
    if (!result && fg_shared_hold(wire.shared, wire.id))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        uint64_t size = fg_round_up(wire.size, 2 << 20), base = fg_va_reserve(size, 2 << 20);
        struct fg_range *range = fg_range_new(FG_IMPORTED, wire.gpu, context, base, wire.size);
        if (!range)
            abort();
        range->free = fg_imported_free;
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

CUresult fg_imported_free(struct fg_range *range)
{
    uint64_t base = range->base, size = range->size;
    if (range->shared >= 0)
        fg_shared_drop(range->shared, range->shared_id);
    fg_range_end(range);
    fg_va_release(base, fg_round_up(size, 2 << 20));
    return CUDA_SUCCESS;
}
