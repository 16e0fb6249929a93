/* NVML: which processes use a GPU, with how much memory, and how busy they keep it.
 *
 * A process is listed while it has a context, with all the memory that the driver charges it:
 * contexts, modules, allocations; what several processes hold is charged to the first that holds
 * it. Under MPS the clients stand in both lists, as compute and as MPS processes (nvidia-smi's
 * type "M+C").
 */
#include <string.h>

#include "nvml/nvml_entry.h"

#define SAMPLES 12 /* two seconds' worth: what a caller with no last time gets */

struct use {
    unsigned pid;
    uint64_t bytes;
    unsigned gi, ci;
};

static uint64_t shared_bytes(int gpu, int process)
{
    uint64_t bytes = 0;
    for (int i = 0; i < fg_state->shareds; i++) {
        const struct fg_shared *shared = &fg_state->shared[i];
        int first = -1;
        for (int h = 0; shared->gpu == gpu && h < FG_HOLDERS && first < 0; h++)
            if (shared->holder[h].count)
                first = shared->holder[h].process;
        if (shared->gpu == gpu && first == process)
            bytes += shared->bytes;
    }
    return bytes;
}

/* mig: of its instance alone; NULL: of the whole GPU. */
static unsigned running(int gpu, const struct fg_mig *mig, struct use *out)
{
    unsigned found = 0;
    bool inside = NV_FAULT("nvml_pids_inside");
    fg_lock();
    fg_sweep_dead();
    for (int i = 0; i < fg_state->processes; i++) {
        const struct fg_process *process = &fg_state->process[i];
        const struct fg_mig *its = fg_mig_of(gpu, process);
        if (mig && (!its || its->gi != mig->gi || its->ci != mig->ci))
            continue;
        if (process->pid && process->contexts[gpu]) {
            out[found].gi = its ? its->gi : 0xffffffffu;
            out[found].ci = its ? its->ci : 0xffffffffu;
            out[found].pid = (unsigned)(inside ? i + 2 : process->pid);
            out[found++].bytes = process->used[gpu] + shared_bytes(gpu, i);
        }
    }
    fg_unlock();
    return found;
}

static bool is_mps(void)
{
    return fg_state->engine.mps;
}

/* The three layouts of a process differ in what follows pid and bytes: instances of MIG, all ones
 * without it, and since the third a number of protected bytes, which the second one has too. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, void *infos, size_t size,
                         bool listed)
{
    int gpu;
    struct fg_mig mig;
    bool of_mig = nv_mig_of(device, &gpu, &mig);
    nvmlReturn_t refused = of_mig ? NVML_SUCCESS : nv_gpu_of(device, &gpu);
    if (refused != NVML_SUCCESS)
        return refused;
    NV_NEEDS(count);
    struct use uses[FG_PROCESSES];
    unsigned found = listed ? running(gpu, of_mig ? &mig : NULL, uses) : 0, room = *count;
    *count = found;
    if (found > room || (found && !infos))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found; i++) {
        nvmlProcessInfo_t info = {.pid = uses[i].pid,
                                  .usedGpuMemory = uses[i].bytes,
                                  .gpuInstanceId = uses[i].gi,
                                  .computeInstanceId = uses[i].ci};
        memcpy((char *)infos + i * size, &info, size);
    }
    return NVML_SUCCESS;
}

#define LISTS(kind, listed)                                                                        \
    NV_EXPORT nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses(                                  \
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)                         \
    {                                                                                              \
        NV_ENTER(nvmlDeviceGet##kind##RunningProcesses);                                           \
        return list(device, count, infos, sizeof *infos, listed);                                  \
    }                                                                                              \
    NV_EXPORT nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v2(                               \
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)                         \
    {                                                                                              \
        NV_ENTER(nvmlDeviceGet##kind##RunningProcesses_v2);                                        \
        return list(device, count, infos, sizeof *infos, listed);                                  \
    }                                                                                              \
    NV_EXPORT nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v3(                               \
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)                            \
    {                                                                                              \
        NV_ENTER(nvmlDeviceGet##kind##RunningProcesses_v3);                                        \
        return list(device, count, infos, sizeof *infos, listed);                                  \
    }
LISTS(Compute, true)
LISTS(Graphics, false)
LISTS(MPSCompute, is_mps())

NV_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    NV_ENTER(nvmlSystemGetProcessName);
    char found[64] = "";
    fg_lock();
    for (int i = 0; i < fg_state->processes; i++)
        if (pid && fg_state->process[i].pid == (int)pid)
            memcpy(found, fg_state->process[i].name, sizeof found);
    fg_unlock();
    return *found ? nv_text(name, length, "%.63s", found) : NVML_ERROR_NOT_FOUND;
}

/* ---- how busy -------------------------------------------------------------------------------- */

static unsigned percent(uint64_t ppm)
{
    return (unsigned)((ppm + 5000) / 10000);
}

void nv_utilization(int gpu, unsigned *busy, unsigned *memory)
{
    struct fg_sample samples[SAMPLES];
    uint64_t now = fakegpu_now_ns(), second = 1000000000u, sums[2] = {0};
    int n = fg_engine_samples(gpu, now > second ? now - second : 0, samples, SAMPLES);
    for (int i = 0; i < n; i++) {
        sums[0] += samples[i].busy_ppm;
        sums[1] += samples[i].memory_ppm;
    }
    *busy = n ? percent(sums[0] / (unsigned)n) : 0;
    *memory = n ? percent(sums[1] / (unsigned)n) : 0;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    NV_ENTER(nvmlDeviceGetUtilizationRates);
    NV_GPU(gpu, device);
    NV_NEEDS(rates);
    if (fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    nv_utilization(gpu, &rates->gpu, &rates->memory);
    return NVML_SUCCESS;
}

static nvmlReturn_t never_used(nvmlDevice_t device, unsigned *percent_used, unsigned *period_us)
{
    NV_GPU(gpu, device);
    (void)gpu;
    NV_NEEDS(percent_used && period_us);
    *percent_used = 0;
    *period_us = (unsigned)(FG_SAMPLE_NS / 1000);
    return NVML_SUCCESS;
}

#define NEVER_USED(function)                                                                       \
    NV_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *percent_used,                   \
                                    unsigned *period_us)                                           \
    {                                                                                              \
        NV_ENTER(function);                                                                        \
        return never_used(device, percent_used, period_us);                                        \
    }
NEVER_USED(nvmlDeviceGetEncoderUtilization)
NEVER_USED(nvmlDeviceGetDecoderUtilization)
NEVER_USED(nvmlDeviceGetJpgUtilization)
NEVER_USED(nvmlDeviceGetOfaUtilization)

/* Per process, the mean of its samples since a time, stamped with its last one, as the driver gives
 * one row per process; NOT_FOUND where there is none. */
static nvmlReturn_t processes_since(int gpu, uint64_t last_us, nvmlProcessUtilizationInfo_v1_t *out,
                                    unsigned *count)
{
    struct {
        int pid;
        unsigned samples;
        uint64_t sm, memory, end;
    } seen[FG_SAMPLE_ROWS * 2] = {0};
    static __thread struct fg_sample samples[FG_SAMPLES];
    uint64_t since = last_us ? nv_engine_ns(last_us) : 0;
    unsigned found = 0, room = *count;
    int n = fg_engine_samples(gpu, since, samples, FG_SAMPLES);
    for (int i = 0; i < n; i++)
        for (unsigned r = 0; r < samples[i].rows; r++) {
            const struct fg_sample_row *row = &samples[i].row[r];
            unsigned at = 0;
            while (at < found && seen[at].pid != row->pid)
                at++;
            if (at == sizeof seen / sizeof *seen)
                continue;
            found += at == found;
            seen[at].pid = row->pid;
            seen[at].samples++;
            seen[at].sm += row->sm_ppm;
            seen[at].memory += row->memory_ppm;
            seen[at].end = samples[i].end_ns;
        }
    *count = found;
    if (!found)
        return NVML_ERROR_NOT_FOUND;
    if (found > room || !out)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    bool zero = NV_FAULT("nvml_util_zero");
    memset(out, 0, found * sizeof *out);
    for (unsigned i = 0; i < found; i++) {
        out[i].timeStamp = nv_time_us(seen[i].end);
        out[i].pid = (unsigned)seen[i].pid;
        out[i].smUtil = zero ? 0 : percent(seen[i].sm / seen[i].samples);
        out[i].memUtil = zero ? 0 : percent(seen[i].memory / seen[i].samples);
    }
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                       nvmlProcessUtilizationSample_t *out,
                                                       unsigned int *count,
                                                       unsigned long long last_us)
{
    NV_ENTER(nvmlDeviceGetProcessUtilization);
    NV_GPU(gpu, device);
    NV_NEEDS(count);
    if (NV_FAULT("nvml_util_off") || fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlProcessUtilizationInfo_v1_t found[FG_SAMPLE_ROWS * 2];
    unsigned room = out && *count < FG_SAMPLE_ROWS * 2 ? *count : out ? FG_SAMPLE_ROWS * 2 : 0;
    *count = room;
    nvmlReturn_t result = processes_since(gpu, last_us, room ? found : NULL, count);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        out[i] = (nvmlProcessUtilizationSample_t){.pid = found[i].pid,
                                                  .timeStamp = found[i].timeStamp,
                                                  .smUtil = found[i].smUtil,
                                                  .memUtil = found[i].memUtil};
    return result;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                             nvmlProcessesUtilizationInfo_t *info)
{
    NV_ENTER(nvmlDeviceGetProcessesUtilizationInfo);
    NV_GPU(gpu, device);
    NV_NEEDS(info);
    if (info->version != nvmlProcessesUtilizationInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (NV_FAULT("nvml_util_off") || fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    return processes_since(gpu, info->lastSeenTimeStamp, info->procUtilArray,
                           &info->processSamplesCount);
}
