/* Streams of the timing engine. Each call locks, pays its host time, changes the state, and
 * unlocks. */
#include "engine/streams.h"

#include "clock/clock.h"
#include "engine/engine.h"
#include "simulation/simulate.h"
#include "state/state.h"

void fg_engine_wait_locked(struct fg_engine *e, int index, uint64_t seq)
{
    struct fg_engine_stream *stream = &e->stream[index];
    while (stream->head < seq) {
        if (e->virtual_clock) {
            fg_clock_block(FG_THREAD_OP, (uint32_t)index, seq);
            continue;
        }
        fg_clock_run();
        if (stream->head >= seq)
            break;
        uint64_t least = fg_engine_least_ns(index, seq, 0);
        fg_clock_nap(least > FG_SHORTEST_NAP ? least : FG_SHORTEST_NAP);
    }
}

void fg_engine_look(struct fg_engine *e)
{
    uint64_t now = fg_clock_stamp(e->call_ns);
    if (e->virtual_clock && e->t < now)
        fg_clock_block(FG_THREAD_TIME, 0, now);
    else
        fg_clock_run();
}

int fg_engine_stream_open(int context, unsigned flags, int priority)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return -1;
    fg_clock_pay(e->call_ns);
    int found = -1;
    for (int i = 0; i < FG_ENGINE_STREAMS && found < 0; i++)
        if (!e->stream[i].context)
            found = i;
    if (found >= 0) {
        struct fg_engine_stream *stream = &e->stream[found];
        if (e->streams <= (uint32_t)found)
            e->streams = (uint32_t)found + 1;
        stream->head = stream->tail;
        stream->priority = priority;
        stream->flags = flags;
        stream->closing = 0;
        if (flags & FG_STREAM_LEGACY)
            e->context[context].legacy = found + 1;
        stream->context = context + 1;
    }
    fg_engine_unlock();
    return found;
}

void fg_engine_stream_close(int index)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_pay(e->call_ns);
    e->stream[index].closing = 1;
    if (e->stream[index].head == e->stream[index].tail)
        fg_engine_stream_clear(index);
    fg_engine_unlock();
}

uint64_t fg_engine_stream_queue(int index, const struct fg_op *op)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return 0;
    struct fg_engine_stream *stream = &e->stream[index];
    uint64_t stamp = fg_clock_stamp(op->kind == FG_OP_MARK ? e->call_ns : e->launch_ns);
    /* A graph of many kernels takes their room, but an empty stream has room for any. */
    while (stream->tail - stream->head >= FG_ENGINE_DEPTH ||
           (stream->tail != stream->head && stream->kernels + op->count > FG_ENGINE_DEPTH)) {
        fg_engine_wait_locked(e, index, stream->head + 1);
        stamp = fg_clock_stamp(1);
    }
    struct fg_op *slot = &stream->ring[stream->tail % FG_ENGINE_DEPTH];
    *slot = *op;
    slot->stamp = stamp;
    slot->begun = slot->ends = 0;
    slot->order = ++e->context[stream->context - 1].order;
    if (!slot->share)
        slot->share = FG_WHOLE;
    uint64_t left = op->kind == FG_OP_MARK ? e->event_ns : op->left;
    left = e->scale == FG_WHOLE ? left << 16 : left * e->scale;
    slot->left = left ? left : FG_WHOLE; /* nothing takes no time at all */
    if (op->kind == FG_OP_KERNEL)
        slot->ref_seq = e->scale == FG_WHOLE ? op->ref_seq << 16 : op->ref_seq * e->scale;
    e->active[index / 64] |= 1ull << index % 64;
    stream->kernels = stream->tail == stream->head ? op->count : stream->kernels + op->count;
    uint64_t seq = ++stream->tail;
    if (op->kind == FG_OP_HOST)
        e->host_epoch++;
    fg_engine_unlock();
    return seq;
}

uint64_t fg_engine_stream_tail(int index)
{
    return fg_state ? fg_state->engine.stream[index].tail : 0;
}

bool fg_engine_stream_done(int index, uint64_t seq)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return true;
    if (e->stream[index].head < seq)
        fg_engine_look(e);
    bool done = e->stream[index].head >= seq;
    fg_engine_unlock();
    return done;
}

void fg_engine_stream_wait(int index, uint64_t seq)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_stamp(e->call_ns);
    fg_engine_wait_locked(e, index, seq);
    fg_engine_unlock();
}
