#include "driver/handles.h"

#include <stdlib.h>
#include <string.h>

static size_t length(unsigned chunk)
{
    return (size_t)64 << chunk;
}

void *fg_handle_take(struct fg_handles *handles)
{
    struct fg_handle *object = NULL;
    pthread_mutex_lock(&handles->mutex);
    unsigned last = handles->chunks;
    if (last && handles->used < length(last - 1)) {
        object = (void *)(handles->chunk[last - 1] + handles->used++ * handles->size);
    } else if (handles->first_free) {
        object = handles->first_free;
        handles->first_free = object->next_free;
        if (!handles->first_free)
            handles->last_free = NULL;
    } else if (last < sizeof handles->chunk / sizeof handles->chunk[0]) {
        char *fresh = calloc(length(last), handles->size);
        if (fresh) {
            handles->chunk[last] = fresh;
            handles->used = 1;
            __atomic_store_n(&handles->chunks, last + 1, __ATOMIC_RELEASE);
            object = (void *)fresh;
        }
    }
    if (object) {
        memset(object, 0, handles->size);
        __atomic_store_n(&object->magic, handles->magic, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&handles->mutex);
    return object;
}

void fg_handle_give(struct fg_handles *handles, void *pointer)
{
    struct fg_handle *object = pointer;
    pthread_mutex_lock(&handles->mutex);
    object->magic = 0;
    object->next_free = NULL;
    if (handles->last_free)
        handles->last_free->next_free = object;
    else
        handles->first_free = object;
    handles->last_free = object;
    pthread_mutex_unlock(&handles->mutex);
}

bool fg_handle_is(const struct fg_handles *handles, const void *object)
{
    unsigned chunks = __atomic_load_n(&handles->chunks, __ATOMIC_ACQUIRE);
    for (unsigned i = chunks; i-- > 0;) {
        uintptr_t offset = (uintptr_t)object - (uintptr_t)handles->chunk[i];
        if (offset < length(i) * handles->size)
            return offset % handles->size == 0 &&
                   __atomic_load_n(&((const struct fg_handle *)object)->magic, __ATOMIC_ACQUIRE) ==
                       handles->magic;
    }
    return false;
}
