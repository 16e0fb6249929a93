/* Contexts, streams and events of the timing engine: what the driver's entry points call.
 *
 * Each call locks, pays its host time, changes the shared state, and unlocks; see engine.h and clock.h.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "timing/clock.h"
#include "state/state.h"

#define SHORTEST_NAP 20000ull     /* real time between two looks of a waiter */

/* ---- the oracle ------------------------------------------------------------------------------------- */

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

uint64_t fakegpu_work_ns(const char *tag, int gpu) { return of_tag(tag, gpu, false); }
uint64_t fakegpu_kernels(const char *tag, int gpu) { return of_tag(tag, gpu, true); }

/* ---- contexts ------------------------------------------------------------------------------------------ */

static uint64_t mixed(uint64_t x)              /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint64_t fg_hash_text(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325ull;
    while (*text)
        sum = (sum ^ (unsigned char)*text++) * 0x100000001b3ull;
    return sum;
}

static void close_context(struct fg_engine *e, int index)
{
    for (int i = 0; i < (int)e->streams; i++)
        if (e->stream[i].context == index + 1) {
            e->stream[i].closing = 1;
            fg_engine_stream_clear(i);
            fg_clock_notify(FG_THREAD_OP, (uint32_t)i, FG_NEVER);
        }
    e->context[index].process = 0;
}

static pid_t opener;                           /* the process of ours that opened contexts */
static int opener_row;

/* What an ended process has queued does not run: at once, not when someone finds it gone. */
__attribute__((destructor)) static void process_ends(void)
{
    if (opener != getpid() || !fg_state)
        return;
    struct fg_engine *e = fg_engine_lock();
    fg_clock_run();
    for (uint32_t i = 0; i < e->contexts; i++)
        if (e->context[i].process == opener_row + 1)
            close_context(e, (int)i);
    fg_clock_process_gone(opener_row);
    fg_clock_run();
    fg_engine_unlock();
}

int fg_engine_context_open(int process, int tag, int gpu, unsigned percent)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return -1;
    fg_clock_pay(e->call_ns);
    opener = getpid();
    opener_row = process;
    uint32_t of_100 = percent & ~FG_PARTITION, part = of_100 && of_100 < 100 ? of_100 * FG_WHOLE / 100 : FG_WHOLE;
    int found = -1;
    for (int i = 0; i < FG_ENGINE_CONTEXTS && found < 0; i++)
        if (!e->context[i].process)
            found = i;
    if (found >= 0) {
        struct fg_engine_context *context = &e->context[found];
        *context = (struct fg_engine_context){
            .gpu = gpu,
            .tag = tag,
            .part = part,
            .slice_part = percent & FG_PARTITION ? part : FG_WHOLE,
            .identity = mixed(fg_hash_text(fg_state->tag[tag].name) + ++e->tag_contexts[tag]),
        };
        if (e->contexts <= (uint32_t)found)
            e->contexts = (uint32_t)found + 1;
        context->process = process + 1;
    }
    fg_engine_unlock();
    return found;
}

void fg_engine_context_close(int context)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_pay(e->call_ns);
    fg_clock_run();
    close_context(e, context);
    fg_clock_run();
    fg_engine_unlock();
}

void fg_engine_process_gone(int process)
{
    struct fg_engine *e = fg_engine_lock();
    fg_clock_process_gone(process);
    for (uint32_t i = 0; i < e->contexts; i++)
        if (e->context[i].process == process + 1)
            close_context(e, (int)i);
    for (uint32_t i = 0; i < e->events; i++)
        if (e->event[i].process == process + 1 && e->event[i].holders) {
            e->event[i].process = 0;
            e->event[i].done = e->event[i].recorded;
            fg_clock_notify(FG_THREAD_EVENT, i, FG_NEVER);
        }
    fg_engine_unlock();
}

uint64_t fg_engine_random(int context)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_context *row = &e->context[context];
    return mixed(e->seed ^ row->identity ^ mixed(__atomic_fetch_add(&row->draws, 1, __ATOMIC_RELAXED)));
}

/* ---- streams ---------------------------------------------------------------------------------------------- */

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

/* Under the lock: returns when operation `seq` is done. */
static void wait_for(struct fg_engine *e, int index, uint64_t seq)
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
        fg_clock_nap(least > SHORTEST_NAP ? least : SHORTEST_NAP);
    }
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
        wait_for(e, index, stream->head + 1);
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
    slot->left = left ? left : FG_WHOLE;       /* nothing takes no time at all */
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

/* Under the lock: brings the simulation to the caller's own time. */
static void look(struct fg_engine *e)
{
    uint64_t now = fg_clock_stamp(e->call_ns);
    if (e->virtual_clock && e->t < now)
        fg_clock_block(FG_THREAD_TIME, 0, now);
    else
        fg_clock_run();
}

bool fg_engine_stream_done(int index, uint64_t seq)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return true;
    if (e->stream[index].head < seq)
        look(e);
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
    wait_for(e, index, seq);
    fg_engine_unlock();
}

void fg_engine_context_drain(int context)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_stamp(e->call_ns);
    for (int i = 0; i < (int)e->streams; i++)
        if (e->stream[i].context == context + 1)
            wait_for(e, i, e->stream[i].tail);
    fg_engine_unlock();
}

bool fg_engine_context_idle(int context)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return true;
    look(e);
    bool idle = true;
    for (int i = 0; i < (int)e->streams; i++)
        idle &= e->stream[i].context != context + 1 || e->stream[i].head == e->stream[i].tail;
    fg_engine_unlock();
    return idle;
}

/* ---- events -------------------------------------------------------------------------------------------------- */

int fg_engine_event_open(int process)
{
    static __thread uint32_t from;             /* where the last search ended */
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
        event->done = event->recorded;         /* never reset: a record that is still queued is not ours */
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
        look(e);
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
        uint64_t least = event->recorded == record ? fg_engine_least_ns(event->stream, event->seq, 0) : 0;
        fg_clock_nap(least > SHORTEST_NAP ? least : SHORTEST_NAP);
    }
    fg_engine_unlock();
}

uint64_t fg_engine_event_time(int index)
{
    return fg_state ? fg_state->engine.event[index].time : 0;
}

/* ---- host functions --------------------------------------------------------------------------------------------- */

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
        fg_clock_nap(when > SHORTEST_NAP ? when : SHORTEST_NAP);
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
    fg_clock_host_due(-1);                     /* who sleeps by the wall clock looks again */
    fg_engine_unlock();
}
