/* Copies and fills within a GPU as work: they take its time like a kernel, so they are charged like
 * one, by what they are and how large. Copies from and to the host have engines of their own. */
#include "compute/compute.h"

#define SMALL 16 /* log2 of bytes: up to that, starting it is what it costs */

int vg_transfer_row(CUstream stream)
{
    int row = vg_limits ? vg_stream_row(stream) : -1;
    if (row < 0 || !vg_limits->device[row].compute_percent || vg_is_captured(stream))
        return -1;
    return row;
}

/* To half a power of two. */
static uint64_t size_class(uint64_t bytes)
{
    int log = bytes >> SMALL ? 63 - __builtin_clzll(bytes) : 0;
    return log ? (uint64_t)log << 1 | (bytes >> (log - 1) & 1) : 0;
}

void vg_transfer_begin(struct vg_work *work, int row, enum vg_class cls, uint64_t bytes,
                       CUstream stream)
{
    static const char kinds[VG_COUNTED];
    *work = (struct vg_work){.row = bytes ? row : -1};
    if (work->row >= 0)
        vg_work_charge(work, &kinds[cls], size_class(bytes), stream);
}
