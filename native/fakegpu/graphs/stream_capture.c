/* The graph of a stream capture: begin, end, and what can be asked in between. */
#include <stdlib.h>

#include "graphs/graph.h"
#include "streams/capture.h"

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
        capture->mode = mode;
        capture->thread = pthread_self();
        capture->origin = stream;
        capture->add = fg_graph_add;
        capture->end_graph = fg_graph_end;
        fg_capture_list(capture);
        fg_capture_enter(capture, stream);
        fg_capture_set_leaves(stream, (struct fg_node *const *)before, n);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* Whether every node of the capture's other streams leads to what the origin ends with. */
static bool joined(const struct fg_capture *capture)
{
    const struct fg_graph *graph = capture->graph;
    bool *reached = calloc(graph->next_node + 1, 1);
    struct fg_node **todo =
        calloc(graph->n + capture->origin->n_leaves + 1, sizeof(struct fg_node *));
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

CUresult FG(cuStreamBeginCapture_v2)(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, mode, NULL, NULL, 0);
}

CUresult FG(cuStreamBeginCapture)(CUstream stream)
{
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0);
}

CUresult FG(cuStreamBeginCaptureToGraph)(CUstream stream, CUgraph graph, const CUgraphNode *before,
                                         const CUgraphEdgeData *data, size_t n,
                                         CUstreamCaptureMode mode)
{
    (void)data;
    return fg_graph_of(graph) ? begin(stream, mode, fg_graph_of(graph), before, n)
                              : CUDA_ERROR_INVALID_VALUE;
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
    } else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
               !pthread_equal(capture->thread, pthread_self())) {
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else {
        if (capture->broken)
            result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        else if (!joined(capture))
            result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        struct fg_graph *graph = capture->graph;
        fg_capture_finish(capture);
        if (result)
            fg_graph_end(graph);
        else
            *out = (CUgraph)graph;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- asking ---------------------------------------------------------------------------------- */

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

static CUresult capture_info(CUstream hstream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **leaves, size_t *n)
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
CUresult FG(cuStreamGetCaptureInfo_v2)(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **leaves,
                                       size_t *n)
{
    return capture_info(stream, status, id, graph, leaves, n);
}
CUresult FG(cuStreamGetCaptureInfo_v3)(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **leaves,
                                       const CUgraphEdgeData **data, size_t *n)
{
    if (data)
        *data = NULL;
    return capture_info(stream, status, id, graph, leaves, n);
}

CUresult FG(cuStreamUpdateCaptureDependencies_v2)(CUstream hstream, CUgraphNode *nodes,
                                                  const CUgraphEdgeData *data, size_t n,
                                                  unsigned int flags)
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
        fg_capture_set_leaves(stream, (struct fg_node *const *)nodes, n);
    } else if (!result) {
        struct fg_event added = {
            .nodes = (struct fg_node **)nodes, .n_nodes = n, .capture_id = stream->capture->id};
        result = fg_capture_wait(stream, &added);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}
CUresult FG(cuStreamUpdateCaptureDependencies)(CUstream stream, CUgraphNode *nodes, size_t n,
                                               unsigned int flags)
{
    return FG(cuStreamUpdateCaptureDependencies_v2)(stream, nodes, NULL, n, flags);
}
