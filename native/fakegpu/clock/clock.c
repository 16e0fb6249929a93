/* The two clocks: see clock.h for the rules.
 *
 * Virtual: `now` of a running thread is a promise to do nothing earlier; so is `now` of a thread
 * that waits for a time. The least of them bounds the simulation. Completions at that bound are
 * shown and decisions at it are not yet taken, because another thread may still queue work at
 * the same instant: so nothing depends on which of two threads came first in real time.
 */
#define _GNU_SOURCE
#include "clock/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "simulation/simulate.h"
#include "simulation/threads.h"
#include "state/process_table.h"

/* real time that a virtual wait sleeps before it looks for the dead */
#define PATIENCE_NS 20000000ull

static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look_for_the_dead(void) /* not under the lock: fg_lock() comes first */
{
    struct fg_engine *e = &fg_state->engine;
    uint64_t now = fg_monotonic(), last = atomic_load(&e->checked_ns);
    if (now < last + PATIENCE_NS || !atomic_compare_exchange_strong(&e->checked_ns, &last, now))
        return;
    fg_lock();
    fg_sweep_dead();
    fg_unlock();
}

static void run_virtual(struct fg_engine *e)
{
    for (;;) {
        uint64_t bound = e->joined < e->start_threads ? e->t : FG_NEVER;
        for (uint32_t i = 0; i < e->threads; i++) {
            uint32_t state = e->thread[i].state;
            if ((state == FG_THREAD_RUNS || state == FG_THREAD_TIME) && e->thread[i].now < bound)
                bound = e->thread[i].now;
        }
        if (bound < e->t)
            bound = e->t;
        bool again = fg_simulate(bound);
        if (!e->window_ns) {
            struct fg_engine_thread *next = again ? NULL : fg_thread_next_to_act(e);
            if (next)
                fg_thread_wake(next);
            if (!again)
                return;
            continue;
        }
        for (uint32_t i = 0; i < e->threads; i++) {
            struct fg_engine_thread *row = &e->thread[i];
            if (row->state == FG_THREAD_TIME && row->need <= e->t) {
                fg_thread_wake(row);
                again = true;
            }
        }
        if (!again)
            return;
    }
}

void fg_clock_run(void)
{
    struct fg_engine *e = &fg_state->engine;
    if (e->virtual_clock)
        run_virtual(e);
    else
        fg_simulate(fg_monotonic());
}

/* ---- the caller's thread --------------------------------------------------------------------- */

static void leave_at_exit(void *unused)
{
    (void)unused;
    fakegpu_leave();
}

static void prepare(void)
{
    pthread_key_create(&at_exit, leave_at_exit);
    pthread_atfork(NULL, NULL, fg_thread_forget);
}

/* The caller's row. Joining needs the process's row, and with it fg_lock(), which comes before
 * ours. */
static struct fg_engine_thread *joined(void)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_thread *row = fg_thread_self(e);
    if (row)
        return row;
    pthread_once(&once, prepare);
    fg_engine_unlock();
    int process = fg_own_process();
    fg_engine_lock();
    row = fg_thread_join(e, process);
    if (row)
        pthread_setspecific(at_exit, row);
    return row;
}

void fg_clock_block(uint32_t state, uint32_t ref, uint64_t need)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_thread *row = joined();
    if (!row)
        return;
    row->ref = ref;
    row->seq = row->need = need;
    row->state = state;
    fg_clock_run();
    uint32_t seen;
    while ((seen = row->state) != FG_THREAD_RUNS && seen != FG_THREAD_FREE &&
           seen != FG_THREAD_PARKED) {
        static const struct timespec patience = {.tv_nsec = PATIENCE_NS};
        row->sleeping = 1;
        fg_engine_unlock();
        long late = fg_futex(&row->state, FUTEX_WAIT, seen, &patience);
        bool timed_out = late && errno == ETIMEDOUT;
        if (timed_out)
            look_for_the_dead();
        fg_engine_lock();
        if (timed_out && row->state != FG_THREAD_RUNS) {
            fg_threads_park_idle(e);
            fg_clock_run();
        }
    }
    /* woken, but parked by another before it had the lock: it runs on, and is counted again */
    fg_thread_self(e);
    row->sleeping = 0;
}

uint64_t fg_clock_stamp(uint64_t cost)
{
    struct fg_engine *e = &fg_state->engine;
    if (!e->virtual_clock)
        return fg_monotonic();
    struct fg_engine_thread *row = joined();
    if (!row)
        return e->t;
    row->now += cost ? cost : 1;
    if (!e->window_ns) {
        fg_clock_block(FG_THREAD_TIME, 0, row->now);
    } else if (row->now > e->t + e->window_ns) {
        fg_clock_run();
        if (row->now > e->t + e->window_ns)
            fg_clock_block(FG_THREAD_TIME, 0, row->now - e->window_ns);
    }
    return row->now;
}

void fg_clock_pay(uint64_t cost)
{
    struct fg_engine_thread *row = fg_state->engine.virtual_clock ? joined() : NULL;
    if (row)
        row->now += cost;
}

void fg_clock_spend(uint64_t ns)
{
    if (!fg_state || !fg_state->engine.virtual_clock)
        return;
    struct fg_engine *e = fg_engine_lock();
    fg_clock_pay(ns ? ns : e->call_ns);
    fg_engine_unlock();
}

/* ---- the wall clock -------------------------------------------------------------------------- */

void fg_clock_nap(uint64_t ns)
{
    struct fg_engine *e = &fg_state->engine;
    uint32_t epoch = e->host_epoch;
    if (ns > PATIENCE_NS)
        ns = PATIENCE_NS;
    struct timespec timeout = {.tv_nsec = (long)ns};
    fg_engine_unlock();
    /* The kernel may end a sleep 50 us late to save power: not here, and not for longer than
     * this. */
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1000);
    fg_futex(&e->host_epoch, FUTEX_WAIT, epoch, &timeout);
    prctl(PR_SET_TIMERSLACK, slack);
    look_for_the_dead();
    fg_engine_lock();
}

/* ---- fakegpu.h ------------------------------------------------------------------------------- */

void fakegpu_join(void)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    if (e->virtual_clock) {
        joined();
        fg_clock_run(); /* it may be the one that start_threads waits for */
    }
    fg_engine_unlock();
}

void fakegpu_leave(void)
{
    struct fg_engine *e = fg_thread_has_joined() ? fg_engine_lock() : NULL;
    if (!e)
        return;
    struct fg_engine_thread *row = fg_thread_self(e);
    if (row) {
        row->state = FG_THREAD_FREE;
        fg_clock_run();
    }
    fg_thread_forget();
    fg_engine_unlock();
}

void fg_clock_process_ends(void)
{
    struct fg_engine *e = fg_thread_has_joined() ? fg_engine_lock() : NULL;
    if (!e)
        return;
    for (uint32_t i = 0; i < e->threads; i++)
        if (e->thread[i].pid == getpid())
            e->thread[i].state = FG_THREAD_FREE;
    fg_thread_forget();
    fg_clock_run();
    fg_engine_unlock();
}

uint64_t fakegpu_now_ns(void)
{
    if (!fg_state || !fg_state->engine.virtual_clock)
        return fg_monotonic();
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_thread *row = fg_thread_joined_row(e);
    if (!row)
        return e->t; /* an onlooker */
    uint64_t now = row->now + FG_LOOK_NS;
    if (e->window_ns && row->state == FG_THREAD_RUNS && now <= e->t + e->window_ns) {
        row->now = now;
        return now;
    }
    fg_engine_lock();
    now = fg_thread_self(e) ? fg_clock_stamp(FG_LOOK_NS) : e->t;
    fg_engine_unlock();
    return now;
}

void fakegpu_sleep_until_ns(uint64_t when)
{
    if (!fg_state || !fg_state->engine.virtual_clock) {
        struct timespec until = {(time_t)(when / 1000000000ull), (long)(when % 1000000000ull)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            continue;
        return;
    }
    struct fg_engine *e = fg_engine_lock();
    bool onlooker = !fg_thread_self(e);
    struct fg_engine_thread *row = joined();
    if (row && when > row->now) {
        row->now = when;
        if (when > e->t)
            fg_clock_block(FG_THREAD_TIME, 0, when);
    }
    fg_engine_unlock();
    if (onlooker)
        fakegpu_leave();
}
