/* What the hooks of copies.c and memsets.c have in common: the call, counted and sometimes
 * timed. */
#ifndef ALNAIR_VGPU_COUNTED_H
#define ALNAIR_VGPU_COUNTED_H

#include "compute/compute.h"

#define COUNTED(name, cls, bytes, parameters, arguments)                                           \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name) arguments;                                                    \
        vg_count_end(cls, begun, result == CUDA_SUCCESS ? (uint64_t)(bytes) : 0);                  \
        return result;                                                                             \
    }
#define COUNTED_WAIT(name, cls, bytes, parameters, arguments)                                      \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name) arguments;                                                    \
        vg_count_end(cls, begun, result == CUDA_SUCCESS ? (uint64_t)(bytes) : 0);                  \
        vg_work_synchronized();                                                                    \
        return result;                                                                             \
    }
/* A call and its variant for per-thread default streams; blocking ones wait for the GPU, so what
 * was timed is settled after them. */
#define BLOCKING(name, cls, bytes, parameters, arguments)                                          \
    COUNTED_WAIT(name, cls, bytes, parameters, arguments)                                          \
    COUNTED_WAIT(name##_ptds, cls, bytes, parameters, arguments)
#define STREAMED(name, cls, bytes, parameters, arguments)                                          \
    COUNTED(name, cls, bytes, parameters, arguments)                                               \
    COUNTED(name##_ptsz, cls, bytes, parameters, arguments)

#endif
