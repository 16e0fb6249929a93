/* Contexts of the timing engine, and their end with their process. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "clock/clock.h"
#include "engine/engine.h"
#include "engine/streams.h"
#include "simulation/random.h"
#include "simulation/simulate.h"
#include "simulation/threads.h"
#include "state/process_table.h"

static void close_context(struct fg_engine *e, int index)
{
    for (int i = 0; i < (int)e->streams; i++)
        if (e->stream[i].context == index + 1) {
            e->stream[i].closing = 1;
            fg_engine_stream_clear(i);
            fg_threads_notify(FG_THREAD_OP, (uint32_t)i, FG_NEVER);
        }
    e->context[index].process = 0;
}

static pid_t opener; /* the process of ours that opened contexts */
static int opener_row;

int fg_engine_context_open(int process, int tag, int gpu, unsigned percent)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return -1;
    fg_clock_pay(e->call_ns);
    opener = getpid();
    opener_row = process;
    uint32_t of_100 = percent & ~FG_PARTITION,
             part = of_100 && of_100 < 100 ? of_100 * FG_WHOLE / 100 : FG_WHOLE;
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
            .identity = fg_mixed(fg_hash_text(fg_state->tag[tag].name) + ++e->tag_contexts[tag]),
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

void fg_engine_context_drain(int context)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return;
    fg_clock_stamp(e->call_ns);
    for (int i = 0; i < (int)e->streams; i++)
        if (e->stream[i].context == context + 1)
            fg_engine_wait_locked(e, i, e->stream[i].tail);
    fg_engine_unlock();
}

bool fg_engine_context_idle(int context)
{
    struct fg_engine *e = fg_engine_lock();
    if (!e)
        return true;
    fg_engine_look(e);
    bool idle = true;
    for (int i = 0; i < (int)e->streams; i++)
        idle &= e->stream[i].context != context + 1 || e->stream[i].head == e->stream[i].tail;
    fg_engine_unlock();
    return idle;
}

uint64_t fg_engine_random(int context)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_context *row = &e->context[context];
    return fg_mixed(e->seed ^ row->identity ^
                    fg_mixed(__atomic_fetch_add(&row->draws, 1, __ATOMIC_RELAXED)));
}

/* ---- the end of a process -------------------------------------------------------------------- */

static void process_gone(int process)
{
    struct fg_engine *e = fg_engine_lock();
    fg_threads_process_gone(process);
    for (uint32_t i = 0; i < e->contexts; i++)
        if (e->context[i].process == process + 1)
            close_context(e, (int)i);
    for (uint32_t i = 0; i < e->events; i++)
        if (e->event[i].process == process + 1 && e->event[i].holders) {
            e->event[i].process = 0;
            e->event[i].done = e->event[i].recorded;
            fg_threads_notify(FG_THREAD_EVENT, i, FG_NEVER);
        }
    fg_engine_unlock();
}

__attribute__((constructor)) static void watch_processes(void)
{
    fg_when_process_gone(process_gone);
}

static void drop_what_is_queued(void)
{
    if (opener != getpid() || !fg_state)
        return;
    struct fg_engine *e = fg_engine_lock();
    fg_clock_run();
    for (uint32_t i = 0; i < e->contexts; i++)
        if (e->context[i].process == opener_row + 1)
            close_context(e, (int)i);
    fg_threads_process_gone(opener_row);
    fg_clock_run();
    fg_engine_unlock();
}

/* What an ended process has queued does not run: at once, not when someone finds it gone. Only
 * then may time go on without its threads. */
__attribute__((destructor)) static void process_ends(void)
{
    drop_what_is_queued();
    fg_clock_process_ends();
}
