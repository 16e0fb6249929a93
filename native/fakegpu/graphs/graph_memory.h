/* Memory of graphs: addresses are fixed when a node is added, memory is taken at launch. */
#ifndef FG_GRAPH_MEMORY_H
#define FG_GRAPH_MEMORY_H
#include "graphs/graph.h"
#include "streams/stream.h"

CUresult fg_graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *params); /* gives the address */
/* a node that allocates came, or went */
void fg_graph_memory_uses(const struct fg_work *work, int more);
/* Before a launch of these items, or at their upload. flags: of CUgraphInstantiate_flags. */
CUresult fg_graph_memory_take(const struct fg_item *item, size_t n, uint64_t flags,
                              bool only_reserve);

/* Captured cuMemAllocAsync and cuMemFreeAsync. */
CUresult fg_capture_memory_alloc(struct fg_stream *stream, uint64_t bytes, CUdeviceptr *out);
CUresult fg_capture_memory_free(struct fg_stream *stream, CUdeviceptr address);
#endif
