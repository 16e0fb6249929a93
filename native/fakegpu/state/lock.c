/* The lock of the state, and what makes it good again where its owner died. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "state/ledger.h"
#include "state/state.h"

/* Never waits for long at once: where the kernel wakes one waiter because the owner died, and that
 * waiter is killed before it looks, nobody wakes the others, though the mutex is free (seen on
 * 6.18). */
int fg_lock_robust(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_trylock(mutex);
    while (result == EBUSY || result == ETIMEDOUT) {
        struct timespec until;
#ifdef __SANITIZE_THREAD__ /* it does not know that a timed lock may find the owner dead */
        usleep(100);
        result = pthread_mutex_trylock(mutex);
        continue;
#endif
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        result = pthread_mutex_timedlock(mutex, &until);
    }
    return result;
}

void fg_lock(void)
{
    int result = fg_lock_robust(&fg_state->mutex);
    if (result == EOWNERDEAD) {
        /* Its owner died halfway: rows are whole, sums may not be. */
        fg_totals_recount();
        pthread_mutex_consistent(&fg_state->mutex);
    } else if (result) {
        fprintf(stderr, "fakegpu: the state's lock is broken: %s\n", strerror(result));
        abort();
    }
}

void fg_unlock(void)
{
    pthread_mutex_unlock(&fg_state->mutex);
}
