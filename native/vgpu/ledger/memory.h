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
void vg_refused(int row);
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
    VG_KIND_BINDING,  /* bytes: array, or serial of a multicast object; key: a place in it; other: the VMM handle */
    VG_KIND_EXPORTED, /* key: the serial; what only descriptors hold, count of them */
    VG_KIND_STREAMED, /* key: address of an allocation from a pool; other: the pool */
    VG_KIND_POOL,
    VG_KIND_MODULE,
    VG_KIND_LIBRARY,  /* bytes: of a copy; one COPY for each context that it is in */
    VG_KIND_COPY,
    VG_KIND_CONTEXT, VG_KIND_PRIMARY, VG_KIND_GREEN,
    VG_KIND_GRAPH,
    VG_KIND_HOST, VG_KIND_REGISTERED, /* page-locked host memory */
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
    uint64_t serial;  /* of physical memory, and of what holds it: handles come again, serials do not */
};
void vg_book_put(const struct vg_record *record);              /* replaces one with the same kind and key */
bool vg_book_exchange(const struct vg_record *record, struct vg_record *replaced); /* whether it did */
bool vg_book_get(enum vg_kind kind, uint64_t key, struct vg_record *record);
bool vg_book_take(enum vg_kind kind, uint64_t key, struct vg_record *record); /* get and remove */
/* Adds to the references of a record, which goes at zero: what is left, -1 where there is none, or
 * (serial 0: any) only one of another serial. */
int64_t vg_book_count(enum vg_kind kind, uint64_t key, uint64_t serial, int change, struct vg_record *record);
/* Removes every record that `match` accepts and hands it to `then`, which runs without the lock. */
void vg_book_sweep(bool (*match)(const struct vg_record *, const void *), void *argument,
                   void (*then)(const struct vg_record *, void *));
/* Records that were taken out before a call of the driver, until its answer. */
struct vg_taken {
    struct vg_record first;  /* the first one: most calls take no other */
    struct vg_taken_more *more;
    size_t count;
};
/* For vg_book_sweep, with a struct vg_taken as argument. Where there is no memory to keep it the record
 * is lost, and its bytes stay charged: the safe side of the limit. */
void vg_taken_add(const struct vg_record *record, void *taken);
void vg_taken_each(const struct vg_taken *taken, void (*then)(const struct vg_record *, void *), void *argument);
void vg_taken_forget(struct vg_taken *taken);
void vg_book_forked(void);

/* ---- blocks.c ----------------------------------------------------------------------------------- */
/* Notes that [address, address + bytes) is in use; the bytes of blocks that were not in use before. */
uint64_t vg_blocks_use(uint64_t address, uint64_t bytes);
uint64_t vg_blocks_leave(uint64_t address, uint64_t bytes); /* bytes of blocks that are free now */
void vg_blocks_forked(void);

/* ---- memory.c: one allocation on its way ---------------------------------------------------------- */
struct vg_charge {
    int row;              /* -1: not limited, nothing is charged */
    enum vg_class cls;
    uint64_t asked, reserved, begun;
};
/* Reserves `bytes` for a call that asks for `asked`; false: refused, and nothing is left to be done. */
bool vg_charge_begin(struct vg_charge *charge, int row, uint64_t asked, uint64_t bytes, enum vg_class cls);
bool vg_charge_more(struct vg_charge *charge, uint64_t actual); /* reserves what is missing to `actual` */
void vg_charge_end(struct vg_charge *charge, uint64_t actual);  /* 0: the driver refused */
void *vg_context(void);                                         /* the calling thread's */

/* ---- pool.c ---------------------------------------------------------------------------------------- */
/* cuMemFree of memory from a pool, whose record was taken out of the book. */
CUresult vg_pool_free(struct vg_record *record, CUresult (*free_it)(uint64_t));
void vg_pools_refresh(void);      /* charges the true size of every stock */
bool vg_pools_give_back(int row); /* gives unused stock back to the GPU; whether there was any */
void vg_pools_forked(void);

/* ---- later.c ---------------------------------------------------------------------------------------- */
/* cuMemFreeAsync of memory that is not from a pool: credited when the stream has come to it. */
CUresult vg_free_later(struct vg_record *record, CUstream stream, CUstream given, CUresult (*call)(CUdeviceptr, CUstream));
void vg_later(const struct vg_record *record, CUstream stream); /* when the stream has come here */
bool vg_later_settle(void); /* credits those that are done; whether there were any */
void vg_later_context_gone(const void *context);
void vg_later_forked(void);

/* ---- contexts.c ------------------------------------------------------------------------------------ */
void vg_contexts_forked(void);

/* ---- vmm.c ----------------------------------------------------------------------------------------- */
#define VG_MULTICAST 1u                    /* flag of a PHYSICAL record: a multicast object, no memory */
void vg_references_begin(void);            /* the lock of all references to physical memory */
void vg_references_end(void);
/* One reference less, after the driver dropped it; nothing where the handle is other memory's by now. */
void vg_physical_drop(uint64_t handle, uint64_t serial);
/* A new handle, which this process made: its record gets a serial. */
void vg_physical_made(struct vg_record *record);
void vg_physical_credit(const struct vg_record *record);
void vg_vmm_forked(void);

/* ---- bindings.c ------------------------------------------------------------------------------------ */
void vg_bindings_end(uint64_t owner);      /* the array or (its serial) the multicast object has gone */

/* ---- exports.c: calls of vmm.c under the lock of references --------------------------------------- */
void vg_export_made(int fd, uint64_t serial);
/* Whether a descriptor still holds memory whose last other reference has gone; then it is credited later. */
bool vg_export_holds(const struct vg_record *record);
void vg_export_back(int fd, uint64_t handle); /* imported, maybe what only a descriptor held */
bool vg_exports_settle(void);              /* credits what is closed; whether there was any */
void vg_exports_forked(void);

/* ---- host.c ---------------------------------------------------------------------------------------- */
bool vg_host_reserve(uint64_t bytes);
void vg_host_release(uint64_t bytes);

/* ---- image.c: size of a module's image; 0 where it cannot be told ---------------------------------- */
uint64_t vg_image_bytes(const void *image);
uint64_t vg_image_file_bytes(const char *path);

/* ---- view.c: the container's memory as it shall see it; false: no limit, the GPU's own figures ------- */
bool vg_memory_view(int row, uint64_t *total, uint64_t *used);

#endif
