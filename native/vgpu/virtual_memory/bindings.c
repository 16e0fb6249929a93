/* Physical memory bound to what is no address range: sparse and deferred arrays, multicast objects.
 *
 * A binding holds the memory as a mapping does, until it is unbound or its array or multicast
 * object goes. It is found by a hash of the place; what is unbound at another place than it was
 * bound at stays charged until the owner goes, which errs on the safe side. Logical endpoints are
 * not followed. */
#include "virtual_memory/virtual_memory.h"

uint64_t vg_binding_place(const uint64_t *word, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

void vg_bound(uint64_t place, uint64_t owner, const struct vg_record *memory, void *context)
{
    struct vg_record record = {.kind = VG_KIND_BINDING,
                               .key = place,
                               .row = -1,
                               .bytes = owner,
                               .other = memory->key,
                               .context = context,
                               .serial = memory->serial};
    struct vg_record there;
    while (vg_record_get(VG_KIND_BINDING, record.key, &there))
        record.key++;
    vg_record_put(&record);
}

static void unbound(const struct vg_record *record, void *unused)
{
    (void)unused;
    vg_physical_drop(record->other, record->serial);
}

static bool is_bound_to(const struct vg_record *record, const void *owner)
{
    return record->kind == VG_KIND_BINDING && record->bytes == *(const uint64_t *)owner;
}

void vg_bindings_end(uint64_t owner)
{
    vg_record_sweep(is_bound_to, &owner, unbound);
}
