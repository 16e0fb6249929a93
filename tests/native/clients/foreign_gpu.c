/* Launches a library's kernel of a millisecond on a stream of GPU 1 while a context of GPU 0 is
 * current, makes streams anew in between, says "done" and waits for the end of its input. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "foreign_gpu: %s gave %d\n", #call, result_);                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(void)
{
    CUcontext context[2];
    CUlibrary library;
    CUkernel kernel;
    CUstream stream;
    CHECK(cuInit(0));
    for (int gpu = 0; gpu < 2; gpu++)
        CHECK(cuDevicePrimaryCtxRetain(&context[gpu], gpu));
    CHECK(cuCtxSetCurrent(context[0]));
    CHECK(cuLibraryLoadData(&library, "//\n.version 8.0\n.target sm_70\n.address_size 64\n", NULL,
                            NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "ns_1000000"));
    for (int i = 0; i < 4; i++) {
        CHECK(cuCtxSetCurrent(context[1]));
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuCtxSetCurrent(context[0]));
        for (int j = 0; j < 10; j++)
            CHECK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuStreamDestroy(stream));
    }
    puts("done");
    fflush(stdout);
    return getchar() != EOF;
}
