/* NVML: its life, versions, handles, and what its other modules share. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml/nvml_entry.h"
#include "state/device_files.h"

struct nvmlDevice_st { int number; };
static struct nvmlDevice_st handles[FG_GPUS] = {{0}, {1}, {2},  {3},  {4},  {5},  {6},  {7},
                                                {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};
static _Atomic int initialized;
static struct nvmlDevice_st instances[FG_GPUS][FG_MIGS];
/* By GPU of the state: the index that it has here; -1: not visible. Threads that race write the
 * same. */
static _Atomic int index_of[FG_GPUS], devices;

nvmlReturn_t nv_enter(struct nv_counter *counter, const char *name)
{
    if (!fg_attach())
        return NVML_ERROR_UNINITIALIZED;
    if (atomic_load(&counter->born) != fg_state->born) {
        atomic_store(&counter->count, fg_call_counter(name));
        atomic_store(&counter->born, fg_state->born);
    }
    atomic_fetch_add(counter->count, 1);
    return atomic_load(&initialized) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlDevice_t nv_device_of(int gpu)
{
    return &handles[gpu];
}

/* Whether it fell off the bus; where it is wedged, that is told to nobody for now. */
static bool lost(int gpu)
{
    while (fg_state->gpu[gpu].wedged)
        usleep(2000);
    return fg_state->gpu[gpu].lost || fg_fault_number("lost", FG_GPUS) == (uint64_t)gpu;
}

nvmlDevice_t nv_mig_handle(int gpu, int slot)
{
    return &instances[gpu][slot];
}

int nv_slot(nvmlDevice_t device)
{
    bool is_one = device >= &instances[0][0] && device <= &instances[FG_GPUS - 1][FG_MIGS - 1];
    return is_one ? (int)((device - &instances[0][0]) % FG_MIGS) : -1;
}

bool nv_mig_of(nvmlDevice_t device, int *gpu, struct fg_mig *mig)
{
    int slot = nv_slot(device);
    if (slot < 0)
        return false;
    *gpu = (int)((device - &instances[0][0]) / FG_MIGS);
    lost(*gpu);
    fg_lock();
    bool is_there =
        *gpu < fg_state->gpus && index_of[*gpu] >= 0 && slot < (int)fg_state->gpu[*gpu].migs;
    if (is_there)
        *mig = fg_state->gpu[*gpu].mig[slot];
    fg_unlock();
    return is_there && fg_has_mig_files(*gpu, mig);
}

nvmlReturn_t nv_gpu_of(nvmlDevice_t device, int *gpu)
{
    struct fg_mig mig;
    if (nv_mig_of(device, gpu, &mig)) /* most questions are for whole GPUs only */
        return lost(*gpu) ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < fg_state->gpus; i++)
        if (device == &handles[i] && index_of[i] >= 0) {
            *gpu = i;
            return lost(i) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

int nv_index(int gpu)
{
    return index_of[gpu];
}

const struct fg_profile *nv_profile(int gpu)
{
    return &fg_state->gpu[gpu].profile;
}
int nv_bus(int gpu)
{
    return 0x18 + 8 * gpu;
}

nvmlReturn_t nv_text(char *out, unsigned length, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    unsigned size = (unsigned)vsnprintf(text, sizeof text, format, arguments) + 1;
    va_end(arguments);
    NV_NEEDS(out);
    if (size > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, size);
    return NVML_SUCCESS;
}

int nv_cuda(void)
{
    const char *given = getenv("FAKEGPU_CUDA");
    return given && *given ? atoi(given) : 13050;
}

#define AT_LEAST(cuda, branch, text)                                                               \
    if (nv_cuda() >= (cuda))                                                                       \
        return RESULT(branch, text);
unsigned nv_release(void)
{
#define RESULT(branch, text) branch
    NV_DRIVERS(AT_LEAST)
#undef RESULT
    return 470;
}

static const char *driver_version(void)
{
#define RESULT(branch, text) text
    NV_DRIVERS(AT_LEAST)
#undef RESULT
    return "470.82.01";
}

int nv_tag(void)
{
    const char *name = getenv("FAKEGPU_TAG");
    fg_lock();
    int tag = fg_find_tag(name && *name ? name : "none", false);
    fg_unlock();
    return tag;
}

/* Of one process the same for ever, or a time read twice would differ by a microsecond. */
static uint64_t unix_offset_ns(void)
{
    static _Atomic uint64_t offset;
    uint64_t known = atomic_load(&offset), none = 0;
    if (fg_state->engine.virtual_clock)
        return 0;
    if (!known) {
        struct timespec real, mono;
        clock_gettime(CLOCK_REALTIME, &real);
        clock_gettime(CLOCK_MONOTONIC, &mono);
        known = (uint64_t)(real.tv_sec - mono.tv_sec) * 1000000000u +
                (uint64_t)(real.tv_nsec - mono.tv_nsec);
        if (!atomic_compare_exchange_strong(&offset, &none, known))
            known = none;
    }
    return known;
}

uint64_t nv_time_us(uint64_t engine_ns)
{
    return (engine_ns + unix_offset_ns()) / 1000;
}

uint64_t nv_engine_ns(uint64_t us)
{
    /* All of that microsecond counts as seen. */
    uint64_t offset = unix_offset_ns();
    return us * 1000 + 999 > offset ? us * 1000 + 999 - offset : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static nvmlReturn_t initialize(void)
{
    if (!fg_attach())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    int found = 0;
    for (int gpu = 0; gpu < fg_state->gpus; gpu++)
        index_of[gpu] = fg_has_device_file(gpu) ? found++ : -1;
    devices = found;
    atomic_fetch_add(&initialized, 1);
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlInit(void)
{
    return initialize();
}
NV_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return initialize();
}
NV_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return initialize();
}

NV_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    NV_ENTER(nvmlShutdown);
    atomic_fetch_sub(&initialized, 1);
    return NVML_SUCCESS;
}

NV_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {"Success",
                                        "Uninitialized",
                                        "Invalid Argument",
                                        "Not Supported",
                                        "Insufficient Permissions",
                                        "Already Initialized",
                                        "Not Found",
                                        "Insufficient Size",
                                        "Insufficient External Power",
                                        "Driver Not Loaded",
                                        "Timeout",
                                        "Interrupt Request Issue",
                                        "NVML Shared Library Not Found",
                                        "Function Not Found",
                                        "Corrupted infoROM",
                                        "GPU is lost",
                                        "GPU requires reset",
                                        "GPU access blocked by the operating system",
                                        "Driver/library version mismatch",
                                        "In use",
                                        "Insufficient Memory",
                                        "No data",
                                        "ECC not supported on this vGPU",
                                        "Insufficient resources",
                                        "Frequency not supported",
                                        "Argument version mismatch",
                                        "Deprecated",
                                        "Not ready",
                                        "GPU not found",
                                        "Invalid state",
                                        "Reset type not supported"};
    return (unsigned)result < sizeof texts / sizeof *texts ? texts[result] : "Unknown Error";
}

/* ---- versions -------------------------------------------------------------------------------- */

NV_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    NV_ENTER(nvmlSystemGetDriverVersion);
    return nv_text(version, length, "%s", driver_version());
}

NV_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    NV_ENTER(nvmlSystemGetNVMLVersion);
    return nv_text(version, length, "%d.%s", nv_cuda() / 1000, driver_version());
}

NV_EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *branch,
                                                 unsigned int length)
{
    NV_ENTER(nvmlSystemGetDriverBranch);
    NV_NEEDS(branch);
    return nv_text(branch->branch, length < sizeof branch->branch ? length : sizeof branch->branch,
                   "r%u_00", nv_release());
}

static nvmlReturn_t cuda_version(int *version)
{
    NV_NEEDS(version);
    *version = nv_cuda();
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    NV_ENTER(nvmlSystemGetCudaDriverVersion);
    return cuda_version(version);
}

NV_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    NV_ENTER(nvmlSystemGetCudaDriverVersion_v2);
    return cuda_version(version);
}

/* ---- handles --------------------------------------------------------------------------------- */

static nvmlReturn_t count(unsigned *out)
{
    NV_NEEDS(out);
    *out = (unsigned)devices;
    return NVML_SUCCESS;
}

static nvmlReturn_t by_gpu(int gpu, nvmlDevice_t *out)
{
    *out = nv_device_of(gpu);
    return lost(gpu) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *out)
{
    NV_NEEDS(out && index < (unsigned)devices);
    for (int gpu = 0; gpu < fg_state->gpus; gpu++)
        if (index_of[gpu] == (int)index)
            return by_gpu(gpu, out);
    return NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t by_bus(const char *id, nvmlDevice_t *out)
{
    unsigned domain = 0, bus, slot, function = 0;
    NV_NEEDS(id && out);
    bool full = sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) >= 3;
    if (!full && sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < fg_state->gpus; i++)
        if (domain == 0 && slot == 0 && (int)bus == nv_bus(i) && index_of[i] >= 0)
            return by_gpu(i, out);
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t by_uuid(const uint8_t uuid[16], nvmlDevice_t *out)
{
    for (int i = 0; i < fg_state->gpus; i++)
        if (!memcmp(uuid, fg_state->gpu[i].uuid, 16) && index_of[i] >= 0)
            return by_gpu(i, out);
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t mig_by_uuid(const uint8_t uuid[16], nvmlDevice_t *out)
{
    for (int i = 0; i < fg_state->gpus * FG_MIGS; i++) {
        int gpu;
        struct fg_mig mig;
        nvmlDevice_t handle = nv_mig_handle(i / FG_MIGS, i % FG_MIGS);
        if (nv_mig_of(handle, &gpu, &mig) && !memcmp(mig.uuid, uuid, 16)) {
            *out = handle;
            return lost(gpu) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nv_uuid(const char *prefix, const uint8_t u[16], char *out, unsigned length)
{
    return nv_text(out, length,
                   "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   prefix, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
                   u[12], u[13], u[14], u[15]);
}

static bool parse_uuid(const char *text, const char *prefix, uint8_t uuid[16])
{
    if (strncmp(text, prefix, 4))
        return false;
    int digits = 0;
    for (text += 4; *text; text++) {
        const char *at = strchr("0123456789abcdef", *text | 0x20);
        if (*text == '-')
            continue;
        if (!at || digits == 32)
            return false;
        uint8_t *byte = &uuid[digits++ / 2];
        *byte = (uint8_t)(*byte << 4 | (at - "0123456789abcdef"));
    }
    return digits == 32;
}

static nvmlReturn_t by_text(const char *text, nvmlDevice_t *out)
{
    uint8_t uuid[16] = {0};
    if (parse_uuid(text, "GPU-", uuid))
        return by_uuid(uuid, out);
    return parse_uuid(text, "MIG-", uuid) ? mig_by_uuid(uuid, out) : NVML_ERROR_NOT_FOUND;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetCount);
    return count(out);
}
NV_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetCount_v2);
    return count(out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByIndex);
    return by_index(index, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByIndex_v2);
    return by_index(index, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByPciBusId);
    return by_bus(id, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByPciBusId_v2);
    return by_bus(id, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *text, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByUUID);
    NV_NEEDS(text && out);
    return by_text(text, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetHandleByUUIDV);
    NV_NEEDS(uuid && out);
    if (uuid->version != nvmlUUID_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_BINARY)
        return by_uuid(uuid->value.bytes, out);
    NV_NEEDS(uuid->type == NVML_UUID_TYPE_ASCII);
    return by_text(uuid->value.str, out);
}
