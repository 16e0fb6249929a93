/* Time of the fake GPU.
 *
 * clock=wall: CLOCK_MONOTONIC. A kernel takes real time and burns none: a waiter computes the least time
 * that its operation can still take, sleeps so long, and looks again.
 *
 * clock=virtual: a conservative discrete-event clock over all joined threads of all processes. Each joined
 * thread has its own `now`; a driver call adds what it costs (launch_ns, call_ns, ...). The simulation
 * goes as far as the slowest joined thread, and a thread may be ahead of it by window_ns (default 20 us;
 * 0: strict order), or by more only while it does nothing that others could see. So what a thread sees
 * depends on virtual times alone, not on who ran first; what passes between threads outside of the fake
 * (shared memory, sockets) is ordered up to window_ns.
 * - A thread joins by cuInit or its first driver call or by fakegpu_join, and leaves when it ends.
 * - A thread that blocks outside of the fake (a pipe, a join) stops the time; when it has not moved for
 *   some 40 ms of real time the clock goes on without it, until its next call.
 * - start_threads=N keeps time at 0 until N threads have joined: a fair start for several processes.
 */
#ifndef FG_CLOCK_H
#define FG_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#pragma GCC visibility push(default)
/* A driver call that does no GPU work costs this much host time (0: the default, call_ns). Joins. */
void fg_clock_spend(uint64_t ns);
#pragma GCC visibility pop

/* ---- engine.c and clock.c to each other, all under the lock ------------------------------------------ */
extern struct fg_engine *fg_engine;            /* NULL until attached */
bool fg_engine_enter(void);                    /* locks; false where there is no state */
void fg_engine_exit(void);
struct fg_ethread *fg_thread_self(void);       /* virtual: this thread's row, joined at need */
uint64_t fg_clock_stamp(uint64_t cost);        /* the caller's time, after paying `cost` */
void fg_clock_wait(uint32_t state, uint32_t ref, uint64_t seq); /* virtual: until that is so */
void fg_clock_reach(uint64_t when);            /* virtual: until nobody can do anything before `when` */
void fg_clock_done(uint32_t state, uint32_t ref, uint64_t seq, uint64_t when); /* wakes who waits for it */
void fg_clock_run(void);                       /* simulates as far as is certain */
bool fg_simulate(uint64_t until);              /* engine.c; true: stopped early since a waiter runs again */
uint64_t fg_monotonic(void);
#endif
