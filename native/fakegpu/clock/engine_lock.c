#define _GNU_SOURCE
#include "clock/engine_lock.h"

#include <errno.h>
#include <time.h>

#include "simulation/threads.h"
#include "state/state.h"

uint64_t fg_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

struct fg_engine *fg_engine_lock(void)
{
    if (!fg_state)
        return NULL;
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_thread *row = fg_thread_joined_row(e);
    if (row)
        row->locking = 1;
    if (fg_lock_robust(&e->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&e->lock);
    if (row)
        row->locking = 0;
    return e;
}

void fg_engine_unlock(void)
{
    pthread_mutex_unlock(&fg_state->engine.lock);
}
