/* Stream captures under way in this process, and what they forbid to its threads. Memory asks
 * it, too. */
#ifndef FG_CAPTURE_MODE_H
#define FG_CAPTURE_MODE_H
#include "driver/driver.h"

struct fg_stream;
struct fg_graph;
struct fg_node;
struct fg_work;
struct fg_capture {
    struct fg_capture *next;
    uint64_t id;
    CUstreamCaptureMode mode;
    pthread_t thread;
    struct fg_stream *origin;
    struct fg_graph *graph;
    bool broken;
    struct fg_stream **member;
    size_t members;
    /* What the graph does for it: streams know no graphs. */
    CUresult (*add)(struct fg_graph *graph, struct fg_node *const *before, size_t n,
                    const struct fg_work *work, struct fg_node **node);
    void (*end_graph)(struct fg_graph *graph);
};
/* Before a call that waits, or that a capture of this thread's mode forbids: the error, after it
 * has invalidated the capture. For cuMemAlloc and others that synchronise, too. */
CUresult fg_capture_forbids(void);

bool fg_captures_under_way(void); /* nothing is looked up while there is none */
/* fg_mutex held: */
struct fg_capture *fg_captures(void);               /* all that are under way */
struct fg_capture *fg_capture_of_id(uint64_t id);   /* NULL: none under way */
void fg_capture_list(struct fg_capture *capture);   /* it has begun; gives it its id */
void fg_capture_unlist(struct fg_capture *capture); /* it has ended */
#endif
