/* Capturing streams, and events that stand for a point in a capture. */
#ifndef FG_CAPTURE_H
#define FG_CAPTURE_H
#include "driver/capture_mode.h"
#include "streams/event.h"
#include "streams/stream.h"
#include "streams/work.h"

/* stream: about to be used. Legacy use beside a capture of a blocking stream is an error. */
CUresult fg_capture_check(struct fg_stream *stream);
CUresult fg_capture_add(struct fg_stream *stream, const struct fg_work *work,
                        struct fg_node **node);
CUresult fg_capture_record(struct fg_stream *stream, struct fg_event *event);
CUresult fg_capture_wait(struct fg_stream *stream, struct fg_event *event);
void fg_capture_event_gone(struct fg_event *event);
bool fg_event_captured(const struct fg_event *event);
void fg_capture_stream_gone(struct fg_stream *stream);
/* invalidates; gives STREAM_CAPTURE_UNSUPPORTED */
CUresult fg_capture_break(struct fg_stream *stream);

/* To graphs/stream_capture.c, with fg_mutex held: */
/* it captures from now on */
void fg_capture_enter(struct fg_capture *capture, struct fg_stream *stream);
void fg_capture_set_leaves(struct fg_stream *stream, struct fg_node *const *nodes, size_t n);
/* no stream captures any more; its graph stays */
void fg_capture_finish(struct fg_capture *capture);
#endif
