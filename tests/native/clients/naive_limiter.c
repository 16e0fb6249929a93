/* The control: a limiter that polls utilisation, as widespread ones are described (see
 * docs/concepts/compute-shares.md). Built as a library for LD_PRELOAD; the limit is NAIVE_PERCENT.
 *
 * A launch costs the blocks of its grid, whatever they do. It waits only while the pool is below
 * zero, and is debited after that. A thread looks at the process's utilisation every 120 ms, a mean
 * over the last second, and makes the pool's refill larger or smaller by a step. It must fail on
 * the fake GPU as it does on real ones, or the fake would be kinder than a GPU. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern uint64_t fakegpu_now_ns(void);
extern void fakegpu_sleep_until_ns(uint64_t when);

#define SMS 132L
#define MOST (SMS * 2048 * 32)
#define EXPORT __attribute__((visibility("default")))

static _Atomic long pool, refill;
static long limit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static long utilisation(nvmlDevice_t device, uint64_t now_us)
{
    nvmlProcessUtilizationSample_t samples[64];
    unsigned count = 64;
    if (nvmlDeviceGetProcessUtilization(device, samples, &count,
                                        now_us > 1000000 ? now_us - 1000000 : 0))
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (samples[i].pid == (unsigned)getpid())
            return samples[i].smUtil;
    return 0;
}

static void *watch(void *unused)
{
    (void)unused;
    nvmlDevice_t device;
    if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device))
        abort();
    for (;;) {
        uint64_t now = fakegpu_now_ns();
        fakegpu_sleep_until_ns(now + 120000000);
        long seen = utilisation(device, (now + 120000000) / 1000), off = labs(limit - seen);
        long step = SMS * SMS * 2048 * (off < 5 ? 5 : off) / 2560;
        long share = atomic_load(&refill) + (seen <= limit ? step : -step);
        atomic_store(&refill, share < 0 ? 0 : share > MOST ? MOST : share);
        long filled = atomic_load(&pool) + atomic_load(&refill);
        atomic_store(&pool, filled > MOST ? MOST : filled);
    }
    return NULL;
}

static void begin(void)
{
    pthread_t thread;
    limit = atol(getenv("NAIVE_PERCENT"));
    atomic_store(&pool, MOST);
    pthread_create(&thread, NULL, watch, NULL);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **parameters, void **extra)
{
    static __typeof__(&cuLaunchKernel) real;
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "cuLaunchKernel");
    pthread_once(&once, begin);
    while (atomic_load(&pool) < 0)
        fakegpu_sleep_until_ns(fakegpu_now_ns() + 10000000);
    atomic_fetch_sub(&pool, (long)gx * gy * gz);
    return real(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
