/* Executable graphs. With fg_mutex held. */
#ifndef FG_EXEC_H
#define FG_EXEC_H
#include "graphs/graph.h"

struct fg_exec {
    struct fg_handle handle;
    unsigned id;
    uint64_t flags;
    struct fg_item *item;
    size_t n;
    int last_stream; /* of its last launch, engine's index; -1: none */
    uint64_t last_seq;
    bool allocates, is_uploaded;
};

struct fg_exec *fg_exec_of(CUgraphExec handle);
struct fg_item *fg_exec_item(struct fg_exec *exec, CUgraphNode node); /* NULL: not of it */
/* A graph's nodes in an order in which they can run, those of children in their place. *items:
 * the caller's. */
CUresult fg_graph_flatten(const struct fg_graph *graph, struct fg_item **items, size_t *n,
                          CUgraphNode *wrong);
#endif
