/* Stream capture: what a capturing stream is asked to do becomes nodes of a graph, and nothing
 * runs. The graph itself is graphs/stream_capture.c's.
 *
 * A capture spreads to other streams by events: a record in it remembers the stream's present
 * leaves, and a wait for that event makes the other stream part of the capture. It ends at the
 * stream where it began, and all that the others added must have been joined to that stream by
 * then.
 */
#include "streams/capture.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a capture forbids ------------------------------------------------------------------ */

CUresult fg_capture_check(struct fg_stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    if (!fg_captures_under_way())
        return result;
    pthread_mutex_lock(&fg_mutex);
    if (stream->capture) {
        if (stream->capture->broken)
            result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (stream->is_default &&
               fg_state->engine.stream[stream->engine].flags & FG_STREAM_LEGACY) {
        for (struct fg_capture *each = fg_captures(); each; each = each->next)
            for (size_t i = 0; i < each->members; i++)
                if (each->member[i]->context == stream->context &&
                    !(each->member[i]->flags & CU_STREAM_NON_BLOCKING)) {
                    /* the legacy stream would have to wait for it */
                    each->broken = true;
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

/* ---- its streams ----------------------------------------------------------------------------- */

void fg_capture_set_leaves(struct fg_stream *stream, struct fg_node *const *nodes, size_t n)
{
    struct fg_node **fresh = calloc(n + 1, sizeof(struct fg_node *));
    if (n)
        memcpy(fresh, nodes, n * sizeof(struct fg_node *));
    free(stream->leaves);
    stream->leaves = fresh;
    stream->n_leaves = n;
}

void fg_capture_enter(struct fg_capture *capture, struct fg_stream *stream)
{
    capture->member = realloc(capture->member, (capture->members + 1) * sizeof(struct fg_stream *));
    capture->member[capture->members++] = stream;
    stream->capture = capture;
}

static void leave(struct fg_stream *stream)
{
    stream->capture = NULL;
    fg_capture_set_leaves(stream, NULL, 0);
}

void fg_capture_finish(struct fg_capture *capture)
{
    for (size_t i = 0; i < capture->members; i++)
        leave(capture->member[i]);
    fg_capture_unlist(capture);
    free(capture->member);
    free(capture);
}

void fg_capture_stream_gone(struct fg_stream *stream)
{
    struct fg_capture *capture = stream->capture;
    if (!capture)
        return;
    capture->broken = true;
    if (capture->origin == stream) {
        capture->end_graph(capture->graph);
        fg_capture_finish(capture);
        return;
    }
    for (size_t i = 0; i < capture->members; i++)
        if (capture->member[i] == stream)
            capture->member[i] = capture->member[--capture->members];
    leave(stream);
}

/* ---- what is captured ------------------------------------------------------------------------ */

CUresult fg_capture_add(struct fg_stream *stream, const struct fg_work *work, struct fg_node **out)
{
    struct fg_node *node;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = !stream->capture ? CUDA_ERROR_ILLEGAL_STATE
                      : stream->capture->broken
                          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : stream->capture->add(stream->capture->graph, stream->leaves,
                                                 stream->n_leaves, work, &node);
    if (!result) {
        fg_capture_set_leaves(stream, &node, 1);
        if (out)
            *out = node;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

bool fg_event_captured(const struct fg_event *event)
{
    if (!event->capture_id || !fg_captures_under_way())
        return false;
    pthread_mutex_lock(&fg_mutex);
    bool captured = fg_capture_of_id(event->capture_id) != NULL;
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
    struct fg_capture *theirs = event->capture_id ? fg_capture_of_id(event->capture_id) : NULL;
    if (!theirs) {
        /* an event of outside: its time is not known here */
        stream->capture->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else if (stream->capture && stream->capture != theirs) {
        stream->capture->broken = theirs->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    } else if (fg_state->engine.stream[stream->engine].flags & FG_STREAM_LEGACY) {
        theirs->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else {
        if (!stream->capture)
            fg_capture_enter(theirs, stream);
        struct fg_node **both =
            calloc(stream->n_leaves + event->n_nodes + 1, sizeof(struct fg_node *));
        size_t n = 0;
        for (size_t i = 0; i < stream->n_leaves + event->n_nodes; i++) {
            struct fg_node *node =
                i < stream->n_leaves ? stream->leaves[i] : event->nodes[i - stream->n_leaves];
            bool known = false;
            for (size_t k = 0; k < n; k++)
                known |= both[k] == node;
            if (!known)
                both[n++] = node;
        }
        fg_capture_set_leaves(stream, both, n);
        free(both);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}
