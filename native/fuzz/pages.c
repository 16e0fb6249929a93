/* Arbitrary limits pages, and a hostile neighbour that writes into the counters between any two
 * calls.
 *
 * An input is a list of steps of 12 bytes: what (1), where (3), a value (8). The library must
 * neither crash nor hang, whatever the pages say; that its own container's limits become
 * nonsense is expected. Every input has a process of its own, as a session lives as long as its
 * process.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

const int fuzz_fork = 1;
const char fuzz_name[] = "pages";
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t fuzz_seed(unsigned n, uint8_t *data, size_t room);

enum { STEP = 12, MOST_STEPS = 64, NEAR = 6 * 4096 };

/* As a program finds it: our function where there is a hook, the driver's own otherwise. */
#define CUDA(name) ((__typeof__(&name))fuzz_dlsym(library, #name))
static void *library;

static void call(uint64_t which, CUdeviceptr *held)
{
    size_t bytes, total;
    CUcontext context;
    CUdevice device;

    switch (which % 8) {
    case 0: CUDA(cuInit)(0); break;
    case 1:
        if (CUDA(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS)
            CUDA(cuCtxSetCurrent)(context);
        break;
    case 2: CUDA(cuMemAlloc_v2)(held, (which >> 8) % (64ull << 20) + 1); break;
    case 3:
        CUDA(cuMemFree_v2)(*held);
        *held = 0;
        break;
    case 4: CUDA(cuMemGetInfo_v2)(&bytes, &total); break;
    case 5: CUDA(cuDeviceTotalMem_v2)(&bytes, 0); break;
    case 6: CUDA(cuCtxSynchronize)(); break;
    default: CUDA(cuDeviceGet)(&device, 0);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    world_make();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CUdeviceptr held = 0;

    world_lay_out();
    if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)))
        abort();
    alarm(8); /* a hang is a crash here */
    for (size_t at = 0, n = 0; at + STEP <= size && n < MOST_STEPS; at += STEP, n++) {
        uint32_t where = data[at + 1] | (uint32_t)data[at + 2] << 8 | (uint32_t)data[at + 3] << 16;
        uint64_t value;
        unsigned width = 1u << (data[at] >> 4 & 3);
        memcpy(&value, data + at + 4, 8);
        switch (data[at] & 3) {
        case 0:
            memcpy((char *)world_limits() + where % (sizeof(struct vg_limits) - 8), &value, width);
            break;
        case 1: memcpy((char *)world_counters() + where % (NEAR - 8), &value, width); break;
        default: call(value, &held);
        }
    }
    return 0;
}

static void step(uint8_t **at, uint8_t what, uint32_t where, uint64_t value)
{
    uint8_t *p = *at;
    p[0] = what, p[1] = (uint8_t)where, p[2] = (uint8_t)(where >> 8), p[3] = (uint8_t)(where >> 16);
    memcpy(p + 4, &value, 8);
    *at += STEP;
}

size_t fuzz_seed(unsigned n, uint8_t *data, size_t room)
{
    static const uint64_t whole[] = {0, 1, 2, 4, 5, 3, 7};
    static const uint32_t fields[] = {
        offsetof(struct vg_limits, magic),
        offsetof(struct vg_limits, abi),
        offsetof(struct vg_limits, n_devices),
        offsetof(struct vg_limits, state),
        offsetof(struct vg_limits, deadline_ms),
        offsetof(struct vg_limits, sequence),
        offsetof(struct vg_limits, generation),
        offsetof(struct vg_limits, device),
        offsetof(struct vg_limits, device) + offsetof(struct vg_device_limit, memory_limit),
        offsetof(struct vg_limits, device) + offsetof(struct vg_device_limit, context_bytes),
        offsetof(struct vg_limits, device) + offsetof(struct vg_device_limit, compute_percent),
    };
    uint8_t *at = data;

    (void)room;
    if (n > sizeof fields / sizeof *fields)
        return 0;
    for (unsigned i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (n && i == 3) { /* a field of the limits, and a place in the counters, in the middle */
            step(&at, 0x30, fields[n - 1], 3);
            step(&at, 0x31, 4096 + 64 * n, ~0ull);
        }
        step(&at, 2, 0, whole[i] + (1ull << 28));
    }
    return (size_t)(at - data);
}
