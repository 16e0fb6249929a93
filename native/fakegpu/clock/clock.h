/* Time of the fake GPU.
 *
 * clock=wall: CLOCK_MONOTONIC. A kernel takes real time and burns none: a waiter computes the
 * least time that its operation can still take, sleeps so long, and looks again.
 *
 * clock=virtual: a conservative discrete-event clock over all joined threads of all processes.
 * Each joined thread has its own `now`; a driver call adds what it costs (launch_ns, call_ns,
 * ...). The simulation goes as far as the slowest joined thread. Threads take turns: the one
 * with the least `now` acts (of two at one time, by tag and by which thread of the tag it is),
 * from one driver call to the next; so all that they do is in one order, in each run the same,
 * also what passes between them outside of the fake. With option window_ns they run at once, as
 * long as they are no farther apart than that: what they see of the GPU still depends on virtual
 * times alone, what passes outside of the fake does not.
 * - A thread joins by cuInit, by its first driver call or by fakegpu_join, and leaves when it ends.
 * - A thread that blocks outside of the fake (a pipe, a join) stops the time; when it has not
 * moved for
 *   some 40 ms of real time the clock goes on without it, until its next call.
 * - start_threads=N keeps the time still until N threads have joined: a fair start for several
 * processes. */
#ifndef FG_CLOCK_H
#define FG_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

#include "clock/engine_lock.h"

#pragma GCC visibility push(default)
/* A driver call that does no GPU work costs this much host time (0: the default, call_ns).
 * Joins, and never blocks: the caller may hold a lock that the thread needs which it would wait
 * for. */
void fg_clock_spend(uint64_t ns);
#pragma GCC visibility pop

/* ---- the timing's own modules to each other, all under the engine's lock --------------------- */
uint64_t fg_clock_stamp(uint64_t cost); /* the caller's time, after it has paid `cost` */
void fg_clock_pay(uint64_t cost);       /* the same without waiting for others */
/* Virtual: blocks the caller until that operation or event is done, or (FG_THREAD_TIME) until
 * nobody can do anything before `need`. */
void fg_clock_block(uint32_t state, uint32_t ref, uint64_t need);
void fg_clock_run(void); /* simulates as far as is certain */
/* Wall: releases the lock and sleeps for at most so long, or until a host function is due. */
void fg_clock_nap(uint64_t ns);
#define FG_SHORTEST_NAP 20000ull  /* real time between two looks of a waiter, ns */
void fg_clock_process_ends(void); /* this one: takes the lock itself */
#endif
