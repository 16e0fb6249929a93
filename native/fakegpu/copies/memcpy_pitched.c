/* Copies of rows and slices: cuMemcpy2D, cuMemcpy3D. */
#include "copies/copy.h"

#define PITCHED(c)                                                                                 \
    {.srcXInBytes = (c)->srcXInBytes,                                                              \
     .srcY = (c)->srcY,                                                                            \
     .srcMemoryType = (c)->srcMemoryType,                                                          \
     .srcHost = (c)->srcHost,                                                                      \
     .srcDevice = (c)->srcDevice,                                                                  \
     .srcArray = (c)->srcArray,                                                                    \
     .srcPitch = (c)->srcPitch,                                                                    \
     .dstXInBytes = (c)->dstXInBytes,                                                              \
     .dstY = (c)->dstY,                                                                            \
     .dstMemoryType = (c)->dstMemoryType,                                                          \
     .dstHost = (c)->dstHost,                                                                      \
     .dstDevice = (c)->dstDevice,                                                                  \
     .dstArray = (c)->dstArray,                                                                    \
     .dstPitch = (c)->dstPitch,                                                                    \
     .WidthInBytes = (c)->WidthInBytes,                                                            \
     .Height = (c)->Height,                                                                        \
     .Depth = 1}

#define SOLID(c)                                                                                   \
    {.srcXInBytes = (c)->srcXInBytes,                                                              \
     .srcY = (c)->srcY,                                                                            \
     .srcZ = (c)->srcZ,                                                                            \
     .srcMemoryType = (c)->srcMemoryType,                                                          \
     .srcHost = (c)->srcHost,                                                                      \
     .srcDevice = (c)->srcDevice,                                                                  \
     .srcArray = (c)->srcArray,                                                                    \
     .srcPitch = (c)->srcPitch,                                                                    \
     .srcHeight = (c)->srcHeight,                                                                  \
     .dstXInBytes = (c)->dstXInBytes,                                                              \
     .dstY = (c)->dstY,                                                                            \
     .dstZ = (c)->dstZ,                                                                            \
     .dstMemoryType = (c)->dstMemoryType,                                                          \
     .dstHost = (c)->dstHost,                                                                      \
     .dstDevice = (c)->dstDevice,                                                                  \
     .dstArray = (c)->dstArray,                                                                    \
     .dstPitch = (c)->dstPitch,                                                                    \
     .dstHeight = (c)->dstHeight,                                                                  \
     .WidthInBytes = (c)->WidthInBytes,                                                            \
     .Height = (c)->Height,                                                                        \
     .Depth = (c)->Depth}

/* An end without a pitch has rows one after the other. */
static CUresult pitched(CUDA_MEMCPY3D shape, CUstream s, bool async)
{
    shape.srcPitch += shape.srcPitch ? 0 : shape.WidthInBytes;
    shape.dstPitch += shape.dstPitch ? 0 : shape.WidthInBytes;
    shape.srcHeight += shape.srcHeight ? 0 : shape.Height;
    shape.dstHeight += shape.dstHeight ? 0 : shape.Height;
    return fg_copy(&shape, s, async);
}

CUresult FG(cuMemcpy2D_v2)(const CUDA_MEMCPY2D *c)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy2D)(const CUDA_MEMCPY2D_v1 *c)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D *c)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy2DUnaligned)(const CUDA_MEMCPY2D_v1 *c)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D *c, CUstream s)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), s, true) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy2DAsync)(const CUDA_MEMCPY2D_v1 *c, CUstream s)
{
    return c ? pitched((CUDA_MEMCPY3D)PITCHED(c), s, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemcpy3D_v2)(const CUDA_MEMCPY3D *c)
{
    return c ? pitched(*c, NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D *c, CUstream s)
{
    return c ? pitched(*c, s, true) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy3D)(const CUDA_MEMCPY3D_v1 *c)
{
    return c ? pitched((CUDA_MEMCPY3D)SOLID(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy3DAsync)(const CUDA_MEMCPY3D_v1 *c, CUstream s)
{
    return c ? pitched((CUDA_MEMCPY3D)SOLID(c), s, true) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy3DPeer)(const CUDA_MEMCPY3D_PEER *c)
{
    return c ? pitched((CUDA_MEMCPY3D)SOLID(c), NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuMemcpy3DPeerAsync)(const CUDA_MEMCPY3D_PEER *c, CUstream s)
{
    return c ? pitched((CUDA_MEMCPY3D)SOLID(c), s, true) : CUDA_ERROR_INVALID_VALUE;
}
