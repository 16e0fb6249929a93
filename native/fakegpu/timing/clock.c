/* The two clocks, and the threads that wait for them: see clock.h for the rules.
 *
 * Virtual: `now` of a running thread is a promise to do nothing earlier; so is `now` of a thread that
 * waits for a time. The least of them bounds the simulation. Completions at that bound are shown and
 * decisions at it are not yet taken, because another thread may still queue work at the same instant:
 * so nothing depends on which of two threads came first in real time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "timing/clock.h"
#include "state/state.h"

#define PATIENCE_NS 20000000ull   /* real time that a virtual wait sleeps before it looks for the dead */

static __thread struct { uint64_t nonce; int32_t row; } mine; /* row + 1 */
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint64_t fg_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* ---- the lock ------------------------------------------------------------------------------------- */

struct fg_engine *fg_engine_lock(void)
{
    if (!fg_state)
        return NULL;
    struct fg_engine *e = &fg_state->engine;
    if (fg_lock_robust(&e->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&e->lock);
    return e;
}

void fg_engine_unlock(void)
{
    pthread_mutex_unlock(&fg_state->engine.lock);
}

static void look_for_the_dead(void)            /* not under the lock: fg_lock() comes first */
{
    struct fg_engine *e = &fg_state->engine;
    uint64_t now = fg_monotonic(), last = atomic_load(&e->checked_ns);
    if (now < last + PATIENCE_NS || !atomic_compare_exchange_strong(&e->checked_ns, &last, now))
        return;
    fg_lock();
    fg_sweep_dead();
    fg_unlock();
}

/* ---- threads of the virtual clock ------------------------------------------------------------------ */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void leave_at_exit(void *unused)
{
    (void)unused;
    fakegpu_leave();
}
static void forked(void) { mine.row = 0; }
static void prepare(void)
{
    pthread_key_create(&at_exit, leave_at_exit);
    pthread_atfork(NULL, NULL, forked);
}

static struct fg_engine_thread *self(struct fg_engine *e)
{
    if (mine.row && mine.nonce == e->nonce) {
        struct fg_engine_thread *row = &e->thread[mine.row - 1];
        if (row->pid == getpid() && row->tid) {
            if (row->state == FG_THREAD_PARKED) {
                if (row->now < e->t)
                    row->now = e->t;
                row->state = FG_THREAD_RUNS;
            }
            return row;
        }
    }
    return NULL;
}

static uint64_t rank(struct fg_engine *e, int process)
{
    if (process < 0)
        return 0;
    int tag = fg_state->process[process].tag;
    return fg_hash_text(fg_state->tag[tag].name) + e->tag_threads[tag]++;
}

static struct fg_engine_thread *join(struct fg_engine *e, int process)
{
    struct fg_engine_thread *row = self(e);
    if (row)
        return row;
    for (uint32_t i = 0; i < FG_ENGINE_THREADS; i++) {
        row = &e->thread[i];
        if (row->state != FG_THREAD_FREE)
            continue;
        row->process = process + 1;
        row->pid = getpid();
        row->tid = (int32_t)syscall(SYS_gettid);
        row->now = e->t;
        row->seen_now = 0;
        row->sleeping = 0;
        row->rank = rank(e, process);
        if (e->threads <= i)
            e->threads = i + 1;
        row->state = FG_THREAD_RUNS;
        e->joined++;
        mine.nonce = e->nonce;
        mine.row = (int32_t)i + 1;
        pthread_setspecific(at_exit, row);
        return row;
    }
    return NULL;
}

/* The caller's row. Joining needs the process's row, and with it fg_lock(), which comes before ours. */
static struct fg_engine_thread *joined(void)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_thread *row = self(e);
    if (row)
        return row;
    pthread_once(&once, prepare);
    fg_engine_unlock();
    int process = fg_own_process();
    fg_engine_lock();
    return join(e, process);
}

void fg_clock_process_gone(int process)
{
    struct fg_engine *e = &fg_state->engine;
    for (uint32_t i = 0; i < e->threads; i++)
        if (e->thread[i].state != FG_THREAD_FREE && e->thread[i].process == process + 1)
            e->thread[i].state = FG_THREAD_FREE;
}

/* Voluntary switches of a thread that sleeps outside of the fake; 0: it runs, or is gone. */
static uint64_t sleeps(const struct fg_engine_thread *row, bool *gone)
{
    char path[64], line[128], state = 'X';
    uint64_t switches = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", row->pid, row->tid);
    FILE *file = fopen(path, "re");
    *gone = !file;
    while (file && fgets(line, sizeof line, file)) {
        unsigned long number;
        if (sscanf(line, "State: %c", &state) == 1)
            continue;
        if (sscanf(line, "voluntary_ctxt_switches: %lu", &number) == 1)
            switches = number + 1;
    }
    if (file)
        fclose(file);
    return state == 'S' || state == 'T' || state == 't' ? switches : 0;
}

static void park_the_idle(struct fg_engine *e)
{
    for (uint32_t i = 0; i < e->threads; i++) {
        struct fg_engine_thread *row = &e->thread[i];
        bool gone;
        if (row->state != FG_THREAD_RUNS)
            continue;
        uint64_t switches = sleeps(row, &gone);
        if (gone)
            row->state = FG_THREAD_FREE;
        else if (switches && switches == row->seen_switches && row->now == row->seen_now)
            row->state = FG_THREAD_PARKED;
        row->seen_switches = switches;
        row->seen_now = row->now;
    }
}

static void wake(struct fg_engine_thread *row)
{
    row->state = FG_THREAD_RUNS;
    if (row->sleeping)
        futex(&row->state, FUTEX_WAKE, INT_MAX, NULL);
}

/* The thread that acts next; NULL where one acts already that may do something before or at that time. */
static struct fg_engine_thread *next_to_act(struct fg_engine *e)
{
    struct fg_engine_thread *next = NULL;
    for (uint32_t i = 0; i < e->threads; i++) {
        struct fg_engine_thread *row = &e->thread[i];
        if (row->state == FG_THREAD_TIME && row->need <= e->t &&
            (!next || row->now < next->now || (row->now == next->now && row->rank < next->rank)))
            next = row;
    }
    for (uint32_t i = 0; i < e->threads && next; i++)
        if (e->thread[i].state == FG_THREAD_RUNS && e->thread[i].now <= next->now)
            return NULL;
    return next;
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
            struct fg_engine_thread *next = again ? NULL : next_to_act(e);
            if (next)
                wake(next);
            if (!again)
                return;
            continue;
        }
        for (uint32_t i = 0; i < e->threads; i++) {
            struct fg_engine_thread *row = &e->thread[i];
            if (row->state == FG_THREAD_TIME && row->need <= e->t) {
                wake(row);
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

void fg_clock_notify(uint32_t state, uint32_t ref, uint64_t seq)
{
    struct fg_engine *e = &fg_state->engine;
    if (!e->virtual_clock)
        return;
    for (uint32_t i = 0; i < e->threads; i++) {
        struct fg_engine_thread *row = &e->thread[i];
        if (row->state != state || row->ref != ref || row->seq > seq)
            continue;
        if (row->now < e->t)
            row->now = e->t;
        if (state != FG_THREAD_HOST)
            row->now += e->sync_ns;
        if (e->window_ns) {
            wake(row);
        } else {                               /* it acts when it is its turn */
            row->need = row->now;
            row->state = FG_THREAD_TIME;
        }
        e->woken++;
    }
}

void fg_clock_host_due(int process)
{
    struct fg_engine *e = &fg_state->engine;
    e->host_epoch++;
    futex(&e->host_epoch, FUTEX_WAKE, INT_MAX, NULL);
    fg_clock_notify(FG_THREAD_HOST, (uint32_t)process, 0);
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
    while ((seen = row->state) != FG_THREAD_RUNS && seen != FG_THREAD_FREE && seen != FG_THREAD_PARKED) {
        static const struct timespec patience = {.tv_nsec = PATIENCE_NS};
        row->sleeping = 1;
        fg_engine_unlock();
        long late = futex(&row->state, FUTEX_WAIT, seen, &patience);
        bool timed_out = late && errno == ETIMEDOUT;
        if (timed_out)
            look_for_the_dead();
        fg_engine_lock();
        if (timed_out && row->state != FG_THREAD_RUNS) {
            park_the_idle(e);
            fg_clock_run();
        }
    }
    self(e);    /* woken, but parked by another before it had the lock: it runs on, and is counted again */
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

/* ---- the wall clock --------------------------------------------------------------------------------- */

void fg_clock_nap(uint64_t ns)
{
    struct fg_engine *e = &fg_state->engine;
    uint32_t epoch = e->host_epoch;
    if (ns > PATIENCE_NS)
        ns = PATIENCE_NS;
    struct timespec timeout = {.tv_nsec = (long)ns};
    fg_engine_unlock();
    /* The kernel may end a sleep 50 us late to save power: not here, and not for longer than this. */
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1000);
    futex(&e->host_epoch, FUTEX_WAIT, epoch, &timeout);
    prctl(PR_SET_TIMERSLACK, slack);
    look_for_the_dead();
    fg_engine_lock();
}

/* ---- fakegpu.h ----------------------------------------------------------------------------------------- */

void fakegpu_join(void)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    if (e->virtual_clock) {
        joined();
        fg_clock_run();                        /* it may be the one that start_threads waits for */
    }
    fg_engine_unlock();
}

void fakegpu_leave(void)
{
    struct fg_engine *e = mine.row ? fg_engine_lock() : NULL;
    if (!e)
        return;
    struct fg_engine_thread *row = self(e);
    if (row) {
        row->state = FG_THREAD_FREE;
        fg_clock_run();
    }
    mine.row = 0;
    fg_engine_unlock();
}

__attribute__((destructor)) static void process_ends(void)
{
    struct fg_engine *e = mine.row ? fg_engine_lock() : NULL;
    if (!e)
        return;
    for (uint32_t i = 0; i < e->threads; i++)
        if (e->thread[i].pid == getpid())
            e->thread[i].state = FG_THREAD_FREE;
    mine.row = 0;
    fg_clock_run();
    fg_engine_unlock();
}

uint64_t fakegpu_now_ns(void)
{
    if (!fg_state || !fg_state->engine.virtual_clock)
        return fg_monotonic();
    struct fg_engine *e = &fg_state->engine;
    if (!mine.row || mine.nonce != e->nonce)
        return e->t;                           /* an onlooker */
    struct fg_engine_thread *row = &e->thread[mine.row - 1];
    uint64_t now = row->now + FG_LOOK_NS;
    if (e->window_ns && row->state == FG_THREAD_RUNS && now <= e->t + e->window_ns) {
        row->now = now;
        return now;
    }
    fg_engine_lock();
    now = self(e) ? fg_clock_stamp(FG_LOOK_NS) : e->t;
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
    bool onlooker = !self(e);
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
