/* A library for LD_PRELOAD that stands in the way of some calls, and limits nothing: what the
 * benchmarks' --preload is tested with. LIMITS_NOTHING names a folder in which each process makes a
 * file of its pid, to show who had which. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuInit(unsigned int flags)
{
    char path[4096];
    const char *folder = getenv("LIMITS_NOTHING");
    snprintf(path, sizeof path, "%s/%d", folder ? folder : "", (int)getpid());
    FILE *file = folder ? fopen(path, "w") : NULL;
    if (folder && !file)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (file)
        fclose(file);
    __typeof__(&cuInit) real = (__typeof__(real))dlsym(RTLD_NEXT, "cuInit");
    return real(flags);
}
