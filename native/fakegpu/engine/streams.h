/* Waiting for streams, between the engine's modules; under its lock. */
#ifndef FG_ENGINE_STREAMS_H
#define FG_ENGINE_STREAMS_H
#include "state/engine_state.h"

/* until operation `seq` is done */
void fg_engine_wait_locked(struct fg_engine *e, int stream, uint64_t seq);
void fg_engine_look(struct fg_engine *e); /* brings the simulation to the caller's own time */
#endif
