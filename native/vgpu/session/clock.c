/* The only clock of the library. With -DVG_VIRTUAL_CLOCK (a test build, never shipped) it is the
 * fake GPU's, so that minutes of limited work pass in a second. */
#include <errno.h>
#include <time.h>

#include "vgpu.h"

#ifdef VG_VIRTUAL_CLOCK
static uint64_t (*now_ns)(void);
static void (*sleep_until_ns)(uint64_t);

static void find_clock(void)
{
    now_ns = (uint64_t (*)(void))vg_driver_symbol("fakegpu_now_ns");
    sleep_until_ns = (void (*)(uint64_t))vg_driver_symbol("fakegpu_sleep_until_ns");
    if (!now_ns || !sleep_until_ns) {
        vg_say("this test build needs the fake GPU's clock");
        __builtin_trap();
    }
}

uint64_t vg_now_ns(void)
{
    if (unlikely(!now_ns))
        find_clock();
    return now_ns();
}

void vg_sleep_until_ns(uint64_t when)
{
    if (unlikely(!sleep_until_ns))
        find_clock();
    sleep_until_ns(when);
}
#else
uint64_t vg_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void vg_sleep_until_ns(uint64_t when)
{
    struct timespec until = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};
    int kept = errno;
    /* The application's signal handlers run, and the sleep goes on afterwards. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    errno = kept;
}
#endif
