/* Hooks of the calls that wait for the GPU: counted; afterwards what was timed can be settled.
 * Calls that only ask whether the GPU is done are an occasion for that, too. */
#include "compute/compute.h"
#include "pools/pools.h"

#define WAIT(name, parameters, arguments)                                                          \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        struct vg_expected expected;                                                               \
        vg_pools_expect(&expected, NULL, NULL);                                                    \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name) arguments;                                                    \
        vg_count_end(VG_CALL_SYNC, begun, 0);                                                      \
        vg_pools_settle(&expected);                                                                \
        vg_work_synchronized();                                                                    \
        return result;                                                                             \
    }

WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))

#define ASK(name, parameters, arguments)                                                           \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        struct vg_expected expected;                                                               \
        bool is_due = vg_pools_are_due();                                                          \
        if (is_due)                                                                                \
            vg_pools_expect(&expected, NULL, NULL);                                                \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name) arguments;                                                    \
        vg_count_end(VG_CALL_EVENT, begun, 0);                                                     \
        if (is_due)                                                                                \
            vg_pools_settle(&expected);                                                            \
        if (result == CUDA_SUCCESS)                                                                \
            vg_work_synchronized();                                                                \
        return result;                                                                             \
    }

ASK(cuStreamQuery, (CUstream stream), (stream))
ASK(cuStreamQuery_ptsz, (CUstream stream), (stream))
ASK(cuEventQuery, (CUevent event), (event))
