/* What a program may ask of dlsym and cuGetProcAddress: any name, version and flags.
 *
 * An input is a version (4 bytes), flags (1), how to ask (1) and the name. What comes back must
 * be what the driver gives, or our function of the same name; never NULL with success.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

const int fuzz_fork = 0;
const char fuzz_name[] = "names";
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t fuzz_seed(unsigned n, uint8_t *data, size_t room);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    world_make();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void *library;
    CUdriverProcAddressQueryResult status;
    void *found = NULL;
    char name[128] = "";
    int version;

    if (size < 6)
        return 0;
    if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)))
        abort();
    memcpy(&version, data, 4);
    memcpy(name, data + 6, size - 6 < sizeof name - 1 ? size - 6 : sizeof name - 1);
    switch (data[5] & 3) {
    case 0:
        if (cuGetProcAddress(name, &found, version, data[4]) == CUDA_SUCCESS && !found)
            abort();
        break;
    case 1:
        if (cuGetProcAddress_v2(name, &found, version, data[4], &status) == CUDA_SUCCESS && !found)
            abort();
        break;
    case 2: found = fuzz_dlsym(library, name); break;
    default: found = fuzz_dlvsym(library, name, "GLIBC_2.2.5");
    }
    return found == (void *)1;
}

size_t fuzz_seed(unsigned n, uint8_t *data, size_t room)
{
    static const char *const names[] = {
        "cuInit",
        "cuMemAlloc",
        "cuMemAlloc_v2",
        "cuGetProcAddress",
        "cuGetProcAddress_v2",
        "cuLaunchKernel",
        "cuMemAllocAsync",
        "cuCtxCreate",
        "cuStreamBeginCapture",
        "cuGraphAddNode",
        "dlsym",
        "",
        "nvmlInit_v2",
    };
    int version = 11030 + 200 * (int)n;

    (void)room;
    if (n >= 2 * sizeof names / sizeof *names)
        return 0;
    memcpy(data, &version, 4);
    data[4] = (uint8_t)(n % 3);
    data[5] = (uint8_t)n;
    strcpy((char *)data + 6, names[n / 2]);
    return 6 + strlen(names[n / 2]);
}
