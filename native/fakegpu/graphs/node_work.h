/* The work of a node, from the driver's parameters; what it may do is fg_work_check's affair. */
#ifndef FG_NODE_WORK_H
#define FG_NODE_WORK_H
#include "graphs/graph.h"

struct fg_work fg_kernel_work(const CUDA_KERNEL_NODE_PARAMS *p);
struct fg_work fg_kernel_work_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p);
struct fg_work fg_copy_work(const CUDA_MEMCPY3D *p);
struct fg_work fg_fill_work(const CUDA_MEMSET_NODE_PARAMS *p);
struct fg_work fg_host_work(const CUDA_HOST_NODE_PARAMS *p);
struct fg_work fg_event_work(CUevent event, bool record);
/* move: it is the node's from now on, else a clone is */
struct fg_work fg_child_work(CUgraph handle, bool move);
CUresult fg_general_work(CUgraphNodeParams *p, struct fg_work *work);
/* the same, of what can be changed */
CUresult fg_changeable_work(CUgraphNodeParams *p, struct fg_work *work);
/* NULL: not a node of this type */
struct fg_work *fg_node_work(CUgraphNode handle, CUgraphNodeType type);
#endif
