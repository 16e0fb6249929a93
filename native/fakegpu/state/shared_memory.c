/* Device memory that several processes hold: exported handles, IPC. It stays charged to the tag
 * that made it until the last holder, or the last copy of a descriptor, lets go. */
#include <errno.h>
#include <string.h>

#include "state/holders.h"
#include "state/ledger.h"
#include "state/process_table.h"

void fg_shared_exported(int index, uint64_t id)
{
    fg_lock();
    if (fg_state->shared[index].gpu >= 0 && fg_state->shared[index].id == id)
        fg_state->shared[index].exported = 1;
    fg_unlock();
}

uint64_t fg_new_id(void)
{
    fg_lock();
    uint64_t id = fg_state->next_id++;
    fg_unlock();
    return id;
}

int fg_shared_make(int gpu, uint64_t bytes, uint64_t *id)
{
    fg_lock();
    int row = fg_own_process_locked(), index = -ENOMEM;
    for (int i = 0; i < FG_SHARED && row >= 0; i++)
        if (i >= fg_state->shareds || fg_state->shared[i].gpu < 0) {
            index = i;
            break;
        }
    if (row >= 0 && index >= 0) {
        struct fg_shared *shared = &fg_state->shared[index];
        shared->gpu = -1;
        if (index == fg_state->shareds)
            fg_state->shareds++;
        memset(shared->holder, 0, sizeof shared->holder);
        shared->tag = fg_state->process[row].tag;
        shared->bytes = bytes;
        shared->exported = 0;
        shared->id = *id = fg_state->next_id++;
        shared->holder[0] = (struct fg_holder){row, 1};
        /* Sums stay: it only moves from the process's row to its own. */
        fg_state->process[row].used[gpu] -= bytes;
        shared->gpu = gpu;
    }
    fg_unlock();
    return index;
}

int fg_shared_hold(int index, uint64_t id)
{
    if (index < 0 || index >= FG_SHARED)
        return -ENOENT;
    fg_lock();
    int row = fg_own_process_locked(), result = -ENOENT;
    struct fg_shared *shared = &fg_state->shared[index];
    if (row >= 0 && index < fg_state->shareds && shared->gpu >= 0 && shared->id == id) {
        struct fg_holder *holder = fg_holder_of(shared, row);
        for (int i = 0; i < FG_HOLDERS && !holder; i++)
            if (!shared->holder[i].count) {
                holder = &shared->holder[i];
                holder->process = row;
            }
        result = -EMFILE;
        if (holder) {
            holder->count++;
            result = 0;
        }
    }
    fg_unlock();
    return result;
}

void fg_shared_drop(int index, uint64_t id)
{
    if (index < 0 || index >= FG_SHARED)
        return;
    fg_lock();
    int row = fg_own_process_locked();
    struct fg_shared *shared = &fg_state->shared[index];
    struct fg_holder *holder =
        row < 0 || shared->gpu < 0 || shared->id != id ? NULL : fg_holder_of(shared, row);
    if (holder) {
        holder->count--;
        fg_shared_end_if_unheld(shared);
    }
    fg_unlock();
}
