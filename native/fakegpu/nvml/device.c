/* NVML: what a GPU is: identity, place, clocks, modes. Facts come from the profile; temperature and
 * power are a simple function of how busy the GPU is (idle 32 C and a tenth of the power limit). */
#include <string.h>

#include "nvml/nvml_entry.h"

#define GPU (&fg_state->gpu[gpu])
#define PROFILE (nv_profile(gpu))
#define CAPABILITY (PROFILE->capability_major * 10 + PROFILE->capability_minor)

static unsigned busy(int gpu)
{
    unsigned percent, memory;
    nv_utilization(gpu, &percent, &memory);
    return percent;
}

static unsigned long long throttle(int gpu)
{
    return fg_fault_number("nvml_throttle", busy(gpu) ? 0 : nvmlClocksEventReasonGpuIdle);
}

static bool has_ecc(int gpu)
{
    return !strstr(PROFILE->name, "GeForce") && !strstr(PROFILE->name, "TITAN");
}

static unsigned brand(int gpu)
{
    const char *name = PROFILE->name;
    return strstr(name, "Tesla")     ? NVML_BRAND_TESLA
           : strstr(name, "TITAN")   ? NVML_BRAND_TITAN
           : strstr(name, "GeForce") ? NVML_BRAND_GEFORCE
                                     : NVML_BRAND_NVIDIA;
}

static unsigned architecture(int gpu)
{
    unsigned major = (unsigned)PROFILE->capability_major,
             minor = (unsigned)PROFILE->capability_minor;
    static const unsigned known[] = {
        [3] = NVML_DEVICE_ARCH_KEPLER,    [5] = NVML_DEVICE_ARCH_MAXWELL,
        [6] = NVML_DEVICE_ARCH_PASCAL,    [7] = NVML_DEVICE_ARCH_VOLTA,
        [8] = NVML_DEVICE_ARCH_AMPERE,    [9] = NVML_DEVICE_ARCH_HOPPER,
        [10] = NVML_DEVICE_ARCH_BLACKWELL};
    if (major == 7 && minor == 5)
        return NVML_DEVICE_ARCH_TURING;
    if (major == 8 && minor == 9)
        return NVML_DEVICE_ARCH_ADA;
    return major < sizeof known / sizeof *known && known[major] ? known[major]
                                                                : NVML_DEVICE_ARCH_UNKNOWN;
}

NV_TEXT(nvmlDeviceGetSerial, "16501230%05d", gpu)
NV_TEXT(nvmlDeviceGetVbiosVersion, "96.00.%02X.00.01", gpu)

NV_NUMBER(nvmlDeviceGetMinorNumber, unsigned, gpu)
NV_NUMBER(nvmlDeviceGetModuleId, unsigned, gpu + 1)
NV_NUMBER(nvmlDeviceGetBoardId, unsigned, nv_bus(gpu) << 8)
NV_NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NV_NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t, brand(gpu))
NV_NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, architecture(gpu))
NV_NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, PROFILE->bus_bits)
NV_NUMBER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NV_NUMBER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NV_NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
NV_NUMBER(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NV_NUMBER(nvmlDeviceGetAccountingBufferSize, unsigned, 4000)
/* Default, and nobody may change it: nvmlDeviceSetComputeMode is not modelled, its calls are
 * counted. */
NV_NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
NV_NUMBER(nvmlDeviceGetPerformanceState, nvmlPstates_t, busy(gpu) ? NVML_PSTATE_0 : NVML_PSTATE_8)
NV_NUMBER(nvmlDeviceGetPowerState, nvmlPstates_t, busy(gpu) ? NVML_PSTATE_0 : NVML_PSTATE_8)
NV_NUMBER(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
NV_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, PROFILE->power_watts * 1000)
NV_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, PROFILE->power_watts * 1000)
NV_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, PROFILE->power_watts * 1000)
NV_NUMBER(nvmlDeviceGetPowerUsage, unsigned, nv_milliwatts(gpu, busy(gpu)))
NV_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, throttle(gpu))
NV_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, throttle(gpu))
NV_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, PROFILE->pcie_generation)
NV_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, PROFILE->pcie_generation)
NV_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, PROFILE->pcie_generation)
NV_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
NV_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)

NV_EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores)
{
    NV_ENTER(nvmlDeviceGetNumGpuCores);
    NV_GPU(gpu, device);
    NV_NEEDS(cores);
    /* Cores per SM by compute capability: CUDA programming guide, "Arithmetic Instructions". */
    unsigned per_sm = CAPABILITY < 50                                            ? 192
                      : CAPABILITY == 70 || CAPABILITY == 75 || CAPABILITY == 80 ? 64
                                                                                 : 128;
    *cores = (unsigned)PROFILE->sm_count * per_sm;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                          int *minor)
{
    NV_ENTER(nvmlDeviceGetCudaComputeCapability);
    NV_GPU(gpu, device);
    NV_NEEDS(major && minor);
    *major = (int)PROFILE->capability_major;
    *minor = (int)PROFILE->capability_minor;
    return NVML_SUCCESS;
}

/* ---- PCI ------------------------------------------------------------------------------------- */

static nvmlReturn_t pci(int gpu, nvmlPciInfo_t *out, bool long_id)
{
    NV_NEEDS(out);
    memset(out, 0, long_id ? sizeof *out : offsetof(nvmlPciInfo_t, busId));
    out->bus = (unsigned)nv_bus(gpu);
    out->pciDeviceId = (unsigned)PROFILE->pci_device_id;
    out->pciSubSystemId = 0x16c110deu;
    nv_text(out->busIdLegacy, sizeof out->busIdLegacy, "0000:%02X:00.0", out->bus);
    return long_id ? nv_text(out->busId, sizeof out->busId, "00000000:%02X:00.0", out->bus)
                   : NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *out)
{
    NV_ENTER(nvmlDeviceGetPciInfo);
    NV_GPU(gpu, device);
    return pci(gpu, out, false);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *out)
{
    NV_ENTER(nvmlDeviceGetPciInfo_v2);
    NV_GPU(gpu, device);
    return pci(gpu, out, false);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out)
{
    NV_ENTER(nvmlDeviceGetPciInfo_v3);
    NV_GPU(gpu, device);
    return pci(gpu, out, true);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *out)
{
    NV_ENTER(nvmlDeviceGetPciInfoExt);
    NV_GPU(gpu, device);
    NV_NEEDS(out);
    if (out->version != nvmlPciInfoExt_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->domain = out->device = 0;
    out->bus = (unsigned)nv_bus(gpu);
    out->pciDeviceId = (unsigned)PROFILE->pci_device_id;
    out->pciSubSystemId = 0x16c110deu;
    out->baseClass = 0x03;
    out->subClass = 0x02; /* a 3D controller */
    return nv_text(out->busId, sizeof out->busId, "00000000:%02X:00.0", out->bus);
}

/* ---- clocks, temperature, power -------------------------------------------------------------- */

static nvmlReturn_t clock_of(int gpu, nvmlClockType_t type, bool now, unsigned *out)
{
    NV_NEEDS(out && (unsigned)type < NVML_CLOCK_COUNT);
    bool idle = now && !busy(gpu);
    *out = (unsigned)(type == NVML_CLOCK_MEM ? PROFILE->memory_clock_mhz : PROFILE->clock_mhz);
    if (idle && type != NVML_CLOCK_MEM)
        *out = 345;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                              unsigned int *mhz)
{
    NV_ENTER(nvmlDeviceGetClockInfo);
    NV_GPU(gpu, device);
    return clock_of(gpu, type, true, mhz);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                 unsigned int *mhz)
{
    NV_ENTER(nvmlDeviceGetMaxClockInfo);
    NV_GPU(gpu, device);
    return clock_of(gpu, type, false, mhz);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type,
                                          nvmlClockId_t id, unsigned int *mhz)
{
    NV_ENTER(nvmlDeviceGetClock);
    NV_GPU(gpu, device);
    return clock_of(gpu, type, id == NVML_CLOCK_ID_CURRENT, mhz);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                                nvmlTemperatureSensors_t sensor, unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetTemperature);
    NV_GPU(gpu, device);
    NV_NEEDS(out && sensor == NVML_TEMPERATURE_GPU);
    *out = 32 + busy(gpu) * 4 / 10;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out)
{
    NV_ENTER(nvmlDeviceGetTemperatureV);
    NV_GPU(gpu, device);
    NV_NEEDS(out);
    if (out->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NV_NEEDS(out->sensorType == NVML_TEMPERATURE_GPU);
    out->temperature = 32 + (int)busy(gpu) * 4 / 10;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                                         nvmlTemperatureThresholds_t which,
                                                         unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetTemperatureThreshold);
    NV_GPU(gpu, device);
    NV_NEEDS(out);
    if (which != NVML_TEMPERATURE_THRESHOLD_SHUTDOWN &&
        which != NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = which == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? 92 : 87;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
                                                                    unsigned int *least,
                                                                    unsigned int *most)
{
    NV_ENTER(nvmlDeviceGetPowerManagementLimitConstraints);
    NV_GPU(gpu, device);
    NV_NEEDS(least && most);
    *most = (unsigned)PROFILE->power_watts * 1000;
    *least = *most / 2;
    return NVML_SUCCESS;
}

/* ---- modes ----------------------------------------------------------------------------------- */

NV_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
                                            nvmlEnableState_t *pending)
{
    NV_ENTER(nvmlDeviceGetEccMode);
    NV_GPU(gpu, device);
    NV_NEEDS(current && pending);
    if (!has_ecc(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                   nvmlEccCounterType_t counter,
                                                   unsigned long long *out)
{
    NV_ENTER(nvmlDeviceGetTotalEccErrors);
    NV_GPU(gpu, device);
    (void)type, (void)counter;
    NV_NEEDS(out);
    *out = 0;
    return has_ecc(gpu) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
