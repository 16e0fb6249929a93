/* NVML: how busy a GPU is, as a whole: rates, and the samples that the driver keeps.
 *
 * In MIG mode none of it is measured. */
#include "nvml/nvml_entry.h"

#define SAMPLES 12 /* two seconds' worth */

void nv_utilization(int gpu, unsigned *busy, unsigned *memory)
{
    struct fg_sample samples[SAMPLES];
    uint64_t now = fakegpu_now_ns(), second = 1000000000u, sums[2] = {0};
    int n = fg_engine_samples(gpu, now > second ? now - second : 0, samples, SAMPLES);
    for (int i = 0; i < n; i++) {
        sums[0] += samples[i].busy_ppm;
        sums[1] += samples[i].memory_ppm;
    }
    *busy = n ? nv_percent(sums[0] / (unsigned)n) : 0;
    *memory = n ? nv_percent(sums[1] / (unsigned)n) : 0;
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

static unsigned sampled(nvmlSamplingType_t type, int gpu, const struct fg_sample *sample)
{
    unsigned busy = nv_percent(sample->busy_ppm);
    return type == NVML_GPU_UTILIZATION_SAMPLES      ? busy
           : type == NVML_MEMORY_UTILIZATION_SAMPLES ? nv_percent(sample->memory_ppm)
                                                     : nv_milliwatts(gpu, busy);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                            unsigned long long last_us, nvmlValueType_t *kind,
                                            unsigned int *count, nvmlSample_t *out)
{
    NV_ENTER(nvmlDeviceGetSamples);
    NV_GPU(gpu, device);
    NV_NEEDS(kind && count && !(out && !*count));
    bool is_power = type == NVML_TOTAL_POWER_SAMPLES;
    if (!is_power && type != NVML_GPU_UTILIZATION_SAMPLES &&
        type != NVML_MEMORY_UTILIZATION_SAMPLES)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!is_power && fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    static __thread struct fg_sample samples[FG_SAMPLES];
    int n = fg_engine_samples(gpu, last_us ? nv_engine_ns(last_us) : 0, samples, FG_SAMPLES);
    *kind = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!n)
        return NVML_ERROR_NOT_FOUND;
    unsigned room = out ? *count : (unsigned)n;
    *count = (unsigned)n < room ? (unsigned)n : room;
    for (unsigned i = 0; out && i < *count; i++)
        out[i] = (nvmlSample_t){.timeStamp = nv_time_us(samples[i].end_ns),
                                .sampleValue = {.uiVal = sampled(type, gpu, &samples[i])}};
    return NVML_SUCCESS;
}
