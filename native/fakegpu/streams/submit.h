/* Work given to a stream. A launch takes no lock of this process but only the engine's. */
#ifndef FG_SUBMIT_H
#define FG_SUBMIT_H
#include "streams/stream.h"
#include "streams/work.h"

/* Queues it, or, where the stream captures, adds a node. *seq (may be NULL): to be waited for;
 * 0: captured. */
CUresult fg_stream_submit(struct fg_stream *stream, const struct fg_work *work, uint64_t *seq);
#endif
