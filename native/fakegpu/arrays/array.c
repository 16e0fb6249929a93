/* CUDA arrays and mipmapped arrays. Texels lie in tiles of 64 bytes by 8 rows; each level is
 * aligned to 64 KiB, and the whole takes blocks of 2 MiB of its own (the driver may pack small
 * ones closer). Sparse arrays and those for deferred mapping take nothing: memory is mapped into
 * them (array_mapping.c). */
#include "arrays/array.h"

#include <stdlib.h>
#include <string.h>

#include "clock/clock.h"
#include "memory/gpu_memory.h"
#include "memory/space.h"
#include "state/ledger.h"
#include "vmm/physical.h"

#define LEVEL_ALIGN (64ull << 10)
#define UNBACKED (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)

struct array {
    struct array *next;
    struct fg_context *context;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    unsigned levels;      /* 0: a plain array */
    struct array **level; /* of a mipmapped array: made when asked for */
    struct array *of;     /* a level's mipmapped array */
    uint64_t bytes, charged;
};
static struct array *arrays;

static struct array *find(const void *handle, bool mipmapped)
{
    for (struct array *each = arrays; each; each = each->next)
        if (each == handle && (each->levels > 0) == mipmapped)
            return each;
    return NULL;
}

/* Bytes of one element; 0: a format we do not know. */
static unsigned element(CUarray_format format, unsigned channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4 * channels;
    default: /* packed ones: at most four channels of 32 bits */
        return (unsigned)format >= 0x50 && (unsigned)format <= 0xcb ? 16 : 0;
    }
}

static uint64_t pitch_of(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return fg_round_up(shape->Width * element(shape->Format, shape->NumChannels), 64);
}

static uint64_t rows_of(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return shape->Height ? fg_round_up(shape->Height, 8) : 1;
}

/* UINT64_MAX where it overflows. */
static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t bytes;
    if (shape->Width > 1ull << 40 ||
        __builtin_mul_overflow(pitch_of(shape), rows_of(shape), &bytes) ||
        __builtin_mul_overflow(bytes, shape->Depth ? shape->Depth : 1, &bytes) ||
        bytes > 1ull << 46)
        return UINT64_MAX;
    return bytes;
}

static CUDA_ARRAY3D_DESCRIPTOR level_shape(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR smaller = *shape;
    bool layered = shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    smaller.Width = shape->Width >> level ? shape->Width >> level : 1;
    smaller.Height = shape->Height ? (shape->Height >> level ? shape->Height >> level : 1) : 0;
    if (!layered)
        smaller.Depth = shape->Depth ? (shape->Depth >> level ? shape->Depth >> level : 1) : 0;
    return smaller;
}

static bool proper(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return shape && shape->Width && element(shape->Format, shape->NumChannels) &&
           (shape->NumChannels == 1 || shape->NumChannels == 2 || shape->NumChannels == 4) &&
           (!(shape->Flags & CUDA_ARRAY3D_CUBEMAP) ||
            (shape->Width == shape->Height && shape->Depth % 6 == 0));
}

static CUresult create(struct array **out, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
    struct fg_context *context;
    if (!out || !proper(shape))
        return CUDA_ERROR_INVALID_VALUE;
    fg_clock_spend(0);
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    uint64_t bytes = 0;
    for (unsigned level = 0; level < (levels ? levels : 1) && bytes != UINT64_MAX; level++) {
        CUDA_ARRAY3D_DESCRIPTOR smaller = level_shape(shape, level);
        uint64_t more = bytes_of(&smaller);
        bytes = more == UINT64_MAX ? UINT64_MAX : bytes + fg_round_up(more, LEVEL_ALIGN);
    }
    if (!result && bytes == UINT64_MAX)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        const struct fg_profile *profile = &fg_state->gpu[context->gpu].profile;
        uint64_t charged = shape->Flags & UNBACKED ? 0 : fg_round_up(bytes, profile->block_bytes);
        if (charged)
            result = fg_take_gpu_memory(context->gpu, charged);
        struct array *array = result ? NULL : calloc(1, sizeof *array);
        if (array) {
            *array = (struct array){.next = arrays,
                                    .context = context,
                                    .shape = *shape,
                                    .levels = levels,
                                    .bytes = bytes,
                                    .charged = charged};
            if (levels)
                array->level = calloc(levels, sizeof *array->level);
            arrays = array;
            *out = array;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static void end(struct array *array)
{
    struct array **at = &arrays;
    for (unsigned level = 0; level < array->levels; level++)
        if (array->level[level])
            end(array->level[level]);
    while (*at != array)
        at = &(*at)->next;
    *at = array->next;
    fg_bindings_end(array);
    fg_uncharge(array->context->gpu, array->charged);
    free(array->level);
    free(array);
}

void fg_arrays_context_gone(struct fg_context *context)
{
    for (struct array *each = arrays; each;) {
        struct array *doomed = each->context == context && !each->of ? each : NULL;
        each = each->next;
        if (doomed) {
            end(doomed);
            each = arrays; /* its levels went, too */
        }
    }
}

bool fg_array_takes_mappings(const void *handle, bool mipmapped)
{
    const struct array *array = find(handle, mipmapped);
    return array && array->shape.Flags & UNBACKED;
}

/* ---- the calls ------------------------------------------------------------------------------- */

CUresult FG(cuArray3DCreate_v2)(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return create((struct array **)out, shape, 0);
}

CUresult FG(cuArrayCreate_v2)(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *flat)
{
    if (!flat)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = flat->Width,
                                     .Height = flat->Height,
                                     .Format = flat->Format,
                                     .NumChannels = flat->NumChannels};
    return create((struct array **)out, &shape, 0);
}

CUresult FG(cuArray3DCreate)(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *old)
{
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = old->Width,
                                     .Height = old->Height,
                                     .Depth = old->Depth,
                                     .Format = old->Format,
                                     .NumChannels = old->NumChannels,
                                     .Flags = old->Flags};
    return create((struct array **)out, &shape, 0);
}

CUresult FG(cuArrayCreate)(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *old)
{
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = old->Width,
                                     .Height = old->Height,
                                     .Format = old->Format,
                                     .NumChannels = old->NumChannels};
    return create((struct array **)out, &shape, 0);
}

CUresult FG(cuArrayDestroy)(CUarray handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct array *array = find(handle, false);
    bool whole = array && !array->of; /* a level goes with its mipmapped array */
    if (whole)
        end(array);
    pthread_mutex_unlock(&fg_mutex);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct array *array = find(handle, false);
    if (array && shape)
        *shape = array->shape;
    pthread_mutex_unlock(&fg_mutex);
    return !array ? CUDA_ERROR_INVALID_HANDLE : shape ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR *flat, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUresult result = FG(cuArray3DGetDescriptor_v2)(flat ? &shape : NULL, handle);
    if (!result)
        *flat = (CUDA_ARRAY_DESCRIPTOR){.Width = shape.Width,
                                        .Height = shape.Height,
                                        .Format = shape.Format,
                                        .NumChannels = shape.NumChannels};
    return result;
}

/* Only of arrays made for deferred mapping, as the driver's documentation says. */
static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const void *handle,
                             bool mipmapped, CUdevice device)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fg_mutex);
    struct array *array = find(handle, mipmapped);
    bool deferred = array && out && array->shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING;
    if (deferred) {
        memset(out, 0, sizeof *out);
        out->size = array->bytes;
        out->alignment = LEVEL_ALIGN;
    }
    pthread_mutex_unlock(&fg_mutex);
    return deferred ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle,
                                          CUdevice device)
{
    return requirements(out, handle, false, device);
}

CUresult FG(cuMipmappedArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS *out,
                                                   CUmipmappedArray handle, CUdevice device)
{
    return requirements(out, handle, true, device);
}

CUresult FG(cuMipmappedArrayCreate)(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                    unsigned int levels)
{
    if (!shape || !levels)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t widest = shape->Width > shape->Height ? shape->Width : shape->Height;
    unsigned most = 1;
    while (widest >>= 1)
        most++;
    return create((struct array **)out, shape, levels < most ? levels : most);
}

CUresult FG(cuMipmappedArrayGetLevel)(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
    pthread_mutex_lock(&fg_mutex);
    struct array *whole = find(handle, true);
    CUresult result = !whole                           ? CUDA_ERROR_INVALID_HANDLE
                      : !out || level >= whole->levels ? CUDA_ERROR_INVALID_VALUE
                                                       : CUDA_SUCCESS;
    if (!result && !whole->level[level]) {
        struct array *array = calloc(1, sizeof *array);
        if (!array)
            abort();
        *array = (struct array){.next = arrays,
                                .context = whole->context,
                                .of = whole,
                                .shape = level_shape(&whole->shape, level)};
        array->bytes = fg_round_up(bytes_of(&array->shape), LEVEL_ALIGN);
        arrays = whole->level[level] = array;
    }
    if (!result)
        *out = (CUarray)whole->level[level];
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMipmappedArrayDestroy)(CUmipmappedArray handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct array *array = find(handle, true);
    if (array)
        end(array);
    pthread_mutex_unlock(&fg_mutex);
    return array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
