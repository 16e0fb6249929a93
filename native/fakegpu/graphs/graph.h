/* Graphs: nodes and how they depend on each other. With fg_mutex held. */
#ifndef FG_GRAPH_H
#define FG_GRAPH_H
#include "driver/handles.h"
#include "streams/work.h"

struct fg_node {
    struct fg_handle handle;
    struct fg_graph *graph;
    unsigned id;
    struct fg_node *original; /* of a clone */
    struct fg_work work;
    struct fg_node **before; /* what it depends on */
    size_t n_before;
};
struct fg_graph {
    struct fg_handle handle;
    unsigned id, next_node;
    bool inside;           /* the child graph of a node, which owns it */
    struct fg_node **node; /* in the order of their making */
    size_t n, room;
    struct {
        struct fg_user_object *object;
        unsigned count;
    } *held;
    size_t n_held;
};
struct fg_item { /* of an executable graph: a node of the graph or of a child */
    struct fg_node *origin;
    struct fg_work work;
    size_t n_before;
    bool disabled;
};
struct fg_graph *fg_graph_of(CUgraph handle);
struct fg_node *fg_node_of(CUgraphNode handle);
struct fg_graph *fg_graph_new(void);
void fg_graph_end(struct fg_graph *graph);
void fg_node_end(struct fg_node *node); /* which no graph has any more */
/* Adds a node; *node is its handle. Dependencies must be nodes of the same graph. */
CUresult fg_graph_add(struct fg_graph *graph, struct fg_node *const *dependencies, size_t n,
                      const struct fg_work *work, struct fg_node **node);
/* in graph->node */
size_t fg_graph_place(const struct fg_graph *graph, const struct fg_node *node);
/* The nodes in an order in which they can run, `sorted` having room for all; false: there is a
 * cycle. */
bool fg_graph_order(const struct fg_graph *graph, struct fg_node **sorted);
struct fg_graph *fg_graph_clone(const struct fg_graph *graph, bool inside);

CUresult fg_work_check(const struct fg_work *work); /* node_check.c: whether a node may do this */
#endif
