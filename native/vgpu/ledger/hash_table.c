/* See hash_table.h. Kind and key are read as bytes, for an entry is a struct of its owner's. */
#include "ledger/hash_table.h"

#include <stdlib.h>
#include <string.h>

static uint64_t key_of(const unsigned char *entry)
{
    uint64_t key;
    memcpy(&key, entry + offsetof(struct vg_table_key, key), sizeof key);
    return key;
}

static uint8_t kind_of(const unsigned char *entry)
{
    return entry[offsetof(struct vg_table_key, kind)];
}

static size_t home(const struct vg_table *table, uint8_t kind, uint64_t key)
{
    uint64_t h = (key ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15ull;
    return (size_t)(h ^ (h >> 32)) & (table->size - 1);
}

static unsigned char *entry_at(const struct vg_table *table, size_t i)
{
    return table->entries + i * table->bytes;
}

/* Its entry, or the free one that it would take. */
static unsigned char *place_of(const struct vg_table *table, uint8_t kind, uint64_t key)
{
    for (size_t i = home(table, kind, key);; i = (i + 1) & (table->size - 1)) {
        unsigned char *entry = entry_at(table, i);
        if (!kind_of(entry) || (kind_of(entry) == kind && key_of(entry) == key))
            return entry;
    }
}

static int grow(struct vg_table *table)
{
    struct vg_table larger = {
        .bytes = table->bytes, .size = table->size ? table->size * 2 : 256, .used = table->used};
    if (!(larger.entries = calloc(larger.size, larger.bytes)))
        return 0;
    for (size_t i = 0; i < table->size; i++) {
        const unsigned char *entry = entry_at(table, i);
        if (kind_of(entry))
            memcpy(place_of(&larger, kind_of(entry), key_of(entry)), entry, table->bytes);
    }
    free(table->entries);
    *table = larger;
    return 1;
}

void *vg_table_find(const struct vg_table *table, uint8_t kind, uint64_t key)
{
    unsigned char *entry = table->size ? place_of(table, kind, key) : NULL;
    return entry && kind_of(entry) ? entry : NULL;
}

void *vg_table_add(struct vg_table *table, uint8_t kind, uint64_t key)
{
    unsigned char *entry = vg_table_find(table, kind, key);
    if (entry)
        return entry;
    if (table->used * 2 >= table->size && !grow(table))
        return NULL;
    entry = place_of(table, kind, key);
    memcpy(entry + offsetof(struct vg_table_key, key), &key, sizeof key);
    entry[offsetof(struct vg_table_key, kind)] = kind;
    table->used++;
    return entry;
}

void *vg_table_at(const struct vg_table *table, size_t i)
{
    unsigned char *entry = entry_at(table, i);
    return kind_of(entry) ? entry : NULL;
}

void vg_table_remove(struct vg_table *table, void *removed)
{
    size_t mask = table->size - 1,
           gap = (size_t)((unsigned char *)removed - table->entries) / table->bytes;
    for (size_t i = (gap + 1) & mask;; i = (i + 1) & mask) {
        unsigned char *entry = entry_at(table, i);
        if (!kind_of(entry))
            break;
        /* an entry may fill the gap unless its home lies behind the gap */
        if (((i - home(table, kind_of(entry), key_of(entry))) & mask) >= ((i - gap) & mask)) {
            memcpy(entry_at(table, gap), entry, table->bytes);
            gap = i;
        }
    }
    memset(entry_at(table, gap), 0, table->bytes);
    table->used--;
}

void vg_table_clear(struct vg_table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->size = table->used = 0;
}
