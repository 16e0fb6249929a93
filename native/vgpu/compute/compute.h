/* GPU time inside the library: what limiter.c, kernel_costs.c, timed_launches.c and launch.c share.
 *
 * A launch is charged what its kernel is known to cost (kernel_costs.c), from credit that its
 * thread holds (limiter.c), before it goes to the driver. Some launches are timed by a pair of
 * events (timed_launches.c), and what they really cost goes back into both. */
#ifndef ALNAIR_VGPU_COMPUTE_H
#define ALNAIR_VGPU_COMPUTE_H

#include "compute/price_update.h"
#include "counting/call_counts.h"
#include "vgpu.h"

/* The default stream means the thread's own one in entry points that end in _ptsz. */
#define PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* ---- limiter.c: around each launch ----------------------------------------------------------- */
struct vg_sample;
struct vg_cost;
struct vg_work {
    int row;
    bool is_timed;
    uint64_t predicted_ns, begun;
    /* where it is timed: by events, or, without a sample, by a wait from then on */
    struct vg_sample *sample;
    struct vg_cost *unseen;
    uint64_t unseen_since;
    uint32_t unseen_like; /* launches that it stands for */
};
/* launch.c calls these around each launch. `key` is the kernel, `shape` tells its grids apart. */
void vg_work_begin(struct vg_work *work, const void *key, uint64_t shape, CUstream stream);
void vg_work_end(struct vg_work *work, CUresult result, CUstream stream);
/* transfers.c: the same for a copy or a fill within a GPU, which is no launch. */
int vg_transfer_row(CUstream stream); /* -1: it is not charged there, or not now */
void vg_transfer_begin(struct vg_work *work, int row, enum vg_class cls, uint64_t bytes,
                       CUstream stream);
/* limiter.c: charges one piece of work, and begins to time it now and then. */
void vg_work_charge(struct vg_work *work, const void *key, uint64_t shape, CUstream stream);
void vg_work_synchronized(void); /* after a call that waited for the GPU: settle samples */
/* timed_launches.c: around a call that ends a context. What was timed in it is settled before,
 * which waits for the GPU as the call itself does, for a second at most; what takes longer is
 * charged the time until the call is back. */
struct vg_ending {
    int row;
    uint64_t mark; /* of the oldest work that is not settled (left_work.c); 0: all is */
};
void vg_work_ending(struct vg_ending *ending, CUcontext context);
void vg_work_ended(const struct vg_ending *ending);
void vg_compute_forked(void);

/* ---- kernel_costs.c: what a kernel costs ----------------------------------------------------- */
/* One kernel in one shape on one GPU: a cache line that launches of all threads read, and one for
 * samples. Nothing in the first is written at each launch. */
struct vg_cost {
    _Atomic uint64_t key;       /* hash of the three; 0: free */
    _Atomic uint64_t predicted; /* ns; what a launch is charged */
    _Atomic uint32_t used;      /* vg_costs_epoch when it was launched last */
    /* written under a lock in kernel_costs.c */
    struct vg_price price __attribute__((aligned(64)));
    _Atomic uint64_t timed_ns;  /* when one was timed last; 0: never */
    _Atomic uint32_t strangers; /* launches before the first sample came back */
    /* launches whose samples were no price: they took between these sums (ns), of which the lower one
     * was charged; written under the lock */
    _Atomic uint32_t unsure;
    float at_least, at_most;
};
_Static_assert(sizeof(struct vg_cost) == 128, "two cache lines");
struct vg_cost *vg_cost(int row, const void *kernel, uint64_t shape);
extern _Atomic uint32_t vg_costs_epoch; /* grows where places in a full table are looked for */

/* Which launch of a kernel is timed next: each thread counts its own. */
struct vg_countdown {
    uint32_t tag; /* of the kernel whose this is */
    uint16_t left,
        interval; /* launches until then, and from the last one: what a sample stands for */
};
#define VG_COUNTDOWNS 1024u /* of a thread: kernels that share one take it from one another */
extern VG_TLS struct vg_countdown *vg_countdowns; /* NULL: this thread has none yet */
/* A thread comes to a kernel for the first time, or again: whether this launch is timed. */
bool vg_countdown_found(const struct vg_cost *cost, uint64_t key);
/* Whether the next launch of the calling thread is to be timed; it is counted. */
static inline bool vg_countdown_is_due(const struct vg_cost *cost)
{
    uint64_t key = atomic_load_explicit(&cost->key, memory_order_relaxed);
    struct vg_countdown *its =
        vg_countdowns ? &vg_countdowns[key >> 1 & (VG_COUNTDOWNS - 1)] : NULL;
    if (unlikely(!its || its->tag != (uint32_t)(key >> 32)))
        return vg_countdown_found(cost, key);
    if (unlikely(!its->left))
        return true;
    its->left--;
    return false;
}
/* One that is due is timed now, and the next one some launches later: how many it stands for. */
uint32_t vg_countdown_begin(const struct vg_cost *cost);
void vg_countdowns_end(void); /* the calling thread ends */
/* A launch was timed, of the kernel that had this key in the entry; what is owed for it: see
 * vg_price_update. */
int64_t vg_cost_measured(struct vg_cost *cost, uint64_t key, const struct vg_timed *timed);
/* The same of a first launch whose events span the call: it took what is said, or up to so much
 * more. The call loaded code, or it waited for the kernel (CUDA_LAUNCH_BLOCKING), or the thread
 * stood still in it. That is no price: the next launch is timed, and tells what is owed for both. */
int64_t vg_cost_unsure(struct vg_cost *cost, uint64_t key, const struct vg_timed *timed,
                       uint64_t more);
static inline bool vg_cost_is_unsure(const struct vg_cost *cost)
{
    return atomic_load_explicit(&cost->unsure, memory_order_relaxed) > 0;
}
void vg_costs_forked(void);

/* ---- contention.c ---------------------------------------------------------------------------- */
struct vg_contention vg_contention(int row, uint64_t now);
/* How many other processes of the container work on this GPU: looked up now and then. */
uint32_t vg_siblings(int row, uint64_t now);
uint32_t vg_processes(int row); /* of the container that have a context on this GPU, now */

/* ---- timed_launches.c: timing launches by events --------------------------------------------- */
/* Around a launch that is to be timed, by events or else by waiting for it. `start`: when the GPU
 * will come to it, as far as one knows. */
void vg_sample_begin(struct vg_work *work, struct vg_cost *cost, uint64_t start, CUstream stream,
                     bool is_due);
void vg_sample_end(const struct vg_work *work, CUresult result, CUstream stream);
void vg_samples_drain(void); /* takes what has completed; never waits for the GPU */
extern _Atomic uint32_t vg_samples_pending;
extern _Atomic uint32_t vg_samples_unknown; /* those of them whose kernel has no price yet */
/* GPU time of this process that was issued and has not been seen to complete. */
uint64_t vg_backlog(int row);
void vg_backlog_forget(int row); /* what is pending shall not be waited for */
void vg_samples_forked(void);

/* ---- overlap.c: kernels of several streams that run side by side ------------------------------ */
double vg_overlap(int row); /* GPU time per time of kernels, of this process: 1 or less */
/* The calling thread goes on with its credit, or took a batch to which the GPU will come then:
 * whether its next launch shall be timed, however well the kernel is known. */
bool vg_overlap_times(int row, uint64_t starts);
/* A launch is timed: which one of a group it is; group 0: of none. */
struct vg_overlap_place { uint32_t group, at; };
struct vg_overlap_place vg_overlap_joined(int row, CUstream stream, bool is_known);
void vg_overlap_missed(void); /* a launch of the calling thread that should be timed is not */
/* It came back: its begin, from that of the first one (NULL: not known), and its span, in ns, and
 * whether a slice of another seems to be in that. */
void vg_overlap_taken(struct vg_overlap_place place, const double *begin_ns, uint64_t elapsed,
                      bool is_cut);
void vg_overlap_forked(void);

/* ---- left_work.c: what this process leaves unsettled should it end now ------------------------ */
/* The mark of work that the GPU comes to at `start`, before it is charged; never 0. */
uint64_t vg_unsettled_mark(int row, uint64_t start);
/* The oldest such work is this (0: there is none); `replaces`: whatever was said before. */
void vg_unsettled_since(int row, uint64_t mark, bool replaces);
bool vg_has_unsettled(const struct vg_slot *slot);
/* What the container shall pay for the work of this mark: the time that has passed since, less what
 * the owner of the slot was charged in it. */
void vg_leave_unsettled(const struct vg_slot *slot, int row, uint64_t mark);
/* The owner of this slot has ended, or does so now: its container shall pay. Under the lock for freeing slots. */
void vg_left_behind(struct vg_slot *slot);

/* ---- limiter.c ------------------------------------------------------------------------------- */
/* predicted GPU time that this process took credit for */
extern _Atomic uint64_t vg_issued_ns[VG_DEVICES];
void vg_owe(int row, int64_t ns); /* settle: more (or less) GPU time was used than charged */
void vg_limiter_flush(void);      /* the calling thread's credit goes back to the bucket */
/* How launches are let go: as they come, a few at a time as they are earned, or many in a turn. */
enum vg_pace { VG_PACE_FREE, VG_PACE_EARNED, VG_PACE_TURNS };
enum vg_pace vg_pace(int row, uint64_t now);

/* ---- stream_capture.c ------------------------------------------------------------------------ */
extern _Atomic uint32_t vg_captures; /* stream captures in progress in this process */
/* Whether calls in this stream run nothing now, but become nodes of a graph. */
static inline bool vg_is_captured(CUstream stream)
{
    CUstreamCaptureStatus status;
    if (likely(!atomic_load_explicit(&vg_captures, memory_order_relaxed)) ||
        !REAL(cuStreamIsCapturing))
        return false;
    /* An error says that the legacy stream would break a capture: the call itself will fail. */
    return REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}
/* While a stream is captured, calls about events of others could end the capture: in between these
 * the calling thread may make them. False: it may not (a driver before CUDA 10.1). */
bool vg_captures_aside(int *kept);
void vg_captures_back(int kept);

#endif
