/* Between session.c (decides), pages.c (maps), registration.c (asks the server), slot.c. */
#ifndef ALNAIR_VGPU_SESSION_H
#define ALNAIR_VGPU_SESSION_H

#include "vgpu.h"

/* What a step found; `text` says why not. */
struct vg_outcome {
    enum { VG_DONE, VG_NONE, VG_AGAIN, VG_FAILED } kind;
    char text[200];
};

/* Whether this copy of the library may never run without pages: mark.c. */
bool vg_must_limit(void);
/* The folder of this container's pages, NULL: there is none, so no limits. */
const char *vg_folder(void);
struct vg_outcome vg_map_limits(const struct vg_limits **limits);
struct vg_outcome vg_map_counters(const struct vg_limits *limits, struct vg_counters **counters);
/* Opens a file of the folder; the caller closes it. -1 and errno. */
int vg_open_page(const char *name, int flags);

/* One attempt, at most until `deadline` (CLOCK_MONOTONIC): connects, asks, waits for the answer. */
struct vg_outcome vg_register(uint32_t driver_version, uint64_t deadline);
uint64_t vg_wall_ns(void);  /* CLOCK_MONOTONIC also where clock.c is virtual: servers are real */
uint64_t vg_pid(void);      /* not libc's, which older ones cache over a clone */
bool vg_gone(uint64_t pid); /* no such process; false where unsure */

/* ---- granted_gpus.c ---- */
#define VG_UUID_TEXT 41 /* "GPU-", 32 digits, 4 dashes, NUL */
void vg_uuid_text(const uint8_t uuid[16], char text[VG_UUID_TEXT]);
/* The driver's cuInit, which shows a limited process the GPUs of its limits page only. */
CUresult vg_init_granted(unsigned int flags);

/* ---- forked_child.c: what a forked child forgets; other shelves say so in their headers ------ */
void vg_session_forked(void);
void vg_slot_forked(void);
void vg_current_gpu_forked(void);
void vg_granted_gpus_forked(void);

#endif
