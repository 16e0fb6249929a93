/* Libraries: charged with the size of their image for each context that they are in.
 *
 * A library belongs to no context: the driver loads it into the one that is current, and into each
 * other one where something of it is first asked for. */
#include "memory/memory.h"

static uint64_t copy_key(const void *library, const void *context)
{
    return (uint64_t)library ^ ((uint64_t)context * 0x9e3779b97f4a7c15ull);
}

static void put_copy(const struct vg_charge *charge, const void *library, void *context)
{
    vg_record_put(&(struct vg_record){.kind = VG_KIND_COPY,
                                      .key = copy_key(library, context),
                                      .row = (int8_t)charge->row,
                                      .bytes = charge->reserved,
                                      .other = (uint64_t)library,
                                      .context = context});
}

static CUresult library_loaded(struct vg_charge *charge, CUresult result, const CUlibrary *library)
{
    void *context = vg_context();
    uint64_t actual = result == CUDA_SUCCESS && context ? charge->reserved : 0;
    if (result == CUDA_SUCCESS && charge->row >= 0)
        vg_record_put(&(struct vg_record){.kind = VG_KIND_LIBRARY,
                                          .key = (uint64_t)*library,
                                          .row = (int8_t)charge->row,
                                          .bytes = charge->reserved});
    if (actual && charge->row >= 0)
        put_copy(charge, *library, context);
    vg_charge_end(charge, actual);
    return result;
}

VG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit,
                                     void **jit_values, unsigned int n_jit,
                                     CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_charge(&charge, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        REAL(cuLibraryLoadData)(library, image, jit, jit_values, n_jit, options, values, n);
    return library_loaded(&charge, result, library);
}

VG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
                                         void **jit_values, unsigned int n_jit,
                                         CUlibraryOption *options, void **values, unsigned int n)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_image_file_charge(&charge, path))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        REAL(cuLibraryLoadFromFile)(library, path, jit, jit_values, n_jit, options, values, n);
    return library_loaded(&charge, result, library);
}

/* Before a call that brings the library into the current context, unless it is there. */
static bool copying(struct vg_charge *charge, CUlibrary library)
{
    struct vg_record record, copy;
    int row = vg_current_row();
    bool more = row >= 0 && vg_record_get(VG_KIND_LIBRARY, (uint64_t)library, &record) &&
                !vg_record_get(VG_KIND_COPY, copy_key(library, vg_context()), &copy);
    return vg_charge_begin(charge, more ? row : -1, 0, more ? record.bytes : 0, VG_CALL_MODULE);
}

static CUresult copied(struct vg_charge *charge, CUresult result, CUlibrary library)
{
    if (charge->row >= 0 && result == CUDA_SUCCESS)
        put_copy(charge, library, vg_context());
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    return result;
}

VG_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return copied(&charge, REAL(cuLibraryGetModule)(module, library), library);
}

VG_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                      const char *name)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return copied(&charge, REAL(cuLibraryGetGlobal)(dptr, bytes, library, name), library);
}

VG_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    VG_ENTER();
    struct vg_charge charge;
    CUlibrary library = NULL;
    if (!REAL(cuKernelGetLibrary) || REAL(cuKernelGetLibrary)(&library, kernel) != CUDA_SUCCESS)
        return REAL(cuKernelGetFunction)(function, kernel);
    if (!copying(&charge, library))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return copied(&charge, REAL(cuKernelGetFunction)(function, kernel), library);
}

struct unloading {
    struct vg_taken copies;
    const void *library;
    CUresult result;
};

static bool is_copy_of(const struct vg_record *record, const void *argument)
{
    const struct unloading *all = argument;
    return record->kind == VG_KIND_COPY && record->other == (uint64_t)all->library;
}

static void copy_leaves(const struct vg_record *record, void *unused)
{
    (void)unused;
    vg_leave(record->row, record->bytes);
}

static void copy_left(const struct vg_record *record, void *argument)
{
    const struct unloading *all = argument;
    vg_left(record->row, record->bytes, all->result == CUDA_SUCCESS ? record->bytes : 0);
    if (all->result != CUDA_SUCCESS)
        vg_record_put(record);
}

VG_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    VG_ENTER();
    struct vg_record record;
    struct unloading all = {.library = library};
    /* Before the call: the driver may give the handle's value to another thread at once. */
    if (!vg_record_take(VG_KIND_LIBRARY, (uint64_t)library, &record))
        return REAL(cuLibraryUnload)(library);
    vg_record_sweep(is_copy_of, &all, vg_taken_add); /* `copies` is its first member */
    vg_taken_each(&all.copies, copy_leaves, NULL);
    all.result = REAL(cuLibraryUnload)(library);
    vg_taken_each(&all.copies, copy_left, &all);
    vg_taken_forget(&all.copies);
    if (all.result != CUDA_SUCCESS)
        vg_record_put(&record);
    return all.result;
}
