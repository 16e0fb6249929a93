/* Stream capture: to come. Until then nothing captures. */
#include "work.h"

CUresult fg_capture_forbids(void) { return CUDA_SUCCESS; }
CUresult fg_capture_check(struct fg_stream *stream) { (void)stream; return CUDA_SUCCESS; }
CUresult fg_capture_add(struct fg_stream *s, const struct fg_work *w, struct fg_node **n) { (void)s; (void)w; (void)n; return CUDA_ERROR_NOT_SUPPORTED; }
CUresult fg_capture_record(struct fg_stream *s, struct fg_event *e) { (void)s; (void)e; return CUDA_ERROR_NOT_SUPPORTED; }
CUresult fg_capture_wait(struct fg_stream *s, struct fg_event *e) { (void)s; (void)e; return CUDA_ERROR_NOT_SUPPORTED; }
void fg_capture_event_gone(struct fg_event *event) { (void)event; }
bool fg_event_captured(const struct fg_event *event) { (void)event; return false; }
CUresult fg_capture_break(struct fg_stream *stream) { (void)stream; return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }
