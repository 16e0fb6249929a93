/* Host functions that streams call: which is due, and that it has returned. */
#include "clock/clock.h"
#include "engine/engine.h"
#include "simulation/simulate.h"
#include "simulation/threads.h"
#include "state/state.h"

/* The first host function of a process that is due; else in *when the least time until one is. */
static bool find_due(struct fg_engine *e, int process, int *found, uint64_t *when)
{
    *when = FG_NEVER;
    for (int i = 0; i < (int)e->streams; i++) {
        struct fg_engine_stream *stream = &e->stream[i];
        if (!stream->context || e->context[stream->context - 1].process != process + 1)
            continue;
        for (uint64_t seq = stream->head; seq < stream->tail; seq++) {
            const struct fg_op *op = &stream->ring[seq % FG_ENGINE_DEPTH];
            if (op->kind != FG_OP_HOST)
                continue;
            *found = i;
            if (op->begun && !op->ends)
                return true;
            uint64_t least = fg_engine_least_ns(i, seq, 0);
            *when = least < *when ? least : *when;
            break;
        }
    }
    return false;
}

bool fg_engine_host_next(int process, int *stream, uint32_t *ref)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return false;
    uint64_t when;
    fg_clock_run();
    bool due = find_due(e, process, stream, &when);
    if (!due && e->virtual_clock) {
        fg_clock_block(FG_THREAD_HOST, (uint32_t)process, 0);
        due = find_due(e, process, stream, &when);
    } else if (!due) {
        fg_clock_nap(when > FG_SHORTEST_NAP ? when : FG_SHORTEST_NAP);
    }
    if (due)
        *ref = e->stream[*stream].ring[e->stream[*stream].head % FG_ENGINE_DEPTH].ref;
    fg_engine_unlock();
    return due;
}

void fg_engine_host_returned(int index)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    struct fg_engine_stream *stream = &e->stream[index];
    fg_clock_stamp(e->call_ns);
    if (stream->head < stream->tail)
        stream->ring[stream->head % FG_ENGINE_DEPTH].ends = 1;
    fg_clock_run();
    fg_threads_host_due(-1); /* who sleeps by the wall clock looks again */
    fg_engine_unlock();
}
