/* GPU time that each tag's kernels really had, and how many ended: the oracle's part of the
 * engine. */
#include "engine/executed.h"

#include <string.h>

#include "clock/clock.h"
#include "state/state.h"

void fg_engine_reset_tag(const char *tag)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_run();
    for (int i = 0; i < fg_state->tags; i++)
        for (uint32_t g = 0; g < e->gpus && !strcmp(fg_state->tag[i].name, tag); g++)
            e->gpu[g].work[i] = e->gpu[g].kernels[i] = 0;
    fg_engine_unlock();
}

static uint64_t of_tag(const char *name, int gpu, bool kernels)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return 0;
    uint64_t sum = 0;
    fg_clock_run();
    for (int i = 0; i < fg_state->tags; i++)
        if (!strcmp(fg_state->tag[i].name, name))
            sum = kernels ? e->gpu[gpu].kernels[i] : e->gpu[gpu].work[i] >> 16;
    fg_engine_unlock();
    return sum;
}

uint64_t fakegpu_work_ns(const char *tag, int gpu)
{
    return of_tag(tag, gpu, false);
}

uint64_t fakegpu_kernels(const char *tag, int gpu)
{
    return of_tag(tag, gpu, true);
}
