/* The oracle of fakegpu.h: what is true of memory, per tag and GPU, taken inside the lock. */
#include <errno.h>
#include <string.h>

#include "engine/executed.h"
#include "state/ledger.h"
#include "state/process_table.h"

enum oracle { USED, PEAK, OVER, OVER_BYTES };
static uint64_t ask(const char *name, int gpu, enum oracle what)
{
    uint64_t answer = 0;
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return 0;
    fg_lock();
    fg_sweep_dead();
    int index = fg_find_tag(name, false);
    if (index >= 0) {
        struct fg_tag *tag = &fg_state->tag[index];
        answer = what == USED   ? tag->used[gpu]
                 : what == PEAK ? tag->peak[gpu]
                 : what == OVER ? tag->over[gpu]
                                : tag->over_bytes[gpu];
    }
    fg_unlock();
    return answer;
}

uint64_t fakegpu_used(const char *tag, int gpu)
{
    return ask(tag, gpu, USED);
}
uint64_t fakegpu_peak(const char *tag, int gpu)
{
    return ask(tag, gpu, PEAK);
}
uint64_t fakegpu_over(const char *tag, int gpu)
{
    return ask(tag, gpu, OVER);
}
uint64_t fakegpu_over_bytes(const char *tag, int gpu)
{
    return ask(tag, gpu, OVER_BYTES);
}

uint64_t fakegpu_managed_host(const char *name)
{
    uint64_t bytes = 0;
    if (!fg_attach())
        return 0;
    fg_lock();
    fg_sweep_dead();
    int tag = fg_find_tag(name, false);
    for (int i = 0; tag >= 0 && i < fg_state->processes; i++)
        if (fg_state->process[i].pid && fg_state->process[i].tag == tag)
            bytes += fg_state->process[i].managed_host;
    fg_unlock();
    return bytes;
}

int fakegpu_uuid(int gpu, uint8_t out[16])
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return -ENODEV;
    memcpy(out, fg_state->gpu[gpu].uuid, 16);
    return 0;
}

uint64_t fakegpu_total(int gpu)
{
    return fg_attach() && gpu >= 0 && gpu < fg_state->gpus ? fg_state->gpu[gpu].profile.memory_bytes
                                                           : 0;
}

void fakegpu_watch(const char *name, int gpu, uint64_t limit)
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return;
    fg_lock();
    int index = fg_find_tag(name, true);
    if (index >= 0) {
        struct fg_tag *tag = &fg_state->tag[index];
        tag->watched[gpu] = limit;
        tag->over[gpu] = tag->over_bytes[gpu] = 0;
    }
    fg_unlock();
}

void fakegpu_reset(const char *name)
{
    if (!fg_attach())
        return;
    fg_lock();
    fg_sweep_dead();
    int index = fg_find_tag(name, false);
    for (int gpu = 0; index >= 0 && gpu < fg_state->gpus; gpu++) {
        struct fg_tag *tag = &fg_state->tag[index];
        tag->peak[gpu] = tag->used[gpu];
        tag->over[gpu] = tag->over_bytes[gpu] = 0;
    }
    fg_unlock();
    fg_engine_reset_tag(name);
}

uint64_t fakegpu_sweep(void)
{
    if (!fg_attach())
        return 0;
    fg_lock();
    uint64_t bytes = fg_sweep_dead();
    fg_unlock();
    return bytes;
}

/* ---- was a refusal false? -------------------------------------------------------------------- */

void fakegpu_ask(int gpu, uint64_t bytes)
{
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        const struct fg_tag *tag = &fg_state->tag[p->tag];
        p->asked = bytes;
        p->asked_gpu = gpu;
        p->asked_fits = tag->used[gpu] + bytes <= tag->watched[gpu];
    }
    fg_unlock();
}

int fakegpu_answered(void)
{
    fg_lock();
    int row = fg_own_process_locked(), fits = 0;
    if (row >= 0) {
        fits = fg_state->process[row].asked_fits != 0;
        fg_state->process[row].asked = 0;
    }
    fg_unlock();
    return fits;
}
