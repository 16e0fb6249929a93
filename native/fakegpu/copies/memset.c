/* Fills. */
#include "memory/content.h"
#include "streams/submit.h"

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned size, size_t width,
                     size_t height, CUstream hstream)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!width || !height)
        return CUDA_SUCCESS;
    if (to % size || (height > 1 && pitch < width * size) ||
        !fg_address_valid(to, (height - 1) * pitch + width * size))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                           .fill = {.dst = to,
                                    .pitch = pitch,
                                    .value = value,
                                    .elementSize = size,
                                    .width = width,
                                    .height = height}};
    return fg_stream_submit(stream, &work, NULL);
}

CUresult FG(cuMemsetD8_v2)(CUdeviceptr to, unsigned char value, size_t n)
{
    return fill(to, 0, value, 1, n, 1, NULL);
}
CUresult FG(cuMemsetD2D8_v2)(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                             size_t height)
{
    return fill(to, pitch, value, 1, width, height, NULL);
}
CUresult FG(cuMemsetD8)(CUdeviceptr_v1 to, unsigned char value, unsigned int n)
{
    return fill(to, 0, value, 1, n, 1, NULL);
}
CUresult FG(cuMemsetD2D8)(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value,
                          unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 1, width, height, NULL);
}
CUresult FG(cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t n, CUstream s)
{
    return fill(to, 0, value, 1, n, 1, s);
}
CUresult FG(cuMemsetD2D8Async)(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream s)
{
    return fill(to, pitch, value, 1, width, height, s);
}
CUresult FG(cuMemsetD16_v2)(CUdeviceptr to, unsigned short value, size_t n)
{
    return fill(to, 0, value, 2, n, 1, NULL);
}
CUresult FG(cuMemsetD2D16_v2)(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                              size_t height)
{
    return fill(to, pitch, value, 2, width, height, NULL);
}
CUresult FG(cuMemsetD16)(CUdeviceptr_v1 to, unsigned short value, unsigned int n)
{
    return fill(to, 0, value, 2, n, 1, NULL);
}
CUresult FG(cuMemsetD2D16)(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value,
                           unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 2, width, height, NULL);
}
CUresult FG(cuMemsetD16Async)(CUdeviceptr to, unsigned short value, size_t n, CUstream s)
{
    return fill(to, 0, value, 2, n, 1, s);
}
CUresult FG(cuMemsetD2D16Async)(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream s)
{
    return fill(to, pitch, value, 2, width, height, s);
}
CUresult FG(cuMemsetD32_v2)(CUdeviceptr to, unsigned int value, size_t n)
{
    return fill(to, 0, value, 4, n, 1, NULL);
}
CUresult FG(cuMemsetD2D32_v2)(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                              size_t height)
{
    return fill(to, pitch, value, 4, width, height, NULL);
}
CUresult FG(cuMemsetD32)(CUdeviceptr_v1 to, unsigned int value, unsigned int n)
{
    return fill(to, 0, value, 4, n, 1, NULL);
}
CUresult FG(cuMemsetD2D32)(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value,
                           unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 4, width, height, NULL);
}
CUresult FG(cuMemsetD32Async)(CUdeviceptr to, unsigned int value, size_t n, CUstream s)
{
    return fill(to, 0, value, 4, n, 1, s);
}
CUresult FG(cuMemsetD2D32Async)(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                size_t height, CUstream s)
{
    return fill(to, pitch, value, 4, width, height, s);
}
