/* NVML: which processes use a GPU, with how much memory.
 *
 * A process is listed while it has a context, with all the memory that the driver charges it:
 * contexts, modules, allocations; what several processes hold is charged to the first that holds
 * it. Under MPS the clients stand in both lists, as compute and as MPS processes (nvidia-smi's
 * type "M+C").
 */
#include <string.h>

#include "nvml/nvml_entry.h"

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
