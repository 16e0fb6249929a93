/* NVML: GPM, counters of the hardware between two samples, on Hopper and newer; of a GPU, or of a
 * GPU instance of MIG. Of what runs, the fake knows only for how long: SMs count as busy while
 * kernels run, half of the warps are there, nothing is a tensor operation, and memory is moved as the
 * utilisation of memory says. */
#include <stdlib.h>

#include "nvml/nvml_entry.h"

#define MAGIC 0x47504d53u
#define MIB (1u << 20)

struct nvmlGpmSample_st {
    unsigned magic;
    int gpu;
    unsigned instance; /* its id + 1; 0: the whole GPU */
    struct fg_totals totals;
};

static bool is_there(nvmlGpmSample_t sample)
{
    return sample && sample->magic == MAGIC;
}

static bool has_gpm(int gpu)
{
    return nv_profile(gpu)->capability_major >= 9 && nv_release() >= 520;
}

NV_EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *out)
{
    NV_ENTER(nvmlGpmQueryDeviceSupport);
    NV_GPU(gpu, device);
    NV_NEEDS(out);
    if (out->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->isSupportedDevice = has_gpm(gpu);
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out)
{
    NV_ENTER(nvmlGpmSampleAlloc);
    NV_NEEDS(out);
    struct nvmlGpmSample_st *sample = calloc(1, sizeof *sample);
    if (!sample)
        return NVML_ERROR_MEMORY;
    sample->magic = MAGIC;
    sample->gpu = -1;
    *out = sample;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    NV_ENTER(nvmlGpmSampleFree);
    NV_NEEDS(is_there(sample));
    sample->magic = 0;
    free(sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(int gpu, unsigned instance, nvmlGpmSample_t sample)
{
    NV_NEEDS(is_there(sample));
    if (!has_gpm(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    sample->gpu = gpu;
    sample->instance = instance;
    fg_engine_totals(gpu, &sample->totals);
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    NV_ENTER(nvmlGpmSampleGet);
    NV_GPU(gpu, device);
    return take(gpu, 0, sample);
}

NV_EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi,
                                           nvmlGpmSample_t sample)
{
    NV_ENTER(nvmlGpmMigSampleGet);
    NV_GPU(gpu, device);
    NV_NEEDS(gi < FG_INSTANCES);
    if (!fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    return take(gpu, gi + 1, sample);
}

static double capped(double percent)
{
    return percent < 100 ? percent : 100;
}

static nvmlReturn_t metric(const struct nvmlGpmSample_st *a, const struct nvmlGpmSample_st *b,
                           unsigned id, double *out)
{
    const struct fg_totals *from = &a->totals, *to = &b->totals;
    double ns = (double)(to->until - from->until);
    unsigned of = a->instance ? a->instance - 1 : 0;
    double ran = (double)(a->instance ? to->instance_busy[of] - from->instance_busy[of]
                                      : to->busy - from->busy);
    double copied = a->instance ? 0 : (double)(to->copy - from->copy);
    double rate = 1e9 / ns / MIB;
    switch (id) {
    case NVML_GPM_METRIC_GRAPHICS_UTIL:
    case NVML_GPM_METRIC_SM_UTIL: *out = capped(100 * ran / ns); break;
    case NVML_GPM_METRIC_SM_OCCUPANCY: *out = capped(50 * ran / ns); break;
    case NVML_GPM_METRIC_ANY_TENSOR_UTIL: *out = 0; break;
    case NVML_GPM_METRIC_DRAM_BW_UTIL: *out = capped(100 * (copied + ran / 5) / ns); break;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
        *out = (double)(to->to_host - from->to_host) * rate;
        break;
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
        *out = (double)(to->from_host - from->from_host) * rate;
        break;
    case NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC:
        *out = (double)(to->to_peers - from->to_peers) * rate;
        break;
    case NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC:
        *out = (double)(to->from_peers - from->from_peers) * rate;
        break;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked)
{
    NV_ENTER(nvmlGpmMetricsGet);
    NV_NEEDS(asked && asked->numMetrics <= NVML_GPM_METRIC_MAX);
    if (asked->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpmSample_t a = asked->sample1, b = asked->sample2;
    NV_NEEDS(is_there(a) && is_there(b) && a->gpu >= 0 && a->gpu == b->gpu &&
             a->instance == b->instance);
    if (b->totals.until <= a->totals.until)
        return NVML_ERROR_NO_DATA;
    for (unsigned i = 0; i < asked->numMetrics; i++)
        asked->metrics[i].nvmlReturn =
            metric(a, b, asked->metrics[i].metricId, &asked->metrics[i].value);
    return NVML_SUCCESS;
}
