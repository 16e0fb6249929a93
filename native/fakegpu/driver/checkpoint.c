/* Checkpoints of processes, by another one: locked, its calls wait; checkpointed, what it holds of
 * the GPUs lies in its host memory, and NVML lists it no more; restored, it takes as much again.
 *
 * As cuda.h says, with the restrictions that NVIDIA tells of cuda-checkpoint: no managed memory, no
 * memory shared between processes, not under MPS. The work that was launched is not waited for. */
#include <string.h>

#include "clock/clock.h"
#include "driver/entries.h"
#include "state/ledger.h"
#include "state/process_table.h"

/* Locked: the row of a process that has initialised the driver; NULL: none. */
static struct fg_process *of(int pid)
{
    fg_sweep_dead();
    for (int i = 0; i < fg_state->processes; i++)
        if (fg_state->process[i].pid == pid && fg_state->process[i].initialized)
            return &fg_state->process[i];
    return NULL;
}

static CUresult move(int pid, CUprocessState from, CUprocessState to)
{
    fg_lock();
    struct fg_process *its = pid > 0 ? of(pid) : NULL;
    CUresult result = !its                      ? CUDA_ERROR_INVALID_VALUE
                      : fg_state->engine.mps    ? CUDA_ERROR_NOT_SUPPORTED
                      : its->checkpoint != from ? CUDA_ERROR_ILLEGAL_STATE
                                                : CUDA_SUCCESS;
    if (!result)
        its->checkpoint = to;
    fg_unlock();
    return result;
}

CUresult FG(cuCheckpointProcessGetState)(int pid, CUprocessState *state)
{
    fg_lock();
    struct fg_process *its = pid > 0 && state ? of(pid) : NULL;
    if (its)
        *state = (CUprocessState)its->checkpoint;
    fg_unlock();
    return its ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuCheckpointProcessLock)(int pid, CUcheckpointLockArgs *args)
{
    (void)args;
    return move(pid, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED);
}

CUresult FG(cuCheckpointProcessUnlock)(int pid, CUcheckpointUnlockArgs *args)
{
    (void)args;
    return move(pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
}

static bool shares(const struct fg_process *its)
{
    int process = (int)(its - fg_state->process);
    for (int i = 0; i < fg_state->shareds; i++)
        for (int h = 0; fg_state->shared[i].gpu >= 0 && h < FG_HOLDERS; h++)
            if (fg_state->shared[i].holder[h].count &&
                fg_state->shared[i].holder[h].process == process)
                return true;
    return false;
}

CUresult FG(cuCheckpointProcessCheckpoint)(int pid, CUcheckpointCheckpointArgs *args)
{
    static const uint64_t none[FG_GPUS];
    CUresult result = CUDA_SUCCESS;
    (void)args;
    fg_lock();
    struct fg_process *its = pid > 0 ? of(pid) : NULL;
    if (!its)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (its->checkpoint != CU_PROCESS_STATE_LOCKED)
        result = CUDA_ERROR_ILLEGAL_STATE;
    else if (memcmp(its->managed, none, sizeof none) || its->managed_host || shares(its))
        result = CUDA_ERROR_NOT_SUPPORTED;
    else {
        memcpy(its->saved, its->used, sizeof its->saved);
        memcpy(its->saved_contexts, its->contexts, sizeof its->saved_contexts);
        memset(its->used, 0, sizeof its->used);
        memset(its->contexts, 0, sizeof its->contexts);
        its->checkpoint = CU_PROCESS_STATE_CHECKPOINTED;
        fg_totals_recount();
    }
    fg_unlock();
    return result;
}

CUresult FG(cuCheckpointProcessRestore)(int pid, CUcheckpointRestoreArgs *args)
{
    CUresult result = CUDA_SUCCESS;
    (void)args;
    fg_lock();
    struct fg_process *its = pid > 0 ? of(pid) : NULL;
    if (!its)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (its->checkpoint != CU_PROCESS_STATE_CHECKPOINTED)
        result = CUDA_ERROR_ILLEGAL_STATE;
    for (int gpu = 0; !result && gpu < fg_state->gpus; gpu++)
        if (fg_state->gpu[gpu].used + its->saved[gpu] > fg_state->gpu[gpu].profile.memory_bytes)
            result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        memcpy(its->used, its->saved, sizeof its->used);
        memcpy(its->contexts, its->saved_contexts, sizeof its->contexts);
        memset(its->saved, 0, sizeof its->saved);
        its->checkpoint = CU_PROCESS_STATE_LOCKED;
        fg_totals_recount();
    }
    fg_unlock();
    return result;
}
