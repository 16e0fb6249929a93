/* Threads of the virtual clock: who has joined, who waits for what, and whose turn it is. */
#define _GNU_SOURCE
#include "simulation/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "simulation/random.h"
#include "state/state.h"

#define ASLEEP_NS 40000000ull /* real time */

static __thread struct {
    uint64_t nonce;
    int32_t row;
} mine; /* row + 1 */

long fg_futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* ---- joining --------------------------------------------------------------------------------- */

struct fg_engine_thread *fg_thread_self(struct fg_engine *e)
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

struct fg_engine_thread *fg_thread_joined_row(struct fg_engine *e)
{
    return mine.row && mine.nonce == e->nonce ? &e->thread[mine.row - 1] : NULL;
}

bool fg_thread_has_joined(void)
{
    return mine.row != 0;
}
void fg_thread_forget(void)
{
    mine.row = 0;
}

static uint64_t rank(struct fg_engine *e, int process)
{
    if (process < 0)
        return 0;
    int tag = fg_state->process[process].tag;
    return fg_hash_text(fg_state->tag[tag].name) + e->tag_threads[tag]++;
}

struct fg_engine_thread *fg_thread_join(struct fg_engine *e, int process)
{
    struct fg_engine_thread *row = fg_thread_self(e);
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
        row->seen_now = row->seen_at = 0;
        row->locking = 0;
        row->sleeping = 0;
        row->rank = rank(e, process);
        if (e->threads <= i)
            e->threads = i + 1;
        row->state = FG_THREAD_RUNS;
        e->joined++;
        mine.nonce = e->nonce;
        mine.row = (int32_t)i + 1;
        return row;
    }
    return NULL;
}

void fg_threads_process_gone(int process)
{
    struct fg_engine *e = &fg_state->engine;
    for (uint32_t i = 0; i < e->threads; i++)
        if (e->thread[i].state != FG_THREAD_FREE && e->thread[i].process == process + 1)
            e->thread[i].state = FG_THREAD_FREE;
}

/* ---- waking and parking ---------------------------------------------------------------------- */

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

static uint64_t real_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Several waiters may look one right after the other: what was asleep both times may only have
 * waited for a processor of a busy machine in between. */
void fg_threads_park_idle(struct fg_engine *e)
{
    for (uint32_t i = 0; i < e->threads; i++) {
        struct fg_engine_thread *row = &e->thread[i];
        bool gone;
        if (row->state != FG_THREAD_RUNS)
            continue;
        uint64_t switches = sleeps(row, &gone), at = real_now();
        if (gone)
            row->state = FG_THREAD_FREE;
        if (gone || row->locking)
            continue;
        if (!switches || switches != row->seen_switches || row->now != row->seen_now)
            row->seen_at = at;
        else if (at - row->seen_at > ASLEEP_NS)
            row->state = FG_THREAD_PARKED;
        row->seen_switches = switches;
        row->seen_now = row->now;
    }
}

void fg_thread_wake(struct fg_engine_thread *row)
{
    row->state = FG_THREAD_RUNS;
    if (row->sleeping)
        fg_futex(&row->state, FUTEX_WAKE, INT_MAX, NULL);
}

struct fg_engine_thread *fg_thread_next_to_act(struct fg_engine *e)
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

void fg_threads_notify(uint32_t state, uint32_t ref, uint64_t seq)
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
            fg_thread_wake(row);
        } else { /* it acts when it is its turn */
            row->need = row->now;
            row->state = FG_THREAD_TIME;
        }
        e->woken++;
    }
}

void fg_threads_host_due(int process)
{
    struct fg_engine *e = &fg_state->engine;
    e->host_epoch++;
    fg_futex(&e->host_epoch, FUTEX_WAKE, INT_MAX, NULL);
    fg_threads_notify(FG_THREAD_HOST, (uint32_t)process, 0);
}
