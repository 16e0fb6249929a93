/* Hooks of streams and events: counted, never made to wait. What is recorded while a stream is
 * captured is counted, too: it is a call. Asking whether one is done is in
 * compute/synchronize.c. */
#include "counting/counted_hooks.h"

STREAMED(cuEventRecord, VG_CALL_EVENT, 0, (CUevent event, CUstream s), (event, s))
STREAMED(cuEventRecordWithFlags, VG_CALL_EVENT, 0, (CUevent event, CUstream s, unsigned int flags),
         (event, s, flags))
STREAMED(cuStreamWaitEvent, VG_CALL_EVENT, 0, (CUstream s, CUevent event, unsigned int flags),
         (s, event, flags))
COUNTED(cuEventCreate, VG_CALL_EVENT, 0, (CUevent * event, unsigned int flags), (event, flags))
COUNTED(cuEventDestroy, VG_CALL_EVENT, 0, (CUevent event), (event))
COUNTED(cuEventDestroy_v2, VG_CALL_EVENT, 0, (CUevent event), (event))
COUNTED(cuStreamCreate, VG_CALL_EVENT, 0, (CUstream * s, unsigned int flags), (s, flags))
COUNTED(cuStreamCreateWithPriority, VG_CALL_EVENT, 0,
        (CUstream * s, unsigned int flags, int priority), (s, flags, priority))

#define ENDED(name)                                                                                \
    VG_EXPORT CUresult name(CUstream s)                                                            \
    {                                                                                              \
        VG_ENTER();                                                                                \
        vg_context_changed();                                                                      \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name)(s);                                                           \
        vg_count_end(VG_CALL_EVENT, begun, 0);                                                     \
        return result;                                                                             \
    }
ENDED(cuStreamDestroy)
ENDED(cuStreamDestroy_v2)
