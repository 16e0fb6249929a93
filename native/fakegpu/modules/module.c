/* Modules. One takes its image's size of device memory, in whole pages. Names of functions:
 * fakegpu.h. A global "NAME_BYTES" has BYTES bytes, others 8. */
#define _GNU_SOURCE
#include "modules/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/clock.h"
#include "memory/gpu_memory.h"
#include "memory/space.h"
#include "modules/image.h"
#include "state/ledger.h"

struct fg_global {
    struct fg_global *next;
    char name[64];
    struct fg_range *range;
};
static struct fg_module *modules;

struct fg_module *fg_modules(void)
{
    return modules;
}

struct fg_function *fg_module_function(struct fg_named_function **list, struct fg_context *context,
                                       void *owner, const char *name)
{
    for (struct fg_named_function *each = *list; each; each = each->next)
        if (!strcmp(each->function->name, name))
            return each->function;
    struct fg_function *function = fg_function_new(context, owner, name);
    struct fg_named_function *entry = function ? malloc(sizeof *entry) : NULL;
    if (!entry)
        return NULL;
    *entry = (struct fg_named_function){*list, function};
    *list = entry;
    return function;
}

void fg_named_functions_end(struct fg_named_function *list, void *owner)
{
    fg_functions_end(owner);
    for (struct fg_named_function *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

CUresult fg_module_load(struct fg_module **out, uint64_t bytes, struct fg_library *library)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (!result && !bytes)
        result = CUDA_ERROR_INVALID_IMAGE;
    if (result)
        return result;
    fg_clock_spend(0);
    uint32_t part = fg_state->engine.loaded_pct;
    uint64_t taken = part < 100 ? bytes / 100 * part : bytes;
    uint64_t charged = fg_round_up(taken, fg_state->gpu[context->gpu].profile.module_align_bytes);
    result = fg_take_gpu_memory(context->gpu, charged);
    if (result)
        return result;
    struct fg_module *module = malloc(sizeof *module);
    if (!module)
        abort();
    *module = (struct fg_module){
        .next = modules, .context = context, .library = library, .charged = charged};
    modules = module;
    *out = module;
    return CUDA_SUCCESS;
}

void fg_module_unload(struct fg_module *module)
{
    struct fg_module **at = &modules;
    while (*at != module)
        at = &(*at)->next;
    *at = module->next;
    for (struct fg_global *global = module->globals, *next; global; global = next) {
        next = global->next;
        uint64_t base = global->range->base, size = global->range->size;
        fg_range_end(global->range);
        fg_va_release(base, fg_round_up(size, 2 << 20));
        free(global);
    }
    fg_named_functions_end(module->functions, module);
    fg_uncharge(module->context->gpu, module->charged);
    free(module);
}

void fg_modules_context_gone(struct fg_context *context)
{
    for (struct fg_module *each = modules, *next; each; each = next) {
        next = each->next;
        if (each->context == context)
            fg_module_unload(each);
    }
}

CUresult fg_module_global(CUdeviceptr *out, size_t *bytes, struct fg_module *module,
                          const char *name)
{
    struct fg_global *global = module->globals;
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

/* ---- the calls ------------------------------------------------------------------------------- */

static struct fg_module *find_module(const void *handle)
{
    struct fg_module *each = modules;
    while (each && each != handle)
        each = each->next;
    return each;
}

static CUresult load_image(CUmodule *out, uint64_t bytes)
{
    struct fg_module *module;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_module_load(&module, bytes, NULL);
    if (!result)
        *out = (CUmodule)module;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuModuleLoadData)(CUmodule *out, const void *image)
{
    return load_image(out, fg_image_bytes(image));
}
CUresult FG(cuModuleLoadFatBinary)(CUmodule *out, const void *image)
{
    return load_image(out, fg_image_bytes(image));
}

CUresult FG(cuModuleLoadDataEx)(CUmodule *out, const void *image, unsigned int options,
                                CUjit_option *option, void **values)
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
        fg_module_unload(module);
    pthread_mutex_unlock(&fg_mutex);
    return own ? CUDA_SUCCESS : module ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuModuleGetFunction)(CUfunction *out, CUmodule handle, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    struct fg_function *function =
        module ? fg_module_function(&module->functions, module->context, module, name) : NULL;
    pthread_mutex_unlock(&fg_mutex);
    *out = (CUfunction)function;
    return function ? CUDA_SUCCESS : module ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FG(cuModuleGetGlobal_v2)(CUdeviceptr *out, size_t *bytes, CUmodule handle,
                                  const char *name)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    CUresult result = !module ? CUDA_ERROR_INVALID_HANDLE
                      : name  ? fg_module_global(out, bytes, module, name)
                              : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuModuleGetFunctionCount)(unsigned int *count, CUmodule handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_module *module = find_module(handle);
    unsigned known = 0;
    for (struct fg_named_function *each = module ? module->functions : NULL; each;
         each = each->next)
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

CUresult FG(cuFuncGetModule)(CUmodule *out, CUfunction handle)
{
    struct fg_function *function = fg_function_of(handle);
    if (!function || !function->context || !out)
        return function ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = function->module;
    return CUDA_SUCCESS;
}
