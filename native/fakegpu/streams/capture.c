/* Stream capture: what a capturing stream is asked to do becomes nodes of a graph, and nothing runs.
 *
 * A capture spreads to other streams by events: a record in it remembers the stream's present leaves, and a
 * wait for that event makes the other stream part of the capture. It ends at the stream where it began,
 * and all that the others added must have been joined to that stream by then.
 */
#include "graphs/graph.h"

#include <stdlib.h>
#include <string.h>

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
};
static struct fg_capture *captures;            /* under way; fg_mutex */
static _Atomic unsigned under_way;             /* how many: nothing is looked up while there is none */
static uint64_t next_id;
static __thread CUstreamCaptureMode thread_mode;   /* GLOBAL unless exchanged */

static struct fg_capture *live(uint64_t id)
{
    struct fg_capture *each = captures;
    while (each && each->id != id)
        each = each->next;
    return each;
}

/* ---- what a capture forbids ------------------------------------------------------------------------------ */

CUresult fg_capture_forbids(void)
{
    CUresult result = CUDA_SUCCESS;
    if (!under_way || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_capture *each = captures; each; each = each->next) {
        bool own = pthread_equal(each->thread, pthread_self());
        bool counts = own ? each->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                          : each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (counts) {
            each->broken = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult fg_capture_check(struct fg_stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    if (!under_way)
        return result;
    pthread_mutex_lock(&fg_mutex);
    if (stream->capture) {
        if (stream->capture->broken)
            result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (stream->is_default && fg_state->engine.stream[stream->engine].flags & FG_STREAM_LEGACY) {
        for (struct fg_capture *each = captures; each; each = each->next)
            for (size_t i = 0; i < each->members; i++)
                if (each->member[i]->context == stream->context && !(each->member[i]->flags & CU_STREAM_NON_BLOCKING)) {
                    each->broken = true;       /* the legacy stream would have to wait for it */
                    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
                }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult fg_capture_break(struct fg_stream *stream)
{
    pthread_mutex_lock(&fg_mutex);
    if (stream->capture)
        stream->capture->broken = true;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------- */

static void set_leaves(struct fg_stream *stream, struct fg_node *const *nodes, size_t n)
{
    struct fg_node **fresh = calloc(n + 1, sizeof(struct fg_node *));
    if (n)
        memcpy(fresh, nodes, n * sizeof(struct fg_node *));
    free(stream->leaves);
    stream->leaves = fresh;
    stream->n_leaves = n;
}

static void enter(struct fg_capture *capture, struct fg_stream *stream)
{
    capture->member = realloc(capture->member, (capture->members + 1) * sizeof(struct fg_stream *));
    capture->member[capture->members++] = stream;
    stream->capture = capture;
}

static void leave(struct fg_stream *stream)
{
    stream->capture = NULL;
    set_leaves(stream, NULL, 0);
}

static void finish(struct fg_capture *capture)
{
    for (size_t i = 0; i < capture->members; i++)
        leave(capture->member[i]);
    for (struct fg_capture **at = &captures; *at; at = &(*at)->next)
        if (*at == capture) {
            *at = capture->next;
            break;
        }
    free(capture->member);
    free(capture);
    under_way--;
}

void fg_capture_stream_gone(struct fg_stream *stream)
{
    struct fg_capture *capture = stream->capture;
    if (!capture)
        return;
    capture->broken = true;
    if (capture->origin == stream) {
        fg_graph_end(capture->graph);
        finish(capture);
        return;
    }
    for (size_t i = 0; i < capture->members; i++)
        if (capture->member[i] == stream)
            capture->member[i] = capture->member[--capture->members];
    leave(stream);
}

static CUresult begin(CUstream hstream, CUstreamCaptureMode mode, struct fg_graph *graph,
                      const CUgraphNode *before, size_t n)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED || (n && !before))
        return CUDA_ERROR_INVALID_VALUE;
    if (fg_state->engine.stream[stream->engine].flags & FG_STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&fg_mutex);
    for (size_t i = 0; i < n && !result; i++)
        if (!fg_node_of(before[i]) || fg_node_of(before[i])->graph != graph)
            result = CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        result = CUDA_ERROR_ILLEGAL_STATE;
    struct fg_capture *capture = result ? NULL : calloc(1, sizeof *capture);
    if (capture) {
        capture->graph = graph ? graph : fg_graph_new();
        capture->id = ++next_id;
        capture->mode = mode;
        capture->thread = pthread_self();
        capture->origin = stream;
        capture->next = captures;
        captures = capture;
        under_way++;
        enter(capture, stream);
        set_leaves(stream, (struct fg_node *const *)before, n);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* Whether every node of the capture's other streams leads to what the origin ends with. */
static bool joined(const struct fg_capture *capture)
{
    const struct fg_graph *graph = capture->graph;
    bool *reached = calloc(graph->next_node + 1, 1);
    struct fg_node **todo = calloc(graph->n + capture->origin->n_leaves + 1, sizeof(struct fg_node *));
    size_t n = 0;
    bool all = true;
    for (size_t i = 0; i < capture->origin->n_leaves; i++)
        if (!reached[capture->origin->leaves[i]->id]) {
            reached[capture->origin->leaves[i]->id] = true;
            todo[n++] = capture->origin->leaves[i];
        }
    while (n) {
        struct fg_node *node = todo[--n];
        for (size_t i = 0; i < node->n_before; i++)
            if (!reached[node->before[i]->id]) {
                reached[node->before[i]->id] = true;
                todo[n++] = node->before[i];
            }
    }
    for (size_t i = 0; i < capture->members; i++)
        for (size_t k = 0; k < capture->member[i]->n_leaves; k++)
            all &= reached[capture->member[i]->leaves[k]->id];
    free(reached);
    free(todo);
    return all;
}

CUresult FG(cuStreamBeginCapture_v2)(CUstream stream, CUstreamCaptureMode mode) { return begin(stream, mode, NULL, NULL, 0); }
CUresult FG(cuStreamBeginCapture)(CUstream stream) { return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0); }
CUresult FG(cuStreamBeginCaptureToGraph)(CUstream stream, CUgraph graph, const CUgraphNode *before,
                                         const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode)
{
    (void)data;
    return fg_graph_of(graph) ? begin(stream, mode, fg_graph_of(graph), before, n) : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuStreamEndCapture)(CUstream hstream, CUgraph *out)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    pthread_mutex_lock(&fg_mutex);
    struct fg_capture *capture = stream->capture;
    if (!capture) {
        result = CUDA_ERROR_ILLEGAL_STATE;
    } else if (capture->origin != stream) {
        capture->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    } else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self())) {
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else {
        if (capture->broken)
            result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        else if (!joined(capture))
            result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        struct fg_graph *graph = capture->graph;
        finish(capture);
        if (result)
            fg_graph_end(graph);
        else
            *out = (CUgraph)graph;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- what is captured ------------------------------------------------------------------------------------------ */

CUresult fg_capture_add(struct fg_stream *stream, const struct fg_work *work, struct fg_node **out)
{
    struct fg_node *node;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = !stream->capture          ? CUDA_ERROR_ILLEGAL_STATE
                      : stream->capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                                : fg_graph_add(stream->capture->graph, stream->leaves, stream->n_leaves, work, &node);
    if (!result) {
        set_leaves(stream, &node, 1);
        if (out)
            *out = node;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

bool fg_event_captured(const struct fg_event *event)
{
    if (!event->capture_id || !under_way)
        return false;
    pthread_mutex_lock(&fg_mutex);
    bool captured = live(event->capture_id) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    return captured;
}

void fg_capture_event_gone(struct fg_event *event)
{
    if (!event->capture_id)
        return;
    free(event->nodes);
    event->nodes = NULL;
    event->n_nodes = 0;
    event->capture_id = 0;
}

CUresult fg_capture_record(struct fg_stream *stream, struct fg_event *event)
{
    pthread_mutex_lock(&fg_mutex);
    fg_capture_event_gone(event);
    event->nodes = calloc(stream->n_leaves + 1, sizeof(struct fg_node *));
    if (stream->n_leaves)
        memcpy(event->nodes, stream->leaves, stream->n_leaves * sizeof(struct fg_node *));
    event->n_nodes = stream->n_leaves;
    event->capture_id = stream->capture->id;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult fg_capture_wait(struct fg_stream *stream, struct fg_event *event)
{
    CUresult result = fg_capture_check(stream);
    if (result)
        return result;
    pthread_mutex_lock(&fg_mutex);
    struct fg_capture *theirs = event->capture_id ? live(event->capture_id) : NULL;
    if (!theirs) {
        stream->capture->broken = true;        /* an event of outside: its time is not known here */
        result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else if (stream->capture && stream->capture != theirs) {
        stream->capture->broken = theirs->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    } else if (fg_state->engine.stream[stream->engine].flags & FG_STREAM_LEGACY) {
        theirs->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else {
        if (!stream->capture)
            enter(theirs, stream);
        struct fg_node **both = calloc(stream->n_leaves + event->n_nodes + 1, sizeof(struct fg_node *));
        size_t n = 0;
        for (size_t i = 0; i < stream->n_leaves + event->n_nodes; i++) {
            struct fg_node *node = i < stream->n_leaves ? stream->leaves[i] : event->nodes[i - stream->n_leaves];
            bool known = false;
            for (size_t k = 0; k < n; k++)
                known |= both[k] == node;
            if (!known)
                both[n++] = node;
        }
        set_leaves(stream, both, n);
        free(both);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

CUresult FG(cuStreamIsCapturing)(CUstream hstream, CUstreamCaptureStatus *status)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (!result && !status)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    pthread_mutex_lock(&fg_mutex);
    *status = !stream->capture          ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (!stream->capture && fg_capture_check(stream))
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static CUresult capture_info(CUstream hstream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **leaves, size_t *n)
{
    struct fg_stream *stream;
    CUresult result = FG(cuStreamIsCapturing)(hstream, status);
    if (result)
        return result;
    fg_stream_of(hstream, &stream);
    pthread_mutex_lock(&fg_mutex);
    bool active = stream->capture && !stream->capture->broken;
    if (id)
        *id = active ? stream->capture->id : 0;
    if (graph)
        *graph = active ? (CUgraph)stream->capture->graph : NULL;
    if (leaves)
        *leaves = active ? (const CUgraphNode *)stream->leaves : NULL;
    if (n)
        *n = active ? stream->n_leaves : 0;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}
CUresult FG(cuStreamGetCaptureInfo)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return capture_info(stream, status, id, NULL, NULL, NULL);
}
CUresult FG(cuStreamGetCaptureInfo_v2)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                       const CUgraphNode **leaves, size_t *n)
{
    return capture_info(stream, status, id, graph, leaves, n);
}
CUresult FG(cuStreamGetCaptureInfo_v3)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                       const CUgraphNode **leaves, const CUgraphEdgeData **data, size_t *n)
{
    if (data)
        *data = NULL;
    return capture_info(stream, status, id, graph, leaves, n);
}

CUresult FG(cuStreamUpdateCaptureDependencies_v2)(CUstream hstream, CUgraphNode *nodes, const CUgraphEdgeData *data,
                                                  size_t n, unsigned int flags)
{
    struct fg_stream *stream;
    (void)data;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    if (!stream->capture)
        result = CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; i < n && !result; i++)
        if (!fg_node_of(nodes[i]) || fg_node_of(nodes[i])->graph != stream->capture->graph)
            result = CUDA_ERROR_INVALID_VALUE;
    if (!result && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        set_leaves(stream, (struct fg_node *const *)nodes, n);
    } else if (!result) {
        struct fg_event added = {.nodes = (struct fg_node **)nodes, .n_nodes = n, .capture_id = stream->capture->id};
        result = fg_capture_wait(stream, &added);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}
CUresult FG(cuStreamUpdateCaptureDependencies)(CUstream stream, CUgraphNode *nodes, size_t n, unsigned int flags)
{
    return FG(cuStreamUpdateCaptureDependencies_v2)(stream, nodes, NULL, n, flags);
}
