/* Modules and libraries: charged with the size of their image, in pages, while they are loaded.
 *
 * A module belongs to the context it was loaded in; a library to none, but it is charged to the GPU
 * that is current when it is loaded. */
#include "memory.h"

static uint64_t vg_pages(uint64_t bytes)
{
    return bytes > UINT64_MAX - 4095 ? bytes : (bytes + 4095) & ~4095ull;
}

static CUresult vg_loaded(struct vg_charge *charge, CUresult result, enum vg_kind kind, const void *handle)
{
    if (result == CUDA_SUCCESS && charge->row >= 0)
        vg_book_put(&(struct vg_record){.kind = (uint8_t)kind, .key = (uint64_t)handle, .row = (int8_t)charge->row,
                                        .bytes = charge->reserved,
                                        .context = kind == VG_KIND_MODULE ? vg_context() : NULL});
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    return result;
}

static bool vg_loading(struct vg_charge *charge, const void *image)
{
    int row = vg_current_row();
    return vg_charge_begin(charge, row, 0, row >= 0 ? vg_pages(vg_image_bytes(image)) : 0, VG_CALL_OTHER);
}

static bool vg_loading_file(struct vg_charge *charge, const char *path)
{
    int row = vg_current_row();
    return vg_charge_begin(charge, row, 0, row >= 0 ? vg_pages(vg_image_file_bytes(path)) : 0, VG_CALL_OTHER);
}

VG_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading_file(&charge, path))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoad)(module, path);
    return vg_loaded(&charge, result, VG_KIND_MODULE, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadData)(module, image);
    return vg_loaded(&charge, result, VG_KIND_MODULE, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadDataEx)(module, image, n, options, values);
    return vg_loaded(&charge, result, VG_KIND_MODULE, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadFatBinary)(module, image);
    return vg_loaded(&charge, result, VG_KIND_MODULE, result ? NULL : *module);
}

VG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                                     unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuLibraryLoadData)(library, image, jit, jit_values, n_jit, options, values, n);
    return vg_loaded(&charge, result, VG_KIND_LIBRARY, result ? NULL : *library);
}

VG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                         unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading_file(&charge, path))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuLibraryLoadFromFile)(library, path, jit, jit_values, n_jit, options, values, n);
    return vg_loaded(&charge, result, VG_KIND_LIBRARY, result ? NULL : *library);
}

static CUresult vg_unloaded(CUresult result, bool ours, const struct vg_record *record)
{
    if (ours && result == CUDA_SUCCESS)
        vg_release(record->row, record->bytes);
    else if (ours)
        vg_book_put(record);
    return result;
}

VG_EXPORT CUresult cuModuleUnload(CUmodule module)
{
    VG_ENTER();
    struct vg_record record;
    bool ours = vg_book_take(VG_KIND_MODULE, (uint64_t)module, &record);
    return vg_unloaded(REAL(cuModuleUnload)(module), ours, &record);
}

VG_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    VG_ENTER();
    struct vg_record record;
    bool ours = vg_book_take(VG_KIND_LIBRARY, (uint64_t)library, &record);
    return vg_unloaded(REAL(cuLibraryUnload)(library), ours, &record);
}
