/* Hooks of the calls that begin and end a stream's capture: only how many are open. A capture whose
 * stream or context ended counts for ever, so nothing may depend on there being none. */
#include "compute/compute.h"

#define RELAXED ((CUstreamCaptureMode)2)

_Atomic uint32_t vg_captures;

bool vg_captures_aside(int *kept)
{
    CUstreamCaptureMode mode = RELAXED;
    *kept = -1;
    if (likely(!atomic_load_explicit(&vg_captures, memory_order_relaxed)))
        return true;
    if (!REAL(cuThreadExchangeStreamCaptureMode) ||
        REAL(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
        return false;
    *kept = (int)mode;
    return true;
}

void vg_captures_back(int kept)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)kept;
    if (unlikely(kept >= 0))
        REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

#define WRONG_THREAD ((CUresult)908) /* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */

static CUresult begun(CUresult result)
{
    if (result == CUDA_SUCCESS)
        atomic_fetch_add_explicit(&vg_captures, 1, memory_order_relaxed);
    return result;
}

/* Other errors than these say that a capture that had failed is over. */
static CUresult ended(CUresult result)
{
    uint32_t open = atomic_load_explicit(&vg_captures, memory_order_relaxed);
    bool is_open = result == CUDA_ERROR_ILLEGAL_STATE || result == CUDA_ERROR_INVALID_VALUE ||
                   result == CUDA_ERROR_INVALID_HANDLE || result == WRONG_THREAD;
    while (!is_open && open && !atomic_compare_exchange_weak(&vg_captures, &open, open - 1)) {
    }
    return result;
}

#define BEGIN(name, parameters, arguments)                                                         \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        return begun(REAL(name) arguments);                                                        \
    }
#define END(name, parameters, arguments)                                                           \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        return ended(REAL(name) arguments);                                                        \
    }
#define TWICE(kind, name, parameters, arguments)                                                   \
    kind(name, parameters, arguments) kind(name##_ptsz, parameters, arguments)

TWICE(BEGIN, cuStreamBeginCapture, (CUstream s), (s))
TWICE(BEGIN, cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode), (s, mode))
TWICE(BEGIN, cuStreamBeginCaptureToGraph,
      (CUstream s, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t n,
       CUstreamCaptureMode mode),
      (s, graph, nodes, data, n, mode))
TWICE(BEGIN, cuStreamBeginRecaptureToGraph,
      (CUstream s, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback then,
       void *data),
      (s, mode, graph, then, data))
TWICE(BEGIN, cuStreamBeginCaptureToCig, (CUstream s, CUstreamCigCaptureParams *parameters),
      (s, parameters))
TWICE(END, cuStreamEndCapture, (CUstream s, CUgraph *graph), (s, graph))
TWICE(END, cuStreamEndCaptureToCig, (CUstream s), (s))
