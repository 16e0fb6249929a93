#include "state/mig.h"

const struct fg_mig *fg_mig_of(int gpu, const struct fg_process *process)
{
    const struct fg_gpu *its = &fg_state->gpu[gpu];
    for (uint32_t i = 0; process->gi[gpu] && i < its->migs; i++)
        if (its->mig[i].gi + 1 == process->gi[gpu] && its->mig[i].ci + 1 == process->ci[gpu])
            return &its->mig[i];
    return NULL;
}

uint64_t fg_mig_used(int gpu, uint32_t gi)
{
    uint64_t bytes = 0;
    for (int i = 0; i < fg_state->processes; i++)
        if (fg_state->process[i].gi[gpu] == gi + 1)
            bytes += fg_state->process[i].used[gpu];
    return bytes;
}

unsigned fg_mig_minor(int gpu, uint32_t gi, int ci)
{
    /* 1 and 2 are a driver's mig/config and mig/monitor. */
    return 3 + 9 * (15 * (unsigned)gpu + gi) + (unsigned)(ci + 1);
}
