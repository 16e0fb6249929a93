/* Utilisation as NVML reads it: the samples that were taken, with the noise that is asked for. */
#include "clock/clock.h"
#include "engine/engine.h"
#include "simulation/random.h"
#include "state/state.h"

static uint32_t noisy(const struct fg_engine *e, uint32_t value, uint64_t key)
{
    if (!value || !e->noise_pct)
        return value;
    uint32_t span = e->noise_pct * 10000;
    int64_t noisy = (int64_t)value + (int64_t)(fg_mixed(e->seed ^ key) % (2 * span + 1)) - span;
    return noisy < 0 ? 0 : noisy > 1000000 ? 1000000 : (uint32_t)noisy;
}

int fg_engine_samples(int number, uint64_t since_ns, struct fg_sample *out, int room)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return 0;
    fg_clock_run();
    struct fg_engine_gpu *gpu = &e->gpu[number];
    uint64_t first = gpu->samples > FG_SAMPLES ? gpu->samples - FG_SAMPLES : 0;
    int count = 0;
    for (uint64_t i = first; i < gpu->samples && count < room; i++) {
        const struct fg_sample *sample = &gpu->ring[i % FG_SAMPLES];
        if (sample->end_ns <= since_ns || sample->end_ns + e->util_late_ns > e->t)
            continue;
        struct fg_sample *copy = &out[count++];
        *copy = *sample;
        copy->busy_ppm = noisy(e, copy->busy_ppm, copy->end_ns);
        for (uint32_t r = 0; r < copy->rows; r++)
            copy->row[r].sm_ppm =
                noisy(e, copy->row[r].sm_ppm, copy->end_ns * 31 + (uint64_t)copy->row[r].process);
    }
    fg_engine_unlock();
    return count;
}

void fg_engine_totals(int number, struct fg_totals *out)
{
    struct fg_engine *e = fg_engine_lock();
    *out = (struct fg_totals){0};
    if (!e)
        return;
    fg_clock_run();
    *out = e->gpu[number].totals;
    fg_engine_unlock();
}
