/* libnvidia-ml.so.1 of the fake GPU: what its modules offer each other.
 *
 * It is a second user-space driver over the state of libfakegpu.so: what libcuda.so.1 allocates
 * and runs is what NVML reports. Modelled are the calls of nvidia-smi-like tools and of Alnair's
 * agent; every other function of nvml.h is generated (stubs.py), counts its calls and is
 * NOT_SUPPORTED. A function that an older driver lacks cannot be taken out of a library at run
 * time: it returns FUNCTION_NOT_FOUND, which is what nvidia-ml-py raises for a missing one.
 *
 * Faults (FAKEGPU_FAULT of the process that asks, or fakegpu_fault):
 *   nvml_util_off=1     utilisation of processes is NOT_SUPPORTED; nvml_util_zero=1: it is always 0
 *                       (both were seen with the open kernel module)
 * nvml_pids_inside=1  running processes carry pids of a namespace of their own, as driver 560
 * gave
 *   nvml_util_stale=1   what was seen of processes already is told again and again
 *   nvml_util_garbage=1 rows of no process, of the future, and of billions of percent, as well
 *   nvml_util_foreign=N a row of a process N, of another namespace for all that is known
 *   nvml_util_none=1    where there is nothing new, that is a success with no rows
 *   nvml_throttle=BITS  the clocks of all GPUs are lowered for these reasons
 *   nvml_limits_off=1   no memory limits, though the driver is new enough
 */
#ifndef FG_NVML_ENTRY_H
#define FG_NVML_ENTRY_H
/* old and new versions are two functions here, as in the library */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "controls/calls.h"
#include "controls/faults.h"
#include "engine/engine.h"
#include "state/ledger.h"
#include "state/mig.h"
#include "state/process_table.h"

#define NV_EXPORT __attribute__((visibility("default")))
#define NV_DRIVERS(X)                                                                              \
    X(13050, 615, "615.36.01")                                                                     \
    X(13000, 580, "580.65.06") X(12040, 550, "550.54.14") X(11080, 520, "520.61.05")

/* Counts a call; NVML_SUCCESS, or what a call before nvmlInit gives. */
struct nv_counter {
    /* of the state that `count` is in */
    _Atomic uint64_t born;
    _Atomic uint64_t *_Atomic count;
};
nvmlReturn_t nv_enter(struct nv_counter *counter, const char *name);
#define NV_ENTER(function)                                                                         \
    do {                                                                                           \
        static struct nv_counter counter;                                                          \
        nvmlReturn_t refused = nv_enter(&counter, #function);                                      \
        if (refused != NVML_SUCCESS)                                                               \
            return refused;                                                                        \
    } while (0)

/* The GPU of a handle, in `gpu`; returns from the function with an error where there is none. */
nvmlReturn_t nv_gpu_of(nvmlDevice_t device, int *gpu);
#define NV_GPU(number, device)                                                                     \
    int number;                                                                                    \
    do {                                                                                           \
        nvmlReturn_t refused = nv_gpu_of(device, &number);                                         \
        if (refused != NVML_SUCCESS)                                                               \
            return refused;                                                                        \
    } while (0)
/* The MIG instance of a handle, a copy, in `mig`, and its GPU; false: it is none of an instance that
 * is there. */
bool nv_mig_of(nvmlDevice_t device, int *gpu, struct fg_mig *mig);
nvmlDevice_t nv_mig_handle(int gpu, int slot);
int nv_slot(nvmlDevice_t device); /* of a MIG handle; -1: it is none */
nvmlReturn_t nv_uuid(const char *prefix, const uint8_t uuid[16], char *out, unsigned length);
#define NV_FAULT(name) (fg_fault_number(name, 0) != 0)
#define NV_NEEDS(condition)                                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return NVML_ERROR_INVALID_ARGUMENT;                                                    \
    } while (0)

/* A function that gives one number of a device. */
#define NV_NUMBER(function, type, value)                                                           \
    NV_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out)                                \
    {                                                                                              \
        NV_ENTER(function);                                                                        \
        NV_GPU(gpu, device);                                                                       \
        NV_NEEDS(out);                                                                             \
        *out = (type)(value);                                                                      \
        return NVML_SUCCESS;                                                                       \
    }
/* A function that gives one text of a device; `print` is snprintf's format and arguments. */
#define NV_TEXT(function, ...)                                                                     \
    NV_EXPORT nvmlReturn_t function(nvmlDevice_t device, char *out, unsigned length)               \
    {                                                                                              \
        NV_ENTER(function);                                                                        \
        NV_GPU(gpu, device);                                                                       \
        (void)gpu;                                                                                 \
        return nv_text(out, length, __VA_ARGS__);                                                  \
    }

nvmlDevice_t nv_device_of(int gpu);
int nv_index(int gpu);     /* among the GPUs that this process sees; -1: it does not see it */
unsigned nv_release(void); /* of the driver presented: 615, 580, ... */
int nv_cuda(void);         /* 13050, 13000, ... */
const struct fg_profile *nv_profile(int gpu);
int nv_bus(int gpu);                     /* PCI bus number */
int nv_links(int gpu);                   /* NVLink connections of a GPU */
int nv_tag(void);                        /* this process's tag, -1: not in the state */
uint64_t nv_time_us(uint64_t engine_ns); /* as NVML stamps samples: unix microseconds */
uint64_t nv_engine_ns(uint64_t us);
/* Idle a tenth of the limit, nine tenths of it while kernels run all the time. */
static inline unsigned nv_milliwatts(int gpu, unsigned busy_percent)
{
    return (unsigned)nv_profile(gpu)->power_watts * (100 + 8 * busy_percent);
}
static inline unsigned nv_percent(uint64_t ppm)
{
    return (unsigned)((ppm + 5000) / 10000);
}
/* over the last second */
void nv_utilization(int gpu, unsigned *percent, unsigned *memory_percent);
nvmlReturn_t nv_text(char *out, unsigned length, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#endif
