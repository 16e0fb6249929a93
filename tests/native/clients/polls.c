/* Asks N times whether an event is done, with memory from a pool in use, as frameworks do:
 * polls N */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "polls: %s gave %d\n", #call, result_);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory;
    CUevent event;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAllocAsync(&memory, 1 << 20, NULL));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventRecord(event, NULL));
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
        CHECK(cuEventQuery(event));
    return 0;
}
