/* Virtual memory management: physical memory by handle, and what holds it.
 *
 * A handle is charged when it is created, to the GPU of its location (not the current one). It is
 * credited when its last reference goes: each of cuMemCreate, cuMemRetainAllocationHandle, every
 * mapping (mappings.c), and every binding (bindings.c) is one, and after them an open descriptor of
 * an export (exported_handles.c). So memory that was released but is still mapped stays charged.
 * Imported handles are the exporter's to pay and have no record, unless the exporter is this
 * process. What other processes hold longer is found by NVML, and comes back as overhead. */
#ifndef ALNAIR_VGPU_VIRTUAL_MEMORY_H
#define ALNAIR_VGPU_VIRTUAL_MEMORY_H

#include "ledger/ledger.h"

/* ---- physical_memory.c ----------------------------------------------------------------------- */
#define VG_MULTICAST 1u         /* flag of a PHYSICAL record: a multicast object, no memory */
void vg_references_begin(void); /* the lock of all references to physical memory */
void vg_references_end(void);
/* One reference less, after the driver dropped it; nothing where the handle is other memory's by
 * now. */
void vg_physical_drop(uint64_t handle, uint64_t serial);
/* A new handle, which this process made: its record gets a serial. */
void vg_physical_made(struct vg_record *record);
void vg_physical_credit(const struct vg_record *record);
/* One reference more; false: not charged here. */
bool vg_physical_add(uint64_t handle, struct vg_record *record);
void vg_virtual_memory_forked(void);

/* ---- bindings.c: memory bound to what is no address range ------------------------------------ */
/* The reference to `memory` was counted before. Where something is bound already, it is added under
 * the next free key. */
void vg_bound(uint64_t place, uint64_t owner, const struct vg_record *memory, void *context);
uint64_t vg_binding_place(const uint64_t *word, size_t n); /* a hash of what tells the place */
void vg_bindings_end(uint64_t owner); /* the array or (its serial) the multicast object has gone */

/* ---- exported_handles.c: calls under the lock of references ---------------------------------- */
void vg_export_made(int fd, uint64_t serial);
/* Whether a descriptor still holds memory whose last other reference has gone; then it is credited
 * later. */
bool vg_export_holds(const struct vg_record *record);
void vg_export_back(int fd, uint64_t handle); /* imported, maybe what only a descriptor held */
bool vg_exports_settle(void);                 /* credits what is closed; whether there was any */
void vg_exports_forked(void);

#endif
