#define _GNU_SOURCE
#include "vmm/physical.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "state/ledger.h"

static void *handles;                 /* tsearch tree by number */
static struct fg_physical *shareable; /* those of them that other processes may hold */
static uint64_t numbers;

struct binding {
    struct binding *next;
    const void *owner; /* array, or struct fg_physical of a multicast object */
    struct fg_physical *memory;
    uint64_t where[5]; /* in the owner */
};
static struct binding *bindings;

static int compare(const void *left, const void *right)
{
    const struct fg_physical *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

struct fg_physical *fg_physical_of(CUmemGenericAllocationHandle number)
{
    struct fg_physical key = {.number = number}, **found = tfind(&key, &handles, compare);
    return found && (*found)->held ? *found : NULL;
}

struct fg_physical *fg_physical_new(int gpu, uint64_t size, const CUmemAllocationProp *properties)
{
    struct fg_physical *handle = calloc(1, sizeof *handle);
    if (!handle)
        abort();
    *handle = (struct fg_physical){.number = ++numbers << 8 | 0x5a,
                                   .gpu = gpu,
                                   .size = size,
                                   .held = 1,
                                   .properties = *properties,
                                   .shared = -1,
                                   .content = {.bytes = size}};
    if (!tsearch(handle, &handles, compare))
        abort();
    return handle;
}

struct fg_physical *fg_multicast_new(uint64_t size)
{
    struct fg_physical *object =
        fg_physical_new(-1, size, &(CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED});
    object->multicast = true;
    return object;
}

void fg_physical_end_if_unheld(struct fg_physical *handle)
{
    if (handle->held || handle->mapped)
        return;
    tdelete(handle, &handles, compare);
    fg_bindings_end(handle);
    if (handle->shared >= 0) {
        struct fg_physical **at = &shareable;
        while (*at && *at != handle)
            at = &(*at)->next;
        if (*at)
            *at = handle->next;
        fg_shared_drop(handle->shared, handle->shared_id);
    } else if (handle->gpu >= 0) {
        fg_uncharge(handle->gpu, handle->size);
    }
    if (handle->content.data)
        munmap(handle->content.data, handle->content.bytes);
    free(handle);
}

void fg_physical_make_shareable(struct fg_physical *physical, int shared, uint64_t shared_id)
{
    physical->shared = shared;
    physical->shared_id = shared_id;
    physical->next = shareable;
    shareable = physical;
}

struct fg_physical *fg_physical_of_shared(uint64_t shared_id)
{
    struct fg_physical *each = shareable;
    while (each && each->shared_id != shared_id)
        each = each->next;
    return each;
}

/* ---- bindings -------------------------------------------------------------------------------- */

void fg_physical_bind(const void *owner, const uint64_t where[5], struct fg_physical *memory)
{
    struct binding *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->next = bindings;
    made->owner = owner;
    made->memory = memory;
    memcpy(made->where, where, sizeof made->where);
    memory->mapped++;
    bindings = made;
}

int fg_physical_unbind(const void *owner, const uint64_t *where)
{
    int ended = 0;
    for (struct binding **at = &bindings; *at;) {
        struct binding *each = *at;
        if (each->owner != owner || (where && memcmp(each->where, where, sizeof each->where))) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->memory->mapped--;
        fg_physical_end_if_unheld(each->memory);
        free(each);
        ended++;
    }
    return ended;
}

void fg_bindings_end(const void *owner)
{
    fg_physical_unbind(owner, NULL);
}
