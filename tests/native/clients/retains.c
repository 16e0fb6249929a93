/* A program that takes and gives back the primary context around its work, as some libraries do for
 * each call while another one holds it: retains N. Each time it launches a kernel and waits. */
#include <cuda.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    CUcontext context, again;
    CUmodule module;
    CUfunction function;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n") ||
        cuModuleGetFunction(&function, module, "ns_1000000"))
        return 2;
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++)
        if (cuDevicePrimaryCtxRetain(&again, 0) ||
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) || cuCtxSynchronize() ||
            cuDevicePrimaryCtxRelease(0))
            return 1;
    return 0;
}
