/* Names to functions: cuGetProcAddress chooses by version and stream flag. */
#include <string.h>

#include "driver/entries.h"

/* The newest variant that is no younger than the caller's version nor than this driver. */
static void *choose(const char *base, int version, bool per_thread, bool *known)
{
    unsigned low = 0, high = fg_entry_count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (strcmp(fg_entries[middle].base, base) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    void *found = NULL, *of_thread = NULL;
    for (; low < fg_entry_count && !strcmp(fg_entries[low].base, base); low++) {
        const struct fg_entry *entry = &fg_entries[low];
        if (entry->version > fg_presented)
            continue;
        *known = true;
        if (entry->version <= version)
            *(entry->per_thread ? &of_thread : &found) = entry->function;
    }
    return per_thread && of_thread ? of_thread : found;
}

static CUresult resolve(const char *symbol, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status, bool per_thread)
{
    const cuuint64_t modes =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !function || flags & ~modes || flags == modes)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    if (flags)
        per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = choose(symbol, version, per_thread, &known);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known   ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult FG(cuGetProcAddress)(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return resolve(symbol, function, version, flags, NULL, false);
}

CUresult FG(cuGetProcAddress_v2)(const char *symbol, void **function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    return resolve(symbol, function, version, flags, status, fg_per_thread);
}

CUresult FG(cuGetExportTable)(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
