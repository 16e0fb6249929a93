/* cuGetProcAddress: the real one is asked with the caller's arguments, and the pointer it returns
 * is mapped to our hook of that very function, so a wrong ABI can never be handed out.
 *
 * Which function a pointer is: the driver's export of the same address, or, where a driver exports
 * one address and hands out another, what it hands out for that variant's own version and flags.
 */
#include <string.h>

#include "driver/real_driver.h"

static void *_Atomic handed_out[VG_CUDA_SYMBOLS]; /* lazily; by variant */

static const struct vg_base *find_base(const char *symbol)
{
    unsigned low = 0, high = vg_bases;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int order = strcmp(symbol, vg_base[middle].name);
        if (!order)
            return &vg_base[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static CUresult ask(const char *symbol, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    if (REAL(cuGetProcAddress_v2))
        return REAL(cuGetProcAddress_v2)(symbol, function, version, flags, &status);
    if (REAL(cuGetProcAddress))
        return REAL(cuGetProcAddress)(symbol, function, version, flags);
    return CUDA_ERROR_NOT_FOUND;
}

static void *pointer_of(const struct vg_base *base, int index)
{
    void *known = atomic_load_explicit(&handed_out[index], memory_order_relaxed);
    if (!known) {
        cuuint64_t flags = vg_per_thread[index] ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
        if (ask(base->name, &known, vg_since[index], flags) != CUDA_SUCCESS || !known)
            known = vg_real[index];
        atomic_store_explicit(&handed_out[index], known, memory_order_relaxed);
    }
    return known;
}

static bool in_driver(int index)
{
    /* a driver asked for a later version may answer with an earlier ABI */
    static _Atomic int version;
    int known = atomic_load_explicit(&version, memory_order_relaxed);
    if (!known && REAL(cuDriverGetVersion) && REAL(cuDriverGetVersion)(&known) == CUDA_SUCCESS)
        atomic_store_explicit(&version, known, memory_order_relaxed);
    return vg_real[index] && vg_since[index] <= known;
}

/* The index of the function at `real`, -1 where no table knows it. Of several names of one address
 * the oldest, and before that the one whose kind of default stream was asked for. */
static int identify(const struct vg_base *base, const void *real, bool per_thread)
{
    int found = -1;
    for (int pass = 0; base && pass < 2 && found < 0; pass++)
        for (unsigned i = 0; i < base->count; i++) {
            int index = vg_variant[base->first + i];
            void *its = !pass ? vg_real[index] : in_driver(index) ? pointer_of(base, index) : NULL;
            bool better = found < 0 || (vg_per_thread[index] == per_thread &&
                                        vg_per_thread[found] != per_thread);
            if (its == real && better)
                found = index;
        }
    for (int index = 0; index < VG_CUDA_SYMBOLS && found < 0; index++)
        if (vg_real[index] == real)
            found = index;
    return found;
}

static void map(const char *symbol, void **function, int version, cuuint64_t flags)
{
    if (!symbol || !function || !*function)
        return;
    int index = identify(find_base(symbol), *function,
                         flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    vg_trace(symbol, version, flags, index < 0 ? "unknown" : vg_hook[index] ? "hooked" : "passed");
    if (index < 0)
        vg_count_unhooked();
    else if (vg_hook[index])
        *function = (void *)vg_hook[index];
}

/* No session here: a program that only loads the runtime has not begun to use a GPU. */
#define RESOLVED(name)                                                                             \
    do {                                                                                           \
        vg_resolve();                                                                              \
        if (!REAL(name))                                                                           \
            return CUDA_ERROR_NOT_FOUND;                                                           \
    } while (0)

VG_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                    cuuint64_t flags)
{
    RESOLVED(cuGetProcAddress);
    CUresult result = REAL(cuGetProcAddress)(symbol, function, version, flags);
    if (result != CUDA_SUCCESS)
        vg_trace(symbol ? symbol : "", version, flags, "not found");
    else
        map(symbol, function, version, flags);
    return result;
}

VG_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                       cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    RESOLVED(cuGetProcAddress_v2);
    CUresult result = REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status);
    if (result != CUDA_SUCCESS)
        vg_trace(symbol ? symbol : "", version, flags, "not found");
    else
        map(symbol, function, version, flags);
    return result;
}

VG_EXPORT CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version,
                                            cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *status)
{
    RESOLVED(cuGetProcAddress_v2_ptsz);
    CUresult result = REAL(cuGetProcAddress_v2_ptsz)(symbol, function, version, flags, status);
    if (result != CUDA_SUCCESS)
        vg_trace(symbol ? symbol : "", version, flags, "not found");
    else
        map(symbol, function, version, flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    return result;
}
