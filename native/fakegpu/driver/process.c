/* A process and the fake driver: cuInit, versions, which function a name means, errors' names, and
 * what stands before each entry point (counting, refusal before cuInit and after fork, faults). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/core.h"
#include "driver/entries.h"
#include "controls/faults.h"

__thread bool fg_per_thread;
pthread_mutex_t fg_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
int fg_presented = CUDA_VERSION;
int fg_slow = 1;
static uint64_t fault_epoch_seen;
static bool initialized, forked;

/* ---- before every call --------------------------------------------------------------------------- */

CUresult fg_initialized(void)
{
    return initialized && !forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult fg_enter_slow(unsigned symbol, bool early)
{
    if (!fg_attach())
        return early ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    atomic_fetch_add_explicit(&fg_state->calls[symbol], 1, memory_order_relaxed);
    bool armed = fg_fault_load(&fault_epoch_seen);
    if (armed) {
        CUresult injected = (CUresult)fg_fault_call(fg_symbol_names[symbol]);
        if (injected)
            return injected;
    }
    if (early)
        return CUDA_SUCCESS;
    CUresult result = fg_initialized();
    if (!result && !armed)
        __atomic_store_n(&fg_slow, 0, __ATOMIC_RELAXED);
    return result;
}

/* The driver cannot be used in a child of a process that had initialised it. A child of one that had
 * only loaded it starts anew. */
static void after_fork(void)
{
    if (initialized)
        forked = true;
    fg_slow = 1;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&fg_mutex, &recursive);
}

__attribute__((constructor)) static void loaded(void)
{
    const char *version = getenv("FAKEGPU_CUDA");
    if (version && *version)
        fg_presented = atoi(version);
    pthread_atfork(NULL, NULL, after_fork);
}

CUresult FG(cuInit)(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!fg_attach())
        return CUDA_ERROR_NO_DEVICE;
    int devices;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fg_mutex);
    if (!initialized) {
        int row = fg_own_process();
        fg_read_visible_devices(&devices);
        if (row < 0 || !devices) {
            result = row < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_NO_DEVICE;
        } else {
            fg_lock();
            fg_state->process[row].initialized = 1;
            fg_unlock();
            initialized = true;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    if (!result)
        fg_clock_spend(0);             /* this thread joins the clock */
    return result;
}

CUresult FG(cuDriverGetVersion)(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = fg_presented;
    return CUDA_SUCCESS;
}

/* ---- errors -------------------------------------------------------------------------------------- */

static const struct { int value; const char *name; } errors[] = {
#include "fg_errors.inc"
};

static const char *error_name(CUresult error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].value == (int)error)
            return errors[i].name;
    return NULL;
}

CUresult FG(cuGetErrorName)(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuGetErrorString)(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error == CUDA_SUCCESS ? "no error"
          : error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
          : error == CUDA_ERROR_NOT_INITIALIZED ? "initialization error"
          : error == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected"
          : error_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- names to functions ---------------------------------------------------------------------------- */

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
    const cuuint64_t modes = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !function || flags & ~modes || flags == modes)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    if (flags)
        per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = choose(symbol, version, per_thread, &known);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
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
