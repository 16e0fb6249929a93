/* Device memory inside the library: what the modules that hook allocations share.
 *
 * The account (ledger.c) is between processes; the book (book.c) is this process's own memory of what
 * each handle is charged, so that freeing it credits the same GPU with the same bytes. Physical
 * memory comes in 2 MiB blocks, which small allocations share: blocks.c counts who uses which. */
#ifndef ALNAIR_VGPU_MEMORY_H
#define ALNAIR_VGPU_MEMORY_H

#include "vgpu.h"

#define VG_BLOCK (2ull << 20)
static inline uint64_t vg_rounded(uint64_t bytes) /* to blocks; what would wrap becomes the most */
{
    return bytes > UINT64_MAX - VG_BLOCK ? UINT64_MAX & ~(VG_BLOCK - 1) : (bytes + VG_BLOCK - 1) & ~(VG_BLOCK - 1);
}

/* ---- ledger.c, beyond vgpu.h ---------------------------------------------------------------------- */
/* As vg_reserve, but a refusal is not counted (the caller has another way). */
bool vg_try_reserve(int row, uint64_t bytes);
/* Around a driver call that frees: others wait for bytes that leave rather than be refused. */
void vg_leave(int row, uint64_t bytes);
void vg_left(int row, uint64_t leaving, uint64_t freed); /* freed: what the call really gave back */

/* ---- book.c ------------------------------------------------------------------------------------- */
enum vg_kind {
    VG_KIND_NONE,
    VG_KIND_DIRECT,   /* key: address; bytes of cuMemAlloc and its like */
    VG_KIND_MANAGED,
    VG_KIND_ARRAY, VG_KIND_MIPMAP,
    VG_KIND_PHYSICAL, /* key: VMM handle */
    VG_KIND_MAPPING,  /* key: address of a mapping; other: its VMM handle */
    VG_KIND_STREAMED, /* key: address of an allocation from a pool; other: the pool */
    VG_KIND_POOL,
    VG_KIND_MODULE, VG_KIND_LIBRARY,
    VG_KIND_CONTEXT, VG_KIND_PRIMARY, VG_KIND_GREEN,
    VG_KIND_GRAPH,
    VG_KIND_HOST,
};
struct vg_record {
    uint64_t key;
    uint8_t kind;     /* enum vg_kind */
    int8_t row;
    uint16_t flags;
    uint32_t count;   /* references, where the kind has them */
    uint64_t bytes;   /* charged (DIRECT: requested; blocks.c knows the charge) */
    uint64_t other;
    void *context;    /* the context whose end frees it; NULL: none */
};
void vg_book_put(const struct vg_record *record);              /* replaces one with the same kind and key */
bool vg_book_get(enum vg_kind kind, uint64_t key, struct vg_record *record);
bool vg_book_take(enum vg_kind kind, uint64_t key, struct vg_record *record); /* get and remove */
/* Adds to the references of a record, which goes at zero: what is left, -1 where there is none. */
int64_t vg_book_count(enum vg_kind kind, uint64_t key, int change, struct vg_record *record);
/* Removes every record that `match` accepts and hands it to `then`, which runs without the lock. */
void vg_book_sweep(bool (*match)(const struct vg_record *, const void *), const void *argument,
                   void (*then)(const struct vg_record *));
void vg_book_forked(void);

/* ---- blocks.c ----------------------------------------------------------------------------------- */
/* Notes that [address, address + bytes) is in use; the bytes of blocks that were not in use before. */
uint64_t vg_blocks_use(uint64_t address, uint64_t bytes);
uint64_t vg_blocks_leave(uint64_t address, uint64_t bytes); /* bytes of blocks that are free now */
void vg_blocks_forked(void);

/* A forked child holds nothing of its parent's GPU memory: fork.c calls this in the child. */
void vg_memory_forked(void);

#endif
