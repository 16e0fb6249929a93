/* NVML: how GPUs hang together: NUMA nodes, PCI, NVLink. Modelled as a server with two NUMA
 * nodes of 32 CPUs each; GPUs of a node share a host bridge. NVLink by generation: since the
 * A100 through switches, on the V100 from GPU to GPU. */
#include <string.h>

#include "nvml/nvml_entry.h"

#define CPUS_PER_NODE 32
#define NUMA(number) (fg_state->gpu[number].numa)

int nv_links(int gpu)
{
    const struct fg_profile *profile = nv_profile(gpu);
    uint64_t capability = profile->capability_major * 10 + profile->capability_minor;
    /* Connections per GPU: data sheets of V100, A100 and H100 SXM. */
    return fg_state->gpus < 2 ? 0
           : capability == 70 ? 6
           : capability == 80 ? 12
           : capability == 90 ? 18
                              : 0;
}

static bool switched(int gpu)
{
    return nv_profile(gpu)->capability_major >= 8;
}

static nvmlGpuTopologyLevel_t level(int a, int b)
{
    return a == b               ? NVML_TOPOLOGY_INTERNAL
           : NUMA(a) == NUMA(b) ? NVML_TOPOLOGY_HOSTBRIDGE
                                : NVML_TOPOLOGY_SYSTEM;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t two,
                                                           nvmlGpuTopologyLevel_t *out)
{
    NV_ENTER(nvmlDeviceGetTopologyCommonAncestor);
    NV_GPU(a, one);
    NV_GPU(b, two);
    NV_NEEDS(out);
    *out = level(a, b);
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
                                                        nvmlGpuTopologyLevel_t wanted,
                                                        unsigned int *count, nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetTopologyNearestGpus);
    NV_GPU(gpu, device);
    NV_NEEDS(count && (out || !*count));
    unsigned found = 0;
    for (int other = 0; other < fg_state->gpus; other++)
        if (other != gpu && nv_index(other) >= 0 && level(gpu, other) == wanted) {
            if (found < *count)
                out[found] = nv_device_of(other);
            found++;
        }
    *count = *count && *count < found ? *count : found;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t two,
                                              nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *out)
{
    NV_ENTER(nvmlDeviceGetP2PStatus);
    NV_GPU(a, one);
    NV_GPU(b, two);
    NV_NEEDS(out && index < NVML_P2P_CAPS_INDEX_UNKNOWN);
    bool linked = nv_links(a) && nv_links(b);
    *out = linked || index != NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_OK
                                                         : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t two, int *same)
{
    NV_ENTER(nvmlDeviceOnSameBoard);
    NV_GPU(a, one);
    NV_GPU(b, two);
    NV_NEEDS(same);
    *same = a == b;
    return NVML_SUCCESS;
}

/* ---- NVLink ---------------------------------------------------------------------------------- */

static nvmlReturn_t link_of(nvmlDevice_t device, unsigned link, const void *out, int *gpu)
{
    NV_GPU(found, device);
    NV_NEEDS(out && link < NVML_NVLINK_MAX_LINKS);
    *gpu = found;
    return (int)link < nv_links(found) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
#define LINK(gpu, out)                                                                             \
    int gpu;                                                                                       \
    do {                                                                                           \
        nvmlReturn_t refused = link_of(device, link, out, &gpu);                                   \
        if (refused != NVML_SUCCESS)                                                               \
            return refused;                                                                        \
    } while (0)

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                                nvmlEnableState_t *active)
{
    NV_ENTER(nvmlDeviceGetNvLinkState);
    LINK(gpu, active);
    (void)gpu;
    *active = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                                  unsigned int *version)
{
    NV_ENTER(nvmlDeviceGetNvLinkVersion);
    LINK(gpu, version);
    *version = nv_links(gpu) == 18 ? 4 : nv_links(gpu) == 12 ? 3 : 2;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                     nvmlNvLinkCapability_t capability,
                                                     unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetNvLinkCapability);
    LINK(gpu, out);
    (void)gpu;
    *out = capability != NVML_NVLINK_CAP_SLI_BRIDGE;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                           nvmlIntNvLinkDeviceType_t *type)
{
    NV_ENTER(nvmlDeviceGetNvLinkRemoteDeviceType);
    LINK(gpu, type);
    *type = switched(gpu) ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

static nvmlReturn_t remote(int gpu, unsigned link, nvmlPciInfo_t *out)
{
    int peer = (gpu + 1 + (int)link % (fg_state->gpus - 1)) % fg_state->gpus;
    memset(out, 0, sizeof *out);
    out->bus = (unsigned)(switched(gpu) ? 5 : nv_bus(peer));
    nv_text(out->busIdLegacy, sizeof out->busIdLegacy, "0000:%02X:00.0", out->bus);
    return nv_text(out->busId, sizeof out->busId, "00000000:%02X:00.0", out->bus);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                                        nvmlPciInfo_t *out)
{
    NV_ENTER(nvmlDeviceGetNvLinkRemotePciInfo);
    LINK(gpu, out);
    return remote(gpu, link, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                           nvmlPciInfo_t *out)
{
    NV_ENTER(nvmlDeviceGetNvLinkRemotePciInfo_v2);
    LINK(gpu, out);
    return remote(gpu, link, out);
}

/* ---- NUMA ------------------------------------------------------------------------------------ */

static nvmlReturn_t set_bits(unsigned long *set, unsigned words, int first, int count)
{
    NV_NEEDS(set && words);
    memset(set, 0, words * sizeof *set);
    for (int i = first; i < first + count; i++)
        if ((unsigned)i / 64 < words)
            set[i / 64] |= 1ul << i % 64;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words,
                                                   unsigned long *set, nvmlAffinityScope_t scope)
{
    NV_ENTER(nvmlDeviceGetMemoryAffinity);
    NV_GPU(gpu, device);
    (void)scope;
    return set_bits(set, words, NUMA(gpu), 1);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words,
                                                unsigned long *set)
{
    NV_ENTER(nvmlDeviceGetCpuAffinity);
    NV_GPU(gpu, device);
    return set_bits(set, words, NUMA(gpu) * CPUS_PER_NODE, CPUS_PER_NODE);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words,
                                                           unsigned long *set,
                                                           nvmlAffinityScope_t scope)
{
    NV_ENTER(nvmlDeviceGetCpuAffinityWithinScope);
    NV_GPU(gpu, device);
    (void)scope;
    return set_bits(set, words, NUMA(gpu) * CPUS_PER_NODE, CPUS_PER_NODE);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    NV_ENTER(nvmlDeviceGetNumaNodeId);
    NV_GPU(gpu, device);
    (void)gpu, (void)node;
    return NVML_ERROR_NOT_SUPPORTED; /* only where GPU memory is a NUMA node of its own */
}
