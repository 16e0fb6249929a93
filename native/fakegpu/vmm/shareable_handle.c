/* Physical memory of one process in another, by a descriptor: a file beside the state, with a
 * lock that lives as long as any copy of the descriptor does, in any process; state/holders.c
 * looks at it. */
#include "sharing/export_fd.h"
#include "state/ledger.h"
#include "vmm/physical.h"

CUresult FG(cuMemExportToShareableHandle)(void *out, CUmemGenericAllocationHandle number,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (handle && handle->gpu >= 0 && handle->properties.requestedHandleTypes & type) {
        if (handle->shared < 0) {
            uint64_t id;
            int shared = fg_shared_make(handle->gpu, handle->size, &id);
            if (shared >= 0)
                fg_physical_make_shareable(handle, shared, id);
        }
        struct fg_export text = {.kind = FG_EXPORT_HANDLE,
                                 .shared = handle->shared,
                                 .id = handle->shared_id,
                                 .size = handle->size,
                                 .gpu = handle->gpu,
                                 .properties = handle->properties};
        int fd = handle->shared < 0 ? -1 : fg_export_make(&text);
        result = fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        if (fd >= 0)
            *(int *)out = fd;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemImportFromShareableHandle)(CUmemGenericAllocationHandle *out, void *os_handle,
                                            CUmemAllocationHandleType type)
{
    struct fg_export text;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!fg_export_read((int)(intptr_t)os_handle, FG_EXPORT_HANDLE, &text) ||
        fg_device_of_gpu(text.gpu) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = CUDA_SUCCESS;
    struct fg_physical *handle = fg_physical_of_shared(text.id);
    if (handle) { /* the same memory: another reference to it */
        handle->held++;
    } else if (fg_shared_hold(text.shared, text.id)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        handle = fg_physical_new(text.gpu, text.size, &text.properties);
        handle->properties.location.id = fg_device_of_gpu(text.gpu);
        fg_physical_make_shareable(handle, text.shared, text.id);
    }
    if (!result)
        *out = handle->number;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}
