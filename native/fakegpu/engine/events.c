/* Events of the timing engine. */
#include "clock/clock.h"
#include "engine/engine.h"
#include "engine/streams.h"
#include "simulation/simulate.h"
#include "state/state.h"

int fg_engine_event_open(int process)
{
    /* where the last search ended */
    static __thread uint32_t from;
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return -1;
    fg_clock_pay(e->call_ns);
    int found = -1;
    for (uint32_t i = 0; i < FG_ENGINE_EVENTS && found < 0; i++) {
        uint32_t at = (from + i) % FG_ENGINE_EVENTS;
        if (!e->event[at].process)
            found = (int)at;
    }
    if (found >= 0) {
        struct fg_engine_event *event = &e->event[found];
        from = (uint32_t)found + 1;
        event->done = event->recorded; /* never reset: a record that is still queued is not ours */
        event->first = event->recorded;
        event->holders = 1;
        if (e->events <= (uint32_t)found)
            e->events = (uint32_t)found + 1;
        event->process = process + 1;
    }
    fg_engine_unlock();
    return found;
}

void fg_engine_event_hold(int index)
{
    if (fg_engine_lock()) {
        fg_state->engine.event[index].holders++;
        fg_engine_unlock();
    }
}

void fg_engine_event_close(int index)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_pay(e->call_ns);
    if (!--e->event[index].holders)
        e->event[index].process = 0;
    fg_engine_unlock();
}

uint64_t fg_engine_event_record(int index, int stream)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return 0;
    uint64_t record = ++e->event[index].recorded;
    fg_engine_unlock();
    struct fg_op op = {.kind = FG_OP_MARK, .ref = (uint32_t)index, .ref_seq = record};
    uint64_t seq = fg_engine_stream_queue(stream, &op);
    fg_engine_lock();
    if (e->event[index].recorded == record) {
        e->event[index].stream = stream;
        e->event[index].seq = seq;
    }
    fg_engine_unlock();
    return record;
}

uint64_t fg_engine_event_recorded(int index)
{
    if (!fg_state)
        return 0;
    const struct fg_engine_event *event = &fg_state->engine.event[index];
    return event->recorded > event->first ? event->recorded : 0;
}

bool fg_engine_event_done(int index)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return true;
    if (e->event[index].done < e->event[index].recorded)
        fg_engine_look(e);
    bool done = e->event[index].done >= e->event[index].recorded;
    fg_engine_unlock();
    return done;
}

void fg_engine_event_wait(int index)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_stamp(e->call_ns);
    struct fg_engine_event *event = &e->event[index];
    uint64_t record = event->recorded;
    while (event->done < record) {
        if (e->virtual_clock) {
            fg_clock_block(FG_THREAD_EVENT, (uint32_t)index, record);
            continue;
        }
        fg_clock_run();
        if (event->done >= record)
            break;
        uint64_t least =
            event->recorded == record ? fg_engine_least_ns(event->stream, event->seq, 0) : 0;
        fg_clock_nap(least > FG_SHORTEST_NAP ? least : FG_SHORTEST_NAP);
    }
    fg_engine_unlock();
}

uint64_t fg_engine_event_time(int index)
{
    return fg_state ? fg_state->engine.event[index].time : 0;
}
