/* Hooks of everything that puts work on the GPU: kernels and graphs.
 *
 * A launch into a stream that is being captured runs nothing now, so it is neither charged nor
 * timed nor made to wait; the graph that comes of it is, when it is launched, as one piece of work
 * with its own cost. Whether a stream is being captured is asked only while some capture is open.
 *
 * Not seen here: what kernels launch on the device themselves. Their parent's events include it. */
#include "compute/compute.h"
#include "pools/pools.h"

/* Grids of about the same size cost about the same: to an eighth of a power of two. */
static uint64_t shape(uint64_t blocks, uint64_t threads, uint64_t shared)
{
    if (blocks >= 16) {
        int drop = 60 - __builtin_clzll(blocks);
        blocks = (blocks >> drop) + ((uint64_t)drop << 8);
    }
    return (blocks << 16 ^ threads) * 0x9E3779B97F4A7C15ull + shared;
}

#define LAUNCH(key, its_shape, stream, call)                                                       \
    VG_ENTER();                                                                                    \
    if (unlikely(vg_is_captured(stream)))                                                          \
        return call;                                                                               \
    struct vg_work work;                                                                           \
    vg_work_begin(&work, key, its_shape, stream);                                                  \
    CUresult result = call;                                                                        \
    vg_work_end(&work, result, stream);                                                            \
    return result

#define GRID_PARAMETERS                                                                            \
    CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,              \
        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters
#define GRID f, gx, gy, gz, bx, by, bz, shared, stream, parameters
#define GRID_SHAPE shape((uint64_t)gx * gy * gz, (uint64_t)bx * by * bz, shared)

VG_EXPORT CUresult cuLaunchKernel(GRID_PARAMETERS, void **extra)
{
    LAUNCH(f, GRID_SHAPE, stream, REAL(cuLaunchKernel)(GRID, extra));
}

VG_EXPORT CUresult cuLaunchKernel_ptsz(GRID_PARAMETERS, void **extra)
{
    LAUNCH(f, GRID_SHAPE, PER_THREAD(stream), REAL(cuLaunchKernel_ptsz)(GRID, extra));
}

VG_EXPORT CUresult cuLaunchCooperativeKernel(GRID_PARAMETERS)
{
    LAUNCH(f, GRID_SHAPE, stream, REAL(cuLaunchCooperativeKernel)(GRID));
}

VG_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(GRID_PARAMETERS)
{
    LAUNCH(f, GRID_SHAPE, PER_THREAD(stream), REAL(cuLaunchCooperativeKernel_ptsz)(GRID));
}

#define SHAPE_OF(launch)                                                                           \
    shape((uint64_t)(launch)->grid[0] * (launch)->grid[1] * (launch)->grid[2],                     \
          (uint64_t)(launch)->block[0] * (launch)->block[1] * (launch)->block[2],                  \
          (launch)->shared)

VG_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters,
                                    void **extra)
{
    if (unlikely(!config)) {
        VG_ENTER();
        return REAL(cuLaunchKernelEx)(config, f, parameters, extra);
    }
    LAUNCH(f, SHAPE_OF(config), config->stream,
           REAL(cuLaunchKernelEx)(config, f, parameters, extra));
}

VG_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                         void **parameters, void **extra)
{
    if (unlikely(!config)) {
        VG_ENTER();
        return REAL(cuLaunchKernelEx_ptsz)(config, f, parameters, extra);
    }
    LAUNCH(f, SHAPE_OF(config), PER_THREAD(config->stream),
           REAL(cuLaunchKernelEx_ptsz)(config, f, parameters, extra));
}

/* One kernel on several GPUs: charged on the one that is current (the call is deprecated). */
VG_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
                                                        unsigned int flags)
{
    if (!list || !n) {
        VG_ENTER();
        return REAL(cuLaunchCooperativeKernelMultiDevice)(list, n, flags);
    }
    LAUNCH(list->function, SHAPE_OF(list), list->stream,
           REAL(cuLaunchCooperativeKernelMultiDevice)(list, n, flags));
}

/* The launches of CUDA 3: their block's shape was set before. */
VG_EXPORT CUresult cuLaunch(CUfunction f)
{
    LAUNCH(f, 1, NULL, REAL(cuLaunch)(f));
}

VG_EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    LAUNCH(f, shape((uint64_t)width * (uint64_t)height, 0, 0), NULL,
           REAL(cuLaunchGrid)(f, width, height));
}

VG_EXPORT CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    LAUNCH(f, shape((uint64_t)width * (uint64_t)height, 0, 0), stream,
           REAL(cuLaunchGridAsync)(f, width, height, stream));
}

#define GRAPH(name, its_stream)                                                                    \
    VG_ENTER();                                                                                    \
    if (unlikely(vg_is_captured(its_stream)))                                                      \
        return vg_graph_run(REAL(name), graph, stream);                                            \
    struct vg_work work;                                                                           \
    vg_work_begin(&work, graph, 0, its_stream);                                                    \
    uint64_t begun = work.begun;                                                                   \
    work.begun = 0;                                                                                \
    CUresult result = vg_graph_run(REAL(name), graph, stream);                                     \
    if (result == CUDA_SUCCESS)                                                                    \
        vg_count_graph();                                                                          \
    if (begun)                                                                                     \
        vg_count_end(VG_CALL_GRAPH, begun, 0);                                                     \
    vg_work_end(&work, result, its_stream);                                                        \
    return result

VG_EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    GRAPH(cuGraphLaunch, stream);
}

VG_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream)
{
    GRAPH(cuGraphLaunch_ptsz, PER_THREAD(stream));
}
