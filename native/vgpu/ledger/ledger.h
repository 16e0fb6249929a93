/* The account of device memory: what the container's processes hold, and which handle of this
 * process is charged with how much.
 *
 * Between processes: container_ledger.c. In this process: handle_records.c remembers what each
 * handle is charged, so that freeing it credits the same GPU with the same bytes. Physical memory
 * comes in 2 MiB blocks, which small allocations share: shared_blocks.c counts who uses which. */
#ifndef ALNAIR_VGPU_LEDGER_H
#define ALNAIR_VGPU_LEDGER_H

#include "vgpu.h"

#define VG_BLOCK (2ull << 20)
static inline uint64_t vg_rounded(uint64_t bytes) /* to blocks; what would wrap becomes the most */
{
    return bytes > UINT64_MAX - VG_BLOCK ? UINT64_MAX & ~(VG_BLOCK - 1)
                                         : (bytes + VG_BLOCK - 1) & ~(VG_BLOCK - 1);
}

/* ---- container_ledger.c: exact, and without locks -------------------------------------------- */
/* Announce, then check: pending += bytes; admitted if the sum over all slots of held + pending,
 * plus the server's overhead, is within the limit. The steps: container_ledger.c; why the
 * sum can never exceed it: docs/concepts/memory-limit.md. */
bool vg_reserve(int row, uint64_t bytes);
/* As vg_reserve, but a refusal is not counted (the caller has another way); `try` gives no stock of
 * this process's pools back for it. */
bool vg_reserve_or_not(int row, uint64_t bytes);
bool vg_try_reserve(int row, uint64_t bytes);
void vg_refused(int row);
/* pending -> held, after the driver's answer */
void vg_settle(int row, uint64_t reserved, uint64_t actual);
void vg_release(int row, uint64_t bytes);
/* Around a driver call that frees: others wait for bytes that leave rather than be refused. */
void vg_leave(int row, uint64_t bytes);
void vg_left(int row, uint64_t leaving, uint64_t freed); /* freed: what the call really gave back */
uint64_t vg_used(int row);                               /* of the container, overhead included */
uint64_t vg_slice(int row); /* bytes that programs see as their GPU's; 0: no limit */
uint64_t vg_limit(int row); /* the same, and what is lent now */

/* ---- loans.c: memory that nobody was granted -------------------------------------------------- */
bool vg_borrows(int row);  /* it may have loans (container_ledger.c) */
uint64_t vg_loan(int row); /* bytes beyond the slice, now */
/* Asks the server for the loan that these bytes need, and waits for its answer; whether they are
 * reserved then. No lock may be held. */
bool vg_borrow(int row, uint64_t bytes);

/* ---- host_account.c: memory of the host ------------------------------------------------------ */
bool vg_host_reserve(uint64_t bytes); /* page-locked */
void vg_host_release(uint64_t bytes);
bool vg_swap_reserve(int row, uint64_t bytes); /* beyond the slice: memory/swapped.c */
void vg_swap_release(int row, uint64_t bytes);
uint64_t vg_swap_limit(int row); /* bytes; 0: none may be had */

/* ---- charge.c: one allocation on its way ----------------------------------------------------- */
struct vg_charge {
    /* -1: not limited, nothing is charged */
    int row;
    enum vg_class cls;
    uint64_t asked, reserved, begun;
};
/* Reserves `bytes` for a call that asks for `asked`; false: refused, and nothing is left to be
 * done. */
bool vg_charge_begin(struct vg_charge *charge, int row, uint64_t asked, uint64_t bytes,
                     enum vg_class cls);
/* The same, but a refusal is not counted. */
bool vg_charge_try(struct vg_charge *charge, int row, uint64_t asked, uint64_t bytes,
                   enum vg_class cls);
/* reserves what is missing to `actual` */
bool vg_charge_more(struct vg_charge *charge, uint64_t actual);
void vg_charge_end(struct vg_charge *charge, uint64_t actual); /* 0: the driver refused */

/* ---- handle_records.c ------------------------------------------------------------------------ */
enum vg_kind {
    VG_KIND_NONE,
    VG_KIND_DIRECT, /* key: address; bytes of cuMemAlloc and its like */
    VG_KIND_MANAGED,
    VG_KIND_SWAPPED, /* key: address; bytes in the host's memory, as asked for */
    VG_KIND_ARRAY,
    VG_KIND_MIPMAP,
    VG_KIND_PHYSICAL, /* key: VMM handle */
    VG_KIND_MAPPING,  /* key: address of a mapping; other: its VMM handle */
    /* bytes: array, or serial of a multicast object; key: a place in it; other: the VMM handle */
    VG_KIND_BINDING,
    VG_KIND_EXPORTED, /* key: the serial; what only descriptors hold, count of them */
    VG_KIND_STREAMED, /* key: address of an allocation from a pool; other: the pool */
    VG_KIND_POOL,
    VG_KIND_MODULE,
    VG_KIND_LIBRARY, /* bytes: of a copy; one COPY for each context that it is in */
    VG_KIND_COPY,
    VG_KIND_CONTEXT,
    VG_KIND_PRIMARY,
    VG_KIND_GREEN,
    VG_KIND_GRAPH,
    VG_KIND_HOST,
    VG_KIND_REGISTERED, /* page-locked host memory */
};
struct vg_record {
    uint64_t key;
    uint8_t kind; /* enum vg_kind */
    int8_t row;
    uint16_t flags;
    uint32_t count; /* references, where the kind has them */
    uint64_t bytes; /* charged (DIRECT: requested; shared_blocks.c knows the charge) */
    uint64_t other;
    void *context; /* the context whose end frees it; NULL: none */
    /* of physical memory, and of what holds it: handles come again, serials do not */
    uint64_t serial;
};
/* Modules are told apart in the slot: the driver may take less than they are charged with. */
void vg_note_module(const struct vg_record *record, bool is_there);
void vg_record_put(const struct vg_record *record); /* replaces one with the same kind and key */
/* whether it did */
bool vg_record_exchange(const struct vg_record *record, struct vg_record *replaced);
bool vg_record_get(enum vg_kind kind, uint64_t key, struct vg_record *record);
bool vg_record_take(enum vg_kind kind, uint64_t key, struct vg_record *record); /* get and remove */
/* adds to what a record is charged; whether there is one */
bool vg_record_grow(enum vg_kind kind, uint64_t key, uint64_t bytes);
/* Adds to the references of a record, which goes at zero: what is left, -1 where there is none, or
 * (serial 0: any) only one of another serial. */
int64_t vg_record_count(enum vg_kind kind, uint64_t key, uint64_t serial, int change,
                        struct vg_record *record);
/* Removes every record that `match` accepts and hands it to `then`, which runs without the lock. */
void vg_record_sweep(bool (*match)(const struct vg_record *, const void *), void *argument,
                     void (*then)(const struct vg_record *, void *));
void vg_records_forked(void);

/* ---- taken_records.c ------------------------------------------------------------------------- */
/* Records that were taken out before a call of the driver, until its answer. */
struct vg_taken {
    /* the first one: most calls take no other */
    struct vg_record first;
    struct vg_taken_more *more;
    size_t count;
};
/* For vg_record_sweep, with a struct vg_taken as argument. Where there is no memory to keep it the
 * record is lost, and its bytes stay charged: the safe side of the limit. */
void vg_taken_add(const struct vg_record *record, void *taken);
void vg_taken_each(const struct vg_taken *taken, void (*then)(const struct vg_record *, void *),
                   void *argument);
void vg_taken_forget(struct vg_taken *taken);

/* ---- shared_blocks.c ------------------------------------------------------------------------- */
/* Notes that [address, address + bytes) is in use; the bytes of blocks that were not in use
 * before. */
uint64_t vg_blocks_use(uint64_t address, uint64_t bytes);
uint64_t vg_blocks_leave(uint64_t address, uint64_t bytes); /* bytes of blocks that are free now */
void vg_blocks_forked(void);

#endif
