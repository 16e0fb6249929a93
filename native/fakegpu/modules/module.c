/* Modules and libraries. A module takes its image's size of device memory, in whole blocks; a library
 * takes it in the context that is current when it is loaded, and in each other context when one of
 * its functions or globals is first asked for there (a launch of a CUkernel asks for none: not charged).
 * Names of functions: fakegpu.h. A global "NAME_BYTES" has BYTES bytes, others 8. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/image.h"
#include "streams/work.h"

struct global { struct global *next; char name[64]; struct fg_range *range; };
struct named { struct named *next; struct fg_function *function; };
struct fg_module {
    struct fg_module *next;
    struct fg_context *context;
    struct library *library;           /* NULL: loaded by itself */
    uint64_t charged;
    struct named *functions;
    struct global *globals;
};
struct library {
    struct library *next;
    uint64_t bytes;
    struct named *kernels;
};
static struct fg_module *modules;
static struct library *libraries;

/* ---- functions and kernels ------------------------------------------------------------------------ */

/* The one of this name, made at need. owner: the module or library. */
static struct fg_function *get_function(struct named **list, struct fg_context *context, void *owner, const char *name)
{
    for (struct named *each = *list; each; each = each->next)
        if (!strcmp(each->function->name, name))
            return each->function;
    struct fg_function *function = fg_function_new(context, owner, name);
    struct named *entry = function ? malloc(sizeof *entry) : NULL;
    if (!entry)
        return NULL;
    *entry = (struct named){*list, function};
    *list = entry;
    return function;
}

static void end_functions(struct named *list, void *owner)
{
    fg_functions_end(owner);
    for (struct named *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

/* ---- modules --------------------------------------------------------------------------------------- */

static struct fg_module *find_module(const void *handle)
{
    struct fg_module *each = modules;
    while (each && each != handle)
        each = each->next;
    return each;
}

static CUresult load(struct fg_module **out, uint64_t bytes, struct library *library)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (!result && !bytes)
        result = CUDA_ERROR_INVALID_IMAGE;
    if (result)
        return result;
    fg_clock_spend(0);
    uint64_t charged = fg_round_up(bytes, fg_state->gpu[context->gpu].profile.module_align_bytes);
    result = fg_take_gpu_memory(context->gpu, charged);
    if (result)
        return result;
    struct fg_module *module = malloc(sizeof *module);
    if (!module)
        abort();
    *module = (struct fg_module){.next = modules, .context = context, .library = library,
                                 .charged = charged};
    modules = module;
    *out = module;
    return CUDA_SUCCESS;
}

static void unload(struct fg_module *module)
{
    struct fg_module **at = &modules;
    while (*at != module)
        at = &(*at)->next;
    *at = module->next;
    for (struct global *global = module->globals, *next; global; global = next) {
        next = global->next;
        uint64_t base = global->range->base, size = global->range->size;
        fg_range_end(global->range);
        fg_va_release(base, fg_round_up(size, 2 << 20));
        free(global);
    }
    end_functions(module->functions, module);
    fg_uncharge(module->context->gpu, module->charged);
    free(module);
}

void fg_modules_context_gone(struct fg_context *context)
{
    for (struct fg_module *each = modules, *next; each; each = next) {
        next = each->next;
        if (each->context == context)
            unload(each);
    }
}

static CUresult load_image(CUmodule *out, uint64_t bytes)
{
    struct fg_module *module;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = load(&module, bytes, NULL);
    if (!result)
        *out = (CUmodule)module;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuModuleLoadData)(CUmodule *out, const void *image) { return load_image(out, fg_image_bytes(image)); }
CUresult FG(cuModuleLoadFatBinary)(CUmodule *out, const void *image) { return load_image(out, fg_image_bytes(image)); }

CUresult FG(cuModuleLoadDataEx)(CUmodule *out, const void *image, unsigned int options, CUjit_option *option,
                                void **values)
{
    (void)options;
    (void)option;
    (void)values;
    return load_image(out, fg_image_bytes(image));
}

CUresult FG(cuModuleLoad)(CUmodule *out, const char *path)
{
    uint64_t bytes = fg_image_file_bytes(path);
    return bytes ? load_image(out, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult FG(cuModuleUnload)(CUmodule handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    bool own = module && !module->library;
    if (own)
        unload(module);
    pthread_mutex_unlock(&fg_mutex);
    return own ? CUDA_SUCCESS : module ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuModuleGetFunction)(CUfunction *out, CUmodule handle, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    struct fg_function *function = module ? get_function(&module->functions, module->context, module, name) : NULL;
    pthread_mutex_unlock(&fg_mutex);
    *out = (CUfunction)function;
    return function ? CUDA_SUCCESS : module ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_global(CUdeviceptr *out, size_t *bytes, struct fg_module *module, const char *name)
{
    struct global *global = module->globals;
    while (global && strcmp(global->name, name))
        global = global->next;
    if (!*name || !strncmp(name, "missing", 7))
        return CUDA_ERROR_NOT_FOUND;
    if (!global) {
        const char *number = strrchr(name, '_');
        uint64_t size = number ? strtoull(number + 1, NULL, 10) : 0;
        uint64_t base = fg_va_reserve(fg_round_up(size ? size : 8, 2 << 20), 2 << 20);
        global = calloc(1, sizeof *global);
        if (!global || !base)
            abort();
        snprintf(global->name, sizeof global->name, "%s", name);
        global->range = fg_range_new(FG_GLOBAL, module->context->gpu, NULL, base, size ? size : 8);
        global->next = module->globals;
        module->globals = global;
    }
    if (out)
        *out = global->range->base;
    if (bytes)
        *bytes = global->range->size;
    return CUDA_SUCCESS;
}

CUresult FG(cuModuleGetGlobal_v2)(CUdeviceptr *out, size_t *bytes, CUmodule handle, const char *name)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    CUresult result = !module ? CUDA_ERROR_INVALID_HANDLE
                    : name ? get_global(out, bytes, module, name) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuModuleGetFunctionCount)(unsigned int *count, CUmodule handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    unsigned known = 0;
    for (struct named *each = module ? module->functions : NULL; each; each = each->next)
        known++;
    pthread_mutex_unlock(&fg_mutex);
    if (!module || !count)
        return module ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *count = known;
    return CUDA_SUCCESS;
}

CUresult FG(cuModuleGetLoadingMode)(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- libraries ----------------------------------------------------------------------------------------- */

static struct library *find_library(const void *handle)
{
    struct library *each = libraries;
    while (each && each != handle)
        each = each->next;
    return each;
}

/* The library's module in the current context, loaded there at need. */
static CUresult module_here(struct fg_module **out, struct library *library)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    for (struct fg_module *each = modules; each; each = each->next)
        if (each->library == library && each->context == context) {
            *out = each;
            return CUDA_SUCCESS;
        }
    return load(out, library->bytes, library);
}

static CUresult load_library(CUlibrary *out, uint64_t bytes)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes)
        return CUDA_ERROR_INVALID_IMAGE;
    pthread_mutex_lock(&fg_mutex);
    struct library *library = malloc(sizeof *library);
    if (!library)
        abort();
    *library = (struct library){.bytes = bytes};
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

CUresult FG(cuLibraryLoadData)(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values,
                               unsigned int jits, CUlibraryOption *options, void **values, unsigned int count)
{
    (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
    return load_library(out, fg_image_bytes(code));
}

CUresult FG(cuLibraryLoadFromFile)(CUlibrary *out, const char *path, CUjit_option *jit, void **jit_values,
                                   unsigned int jits, CUlibraryOption *options, void **values, unsigned int count)
{
    (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
    uint64_t bytes = fg_image_file_bytes(path);
    return bytes ? load_library(out, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult FG(cuLibraryUnload)(CUlibrary handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct library *library = find_library(handle);
    for (struct fg_module *each = library ? modules : NULL, *next; each; each = next) {
        next = each->next;
        if (each->library == library)
            unload(each);
    }
    if (library) {
        struct library **at = &libraries;
        while (*at != library)
            at = &(*at)->next;
        *at = library->next;
        end_functions(library->kernels, library);
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
    struct library *library = find_library(handle);
    struct fg_function *kernel = library ? get_function(&library->kernels, NULL, library, name) : NULL;
    pthread_mutex_unlock(&fg_mutex);
    *out = (CUkernel)kernel;
    return kernel ? CUDA_SUCCESS : library ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuLibraryGetModule)(CUmodule *out, CUlibrary handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct library *library = find_library(handle);
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
    struct library *library = find_library(handle);
    struct fg_module *module = NULL;
    CUresult result = library ? module_here(&module, library) : CUDA_ERROR_INVALID_HANDLE;
    if (!result)
        result = name ? get_global(out, bytes, module, name) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static struct library *library_of(CUkernel handle)
{
    struct fg_function *kernel = fg_function_of(handle);
    return kernel && !kernel->context ? find_library(kernel->module) : NULL;
}

CUresult FG(cuKernelGetFunction)(CUfunction *out, CUkernel handle)
{
    struct fg_module *module;
    pthread_mutex_lock(&fg_mutex);
    struct library *library = library_of(handle);
    CUresult result = !library ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = module_here(&module, library);
    if (!result) {
        const char *name = fg_function_of(handle)->name;
        *out = (CUfunction)get_function(&module->functions, module->context, module, name);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuKernelGetLibrary)(CUlibrary *out, CUkernel handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct library *library = library_of(handle);
    pthread_mutex_unlock(&fg_mutex);
    if (!library || !out)
        return library ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = (CUlibrary)library;
    return CUDA_SUCCESS;
}

CUresult FG(cuFuncGetModule)(CUmodule *out, CUfunction handle)
{
    struct fg_function *function = fg_function_of(handle);
    if (!function || !function->context || !out)
        return function ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = function->module;
    return CUDA_SUCCESS;
}
