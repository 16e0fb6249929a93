/* deepbind MIB: takes that much device memory in ways that no preloaded library sees: through a
 * library that was loaded with RTLD_DEEPBIND (itself), and in another namespace. Prints each way
 * and the driver's result. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

typedef CUresult init(unsigned), device(CUdevice *, int), retain(CUcontext *, CUdevice),
    set(CUcontext), allocate(CUdeviceptr *, size_t);

static int take(void *driver, size_t bytes)
{
    CUdevice which;
    CUcontext context;
    CUdeviceptr memory;
    int result = ((init *)dlsym(driver, "cuInit"))(0);
    if (!result)
        result = ((device *)dlsym(driver, "cuDeviceGet"))(&which, 0);
    if (!result)
        result = ((retain *)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, which);
    if (!result)
        result = ((set *)dlsym(driver, "cuCtxSetCurrent"))(context);
    return result ? 1000 + result
                  : (int)((allocate *)dlsym(driver, "cuMemAlloc_v2"))(&memory, bytes);
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
    printf("deepbind %d\n", take(dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND), bytes));
    void *apart = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    printf("dlmopen %d\n", apart ? take(apart, bytes) : -1);
    return 0;
}
