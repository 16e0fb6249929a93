/* The fake GPU's timing, as the driver calls it: contexts, streams, events and host functions.
 *
 * The simulation is lazy. Whoever needs to know something brings it up to date: to
 * CLOCK_MONOTONIC with the wall clock, to the least time that any joined thread has reached with
 * the virtual one (clock/clock.h).
 *
 * Model of a GPU. Kernels, memsets and event marks belong to a context and need the compute engine:
 *   timeslice  one context at a time, for slice_ns, round robin among those with work, switch_ns
 * between two; a kernel whose slice ends goes on in the next one; a context without work
 *              gives up its slice at once, and waits for the others' slices when it has work again
 * mps        all contexts at once, each on its part of the SMs (its active thread percentage,
 * less
 *              where the sum exceeds 100), slowed by contention_pct per other context at work
 * Inside a context streams run by priority, then in order of arrival, as far as there are SMs
 * left; a kernel takes all SMs unless its name says otherwise. Copies to and from the host run
 * on two copy engines, beside kernels and outside slices.
 */
#ifndef FG_ENGINE_H
#define FG_ENGINE_H
#include "state/engine_state.h"

#pragma GCC visibility push(default)

/* ---- contexts -------------------------------------------------------------------------------- */
/* percent: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE (0: all), or a green context's SMs with
 * FG_PARTITION, which hold in its slices, too. Index, or -1 where the table is full. */
#define FG_PARTITION 0x80000000u
int fg_engine_context_open(int process, int tag, int gpu, unsigned percent);
void fg_engine_context_close(int context); /* drops what is queued; its streams are gone */
void fg_engine_context_drain(int context); /* waits for all its streams */
bool fg_engine_context_idle(int context);

/* ---- streams --------------------------------------------------------------------------------- */
int fg_engine_stream_open(int context, unsigned flags, int priority); /* -1: no room */
void fg_engine_stream_close(int stream); /* what is queued still runs */
/* Queues an operation; blocks while the stream is full. op: kind, left (nanoseconds, not shifted),
 * ref, ref_seq, count, share (0: all SMs). Gives its number, to be waited for. */
uint64_t fg_engine_stream_queue(int stream, const struct fg_op *op);
uint64_t fg_engine_stream_tail(int stream);
bool fg_engine_stream_done(int stream, uint64_t seq); /* now, as a query sees it */
void fg_engine_stream_wait(int stream, uint64_t seq); /* blocks the host */
uint64_t fg_engine_random(int context);               /* 64 random bits, the same in each run */

/* ---- events ---------------------------------------------------------------------------------- */
int fg_engine_event_open(int process);
void fg_engine_event_hold(int event);
void fg_engine_event_close(int event);
uint64_t fg_engine_event_record(int event, int stream);
bool fg_engine_event_done(int event);
void fg_engine_event_wait(int event);
uint64_t fg_engine_event_recorded(int event); /* records queued: 0, never recorded */
uint64_t fg_engine_event_time(int event);

/* ---- host functions: a process has one thread that calls them -------------------------------- */
bool fg_engine_host_next(int process, int *stream, uint32_t *ref); /* blocks; false: ask again */
void fg_engine_host_returned(int stream);

/* ---- utilisation, for NVML ------------------------------------------------------------------- */
/* Copies up to `room` samples of a GPU that ended after `since_ns`, oldest first; how many.
 * Shares are in millionths, with the noise of option noise=PERCENT (deterministic per sample and
 * process). */
int fg_engine_samples(int gpu, uint64_t since_ns, struct fg_sample *out, int room);
void fg_engine_totals(int gpu, struct fg_totals *out); /* as of the last sample */

#pragma GCC visibility pop
#endif
