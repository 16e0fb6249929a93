/* Finds the real driver and its functions.
 *
 * vg_real[] is filled once, by whoever comes first. There is no lock: dlopen takes the dynamic
 * linker's lock, which another thread may hold while the constructor of its library waits for us.
 * Threads that race find the same addresses and store them twice.
 *
 * As a preload the real driver is what dlopen("libcuda.so.1") gives. As the proxy (VG_PROXY), which
 * carries that name itself, it is the first of a fixed list of paths that is not ourselves.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/elf_symbols.h"
#include "driver/real_driver.h"
#include "session/session.h"

void *vg_real[VG_SYMBOLS];
_Atomic bool vg_resolved, vg_nvml_resolved, vg_proxied;
static _Atomic uint64_t unhooked;

#ifdef VG_PROXY
/* So that a preloaded copy of this library finds that this one enforces already. */
VG_EXPORT const char alnair_vgpu_proxy[] = "libcuda.so.1";

static void *open_driver(void)
{
    static const char *const paths[] = {
        "/run/alnair/driver/libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
        "/usr/lib64/libcuda.so.1",
        "/usr/lib/libcuda.so.1",
        "/usr/local/nvidia/lib64/libcuda.so.1",
    };
    const char *test =
        !vg_must_limit() && access(VG_FOLDER, F_OK) ? secure_getenv("ALNAIR_VGPU_DRIVER") : NULL;
    for (size_t i = 0; i <= sizeof paths / sizeof *paths; i++) {
        const char *path = i ? paths[i - 1] : test;
        void *handle = path ? vg_libc_dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (handle && !vg_libc_dlsym(handle, "alnair_vgpu_proxy") &&
            vg_libc_dlsym(handle, "cuInit"))
            return handle;
    }
    return NULL;
}
#else
static void *open_driver(void)
{
    void *handle = vg_libc_dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle && vg_libc_dlsym(handle, "alnair_vgpu_proxy"))
        atomic_store(&vg_proxied, true);
    return handle;
}
#endif

static void *_Atomic driver;

void *vg_driver_handle(void)
{
    vg_libc();
    void *handle = atomic_load(&driver);
    if (!handle) {
        handle = open_driver();
        atomic_store(&driver, handle);
    }
    return handle;
}

void *vg_driver_symbol(const char *name)
{
    void *handle = vg_driver_handle();
    return handle ? vg_libc_dlsym(handle, name) : NULL;
}

static void fill(void *handle, int from, int to)
{
    if (vg_object_symbols(handle, to - from, vg_name + from, vg_gnu_hash + from, vg_real + from) &&
        (from || REAL(cuInit)))
        return;
    /* another kind of hash table, or a library that only leads to the driver */
    for (int i = from; i < to; i++)
        __atomic_store_n(&vg_real[i], vg_libc_dlsym(handle, vg_name[i]), __ATOMIC_RELAXED);
}

void vg_resolve(void)
{
    void *handle = atomic_load(&vg_resolved) ? NULL : vg_driver_handle();
    if (!handle)
        return;
    fill(handle, 0, VG_CUDA_SYMBOLS);
    atomic_store_explicit(&vg_resolved, true, memory_order_release);
}

void vg_resolve_nvml(void)
{
    vg_libc();
    void *handle = atomic_load(&vg_nvml_resolved)
                       ? NULL
                       : vg_libc_dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    fill(handle, VG_CUDA_SYMBOLS, VG_SYMBOLS);
    atomic_store_explicit(&vg_nvml_resolved, true, memory_order_release);
}

int vg_find(const char *name)
{
    int low = 0, high = VG_SYMBOLS;
    while (low < high) {
        int middle = (low + high) / 2, order = strcmp(name, vg_name[middle]);
        if (!order)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

void vg_count_unhooked(void)
{
    atomic_fetch_add_explicit(&unhooked, 1, memory_order_relaxed);
    struct vg_slot *slot = vg_slot_now();
    if (slot)
        atomic_fetch_add_explicit(&slot->unhooked, 1, memory_order_relaxed);
}

uint64_t vg_unhooked(void)
{
    return atomic_load_explicit(&unhooked, memory_order_relaxed);
}
