/* Who holds how many bytes of which GPU.
 *
 * Exact under any number of racing processes because each change, the refusal at the GPU's end, and
 * the judgement against a watched limit happen in one hold of the lock. A death inside it is made
 * good by fg_totals_recount(): rows are changed by one store each, sums are computed from rows. */
#include "state/ledger.h"

#include <errno.h>
#include <stdio.h>

#include "state/mig.h"
#include "state/process_table.h"

/* An increase has been written down: high-water marks and the watched limit. */
static void judge(int gpu, struct fg_tag *tag)
{
    struct fg_gpu *g = &fg_state->gpu[gpu];
    uint64_t watched = tag->watched[gpu];
    if (watched && tag->used[gpu] > watched) {
        fg_sweep_dead();
        if (tag->used[gpu] > watched) {
            uint64_t over = tag->used[gpu] - watched;
            tag->over[gpu]++;
            if (over > tag->over_bytes[gpu])
                tag->over_bytes[gpu] = over;
        }
    }
    for (int i = 0; i < fg_state->processes; i++) {
        struct fg_process *p = &fg_state->process[i];
        if (p->asked && p->asked_gpu == gpu && &fg_state->tag[p->tag] == tag &&
            tag->used[gpu] + p->asked > watched)
            p->asked_fits = 0;
    }
    if (tag->used[gpu] > tag->peak[gpu])
        tag->peak[gpu] = tag->used[gpu];
    if (g->used > g->peak)
        g->peak = g->used;
}

static bool room(int gpu, const struct fg_process *process, uint64_t bytes, bool managed)
{
    const struct fg_gpu *g = &fg_state->gpu[gpu];
    const struct fg_tag *tag = &fg_state->tag[process->tag];
    const struct fg_mig *mig = fg_mig_of(gpu, process);
    if (bytes > g->profile.memory_bytes || g->used > g->profile.memory_bytes - bytes)
        return false;
    if (mig && fg_mig_used(gpu, mig->gi) + bytes > mig->memory_bytes)
        return false;
    return managed || !tag->hard_limit[gpu] ||
           fg_tag_limited_bytes(gpu, tag) + bytes <= tag->hard_limit[gpu];
}

static bool make_room(int gpu, const struct fg_process *p, uint64_t bytes, bool managed)
{
    return room(gpu, p, bytes, managed) || (fg_sweep_dead() && room(gpu, p, bytes, managed));
}

static int charge(int gpu, uint64_t bytes, bool managed)
{
    if (!bytes)
        return 0;
    fg_lock();
    int row = fg_own_process_locked(), result = -ENOMEM;
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        struct fg_tag *tag = &fg_state->tag[p->tag];
        if (p->checkpoint == FG_CHECKPOINTED) { /* a call that was on its way when it was locked */
            p->saved[gpu] += bytes;
            result = 0;
        } else if (make_room(gpu, p, bytes, managed)) {
            p->used[gpu] += bytes;
            p->managed[gpu] += managed ? bytes : 0;
            tag->used[gpu] += bytes;
            fg_state->gpu[gpu].used += bytes;
            judge(gpu, tag);
            result = 0;
        }
    }
    fg_unlock();
    return result;
}

int fg_charge(int gpu, uint64_t bytes)
{
    return charge(gpu, bytes, false);
}
int fg_charge_managed(int gpu, uint64_t bytes)
{
    return charge(gpu, bytes, true);
}

void fg_uncharge_managed(int gpu, uint64_t bytes)
{
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0)
        fg_state->process[row].managed[gpu] -= bytes;
    fg_unlock();
    fg_uncharge(gpu, bytes);
}

void fg_uncharge(int gpu, uint64_t bytes)
{
    if (!bytes)
        return;
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        if (p->checkpoint == FG_CHECKPOINTED) {
            p->saved[gpu] -= bytes < p->saved[gpu] ? bytes : p->saved[gpu];
            bytes = 0;
        }
        if (bytes > p->used[gpu]) { /* a bug of the fake: say so, never wrap around */
            fprintf(stderr, "fakegpu: %llu bytes given back, %llu held\n",
                    (unsigned long long)bytes, (unsigned long long)p->used[gpu]);
            bytes = p->used[gpu];
        }
        p->used[gpu] -= bytes;
        fg_state->tag[p->tag].used[gpu] -= bytes;
        fg_state->gpu[gpu].used -= bytes;
    }
    fg_unlock();
}
