/* A library that a program loads with RTLD_DEEPBIND: what it calls it finds in its own libraries
 * first, so no preloaded one comes between it and the driver. deep_hold takes memory and keeps it. */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

#define FIND(type, name) ((type *)dlsym(driver, name))
typedef CUresult init(unsigned), device(CUdevice *, int), retain(CUcontext *, CUdevice),
    set(CUcontext), allocate(CUdeviceptr *, size_t);

__attribute__((visibility("default"))) int deep_hold(size_t bytes)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CUdevice first;
    CUcontext context;
    CUdeviceptr memory;
    int result = driver ? (int)FIND(init, "cuInit")(0) : -1;

    if (!result)
        result = (int)FIND(device, "cuDeviceGet")(&first, 0);
    if (!result)
        result = (int)FIND(retain, "cuDevicePrimaryCtxRetain")(&context, first);
    if (!result)
        result = (int)FIND(set, "cuCtxSetCurrent")(context);
    return result ? result : (int)FIND(allocate, "cuMemAlloc_v2")(&memory, bytes);
}
