/* libalnair_vgpu.so inside: what all shelves (README.md) need; the rest is in their own headers.
 *
 * Rules of this library (each has a test):
 * - It takes nothing from the application: no signal, no file descriptor that stays open, no
 *   stdout, no umask, no environment (one variable while the driver is in cuInit: granted_gpus.c).
 *   It prints only to stderr, and only when it refuses.
 * - No cross-process lock exists. Shared pages are changed by single atomic operations that leave
 *   a correct state wherever a SIGKILL falls. Locks of this process are taken in one order
 *   (README.md), and fork handlers make them good again. One is held across a driver call only
 *   where it says why.
 * - Without a folder of pages it is inert, unless this copy is marked (session/mark.c); with one and
 *   no limits or no registration it refuses CUDA (fail closed).
 * - libc symbols no younger than glibc 2.17; TLS is initial-exec and under 256 bytes.
 * - No hook calls dlsym, dlopen or another exported name of the driver: REAL(name) only.
 */
#ifndef ALNAIR_VGPU_H
#define ALNAIR_VGPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "driver/cuda_abi.h" /* our own declarations of the driver's types and functions */
#include "symbols.h"         /* generated from symbols.tsv: enum VG_cuMemAlloc_v2, ... and names */

#define VG_EXPORT __attribute__((visibility("default")))
#define VG_TLS __thread __attribute__((tls_model("initial-exec")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- driver/: the real driver ---------------------------------------------------------------- */
extern void *vg_real[VG_SYMBOLS]; /* by enum; NULL where the driver lacks it */
#define REAL(name) ((__typeof__(&name))vg_real[VG_##name])
void *vg_real_dlsym(void *handle, const char *name); /* libc's, never ours */
void *vg_driver_symbol(const char *name); /* of the real driver or a library it needs; NULL: none */
/* Loads the driver's functions once; lock-free. VG_ENTER does it; cheap afterwards. */
void vg_resolve(void);
void vg_resolve_nvml(void); /* the same for nvml*, whose names are in vg_real too */
extern _Atomic bool vg_resolved, vg_nvml_resolved;

/* ---- session/session.c: the container's pages, registration ---------------------------------- */
enum vg_mode { VG_MODE_UNKNOWN, VG_MODE_INERT, VG_MODE_LIMITED, VG_MODE_REFUSED };
extern _Atomic int vg_mode;
/* NULL unless VG_MODE_LIMITED, or NVML asked for a view of it */
extern const struct vg_limits *vg_limits;
extern struct vg_counters *vg_counters;
/* Maps the pages and registers. CUDA_SUCCESS where inert or limited; where refused, an error and
 * (once in a process) one line on stderr. */
CUresult vg_session(void);
/* For NVML views: maps the pages without registering and without a slot. Whether limits are
 * known. */
bool vg_view(void);
/* Refuses CUDA from now on, with this line (once in a process); the error to return. */
CUresult vg_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The first thing of every hook of the driver: on first use resolves, opens the session and claims
 * a slot (again in a forked child); one load afterwards. Returns from the hook where CUDA is
 * refused. */
#define VG_ENTER()                                                                                 \
    do {                                                                                           \
        if (unlikely(!atomic_load_explicit(&vg_entered, memory_order_acquire))) {                  \
            CUresult vg_result = vg_enter();                                                       \
            if (vg_result != CUDA_SUCCESS)                                                         \
                return vg_result;                                                                  \
        }                                                                                          \
    } while (0)
extern _Atomic bool vg_entered;
CUresult vg_enter(void);
/* The first thing of every hook of NVML. */
#define VG_ENTER_NVML()                                                                            \
    do {                                                                                           \
        if (unlikely(!atomic_load_explicit(&vg_nvml_resolved, memory_order_acquire)))              \
            vg_resolve_nvml();                                                                     \
    } while (0)

/* ---- session/slot.c: this process's slot ----------------------------------------------------- */
/* This process's slot, claimed by VG_ENTER; a forked child's own. NULL where inert. */
struct vg_slot *vg_slot(void);
struct vg_slot *vg_slot_now(void); /* the same, NULL where none is claimed yet */
CUresult vg_slot_claim(void);      /* for vg_enter */
/* Frees the slots of processes that are gone, so that their bytes count no longer. Number freed;
 * -1: there are some, and another process is freeing them. */
int vg_reap(void);

/* ---- session/current_gpu.c: which GPU -------------------------------------------------------- */
/* Row of limits/counters for a device ordinal or for the calling thread's current context; -1: none
 * (inert, or no context). */
int vg_row(CUdevice device);
int vg_current_row(void); /* a few ns: see current_gpu.c */
/* The same for a stream's context: by its handle, or the current one's for default streams. */
int vg_stream_row(CUstream stream);
static inline bool vg_is_handle(CUstream stream)
{
    return stream > CU_STREAM_PER_THREAD;
}
CUdevice vg_row_device(int row); /* -1: not visible */
void *vg_context(void);          /* the calling thread's current context; NULL: none */
/* call after any call that may make another context current (cuCtxCreate*, cuCtxDestroy*,
 * cuDevicePrimaryCtxReset*), and before a stream ends, whose handle may come again */
void vg_context_changed(void);

/* ---- session/clock.c: the only clock; replaced at compile time by -DVG_VIRTUAL_CLOCK --------- */
uint64_t vg_now_ns(void);              /* CLOCK_MONOTONIC */
void vg_sleep_until_ns(uint64_t when); /* never ends early for a signal, never alters one */

/* ---- session/stderr_line.c ------------------------------------------------------------------- */
/* one line on stderr, no malloc */
void vg_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
