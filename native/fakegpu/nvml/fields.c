/* NVML: counters of energy and links, which are asked for by the number of a field, several in one
 * call. A field that is not modelled says so in its own value, as for a GPU that lacks it. */
#include <limits.h>

#include "nvml/nvml_entry.h"

/* Idle a tenth of the limit, and eight tenths more while kernels run: what the power is, too. */
static uint64_t millijoules(int gpu)
{
    struct fg_totals totals;
    fg_engine_totals(gpu, &totals);
    uint64_t born = fg_state->engine.virtual_clock ? 0 : fg_state->born;
    double alive = totals.until > born ? (double)(totals.until - born) : 0;
    return (uint64_t)((double)nv_profile(gpu)->power_watts *
                      (0.1 * alive + 0.8 * (double)totals.busy) / 1e6);
}

static bool counts_energy(int gpu)
{
    return nv_profile(gpu)->capability_major >= 7; /* since Volta */
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                           unsigned long long *out)
{
    NV_ENTER(nvmlDeviceGetTotalEnergyConsumption);
    NV_GPU(gpu, device);
    NV_NEEDS(out);
    if (!counts_energy(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    *out = millijoules(gpu);
    return NVML_SUCCESS;
}

static unsigned busy(int gpu)
{
    unsigned percent, memory;
    nv_utilization(gpu, &percent, &memory);
    return percent;
}

/* The links of a GPU together, which are asked for as link UINT_MAX. */
static nvmlReturn_t linked(int gpu, const nvmlFieldValue_t *value, uint64_t bytes, uint64_t *out)
{
    *out = bytes >> 10; /* KiB */
    return nv_links(gpu) && value->scopeId == UINT_MAX ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t field(int gpu, const nvmlFieldValue_t *value, uint64_t *out)
{
    struct fg_totals totals;
    fg_engine_totals(gpu, &totals);
    bool is_new = nv_profile(gpu)->capability_major >= 8 && nv_release() >= 535;
    switch (value->fieldId) {
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        *out = millijoules(gpu);
        return counts_energy(gpu) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_POWER_INSTANT:
        *out = nv_milliwatts(gpu, busy(gpu));
        return is_new ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
        *out = totals.to_host;
        return is_new ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
        *out = totals.from_host;
        return is_new ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX: return linked(gpu, value, totals.to_peers, out);
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: return linked(gpu, value, totals.from_peers, out);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                                nvmlFieldValue_t *values)
{
    NV_ENTER(nvmlDeviceGetFieldValues);
    NV_GPU(gpu, device);
    NV_NEEDS(values && count > 0);
    for (int i = 0; i < count; i++) {
        uint64_t number = 0;
        values[i].nvmlReturn = (nvmlReturn_t)field(gpu, &values[i], &number);
        values[i].timestamp = (long long)nv_time_us(fakegpu_now_ns());
        values[i].latencyUsec = 0;
        values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        if (values[i].nvmlReturn == NVML_SUCCESS)
            values[i].value.ullVal = number;
    }
    return NVML_SUCCESS;
}
