/* Physical memory bound to tiles of sparse and deferred arrays (cuMemMapArrayAsync). */
#include <stdlib.h>

#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

static uint64_t array_place(const CUarrayMapInfo *info)
{
    const uint64_t owner = (uint64_t)info->resource.array;
    if (info->subresource_type) /* the tail of the levels */
        return vg_binding_place((uint64_t[]){owner, 1, info->subresource.tail.layer,
                                             info->subresource.tail.offset,
                                             info->subresource.tail.size},
                                5);
    return vg_binding_place(
        (uint64_t[]){owner, 0, info->subresource.tile.level, info->subresource.tile.layer,
                     info->subresource.tile.x, info->subresource.tile.y, info->subresource.tile.z,
                     info->subresource.tile.width, info->subresource.tile.height,
                     info->subresource.tile.depth},
        10);
}

/* The driver lets go when the stream comes to it. Of several bindings of one memory, as of the
 * tiles of an array, one waits for that, and the others go at once. */
static void unbind(uint64_t place, struct vg_record *last, struct vg_taken *waiting)
{
    struct vg_record record;
    for (; vg_record_take(VG_KIND_BINDING, place, &record); place++) {
        if (last->kind && last->other == record.other)
            vg_physical_drop(record.other, record.serial);
        else if (last->kind)
            vg_taken_add(last, waiting);
        *last = record;
    }
}

static void free_when_reached(const struct vg_record *record, void *stream)
{
    vg_pending_free(record, stream);
}

static CUresult map_arrays(CUarrayMapInfo *list, unsigned int n, CUstream stream, CUstream meant,
                           CUresult (*call)(CUarrayMapInfo *, unsigned int, CUstream))
{
    /* the memory; kind 0: not charged here */
    struct vg_record *ours = list && n ? calloc(n, sizeof *ours) : NULL;
    if (!ours)
        return call(list, n, stream);
    vg_references_begin();
    for (unsigned int i = 0; i < n; i++)
        if (list[i].operation == CU_MEM_OPERATION_TYPE_MAP)
            vg_physical_add(list[i].handle, &ours[i]);
    CUresult result = call(list, n, stream);
    struct vg_record last = {0};
    struct vg_taken waiting = {0};
    for (unsigned int i = 0; i < n; i++) {
        struct vg_record array = {.context = NULL};
        uint64_t owner = (uint64_t)list[i].resource.array;
        if (result == CUDA_SUCCESS)
            unbind(array_place(&list[i]), &last, &waiting);
        if (ours[i].kind && result != CUDA_SUCCESS && n == 1) {
            vg_physical_drop(ours[i].key, ours[i].serial);
        } else if (ours[i].kind) { /* of several the driver may have mapped some: they count as
                                      mapped */
            if (!vg_record_get(VG_KIND_ARRAY, owner, &array))
                vg_record_get(VG_KIND_MIPMAP, owner, &array);
            vg_bound(array_place(&list[i]), owner, &ours[i], array.context);
        }
    }
    vg_references_end();
    if (last.kind)
        vg_taken_add(&last, &waiting);
    /* may wait for the stream: without the lock */
    vg_taken_each(&waiting, free_when_reached, meant);
    vg_taken_forget(&waiting);
    free(ours);
    return result;
}

VG_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    VG_ENTER();
    return map_arrays(list, count, stream, stream, REAL(cuMemMapArrayAsync));
}

VG_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count,
                                           CUstream stream)
{
    VG_ENTER();
    return map_arrays(list, count, stream, stream ? stream : CU_STREAM_PER_THREAD,
                      REAL(cuMemMapArrayAsync_ptsz));
}
