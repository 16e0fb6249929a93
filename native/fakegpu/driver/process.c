/* A process and the fake driver: cuInit, version, and what stands before each entry point
 * (counting, refusal before cuInit and after fork, faults). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "clock/clock.h"
#include "controls/faults.h"
#include "driver/entries.h"
#include "state/process_table.h"

__thread bool fg_per_thread;
pthread_mutex_t fg_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
int fg_presented = CUDA_VERSION;
int fg_slow = 1;
static _Atomic uint32_t running;
_Atomic uint32_t *fg_checkpoint = &running;
static uint64_t fault_epoch_seen;
static bool initialized, forked;

/* ---- before every call ----------------------------------------------------------------------- */

CUresult fg_initialized(void)
{
    return initialized && !forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult fg_enter_slow(unsigned symbol, bool early)
{
    if (!fg_attach())
        return early ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    atomic_fetch_add_explicit(&fg_state->calls[symbol], 1, memory_order_relaxed);
    bool armed = fg_fault_load(&fault_epoch_seen);
    if (armed) {
        CUresult injected = (CUresult)fg_fault_call(fg_symbol_names[symbol]);
        if (injected)
            return injected;
    }
    if (early)
        return CUDA_SUCCESS;
    CUresult result = fg_initialized();
    if (!result && !armed)
        __atomic_store_n(&fg_slow, 0, __ATOMIC_RELAXED);
    return result;
}

/* The driver cannot be used in a child of a process that had initialised it. A child of one that
 * had only loaded it starts anew. */
static void after_fork(void)
{
    if (initialized)
        forked = true;
    fg_slow = 1;
    fg_checkpoint = &running; /* that of its parent is none of its */
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&fg_mutex, &recursive);
}

__attribute__((constructor)) static void loaded(void)
{
    const char *version = getenv("FAKEGPU_CUDA");
    if (version && *version)
        fg_presented = atoi(version);
    pthread_atfork(NULL, NULL, after_fork);
}

/* What the process holds must stay as it is while it is locked: its calls wait. */
void fg_wait_unlocked(void)
{
    while (atomic_load_explicit(fg_checkpoint, memory_order_relaxed))
        usleep(1000);
}

CUresult FG(cuInit)(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!fg_attach())
        return CUDA_ERROR_NO_DEVICE;
    int devices;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fg_mutex);
    if (!initialized) {
        int row = fg_own_process();
        fg_read_visible_devices(&devices);
        if (row < 0 || !devices) {
            result = row < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_NO_DEVICE;
        } else {
            fg_lock();
            fg_state->process[row].initialized = 1;
            fg_unlock();
            fg_checkpoint = &fg_state->process[row].checkpoint;
            initialized = true;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    if (!result)
        fg_clock_spend(0); /* this thread joins the clock */
    return result;
}

CUresult FG(cuDriverGetVersion)(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = fg_presented;
    return CUDA_SUCCESS;
}
