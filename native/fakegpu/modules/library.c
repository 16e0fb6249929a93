/* Libraries. One takes its image's size of device memory in the context that is current when it
 * is loaded, and in each other context when one of its functions or globals is first asked for
 * there (a launch of a CUkernel asks for none: not charged). */
#include <stdlib.h>

#include "modules/image.h"
#include "modules/module.h"

struct fg_library {
    struct fg_library *next;
    uint64_t bytes;
    struct fg_named_function *kernels;
};
static struct fg_library *libraries;

static struct fg_library *find_library(const void *handle)
{
    struct fg_library *each = libraries;
    while (each && each != handle)
        each = each->next;
    return each;
}

/* The library's module in the current context, loaded there at need. */
static CUresult module_here(struct fg_module **out, struct fg_library *library)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    for (struct fg_module *each = fg_modules(); each; each = each->next)
        if (each->library == library && each->context == context) {
            *out = each;
            return CUDA_SUCCESS;
        }
    return fg_module_load(out, library->bytes, library);
}

static CUresult load_library(CUlibrary *out, uint64_t bytes)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes)
        return CUDA_ERROR_INVALID_IMAGE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = malloc(sizeof *library);
    if (!library)
        abort();
    *library = (struct fg_library){.bytes = bytes};
    struct fg_module *module;
    CUresult result = fg_current_context() ? module_here(&module, library) : CUDA_SUCCESS;
    if (result) {
        free(library);
    } else {
        library->next = libraries;
        libraries = library;
        *out = (CUlibrary)library;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuLibraryLoadData)(CUlibrary *out, const void *code, CUjit_option *jit,
                               void **jit_values, unsigned int jits, CUlibraryOption *options,
                               void **values, unsigned int count)
{
    (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
    return load_library(out, fg_image_bytes(code));
}

CUresult FG(cuLibraryLoadFromFile)(CUlibrary *out, const char *path, CUjit_option *jit,
                                   void **jit_values, unsigned int jits, CUlibraryOption *options,
                                   void **values, unsigned int count)
{
    (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
    uint64_t bytes = fg_image_file_bytes(path);
    return bytes ? load_library(out, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult FG(cuLibraryUnload)(CUlibrary handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = find_library(handle);
    for (struct fg_module *each = library ? fg_modules() : NULL, *next; each; each = next) {
        next = each->next;
        if (each->library == library)
            fg_module_unload(each);
    }
    if (library) {
        struct fg_library **at = &libraries;
        while (*at != library)
            at = &(*at)->next;
        *at = library->next;
        fg_named_functions_end(library->kernels, library);
        free(library);
    }
    pthread_mutex_unlock(&fg_mutex);
    return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuLibraryGetKernel)(CUkernel *out, CUlibrary handle, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = find_library(handle);
    struct fg_function *kernel =
        library ? fg_module_function(&library->kernels, NULL, library, name) : NULL;
    pthread_mutex_unlock(&fg_mutex);
    *out = (CUkernel)kernel;
    return kernel ? CUDA_SUCCESS : library ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuLibraryGetModule)(CUmodule *out, CUlibrary handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = find_library(handle);
    struct fg_module *module = NULL;
    CUresult result = library ? module_here(&module, library) : CUDA_ERROR_INVALID_HANDLE;
    if (!result && out)
        *out = (CUmodule)module;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuLibraryGetGlobal)(CUdeviceptr *out, size_t *bytes, CUlibrary handle, const char *name)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = find_library(handle);
    struct fg_module *module = NULL;
    CUresult result = library ? module_here(&module, library) : CUDA_ERROR_INVALID_HANDLE;
    if (!result)
        result = name ? fg_module_global(out, bytes, module, name) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static struct fg_library *library_of(CUkernel handle)
{
    struct fg_function *kernel = fg_function_of(handle);
    return kernel && !kernel->context ? find_library(kernel->module) : NULL;
}

CUresult FG(cuKernelGetFunction)(CUfunction *out, CUkernel handle)
{
    struct fg_module *module;
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = library_of(handle);
    CUresult result = !library ? CUDA_ERROR_INVALID_HANDLE
                      : out    ? CUDA_SUCCESS
                               : CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = module_here(&module, library);
    if (!result) {
        const char *name = fg_function_of(handle)->name;
        *out = (CUfunction)fg_module_function(&module->functions, module->context, module, name);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuKernelGetLibrary)(CUlibrary *out, CUkernel handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_library *library = library_of(handle);
    pthread_mutex_unlock(&fg_mutex);
    if (!library || !out)
        return library ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = (CUlibrary)library;
    return CUDA_SUCCESS;
}
