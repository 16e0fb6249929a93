/* Graphs inside: between graph.c (structure), graph_nodes.c (what nodes do), exec.c (running them),
 * graph_memory.c (their memory) and capture.c. All under fg_mutex. */
#ifndef FG_GRAPH_H
#define FG_GRAPH_H
#include "streams/work.h"

struct fg_node {
    struct fg_handle handle;
    struct fg_graph *graph;
    unsigned id;
    struct fg_node *original;        /* of a clone */
    struct fg_work work;
    struct fg_node **before;         /* what it depends on */
    size_t n_before;
};
struct fg_graph {
    struct fg_handle handle;
    unsigned id, next_node;
    bool inside;                     /* the child graph of a node, which owns it */
    struct fg_node **node;           /* in the order of their making */
    size_t n, room;
    struct { struct fg_user_object *object; unsigned count; } *held;
    size_t n_held;
};
struct fg_item {                     /* of an executable graph: a node of the graph or of a child */
    struct fg_node *origin;
    struct fg_work work;
    size_t n_before;
    bool disabled;
};
struct fg_exec {
    struct fg_handle handle;
    unsigned id;
    uint64_t flags;
    struct fg_item *item;
    size_t n;
    int last_stream;                 /* of its last launch, engine's index; -1: none */
    uint64_t last_seq;
    bool allocates;
};

struct fg_node *fg_node_of(CUgraphNode handle);
/* The nodes in an order in which they can run, `sorted` having room for all; false: there is a cycle. */
bool fg_graph_order(const struct fg_graph *graph, struct fg_node **sorted);
struct fg_graph *fg_graph_clone(const struct fg_graph *graph, bool inside);
CUresult fg_work_check(const struct fg_work *work);  /* whether a node may do this */
CUresult fg_exec_set_node(struct fg_exec *exec, CUgraphNode node, const struct fg_work *work);
struct fg_exec *fg_exec_of(CUgraphExec handle);

/* ---- graph_memory.c: addresses are fixed when a node is added, memory is taken at launch ----------------- */
CUresult fg_graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *params);
void fg_graph_memory_uses(const struct fg_work *work, int more); /* a node that allocates came, or went */
CUresult fg_graph_memory_take(struct fg_exec *exec, bool only_reserve);  /* before a launch, or at an upload */
#endif
