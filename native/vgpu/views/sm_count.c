/* How many SMs a container sees, where the server gave it a share of them (MPS shows its clients so
 * many by itself on newer drivers only). Programs choose their grids by it. */
#include "vgpu.h"

VG_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    VG_ENTER();
    CUresult result = REAL(cuDeviceGetAttribute)(value, attribute, device);
    if (result != CUDA_SUCCESS || attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        return result;
    int row = vg_row(device);
    uint32_t count = row < 0 ? 0 : vg_limits->device[row].sm_count;
    if (count && count < (uint32_t)*value)
        *value = (int)count;
    return result;
}
