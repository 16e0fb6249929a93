/* A table of entries found by a kind and a key (an address, a handle, a number of a block): open
 * addressing with linear probing. It doubles at half full, and closes the gap when an entry is
 * removed (no tombstones, so it does not age). It takes no lock: who owns it has one. */
#ifndef ALNAIR_VGPU_HASH_TABLE_H
#define ALNAIR_VGPU_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* An entry is any struct that begins with these two; kind 0: free. */
struct vg_table_key {
    uint64_t key;
    uint8_t kind;
};
struct vg_table {
    size_t bytes;      /* of an entry: set when the table is defined */
    size_t size, used; /* entries: a power of two, and how many of them are taken */
    unsigned char *entries;
};

void *vg_table_find(const struct vg_table *table, uint8_t kind, uint64_t key); /* NULL: none */
/* The entry, made where there is none: all zero but kind and key. NULL: no memory for it. */
void *vg_table_add(struct vg_table *table, uint8_t kind, uint64_t key);
void *vg_table_at(const struct vg_table *table, size_t i); /* of `size` entries; NULL: a free one */
void vg_table_remove(struct vg_table *table, void *entry); /* another entry may move to its place */
void vg_table_clear(struct vg_table *table);

#endif
