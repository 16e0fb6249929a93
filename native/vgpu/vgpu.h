/* libalnair_vgpu.so inside: what its modules offer each other.
 *
 * Rules of this library (each has a test):
 * - It takes nothing from the application: no signal, no file descriptor that stays open, no stdout,
 *   no umask, no environment. It prints only to stderr, and only when it refuses.
 * - No cross-process lock exists. Shared pages are changed by single atomic operations that leave a
 *   correct state wherever a SIGKILL falls. In-process locks may be held across a driver call only
 *   where fork handlers make them good again.
 * - Without a limits page it is inert; with one and no registration it refuses CUDA (fail closed).
 * - libc symbols no younger than glibc 2.17; TLS is initial-exec and under 256 bytes.
 */
#ifndef ALNAIR_VGPU_H
#define ALNAIR_VGPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "cuda_abi.h"   /* our own declarations of the driver's types and functions */
#include "symbols.h"    /* generated from symbols.tsv: enum VG_cuMemAlloc_v2, ... and names */

#define VG_EXPORT __attribute__((visibility("default")))
#define VG_TLS __thread __attribute__((tls_model("initial-exec")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- resolve.c: the real driver ------------------------------------------------------------- */
extern void *vg_real[VG_SYMBOLS];          /* by enum; NULL where the driver lacks it */
#define REAL(name) ((__typeof__(&name))vg_real[VG_##name])
void *vg_real_dlsym(void *handle, const char *name); /* libc's, never ours */
/* The first thing of every hook: loads the driver's functions once. Cheap afterwards. */
void vg_resolve(void);
extern _Atomic bool vg_resolved;
#define VG_ENTER() do { if (unlikely(!atomic_load_explicit(&vg_resolved, memory_order_acquire))) vg_resolve(); } while (0)

/* ---- session.c: the container's pages, registration, this process's slot --------------------- */
enum vg_mode { VG_MODE_UNKNOWN, VG_MODE_INERT, VG_MODE_LIMITED, VG_MODE_REFUSED };
extern _Atomic int vg_mode;
extern const struct vg_limits *vg_limits;  /* NULL unless VG_MODE_LIMITED */
extern struct vg_counters *vg_counters;
/* Maps, registers, claims a slot; called by our cuInit (and by any hook that comes before it).
 * CUDA_SUCCESS where inert or limited, an error and one line on stderr where refused. */
CUresult vg_session(void);
/* This process's slot; a forked child claims its own at first use. NULL only where inert. */
struct vg_slot *vg_slot(void);
/* Frees the slots of processes that are gone, so that their bytes count no longer. Number freed. */
int vg_reap(void);
/* Row of limits/counters for a device ordinal or for the calling thread's current context; -1: none. */
int vg_row(CUdevice device);
int vg_current_row(void);                  /* a few ns: see context.c */
CUdevice vg_row_device(int row);

/* ---- ledger.c: device memory, exact and without locks ---------------------------------------- */
/* Announce, then check: pending += bytes; admitted if the sum over all slots of held + pending, plus
 * the server's overhead, is within the limit. Why that can never exceed it: ledger.c. */
bool vg_reserve(int row, uint64_t bytes);
void vg_settle(int row, uint64_t reserved, uint64_t actual); /* pending -> held, after the driver's answer */
void vg_release(int row, uint64_t bytes);
uint64_t vg_used(int row);                 /* of the container, overhead included */
uint64_t vg_limit(int row);                /* bytes; 0: none */

/* ---- limiter.c: GPU time --------------------------------------------------------------------- */
struct vg_work { int row; void *sample; uint64_t predicted_ns, begun; };
/* launch.c calls these around each launch. `key` is the kernel, `shape` tells its grids apart. */
void vg_work_begin(struct vg_work *work, const void *key, uint64_t shape, CUstream stream);
void vg_work_end(struct vg_work *work, CUresult result, CUstream stream);
void vg_work_synchronized(void);           /* after a call that waited for the GPU: settle samples */
void vg_work_forgotten(CUcontext context); /* before a context ends (NULL: all): its events go with it */
void vg_compute_forked(void);              /* fork.c calls this in the child */

/* ---- count.c: calls per API class; launches in thread-local batches ---------------------------- */
void vg_count(enum vg_class cls, uint64_t bytes);
uint64_t vg_count_begin(void);             /* 0, or a time when this call is sampled (1 in 64) */
void vg_count_end(enum vg_class cls, uint64_t begun, uint64_t bytes);
uint64_t vg_count_launch(int row);         /* as vg_count_begin, for launches */
void vg_count_flush(void);                 /* what the calling thread has not told its slot yet */

/* ---- clock.c: the only clock; replaced at compile time by -DVG_VIRTUAL_CLOCK ------------------- */
uint64_t vg_now_ns(void);                  /* CLOCK_MONOTONIC */
void vg_sleep_until_ns(uint64_t when);     /* never ends early for a signal, never alters one */

/* ---- say.c ------------------------------------------------------------------------------------ */
void vg_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr, no malloc */

#endif
