/* What the hooks of this shelf share: memory that belongs to a context. */
#ifndef ALNAIR_VGPU_MEMORY_H
#define ALNAIR_VGPU_MEMORY_H

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

/* ---- context_memory.c ------------------------------------------------------------------------ */
/* The lock of contexts that are made, ended, or change their size. */
void vg_contexts_begin(void);
void vg_contexts_end(void);
uint64_t vg_context_bytes(int row);         /* what one costs */
void vg_contexts_open(int row, int change); /* counts them */
/* the driver ended the context that this is of */
void vg_context_gone(const struct vg_record *record);
void vg_contexts_forked(void);

/* ---- primary_contexts.c, under the lock of contexts ------------------------------------------ */
bool vg_primary_active(CUdevice device);
/* there is one now */
void vg_primary_note(int row, CUdevice device, CUcontext context, uint64_t bytes);
/* After a call that may have ended it: whether it did, the driver knows best. */
void vg_primary_check(CUdevice device);
void vg_primaries_forked(void);

#endif
