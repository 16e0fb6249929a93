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
struct vg_work {
    int row;
    void *sample;
    uint64_t predicted_ns, begun;
};
/* launch.c calls these around each launch. `key` is the kernel, `shape` tells its grids apart. */
void vg_work_begin(struct vg_work *work, const void *key, uint64_t shape, CUstream stream);
void vg_work_end(struct vg_work *work, CUresult result, CUstream stream);
void vg_work_synchronized(void); /* after a call that waited for the GPU: settle samples */
/* timed_launches.c: before a context may end, our events in it */
void vg_work_forgotten(CUcontext context);
void vg_compute_forked(void);

/* ---- kernel_costs.c: what a kernel costs ----------------------------------------------------- */
struct vg_cost {                /* one cache line: one kernel in one shape on one GPU */
    _Atomic uint64_t key;       /* hash of the three; 0: free */
    _Atomic uint64_t predicted; /* ns; what a launch is charged */
    _Atomic uint32_t left;      /* launches until the next one that is timed */
    _Atomic uint32_t interval;  /* the last such distance: how many launches a sample stands for */
    _Atomic uint32_t strangers; /* launches before the first sample came back */
    struct vg_price price;      /* written under a lock in kernel_costs.c */
};
_Static_assert(sizeof(struct vg_cost) == 64, "one cache line");
struct vg_cost *vg_cost(int row, const void *kernel, uint64_t shape);
uint32_t vg_cost_samples(const struct vg_cost *cost);
/* A launch was timed; what is owed for it: see vg_price_update. */
int64_t vg_cost_measured(struct vg_cost *cost, const struct vg_timed *timed);
uint32_t vg_cost_interval(uint64_t predicted); /* launches per timed one */
void vg_costs_forked(void);

/* ---- contention.c ---------------------------------------------------------------------------- */
struct vg_contention vg_contention(int row, uint64_t now);
/* How many other processes of the container work on this GPU: looked up now and then. */
uint32_t vg_siblings(int row, uint64_t now);

/* ---- timed_launches.c: timing launches by events --------------------------------------------- */
/* `start`: when the GPU will come to it, as far as one knows. */
void *vg_sample_begin(int row, struct vg_cost *cost, uint64_t charged, uint64_t start,
                      CUstream stream);
void vg_sample_end(void *sample, CUresult result, CUstream stream);
void vg_samples_drain(void); /* takes what has completed; never waits for the GPU */
extern _Atomic uint32_t vg_samples_pending;
extern _Atomic uint32_t vg_samples_unknown; /* those of them whose kernel has no price yet */
/* GPU time of this process that was issued and has not been seen to complete. */
uint64_t vg_backlog(int row);
void vg_backlog_forget(int row); /* what is pending shall not be waited for */
void vg_samples_forked(void);

/* ---- limiter.c ------------------------------------------------------------------------------- */
/* predicted GPU time that this process took credit for */
extern _Atomic uint64_t vg_issued_ns[VG_DEVICES];
void vg_owe(int row, int64_t ns); /* settle: more (or less) GPU time was used than charged */
void vg_limiter_flush(void);      /* the calling thread's credit goes back to the bucket */

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
