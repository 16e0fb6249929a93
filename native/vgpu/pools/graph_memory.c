/* Memory that graphs allocate when they run.
 *
 * An allocation node takes no memory when it is made or captured. The driver gives it memory when
 * the graph is launched, out of one stock per device that all graphs share, which grows at need and
 * is kept until cuDeviceGraphMemTrim. So a graph with such nodes is noted when it is instantiated,
 * with the most that it can need; that much is drawn from the stock (pools.h) around each
 * launch. */
#include <stdlib.h>

#include "compute/compute.h"
#include "pools/pools.h"

#define GRAPH_DEPTH 16

static _Atomic uint64_t n_execs; /* instantiated graphs that allocate */

/* Adds what each device's allocation nodes need, child graphs included. */
static void graph_need(CUgraph graph, uint64_t need[VG_DEVICES], int depth)
{
    CUgraphNode few[64], *nodes = few;
    size_t n = 0;
    if (depth > GRAPH_DEPTH || REAL(cuGraphGetNodes)(graph, NULL, &n) != CUDA_SUCCESS || !n)
        return;
    if (n > sizeof few / sizeof *few && !(nodes = malloc(n * sizeof *nodes)))
        return;
    if (REAL(cuGraphGetNodes)(graph, nodes, &n) != CUDA_SUCCESS)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType type;
        CUDA_MEM_ALLOC_NODE_PARAMS allocation;
        CUgraph child;
        int row;
        if (REAL(cuGraphNodeGetType)(nodes[i], &type) != CUDA_SUCCESS)
            continue;
        if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            REAL(cuGraphMemAllocNodeGetParams)(nodes[i], &allocation) == CUDA_SUCCESS &&
            allocation.pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            (row = vg_row(allocation.pool.location.id)) >= 0)
            need[row] += vg_rounded(allocation.bytes);
        if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
            REAL(cuGraphChildGraphNodeGetGraph)(nodes[i], &child) == CUDA_SUCCESS)
            graph_need(child, need, depth + 1);
    }
    if (nodes != few)
        free(nodes);
}

static CUresult instantiated(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    uint64_t need[VG_DEVICES] = {0};
    if (result != CUDA_SUCCESS || !vg_limits)
        return result;
    graph_need(graph, need, 0);
    for (int row = 0; row < VG_DEVICES; row++)
        /* one record per device; handles are aligned, so the row fits into the key */
        if (need[row]) {
            vg_record_put(&(struct vg_record){.kind = VG_KIND_GRAPH,
                                              .key = (uint64_t)*exec | (uint64_t)row,
                                              .row = (int8_t)row,
                                              .bytes = need[row]});
            atomic_fetch_add(&n_execs, 1);
        }
    vg_pools_refresh();
    return result;
}

VG_EXPORT CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node,
                                      char *log, size_t bytes)
{
    VG_ENTER();
    return instantiated(REAL(cuGraphInstantiate)(exec, graph, node, log, bytes), exec, graph);
}

VG_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node,
                                         char *log, size_t bytes)
{
    VG_ENTER();
    return instantiated(REAL(cuGraphInstantiate_v2)(exec, graph, node, log, bytes), exec, graph);
}

VG_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                               unsigned long long flags)
{
    VG_ENTER();
    return instantiated(REAL(cuGraphInstantiateWithFlags)(exec, graph, flags), exec, graph);
}

/* Draws `need` from the stocks of all devices; false: refused, and nothing is drawn. */
static bool begin_all(struct vg_draw draw[VG_DEVICES], const uint64_t need[VG_DEVICES])
{
    for (int row = 0; row < VG_DEVICES; row++) {
        draw[row] = (struct vg_draw){0};
        if (need[row] && !vg_draw_begin(&draw[row], NULL, vg_row_device(row),
                                        vg_pool_steps(need[row]), need[row], NULL)) {
            for (draw[row].pool = NULL; row >= 0; row--)
                if (draw[row].pool)
                    vg_draw_end(&draw[row], false);
            return false;
        }
    }
    return true;
}

static void end_all(struct vg_draw draw[VG_DEVICES], CUresult result)
{
    for (int row = 0; row < VG_DEVICES; row++)
        if (draw[row].pool)
            vg_draw_end(&draw[row], result == CUDA_SUCCESS);
}

/* With a flag this call uploads, too: it needs the memory at once. */
static CUresult
instantiate_with(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters,
                 CUresult (*call)(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))
{
    uint64_t need[VG_DEVICES] = {0};
    struct vg_draw draw[VG_DEVICES];
    if (vg_limits)
        graph_need(graph, need, 0);
    if (!begin_all(draw, need))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = call(exec, graph, parameters);
    end_all(draw, result);
    return instantiated(result, exec, graph);
}

VG_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    VG_ENTER();
    return instantiate_with(exec, graph, parameters, REAL(cuGraphInstantiateWithParams));
}

VG_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                     CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    VG_ENTER();
    return instantiate_with(exec, graph, parameters, REAL(cuGraphInstantiateWithParams_ptsz));
}

/* ---- upload and launch ----------------------------------------------------------------------- */

CUresult vg_graph_run(CUresult (*call)(CUgraphExec, CUstream), CUgraphExec exec, CUstream stream)
{
    uint64_t need[VG_DEVICES] = {0};
    struct vg_draw draw[VG_DEVICES];
    struct vg_record record;
    if (likely(!atomic_load_explicit(&n_execs, memory_order_relaxed)))
        return call(exec, stream);
    for (int row = 0; row < VG_DEVICES; row++) /* one that is not visible has no graph */
        if (vg_record_get(VG_KIND_GRAPH, (uint64_t)exec | (uint64_t)row, &record))
            need[row] = record.bytes;
    if (!begin_all(draw, need))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = call(exec, stream);
    end_all(draw, result);
    return result;
}

VG_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    VG_ENTER();
    return vg_graph_run(REAL(cuGraphUpload), exec, stream);
}

VG_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    VG_ENTER();
    return vg_graph_run(REAL(cuGraphUpload_ptsz), exec, stream);
}

VG_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    VG_ENTER();
    struct vg_record record;
    if (atomic_load_explicit(&n_execs, memory_order_relaxed))
        for (int row = 0; row < VG_DEVICES; row++)
            if (vg_record_take(VG_KIND_GRAPH, (uint64_t)exec | (uint64_t)row, &record))
                atomic_fetch_sub(&n_execs, 1);
    CUresult result = REAL(cuGraphExecDestroy)(exec);
    vg_pools_refresh();
    return result;
}

VG_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    VG_ENTER();
    CUresult result = REAL(cuDeviceGraphMemTrim)(device);
    vg_pools_refresh();
    return result;
}
