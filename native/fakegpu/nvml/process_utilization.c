/* NVML: how busy each process keeps a GPU, and what drivers were seen to get wrong in it. */
#include <string.h>

#include "nvml/nvml_entry.h"

#define MOST (FG_SAMPLE_ROWS * 2)
#define WRONG 4
#define SECOND_US 1000000u

struct found {
    nvmlProcessUtilizationInfo_v1_t row[MOST + WRONG];
    unsigned rows;
};

static void add(struct found *found, unsigned pid, uint64_t us, unsigned sm, unsigned memory)
{
    found->row[found->rows++] = (nvmlProcessUtilizationInfo_v1_t){
        .pid = pid, .timeStamp = us, .smUtil = sm, .memUtil = memory};
}

/* What is asked for by faults and options, beside the truth. */
static void add_wrong(struct found *found)
{
    uint64_t now = nv_time_us(fakegpu_now_ns());
    unsigned foreign =
        (unsigned)fg_fault_number("nvml_util_foreign", fg_state->engine.util_foreign);
    if (foreign)
        add(found, foreign, now, 90, 10);
    if (!NV_FAULT("nvml_util_garbage"))
        return;
    add(found, 0, now, 50, 50);
    add(found, found->rows ? found->row[0].pid : 1, now + 60 * SECOND_US, 99, 99);
    add(found, found->rows > 1 ? found->row[0].pid : 1, now, 3000000000u, 7);
}

/* Per process, the mean of its samples since a time, stamped with its last one, as the driver gives
 * one row per process. */
static void collect(int gpu, uint64_t last_us, struct found *found)
{
    struct {
        int pid;
        unsigned samples;
        uint64_t sm, memory, end;
    } seen[MOST] = {0};
    static __thread struct fg_sample samples[FG_SAMPLES];
    uint64_t since = last_us && !NV_FAULT("nvml_util_stale") ? nv_engine_ns(last_us) : 0;
    unsigned pids = 0;
    int n = fg_engine_samples(gpu, since, samples, FG_SAMPLES);
    for (int i = 0; i < n; i++)
        for (unsigned r = 0; r < samples[i].rows; r++) {
            const struct fg_sample_row *row = &samples[i].row[r];
            unsigned at = 0;
            while (at < pids && seen[at].pid != row->pid)
                at++;
            if (at == MOST)
                continue;
            pids += at == pids;
            seen[at].pid = row->pid;
            if (fg_state->engine.util_last) /* the ones before are forgotten */
                seen[at].samples = 0, seen[at].sm = seen[at].memory = 0;
            seen[at].samples++;
            seen[at].sm += row->sm_ppm;
            seen[at].memory += row->memory_ppm;
            seen[at].end = samples[i].end_ns;
        }
    bool zero = NV_FAULT("nvml_util_zero");
    found->rows = 0;
    for (unsigned i = 0; i < pids; i++)
        add(found, (unsigned)seen[i].pid, nv_time_us(seen[i].end),
            zero ? 0 : nv_percent(seen[i].sm / seen[i].samples),
            zero ? 0 : nv_percent(seen[i].memory / seen[i].samples));
    add_wrong(found);
}

/* The number of rows in *count; SUCCESS if all of them fit into what the caller has. */
static nvmlReturn_t since(int gpu, uint64_t last_us, bool has_room, unsigned *count,
                          struct found *found)
{
    if (NV_FAULT("nvml_util_off") || fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    collect(gpu, last_us, found);
    unsigned room = has_room ? *count : 0;
    *count = found->rows;
    if (!found->rows) /* some drivers find no fault with that */
        return NV_FAULT("nvml_util_none") ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    return found->rows > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                       nvmlProcessUtilizationSample_t *out,
                                                       unsigned int *count,
                                                       unsigned long long last_us)
{
    NV_ENTER(nvmlDeviceGetProcessUtilization);
    NV_GPU(gpu, device);
    NV_NEEDS(count);
    struct found found = {.rows = 0};
    nvmlReturn_t result = since(gpu, last_us, out, count, &found);
    for (unsigned i = 0; result == NVML_SUCCESS && i < found.rows; i++)
        out[i] = (nvmlProcessUtilizationSample_t){.pid = found.row[i].pid,
                                                  .timeStamp = found.row[i].timeStamp,
                                                  .smUtil = found.row[i].smUtil,
                                                  .memUtil = found.row[i].memUtil};
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
    if (nv_release() < 550)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    struct found found = {.rows = 0};
    nvmlReturn_t result = since(gpu, info->lastSeenTimeStamp, info->procUtilArray,
                                &info->processSamplesCount, &found);
    if (result == NVML_SUCCESS && found.rows)
        memcpy(info->procUtilArray, found.row, found.rows * sizeof *found.row);
    return result;
}
