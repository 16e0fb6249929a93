/* User objects: what a program hands to graphs, destroyed with the last that holds it. */
#include "graphs/user_object.h"

static struct fg_handles objects = FG_HANDLES(struct fg_user_object, 6);

struct fg_user_object *fg_user_object_of(CUuserObject handle)
{
    return fg_handle_is(&objects, handle) ? (struct fg_user_object *)handle : NULL;
}

void fg_user_object_release(struct fg_user_object *object, unsigned count)
{
    object->count -= count < object->count ? count : object->count;
    if (object->count)
        return;
    CUhostFn destroy = object->destroy;
    void *data = object->data;
    fg_handle_give(&objects, object);
    destroy(data);
}

CUresult FG(cuUserObjectCreate)(CUuserObject *out, void *data, CUhostFn destroy, unsigned int count,
                                unsigned int flags)
{
    if (!out || !destroy || !count || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_user_object *object = fg_handle_take(&objects);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->destroy = destroy;
    object->data = data;
    object->count = count;
    *out = (CUuserObject)object;
    return CUDA_SUCCESS;
}

CUresult FG(cuUserObjectRetain)(CUuserObject handle, unsigned int count)
{
    if (!fg_handle_is(&objects, handle) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    ((struct fg_user_object *)handle)->count += count;
    return CUDA_SUCCESS;
}

CUresult FG(cuUserObjectRelease)(CUuserObject handle, unsigned int count)
{
    if (!fg_handle_is(&objects, handle) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    fg_user_object_release((struct fg_user_object *)handle, count);
    return CUDA_SUCCESS;
}
