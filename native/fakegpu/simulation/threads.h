/* Threads of the virtual clock. All but the first three under the engine's lock. */
#ifndef FG_CLOCK_THREADS_H
#define FG_CLOCK_THREADS_H
#include <time.h>

#include "state/engine_state.h"

long fg_futex(_Atomic uint32_t *word, int operation, uint32_t value,
              const struct timespec *timeout);
bool fg_thread_has_joined(void); /* the calling thread, whatever state it was */
void fg_thread_forget(void);     /* it has not joined any more: it left, or is a forked child */

/* the caller's row, which runs again; NULL: not joined */
struct fg_engine_thread *fg_thread_self(struct fg_engine *e);
/* the same as it is, parked or not */
struct fg_engine_thread *fg_thread_joined_row(struct fg_engine *e);
/* process: the caller's row. NULL: no room. */
struct fg_engine_thread *fg_thread_join(struct fg_engine *e, int process);
void fg_threads_process_gone(int process);      /* forgets the threads of a dead process */
void fg_threads_park_idle(struct fg_engine *e); /* those that block outside of the fake */
/* The thread that acts next; NULL where one acts already that may do something before or at that
 * time. */
struct fg_engine_thread *fg_thread_next_to_act(struct fg_engine *e);
void fg_thread_wake(struct fg_engine_thread *row);
void fg_threads_notify(uint32_t state, uint32_t ref, uint64_t seq); /* it is done, at engine.t */
void fg_threads_host_due(int process);                              /* a function of it is due */
#endif
