/* What the hooks of this shelf share: memory that belongs to a context. */
#ifndef ALNAIR_VGPU_MEMORY_H
#define ALNAIR_VGPU_MEMORY_H

#include "compute/compute.h"
#include "ledger/ledger.h"

/* ---- image_size.c: size of a module's image; 0 where it cannot be told ----------------------- */
/* `arch`: of the GPU, 90 for compute capability 9.0; 0: not known */
uint64_t vg_image_bytes(const void *image, uint32_t arch);
uint64_t vg_image_file_bytes(const char *path, uint32_t arch);
/* ptx_globals.c: bytes of the variables that a text of PTX declares */
uint64_t vg_ptx_globals(const char *text, size_t length);
/* fat_binary.c: what the driver takes of what follows a fat binary's header; false: not known */
struct vg_image_choice {
    const char *image;
    uint64_t bytes, unpacked; /* as it lies there, and, where it is packed, unpacked */
    bool is_packed;
};
bool vg_fat_binary_choice(const char *body, uint64_t bytes, uint32_t arch,
                          struct vg_image_choice *choice);

/* ---- modules.c: before a call that loads an image; false: refused ---------------------------- */
bool vg_image_charge(struct vg_charge *charge, const void *image);
bool vg_image_file_charge(struct vg_charge *charge, const char *path);

/* ---- swapped.c: memory beyond the slice, from the host ---------------------------------------- */
/* In place of an allocation that the slice of this row has no room for: counted as refused, if it is. */
CUresult vg_swap_allocate(CUdeviceptr *dptr, int row, uint64_t bytes);
/* Takes out the record of such memory; false: it is none. Then one of the others. */
bool vg_swap_take(CUdeviceptr address, struct vg_record *record);
CUresult vg_swap_free(struct vg_record *record);    /* frees it, or puts the record back */
void vg_swap_freed(const struct vg_record *record); /* the driver has freed it */
void vg_swap_forked(void);

/* ---- context_memory.c ------------------------------------------------------------------------ */
uint64_t vg_context_bytes(int row);         /* what one costs */
void vg_contexts_open(int row, int change); /* counts them */
/* What a call that may end a context takes out before, for its handle and those of what is in it
 * come again at once. */
struct vg_context_end {
    struct vg_taken taken; /* records of what is in it; the first member, for vg_record_sweep */
    struct vg_record record;
    struct pending_free *frees;
    struct vg_ending work;
};
void vg_context_ending(struct vg_context_end *end, const struct vg_record *record);
/* after the call: credits all, or puts it back */
void vg_context_ended(struct vg_context_end *end, bool is_gone);

/* ---- context_limits.c ------------------------------------------------------------------------ */
void vg_context_limits_forked(void);

/* ---- primary_contexts.c ---------------------------------------------------------------------- */
/* Around calls that may make or end a GPU's primary context: its lock. */
void vg_primary_begin(int row);
void vg_primary_end(int row);
/* there is one now */
void vg_primary_note(int row, CUdevice device, CUcontext context, uint64_t bytes);
bool vg_primary_active(CUdevice device);
/* Before a call that may end it, if nobody retains it: whether it is prepared for that. */
bool vg_primary_ending(struct vg_context_end *end, int row, CUdevice device);
/* After the call: whether it did end, the driver knows best. NULL: it was not prepared for it. */
void vg_primary_ended(struct vg_context_end *end, CUdevice device);
void vg_primaries_forked(void);

#endif
