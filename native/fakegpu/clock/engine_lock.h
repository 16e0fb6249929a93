/* The lock of the engine's state. It is robust, as that of the state; its order is in README.md. */
#ifndef FG_ENGINE_LOCK_H
#define FG_ENGINE_LOCK_H
#include "state/engine_state.h"

struct fg_engine *fg_engine_lock(void); /* NULL, and not locked, where there is no state */
void fg_engine_unlock(void);
uint64_t fg_monotonic(void); /* CLOCK_MONOTONIC, ns */
#endif
