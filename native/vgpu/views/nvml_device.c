/* Which row of the limits page an NVML device is. nvidia-smi and nvidia-ml-py work without CUDA, so
 * the pages are mapped here without a registration and without a slot. */
#include <string.h>

#include "views/views.h"

int nvmlDeviceGetUUID(nvmlDevice_t, char *, unsigned int);

static bool read_uuid(const char *text,
                      uint8_t uuid[16]) /* "GPU-" and 32 hexadecimal digits with dashes */
{
    int digits = 0;
    if (strncmp(text, "GPU-", 4))
        return false;
    for (text += 4; *text && digits < 32; text++) {
        int c = *text | 0x20, value = c >= '0' && c <= '9'   ? c - '0'
                                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                             : -1;
        if (*text == '-')
            continue;
        if (value < 0)
            return false;
        uuid[digits / 2] = (uint8_t)(digits % 2 ? uuid[digits / 2] | value : value << 4);
        digits++;
    }
    return digits == 32;
}

int vg_nvml_row(nvmlDevice_t device)
{
    char text[96] = "";
    uint8_t uuid[16];
    if (!vg_view() || !REAL(nvmlDeviceGetUUID) ||
        REAL(nvmlDeviceGetUUID)(device, text, sizeof text) || !read_uuid(text, uuid))
        return -1;
    for (uint32_t row = 0; row < vg_limits->n_devices && row < VG_DEVICES; row++)
        if (!memcmp(vg_limits->device[row].uuid, uuid, sizeof uuid))
            return (int)row;
    return -1;
}
