/* Modules and libraries: charged with the size of their image, in pages, while they are loaded.
 *
 * A module belongs to the context it was loaded in. A library belongs to none: the driver loads it into
 * the context that is current, and into each other one where something of it is first asked for. */
#include "ledger/memory.h"

static uint64_t vg_pages(uint64_t bytes)
{
    return bytes > UINT64_MAX - 4095 ? bytes : (bytes + 4095) & ~4095ull;
}

static CUresult vg_loaded(struct vg_charge *charge, CUresult result, const void *module)
{
    if (result == CUDA_SUCCESS && charge->row >= 0)
        vg_book_put(&(struct vg_record){.kind = VG_KIND_MODULE, .key = (uint64_t)module, .row = (int8_t)charge->row,
                                        .bytes = charge->reserved, .context = vg_context()});
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
    return vg_loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadData)(module, image);
    return vg_loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadDataEx)(module, image, n, options, values);
    return vg_loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuModuleLoadFatBinary)(module, image);
    return vg_loaded(&charge, result, result ? NULL : *module);
}

VG_EXPORT CUresult cuModuleUnload(CUmodule module)
{
    VG_ENTER();
    struct vg_record record;
    if (!vg_book_take(VG_KIND_MODULE, (uint64_t)module, &record))
        return REAL(cuModuleUnload)(module);
    vg_leave(record.row, record.bytes);
    CUresult result = REAL(cuModuleUnload)(module);
    vg_left(record.row, record.bytes, result == CUDA_SUCCESS ? record.bytes : 0);
    if (result != CUDA_SUCCESS)
        vg_book_put(&record);
    return result;
}

/* ---- libraries ---------------------------------------------------------------------------------------- */

static uint64_t vg_copy_key(const void *library, const void *context)
{
    return (uint64_t)library ^ ((uint64_t)context * 0x9e3779b97f4a7c15ull);
}

static void vg_copy_put(const struct vg_charge *charge, const void *library, void *context)
{
    vg_book_put(&(struct vg_record){.kind = VG_KIND_COPY, .key = vg_copy_key(library, context), .row = (int8_t)charge->row,
                                    .bytes = charge->reserved, .other = (uint64_t)library, .context = context});
}

static CUresult vg_library_loaded(struct vg_charge *charge, CUresult result, const CUlibrary *library)
{
    void *context = vg_context();
    uint64_t actual = result == CUDA_SUCCESS && context ? charge->reserved : 0;
    if (result == CUDA_SUCCESS && charge->row >= 0)
        vg_book_put(&(struct vg_record){.kind = VG_KIND_LIBRARY, .key = (uint64_t)*library, .row = (int8_t)charge->row,
                                        .bytes = charge->reserved});
    if (actual && charge->row >= 0)
        vg_copy_put(charge, *library, context);
    vg_charge_end(charge, actual);
    return result;
}

VG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                                     unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuLibraryLoadData)(library, image, jit, jit_values, n_jit, options, values, n);
    return vg_library_loaded(&charge, result, library);
}

VG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                         unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_loading_file(&charge, path))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuLibraryLoadFromFile)(library, path, jit, jit_values, n_jit, options, values, n);
    return vg_library_loaded(&charge, result, library);
}

/* Before a call that brings the library into the current context, unless it is there. */
static bool vg_copying(struct vg_charge *charge, CUlibrary library)
{
    struct vg_record record, copy;
    int row = vg_current_row();
    bool more = row >= 0 && vg_book_get(VG_KIND_LIBRARY, (uint64_t)library, &record) &&
                !vg_book_get(VG_KIND_COPY, vg_copy_key(library, vg_context()), &copy);
    return vg_charge_begin(charge, more ? row : -1, 0, more ? record.bytes : 0, VG_CALL_OTHER);
}

static CUresult vg_copied(struct vg_charge *charge, CUresult result, CUlibrary library)
{
    if (charge->row >= 0 && result == CUDA_SUCCESS)
        vg_copy_put(charge, library, vg_context());
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    return result;
}

VG_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_copied(&charge, REAL(cuLibraryGetModule)(module, library), library);
}

VG_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_copied(&charge, REAL(cuLibraryGetGlobal)(dptr, bytes, library, name), library);
}

VG_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    VG_ENTER();
    struct vg_charge charge;
    CUlibrary library = NULL;
    if (!REAL(cuKernelGetLibrary) || REAL(cuKernelGetLibrary)(&library, kernel) != CUDA_SUCCESS)
        return REAL(cuKernelGetFunction)(function, kernel);
    if (!vg_copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_copied(&charge, REAL(cuKernelGetFunction)(function, kernel), library);
}

struct vg_unloading { struct vg_taken copies; const void *library; CUresult result; };

static bool vg_copy_of(const struct vg_record *record, const void *argument)
{
    const struct vg_unloading *all = argument;
    return record->kind == VG_KIND_COPY && record->other == (uint64_t)all->library;
}

static void vg_copy_leaves(const struct vg_record *record, void *unused)
{
    (void)unused;
    vg_leave(record->row, record->bytes);
}

static void vg_copy_left(const struct vg_record *record, void *argument)
{
    const struct vg_unloading *all = argument;
    vg_left(record->row, record->bytes, all->result == CUDA_SUCCESS ? record->bytes : 0);
    if (all->result != CUDA_SUCCESS)
        vg_book_put(record);
}

VG_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    VG_ENTER();
    struct vg_record record;
    struct vg_unloading all = {.library = library};
    /* Before the call: the driver may give the handle's value to another thread at once. */
    if (!vg_book_take(VG_KIND_LIBRARY, (uint64_t)library, &record))
        return REAL(cuLibraryUnload)(library);
    vg_book_sweep(vg_copy_of, &all, vg_taken_add); /* `copies` is its first member */
    vg_taken_each(&all.copies, vg_copy_leaves, NULL);
    all.result = REAL(cuLibraryUnload)(library);
    vg_taken_each(&all.copies, vg_copy_left, &all);
    vg_taken_forget(&all.copies);
    if (all.result != CUDA_SUCCESS)
        vg_book_put(&record);
    return all.result;
}
