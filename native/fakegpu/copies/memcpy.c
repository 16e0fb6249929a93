/* Copies and fills. Their bytes move when the call is made (data.c), their time passes on the stream: 1 us
 * and bytes by the option's bandwidth. Which of them block the host is as the driver's documentation
 * says: those from and to the host block, those inside a GPU and fills do not. */
#include <string.h>

#include "streams/work.h"

#define STAGED (64u << 10)           /* a copy from pageable memory returns early up to here */

/* ---- shapes ----------------------------------------------------------------------------------------- */

static bool is_host(uint64_t address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool is = !range || range->kind == FG_HOST;
    pthread_mutex_unlock(&fg_mutex);
    return is;
}
static bool is_pinned(uint64_t address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool is = range && (range->kind == FG_HOST || range->kind == FG_MANAGED);
    pthread_mutex_unlock(&fg_mutex);
    return is;
}

/* Address of an end's first byte; 0: an array, whose content is not kept. */
static uint64_t end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z,
                       size_t pitch, size_t height)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return 0;
    return (type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device) + x + (y + z * height) * pitch;
}
static uint64_t source(const CUDA_MEMCPY3D *s)
{
    return end_of(s->srcMemoryType, s->srcHost, s->srcDevice, s->srcXInBytes, s->srcY, s->srcZ, s->srcPitch, s->srcHeight);
}
static uint64_t target(const CUDA_MEMCPY3D *s)
{
    return end_of(s->dstMemoryType, s->dstHost, s->dstDevice, s->dstXInBytes, s->dstY, s->dstZ, s->dstPitch, s->dstHeight);
}

static bool fits(uint64_t at, const CUDA_MEMCPY3D *s, size_t pitch, size_t height)
{
    return !at || is_host(at) || fg_address_valid(at, ((s->Depth - 1) * height + s->Height - 1) * pitch + s->WidthInBytes);
}

uint32_t fg_copy_kind(const CUDA_MEMCPY3D *s)
{
    uint64_t from = source(s), to = target(s);
    if (s->srcMemoryType == CU_MEMORYTYPE_DEVICE && !fg_address_valid(from, 1))
        return FG_OP_NONE;
    if (s->dstMemoryType == CU_MEMORYTYPE_DEVICE && !fg_address_valid(to, 1))
        return FG_OP_NONE;
    if (!fits(from, s, s->srcPitch, s->srcHeight) || !fits(to, s, s->dstPitch, s->dstHeight))
        return FG_OP_NONE;
    bool from_host = from && is_host(from), to_host = to && is_host(to);
    return to_host ? FG_OP_TO_HOST : from_host ? FG_OP_TO_DEVICE : FG_OP_FILL;
}

void fg_copy_move(const CUDA_MEMCPY3D *s)
{
    uint64_t from = source(s), to = target(s);
    for (size_t z = 0; z < s->Depth && from && to; z++)
        for (size_t y = 0; y < s->Height; y++)
            fg_copy_bytes(to + (z * s->dstHeight + y) * s->dstPitch, from + (z * s->srcHeight + y) * s->srcPitch,
                          s->WidthInBytes);
}

/* ---- doing it ----------------------------------------------------------------------------------------- */

static CUresult do_copy(const CUDA_MEMCPY3D *shape, CUstream hstream, bool async)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    if (!shape->WidthInBytes || !shape->Height || !shape->Depth)
        return CUDA_SUCCESS;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = {*shape, fg_copy_kind(shape)}};
    if (!work.copy.kind)
        return CUDA_ERROR_INVALID_VALUE;
    if (!async && stream->capture)
        return fg_capture_break(stream);
    uint64_t seq, bytes = shape->WidthInBytes * shape->Height * shape->Depth;
    result = fg_stream_submit(stream, &work, &seq);
    bool pageable = (work.copy.kind == FG_OP_TO_HOST && !is_pinned(target(shape))) ||
                    (work.copy.kind == FG_OP_TO_DEVICE && !is_pinned(source(shape)) && bytes > STAGED);
    if (!result && seq && work.copy.kind != FG_OP_FILL && (!async || pageable))
        fg_engine_stream_wait(stream->engine, seq);
    return result;
}

static CUresult flat(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t bytes,
                     CUstream stream, bool async)
{
    CUDA_MEMCPY3D shape = {
        .srcMemoryType = from_type, .srcHost = (const void *)(uintptr_t)from, .srcDevice = from,
        .dstMemoryType = to_type, .dstHost = (void *)(uintptr_t)to, .dstDevice = to,
        .srcPitch = bytes, .dstPitch = bytes, .srcHeight = 1, .dstHeight = 1,
        .WidthInBytes = bytes, .Height = 1, .Depth = 1};
    return do_copy(&shape, stream, async);
}
#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE
#define ARRAY CU_MEMORYTYPE_ARRAY
#define ANY CU_MEMORYTYPE_UNIFIED
#define AT(pointer) ((uint64_t)(uintptr_t)(pointer))

/* Each with its present types (_v2) and with those of CUDA 3.1. */
CUresult FG(cuMemcpyHtoD_v2)(CUdeviceptr to, const void *from, size_t n)
{
    return flat(DEVICE, to, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyHtoD)(CUdeviceptr_v1 to, const void *from, unsigned int n)
{
    return flat(DEVICE, to, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyDtoH_v2)(void *to, CUdeviceptr from, size_t n)
{
    return flat(HOST, AT(to), DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoH)(void *to, CUdeviceptr_v1 from, unsigned int n)
{
    return flat(HOST, AT(to), DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoD_v2)(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoD)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n)
{
    return flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyHtoDAsync_v2)(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    return flat(DEVICE, to, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyHtoDAsync)(CUdeviceptr_v1 to, const void *from, unsigned int n, CUstream s)
{
    return flat(DEVICE, to, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyDtoHAsync_v2)(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(HOST, AT(to), DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoHAsync)(void *to, CUdeviceptr_v1 from, unsigned int n, CUstream s)
{
    return flat(HOST, AT(to), DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoDAsync_v2)(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoDAsync)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n, CUstream s)
{
    return flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoA_v2)(CUarray to, size_t at, CUdeviceptr from, size_t n)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoA)(CUarray to, unsigned int at, CUdeviceptr_v1 from, unsigned int n)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyAtoD_v2)(CUdeviceptr to, CUarray from, size_t at, size_t n)
{
    (void)from; (void)at;
    return flat(DEVICE, to, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoD)(CUdeviceptr_v1 to, CUarray from, unsigned int at, unsigned int n)
{
    (void)from; (void)at;
    return flat(DEVICE, to, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyHtoA_v2)(CUarray to, size_t at, const void *from, size_t n)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyHtoA)(CUarray to, unsigned int at, const void *from, unsigned int n)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyAtoH_v2)(void *to, CUarray from, size_t at, size_t n)
{
    (void)from; (void)at;
    return flat(HOST, AT(to), ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoH)(void *to, CUarray from, unsigned int at, unsigned int n)
{
    (void)from; (void)at;
    return flat(HOST, AT(to), ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoA_v2)(CUarray to, size_t at, CUarray from, size_t from_at, size_t n)
{
    (void)to; (void)at; (void)from; (void)from_at;
    return flat(ARRAY, 0, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoA)(CUarray to, unsigned int at, CUarray from, unsigned int from_at, unsigned int n)
{
    (void)to; (void)at; (void)from; (void)from_at;
    return flat(ARRAY, 0, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyHtoAAsync_v2)(CUarray to, size_t at, const void *from, size_t n, CUstream s)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyHtoAAsync)(CUarray to, unsigned int at, const void *from, unsigned int n, CUstream s)
{
    (void)to; (void)at;
    return flat(ARRAY, 0, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyAtoHAsync_v2)(void *to, CUarray from, size_t at, size_t n, CUstream s)
{
    (void)from; (void)at;
    return flat(HOST, AT(to), ARRAY, 0, n, s, true);
}
CUresult FG(cuMemcpyAtoHAsync)(void *to, CUarray from, unsigned int at, unsigned int n, CUstream s)
{
    (void)from; (void)at;
    return flat(HOST, AT(to), ARRAY, 0, n, s, true);
}

CUresult FG(cuMemcpy)(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return flat(ANY, to, ANY, from, n, NULL, false);
}
CUresult FG(cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(ANY, to, ANY, from, n, s, true);
}
CUresult FG(cuMemcpyPeer)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n)
{
    if (!fg_context_of(to_context) || !fg_context_of(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyPeerAsync)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                               size_t n, CUstream s)
{
    if (!fg_context_of(to_context) || !fg_context_of(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyBatchAsync_v2)(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                   CUmemcpyAttributes *attributes, size_t *indices, size_t n, CUstream s)
{
    if (!to || !from || !sizes || !count || !attributes || !indices || !n || !s)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !result; i++)
        result = flat(ANY, to[i], ANY, from[i], sizes[i], s, true);
    return result;
}
CUresult FG(cuMemcpyBatchAsync)(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *indices, size_t n, size_t *fail,
                                CUstream s)
{
    CUresult result = FG(cuMemcpyBatchAsync_v2)(to, from, sizes, count, attributes, indices, n, s);
    if (result && fail)
        *fail = SIZE_MAX;
    return result;
}
CUresult FG(cuMemcpyWithAttributesAsync)(CUdeviceptr to, CUdeviceptr from, size_t n, CUmemcpyAttributes *attributes,
                                         CUstream s)
{
    return attributes ? flat(ANY, to, ANY, from, n, s, true) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- pitched copies ------------------------------------------------------------------------------------ */

#define PITCHED(c) { \
        .srcXInBytes = (c)->srcXInBytes, .srcY = (c)->srcY, .srcMemoryType = (c)->srcMemoryType, \
        .srcHost = (c)->srcHost, .srcDevice = (c)->srcDevice, .srcArray = (c)->srcArray, \
        .srcPitch = (c)->srcPitch, .dstXInBytes = (c)->dstXInBytes, .dstY = (c)->dstY, \
        .dstMemoryType = (c)->dstMemoryType, .dstHost = (c)->dstHost, .dstDevice = (c)->dstDevice, \
        .dstArray = (c)->dstArray, .dstPitch = (c)->dstPitch, .WidthInBytes = (c)->WidthInBytes, \
        .Height = (c)->Height, .Depth = 1}

#define SOLID(c) { \
        .srcXInBytes = (c)->srcXInBytes, .srcY = (c)->srcY, .srcZ = (c)->srcZ, \
        .srcMemoryType = (c)->srcMemoryType, .srcHost = (c)->srcHost, .srcDevice = (c)->srcDevice, \
        .srcArray = (c)->srcArray, .srcPitch = (c)->srcPitch, .srcHeight = (c)->srcHeight, \
        .dstXInBytes = (c)->dstXInBytes, .dstY = (c)->dstY, .dstZ = (c)->dstZ, \
        .dstMemoryType = (c)->dstMemoryType, .dstHost = (c)->dstHost, .dstDevice = (c)->dstDevice, \
        .dstArray = (c)->dstArray, .dstPitch = (c)->dstPitch, .dstHeight = (c)->dstHeight, \
        .WidthInBytes = (c)->WidthInBytes, .Height = (c)->Height, .Depth = (c)->Depth}

/* An end without a pitch has rows one after the other. */
static CUresult pitched(CUDA_MEMCPY3D shape, CUstream s, bool async)
{
    shape.srcPitch += shape.srcPitch ? 0 : shape.WidthInBytes;
    shape.dstPitch += shape.dstPitch ? 0 : shape.WidthInBytes;
    shape.srcHeight += shape.srcHeight ? 0 : shape.Height;
    shape.dstHeight += shape.dstHeight ? 0 : shape.Height;
    return do_copy(&shape, s, async);
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

/* Decompression, at a tenth of the speed of a copy; nothing is decompressed. */
CUresult FG(cuMemBatchDecompressAsync)(CUmemDecompressParams *list, size_t count, unsigned int flags, size_t *wrong,
                                       CUstream hstream)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!list || !count || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return fg_capture_break(stream);
    double bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fg_address_valid((uint64_t)(uintptr_t)list[i].dst, list[i].dstNumBytes)) {
            if (wrong)
                *wrong = i;
            return CUDA_ERROR_INVALID_VALUE;
        }
        bytes += (double)list[i].dstNumBytes;
    }
    struct fg_op op = {.kind = FG_OP_FILL, .left = 1000 + (uint64_t)(bytes * 1e10 / (double)fg_state->engine.inside_bps)};
    fg_engine_stream_queue(stream->engine, &op);
    return CUDA_SUCCESS;
}

/* ---- fills --------------------------------------------------------------------------------------------- */

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned size, size_t width, size_t height,
                     CUstream hstream)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!width || !height)
        return CUDA_SUCCESS;
    if (to % size || (height > 1 && pitch < width * size) || !fg_address_valid(to, (height - 1) * pitch + width * size))
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                           .fill = {.dst = to, .pitch = pitch, .value = value, .elementSize = size,
                                    .width = width, .height = height}};
    return fg_stream_submit(stream, &work, NULL);
}

CUresult FG(cuMemsetD8_v2)(CUdeviceptr to, unsigned char value, size_t n)
{
    return fill(to, 0, value, 1, n, 1, NULL);
}
CUresult FG(cuMemsetD2D8_v2)(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill(to, pitch, value, 1, width, height, NULL);
}
CUresult FG(cuMemsetD8)(CUdeviceptr_v1 to, unsigned char value, unsigned int n)
{
    return fill(to, 0, value, 1, n, 1, NULL);
}
CUresult FG(cuMemsetD2D8)(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 1, width, height, NULL);
}
CUresult FG(cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t n, CUstream s)
{
    return fill(to, 0, value, 1, n, 1, s);
}
CUresult FG(cuMemsetD2D8Async)(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream s)
{
    return fill(to, pitch, value, 1, width, height, s);
}
CUresult FG(cuMemsetD16_v2)(CUdeviceptr to, unsigned short value, size_t n)
{
    return fill(to, 0, value, 2, n, 1, NULL);
}
CUresult FG(cuMemsetD2D16_v2)(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill(to, pitch, value, 2, width, height, NULL);
}
CUresult FG(cuMemsetD16)(CUdeviceptr_v1 to, unsigned short value, unsigned int n)
{
    return fill(to, 0, value, 2, n, 1, NULL);
}
CUresult FG(cuMemsetD2D16)(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 2, width, height, NULL);
}
CUresult FG(cuMemsetD16Async)(CUdeviceptr to, unsigned short value, size_t n, CUstream s)
{
    return fill(to, 0, value, 2, n, 1, s);
}
CUresult FG(cuMemsetD2D16Async)(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                   CUstream s)
{
    return fill(to, pitch, value, 2, width, height, s);
}
CUresult FG(cuMemsetD32_v2)(CUdeviceptr to, unsigned int value, size_t n)
{
    return fill(to, 0, value, 4, n, 1, NULL);
}
CUresult FG(cuMemsetD2D32_v2)(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return fill(to, pitch, value, 4, width, height, NULL);
}
CUresult FG(cuMemsetD32)(CUdeviceptr_v1 to, unsigned int value, unsigned int n)
{
    return fill(to, 0, value, 4, n, 1, NULL);
}
CUresult FG(cuMemsetD2D32)(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int width, unsigned int height)
{
    return fill(to, pitch, value, 4, width, height, NULL);
}
CUresult FG(cuMemsetD32Async)(CUdeviceptr to, unsigned int value, size_t n, CUstream s)
{
    return fill(to, 0, value, 4, n, 1, s);
}
CUresult FG(cuMemsetD2D32Async)(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                   CUstream s)
{
    return fill(to, pitch, value, 4, width, height, s);
}
