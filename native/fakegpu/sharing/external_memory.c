/* External memory: somebody else's (a graphics API's), so nobody is charged. */
#include <stdlib.h>

#include "memory/space.h"
#include "sharing/imported.h"

struct external {
    struct external *next;
    int gpu;
    uint64_t size;
};
static struct external *externals;

static struct external *find_external(CUexternalMemory handle)
{
    struct external *each = externals;
    while (each && each != (struct external *)handle)
        each = each->next;
    return each;
}

CUresult FG(cuImportExternalMemory)(CUexternalMemory *out,
                                    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *wanted)
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
    if (external && out && wanted && wanted->size &&
        wanted->offset + wanted->size <= external->size) {
        uint64_t base = fg_va_reserve(fg_round_up(wanted->size, 2 << 20), 2 << 20);
        fg_range_new(FG_IMPORTED, external->gpu, fg_current_context(), base, wanted->size)->free =
            fg_imported_free;
        *out = base;
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
