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
/* The same for what may work within a GPU: `size` says how much, 0 if it does not; it is reckoned
 * only where that is charged. */
#define WORKED_THEN(name, cls, size, bytes, stream, parameters, arguments, then)                   \
    VG_EXPORT CUresult name parameters                                                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        struct vg_work work = {.row = -1};                                                         \
        int row = vg_transfer_row(stream);                                                         \
        if (unlikely(row >= 0))                                                                    \
            vg_transfer_begin(&work, row, cls, size, stream);                                      \
        uint64_t begun = vg_count_begin();                                                         \
        CUresult result = REAL(name) arguments;                                                    \
        vg_count_end(cls, begun, result == CUDA_SUCCESS ? (uint64_t)(bytes) : 0);                  \
        vg_work_end(&work, result, stream);                                                        \
        then;                                                                                      \
        return result;                                                                             \
    }
#define PART(inside, bytes) ((inside) ? (uint64_t)(bytes) : 0)
#define WORKED(name, cls, inside, bytes, stream, parameters, arguments)                            \
    WORKED_THEN(name, cls, PART(inside, bytes), bytes, stream, parameters, arguments, (void)0)
#define WORKED_WAIT(name, cls, inside, bytes, stream, parameters, arguments)                       \
    WORKED_THEN(name, cls, PART(inside, bytes), bytes, stream, parameters, arguments,              \
                vg_work_synchronized())
#define WORK_BLOCKING(name, cls, inside, bytes, parameters, arguments)                             \
    WORKED_WAIT(name, cls, inside, bytes, NULL, parameters, arguments)                             \
    WORKED_WAIT(name##_ptds, cls, inside, bytes, CU_STREAM_PER_THREAD, parameters, arguments)
#define WORK_STREAMED(name, cls, inside, bytes, parameters, arguments)                             \
    WORKED(name, cls, inside, bytes, s, parameters, arguments)                                     \
    WORKED(name##_ptsz, cls, inside, bytes, PER_THREAD(s), parameters, arguments)

/* A call and its variant for per-thread default streams; blocking ones wait for the GPU, so what
 * was timed is settled after them. */
#define BLOCKING(name, cls, bytes, parameters, arguments)                                          \
    COUNTED_WAIT(name, cls, bytes, parameters, arguments)                                          \
    COUNTED_WAIT(name##_ptds, cls, bytes, parameters, arguments)
#define STREAMED(name, cls, bytes, parameters, arguments)                                          \
    COUNTED(name, cls, bytes, parameters, arguments)                                               \
    COUNTED(name##_ptsz, cls, bytes, parameters, arguments)

#endif
