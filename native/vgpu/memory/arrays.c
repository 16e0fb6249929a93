/* CUDA arrays and mipmapped arrays.
 *
 * How an array is laid out is the driver's secret: before the call a bound on its size is reserved,
 * after it the driver is asked (cu*GetMemoryRequirements); where it does not tell, the bound stays
 * charged. Sparse arrays and those with deferred mapping have no memory of their own: theirs comes
 * by cuMemMapArrayAsync from physical handles (virtual_memory/sparse_arrays.c). Their record has no
 * bytes. */
#include "memory/memory.h"
#include "virtual_memory/virtual_memory.h"

#define ARRAY_ALIGN (64ull << 10)

static uint64_t multiplied(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return value > UINT64_MAX - step ? UINT64_MAX : (value + step - 1) / step * step;
}

/* Bytes of an element: the formats of one and two bytes are known, no other has more than 4 a
 * channel. */
static uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    unsigned int f = (unsigned int)d->format, channels = d->channels ? d->channels : 1;
    if (f == 0x01 || f == 0x08)
        return channels;
    if (f == 0x02 || f == 0x09 || f == 0x10)
        return 2ull * channels;
    return 4ull * (channels < 4 && f >= 0x50 ? 4 : channels);
}

/* All levels: each dimension halves; memory is tiled by 64 bytes x 8 rows, layers are not
 * halved. */
static uint64_t array_bound(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
    uint64_t width = d->width, height = d->height ? d->height : 1, depth = d->depth ? d->depth : 1,
             sum = 0;
    if (d->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    for (unsigned int level = 0; level < levels && level < 64; level++) {
        uint64_t rows = height > 1 ? round_up(height, 8) : 1;
        uint64_t bytes = round_up(
            multiplied(multiplied(round_up(multiplied(width, element_bytes(d)), 64), rows), depth),
            ARRAY_ALIGN);
        sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
        width = width > 1 ? width / 2 : 1;
        height = height > 1 ? height / 2 : 1;
        if (!(d->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
            depth = depth > 1 ? depth / 2 : 1;
    }
    return vg_rounded(sum);
}

static bool array_begin(struct vg_charge *charge, const CUDA_ARRAY3D_DESCRIPTOR *d,
                        unsigned int levels)
{
    int row = vg_current_row();
    uint64_t bound = row >= 0 && d ? array_bound(d, levels) : 0;
    return vg_charge_begin(charge, row, bound, bound, VG_CALL_ALLOC);
}

static CUresult array_made(struct vg_charge *charge, CUresult result, enum vg_kind kind,
                           void *handle)
{
    uint64_t actual = result == CUDA_SUCCESS ? charge->reserved : 0;
    CUDA_ARRAY_MEMORY_REQUIREMENTS need = {0};
    if (result == CUDA_SUCCESS && charge->row >= 0) {
        CUdevice device = vg_row_device(charge->row);
        CUresult asked = CUDA_ERROR_NOT_SUPPORTED;
        if (!actual)
            ;
        else if (kind == VG_KIND_ARRAY && REAL(cuArrayGetMemoryRequirements))
            asked = REAL(cuArrayGetMemoryRequirements)(&need, handle, device);
        else if (kind == VG_KIND_MIPMAP && REAL(cuMipmappedArrayGetMemoryRequirements))
            asked = REAL(cuMipmappedArrayGetMemoryRequirements)(&need, handle, device);
        if (asked == CUDA_SUCCESS && need.size)
            actual = vg_rounded(need.size);
        if (!vg_charge_more(charge, actual)) {
            kind == VG_KIND_ARRAY ? REAL(cuArrayDestroy)(handle)
                                  : REAL(cuMipmappedArrayDestroy)(handle);
            vg_charge_end(charge, 0);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        vg_record_put(&(struct vg_record){.kind = (uint8_t)kind,
                                          .key = (uint64_t)handle,
                                          .row = (int8_t)charge->row,
                                          .bytes = actual,
                                          .context = vg_context()});
    }
    vg_charge_end(charge, actual);
    return result;
}

/* The flat descriptors of both ABIs have the same fields, of other widths. */
#define WIDEN(wide, flat)                                                                          \
    if (flat)                                                                                      \
        (wide) = (CUDA_ARRAY3D_DESCRIPTOR)                                                         \
        {                                                                                          \
            .width = (flat)->width, .height = (flat)->height, .format = (flat)->format,            \
            .channels = (flat)->channels                                                           \
        }

VG_EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    VG_ENTER();
    struct vg_charge charge;
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    WIDEN(wide, d);
    if (!array_begin(&charge, &wide, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArrayCreate_v2)(array, d);
    return array_made(&charge, result, VG_KIND_ARRAY, result ? NULL : *array);
}

VG_EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    VG_ENTER();
    struct vg_charge charge;
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    WIDEN(wide, d);
    if (!array_begin(&charge, &wide, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArrayCreate)(array, d);
    return array_made(&charge, result, VG_KIND_ARRAY, result ? NULL : *array);
}

VG_EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!array_begin(&charge, d, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArray3DCreate_v2)(array, d);
    return array_made(&charge, result, VG_KIND_ARRAY, result ? NULL : *array);
}

VG_EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    VG_ENTER();
    struct vg_charge charge;
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (d)
        wide = (CUDA_ARRAY3D_DESCRIPTOR){d->width,  d->height,   d->depth,
                                         d->format, d->channels, d->flags};
    if (!array_begin(&charge, &wide, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuArray3DCreate)(array, d);
    return array_made(&charge, result, VG_KIND_ARRAY, result ? NULL : *array);
}

VG_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmap,
                                          const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!array_begin(&charge, d, levels))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMipmappedArrayCreate)(mipmap, d, levels);
    return array_made(&charge, result, VG_KIND_MIPMAP, result ? NULL : *mipmap);
}

static CUresult destroy_any_array(enum vg_kind kind, void *handle, CUresult (*destroy)(void *))
{
    struct vg_record record;
    bool ours = vg_record_take(kind, (uint64_t)handle, &record), bound = ours && !record.bytes;
    if (ours)
        vg_leave(record.row, record.bytes);
    /* the next array of this address may not be bound before this one's bindings are gone */
    if (bound)
        vg_references_begin();
    CUresult result = destroy(handle);
    if (bound && result == CUDA_SUCCESS)
        vg_bindings_end(record.key);
    if (bound)
        vg_references_end();
    if (ours)
        vg_left(record.row, record.bytes, result == CUDA_SUCCESS ? record.bytes : 0);
    if (ours && result != CUDA_SUCCESS)
        vg_record_put(&record);
    return result;
}

static CUresult destroy_array(void *array)
{
    return REAL(cuArrayDestroy)(array);
}

static CUresult destroy_mipmap(void *mipmap)
{
    return REAL(cuMipmappedArrayDestroy)(mipmap);
}

VG_EXPORT CUresult cuArrayDestroy(CUarray array)
{
    VG_ENTER();
    return destroy_any_array(VG_KIND_ARRAY, array, destroy_array);
}

VG_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    VG_ENTER();
    return destroy_any_array(VG_KIND_MIPMAP, mipmap, destroy_mipmap);
}
