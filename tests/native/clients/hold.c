/* hold MIB [KERNEL|managed]: takes so much device (or managed) memory, says "held" or the error's
 * number, then launches KERNEL again and again (if given) until its stdin is closed. Linked with
 * the driver. */
#include <cuda.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int closed(int wait_ms)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, wait_ms) != 0;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory = 0;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGet(&device, 0);
    if (result == CUDA_SUCCESS)
        result = cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(context);
    int managed = argc > 2 && !strcmp(argv[2], "managed");
    size_t bytes = argc > 1 ? (size_t)atol(argv[1]) << 20 : 0;
    if (result == CUDA_SUCCESS && bytes && managed)
        result = cuMemAllocManaged(&memory, bytes, CU_MEM_ATTACH_GLOBAL);
    else if (result == CUDA_SUCCESS && bytes)
        result = cuMemAlloc(&memory, bytes);
    if (result != CUDA_SUCCESS) {
        printf("%d\n", (int)result);
        return 0;
    }
    puts("held");
    fflush(stdout);
    if (argc > 2 && !managed) {
        CUmodule module;
        CUfunction kernel;
        if (cuModuleLoadData(&module, "//\n.version 8.0\n") ||
            cuModuleGetFunction(&kernel, module, argv[2]))
            return 2;
        while (!closed(0)) {
            for (int i = 0; i < 16; i++)
                if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
                    return 3;
            if (cuCtxSynchronize())
                return 4;
        }
    }
    while (!closed(-1))
        ;
    return 0;
}
