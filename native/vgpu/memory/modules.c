/* Modules: charged with the size of their image (image_size.c), in pages, while they are loaded into their
 * context. */
#include "memory/memory.h"

static uint64_t whole_pages(uint64_t bytes)
{
    return bytes > UINT64_MAX - 4095 ? bytes : (bytes + 4095) & ~4095ull;
}

static uint32_t arch_of(int row)
{
    CUdevice device = vg_row_device(row);
    int major = 0, minor = 0;
    if (device < 0 || !REAL(cuDeviceGetAttribute) ||
        REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) ||
        REAL(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
        return 0;
    return (uint32_t)(10 * major + minor);
}

bool vg_image_charge(struct vg_charge *charge, const void *image)
{
    int row = vg_current_row();
    uint64_t bytes = row >= 0 ? whole_pages(vg_image_bytes(image, arch_of(row))) : 0;
    return vg_charge_begin(charge, row, 0, bytes, VG_CALL_MODULE);
}

bool vg_image_file_charge(struct vg_charge *charge, const char *path)
{
    int row = vg_current_row();
    uint64_t bytes = row >= 0 ? whole_pages(vg_image_file_bytes(path, arch_of(row))) : 0;
    return vg_charge_begin(charge, row, 0, bytes, VG_CALL_MODULE);
}

static CUresult loaded(struct vg_charge *charge, CUresult result, const void *module)
{
    if (result == CUDA_SUCCESS && charge->row >= 0)
        vg_record_put(&(struct vg_record){.kind = VG_KIND_MODULE,
                                          .key = (uint64_t)module,
                                          .row = (int8_t)charge->row,
                                          .bytes = charge->reserved,
                                          .context = vg_context()});
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    return result;
}

VG_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_file_charge(&charge, path))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoad)(module, path);
    return loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_charge(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadData)(module, image);
    return loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
                                      CUjit_option *options, void **values)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_charge(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadDataEx)(module, image, n, options, values);
    return loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_charge(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadFatBinary)(module, image);
    return loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleUnload(CUmodule module)
{
    VG_ENTER();
    struct vg_record record;
    if (!vg_record_take(VG_KIND_MODULE, (uint64_t)module, &record))
        return REAL(cuModuleUnload)(module);
    vg_leave(record.row, record.bytes);
    CUresult result = REAL(cuModuleUnload)(module);
    vg_left(record.row, record.bytes, result == CUDA_SUCCESS ? record.bytes : 0);
    if (result != CUDA_SUCCESS)
        vg_record_put(&record);
    return result;
}
