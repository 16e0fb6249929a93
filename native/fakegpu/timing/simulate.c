/* One step after the other: what the GPUs do until a given time. Integers only, so that the same
 * calls at the same virtual times give the same nanoseconds on every machine.
 *
 * At an instant t, first everything that ends at t ends; then, only if t is certain (t < until: nobody can
 * queue anything at t any more), heads of streams begin and the compute engine is given out; then time
 * goes on to the next instant at which something may change.
 */
#define _GNU_SOURCE
#include <string.h>

#include "timing/clock.h"
#include "timing/samples.h"
#include "state/state.h"

struct head {                     /* the first operation of a stream, and what it gets */
    struct fg_op *op;
    struct fg_engine_context *context;
    int32_t stream, index;        /* index: of its context */
    uint32_t got;                 /* part of the SMs, 16.16 */
    uint64_t rate;                /* its nanoseconds per nanosecond, 16.16 */
};
struct heads { int n; struct head at[FG_ENGINE_STREAMS]; };

static struct fg_op *operation(struct fg_engine_stream *stream, uint64_t seq)
{
    return &stream->ring[seq % FG_ENGINE_DEPTH];
}

static bool is_compute(const struct fg_op *op)
{
    return op->kind == FG_OP_KERNEL || op->kind == FG_OP_FILL || op->kind == FG_OP_MARK;
}

static void empty(struct fg_engine *e, int index)
{
    struct fg_engine_stream *stream = &e->stream[index];
    e->active[index / 64] &= ~(1ull << index % 64);
    if (stream->closing) {
        stream->closing = 0;
        stream->context = 0;
    }
}

void fg_engine_stream_clear(int index)
{
    struct fg_engine *e = &fg_state->engine;
    e->stream[index].head = e->stream[index].tail;
    empty(e, index);
}

static void collect(struct fg_engine *e, struct heads *heads)
{
    heads->n = 0;
    for (int word = 0; word * 64 < (int)e->streams; word++)
        for (uint64_t bits = e->active[word]; bits; bits &= bits - 1) {
            int index = word * 64 + __builtin_ctzll(bits);
            struct fg_engine_stream *stream = &e->stream[index];
            if (stream->head == stream->tail || !stream->context) { /* a process died here */
                e->active[word] &= ~(1ull << index % 64);
                continue;
            }
            heads->at[heads->n++] = (struct head){
                .op = operation(stream, stream->head),
                .context = &e->context[stream->context - 1],
                .index = stream->context - 1,
                .stream = index,
            };
        }
}

/* ---- ends and beginnings ------------------------------------------------------------------------------ */

static void finish(struct fg_engine *e, const struct head *head)
{
    struct fg_engine_stream *stream = &e->stream[head->stream];
    struct fg_op *op = head->op;
    if (op->kind == FG_OP_KERNEL)
        e->gpu[head->context->gpu].kernels[head->context->tag] += op->count;
    uint32_t kind = op->kind, ref = op->ref;
    if (kind == FG_OP_MARK && e->event[ref].done < op->ref_seq) {
        e->event[ref].time = e->t;
        e->event[ref].done = op->ref_seq;
    }
    stream->kernels -= op->count < stream->kernels ? op->count : stream->kernels;
    stream->head++;
    if (stream->head == stream->tail)
        empty(e, head->stream);
    fg_clock_notify(FG_THREAD_OP, (uint32_t)head->stream, stream->head);
    if (kind == FG_OP_MARK)
        fg_clock_notify(FG_THREAD_EVENT, ref, e->event[ref].done);
}

static bool has_ended(const struct fg_engine *e, const struct fg_op *op)
{
    if (!op->begun)
        return false;
    if (is_compute(op))
        return !op->left;
    return op->kind == FG_OP_HOST ? op->ends != 0 : op->ends <= e->t;
}

/* The legacy default stream and the blocking streams of its context wait for each other. */
static bool waits_for_legacy(const struct fg_engine *e, const struct heads *heads, const struct head *head)
{
    uint32_t flags = e->stream[head->stream].flags;
    if (flags & FG_STREAM_NONBLOCKING || !head->context->legacy)
        return false;
    bool legacy = flags & FG_STREAM_LEGACY;
    for (int i = 0; i < heads->n; i++) {
        const struct head *other = &heads->at[i];
        if (other->index != head->index || other->op->order >= head->op->order)
            continue;
        uint32_t theirs = e->stream[other->stream].flags;
        if (!(theirs & FG_STREAM_NONBLOCKING) && (legacy || theirs & FG_STREAM_LEGACY))
            return true;
    }
    return false;
}

static bool may_begin(const struct fg_engine *e, const struct heads *heads, const struct head *head)
{
    const struct fg_op *op = head->op;
    if (op->stamp > e->t || waits_for_legacy(e, heads, head))
        return false;
    if (op->kind == FG_OP_WAIT)
        return e->event[op->ref].done >= op->ref_seq;
    if (op->kind == FG_OP_JOIN)
        return e->stream[op->ref].head >= op->ref_seq;
    return true;
}

static void begin(struct fg_engine *e, const struct head *head)
{
    struct fg_op *op = head->op;
    struct fg_engine_gpu *gpu = &e->gpu[head->context->gpu];
    op->ends = op->kind == FG_OP_HOST ? 0 : e->t;
    if (op->kind == FG_OP_TO_HOST || op->kind == FG_OP_TO_DEVICE) {
        uint64_t *until = &gpu->copy_free[op->kind == FG_OP_TO_DEVICE], length = op->left >> 16;
        if (*until < e->t)
            *until = e->t;
        op->ends = *until += length;
        gpu->copy_busy += length;
        head->context->copy_busy += length;
    }
    op->begun = e->t;
    if (op->kind == FG_OP_HOST)
        fg_clock_host_due(head->context->process - 1);
}

/* ---- the compute engine ------------------------------------------------------------------------------- */

static bool before(const struct fg_engine *e, const struct head *a, const struct head *b)
{
    int32_t mine = e->stream[a->stream].priority, other = e->stream[b->stream].priority;
    if (mine != other)
        return mine < other;
    return a->op->begun != b->op->begun ? a->op->begun < b->op->begun : a->op->order < b->op->order;
}

/* Gives out `budget` SMs among the heads of one context; percent: contention slows them to that. */
static void give(const struct fg_engine *e, struct heads *heads, int32_t context, uint32_t budget,
                 uint32_t percent)
{
    static struct head *list[FG_ENGINE_STREAMS];
    int n = 0;
    for (int i = 0; i < heads->n; i++) {
        struct head *head = &heads->at[i];
        if (head->index != context || !head->op->begun || !is_compute(head->op))
            continue;
        if (head->op->kind == FG_OP_MARK) {
            head->rate = FG_WHOLE;
            continue;
        }
        int at = n++;
        for (; at && before(e, head, list[at - 1]); at--)
            list[at] = list[at - 1];
        list[at] = head;
    }
    for (int i = 0; i < n && budget; i++) {
        struct head *head = list[i];
        head->got = head->op->share < budget ? head->op->share : budget;
        budget -= head->got;
        head->rate = ((uint64_t)head->got << 16) / head->op->share * 100 / percent;
        head->rate += !head->rate;
    }
}

/* Who has the slice; the next time at which that changes by itself. */
static uint64_t slice(struct fg_engine *e, struct fg_engine_gpu *gpu, int number, struct heads *heads)
{
    int32_t current = gpu->current - 1, next = -1;
    bool wants = false;
    /* Round robin: the first after the last one, by what does not depend on who came first. */
    uint64_t last = gpu->last + 1;
    for (int i = 0; i < heads->n; i++) {
        const struct head *head = &heads->at[i];
        if (head->context->gpu != number || !head->op->begun || !is_compute(head->op))
            continue;
        if (head->index == current)
            wants = true;
        else if (next < 0 || head->context->identity - last < e->context[next].identity - last)
            next = head->index;
    }
    if (!wants && next < 0)
        return FG_NEVER;
    if (wants && (e->t < gpu->slice_end || next < 0 || e->t > gpu->slice_end)) {
        if (e->t >= gpu->slice_end)            /* it was alone: its slices went on one after the other */
            gpu->slice_end += (e->t - gpu->slice_end) / e->slice_ns * e->slice_ns + e->slice_ns;
    } else {
        gpu->switch_end = e->t + (current >= 0 ? e->switch_ns : 0);
        gpu->slice_end = gpu->switch_end + e->slice_ns;
        gpu->current = next + 1;
        gpu->last = e->context[next].identity;
    }
    if (e->t < gpu->switch_end)
        return gpu->switch_end;
    give(e, heads, gpu->current - 1, e->context[gpu->current - 1].slice_part, 100);
    return next >= 0 ? gpu->slice_end : FG_NEVER;
}

static void share_by_mps(struct fg_engine *e, int number, struct heads *heads)
{
    static int32_t seen[FG_ENGINE_CONTEXTS];
    uint64_t sum = 0;
    int n = 0;
    for (int i = 0; i < heads->n; i++) {
        const struct head *head = &heads->at[i];
        if (head->context->gpu != number || !head->op->begun || !is_compute(head->op))
            continue;
        int known = 0;
        while (known < n && seen[known] != head->index)
            known++;
        if (known < n)
            continue;
        seen[n++] = head->index;
        sum += head->context->part;
    }
    for (int i = 0; i < n; i++) {
        uint64_t part = e->context[seen[i]].part;
        give(e, heads, seen[i], (uint32_t)(sum > FG_WHOLE ? part * FG_WHOLE / sum : part),
             100 + e->contention_pct * (uint32_t)(n - 1));
    }
}

/* ---- time goes on --------------------------------------------------------------------------------------- */

static void advance(struct fg_engine *e, struct heads *heads, uint64_t length)
{
    for (int i = 0; i < heads->n; i++) {
        struct head *head = &heads->at[i];
        if (!head->rate)
            continue;
        uint64_t done = length * head->rate;
        head->op->left = done < head->op->left ? head->op->left - done : 0;
        if (!head->got)
            continue;
        /* In a slice the GPU is the context's, however few of its SMs it uses: counted once. */
        struct fg_engine_gpu *gpu = &e->gpu[head->context->gpu];
        uint64_t time = length * (e->mps ? head->got : FG_WHOLE);
        bool counted = false;
        for (int k = 0; k < i && !counted; k++)
            counted = heads->at[k].got && (e->mps ? heads->at[k].context->gpu == head->context->gpu
                                                  : heads->at[k].index == head->index);
        if (!counted)
            gpu->busy += length;
        if (!counted || e->mps) {
            gpu->work[head->context->tag] += time;
            head->context->busy += time;
        }
    }
    e->t += length;
}

bool fg_simulate(uint64_t until)
{
    struct fg_engine *e = &fg_state->engine;
    static struct heads heads;                 /* under the lock; a thread's stack may be small */
    for (;;) {
        uint32_t woken = e->woken;
        bool changed = false;
        collect(e, &heads);
        for (int i = 0; i < heads.n; i++)
            if (has_ended(e, heads.at[i].op)) {
                finish(e, &heads.at[i]);
                changed = true;
            }
        if (e->woken != woken)
            return true;
        if (changed)
            continue;
        if (e->t >= until)
            return false;
        uint64_t next = until;
        for (int i = 0; i < heads.n; i++) {
            struct head *head = &heads.at[i];
            if (head->op->begun)
                continue;
            if (head->op->stamp > e->t) {
                next = head->op->stamp < next ? head->op->stamp : next;
            } else if (may_begin(e, &heads, head)) {
                begin(e, head);
                changed |= has_ended(e, head->op);
            }
        }
        if (e->woken != woken)
            return true;
        if (changed)
            continue;
        bool works = false;
        for (int g = 0; g < (int)e->gpus; g++) {
            uint64_t change = FG_NEVER;
            if (e->mps)
                share_by_mps(e, g, &heads);
            else
                change = slice(e, &e->gpu[g], g, &heads);
            next = change < next ? change : next;
        }
        for (int i = 0; i < heads.n; i++) {
            const struct head *head = &heads.at[i];
            uint64_t end = FG_NEVER;
            if (!head->op->begun)
                continue;
            if (head->rate)
                end = e->t + (head->op->left + head->rate - 1) / head->rate;
            else if (head->op->ends > e->t)
                end = head->op->ends;
            next = end < next ? end : next;
            works |= head->rate != 0;
        }
        if (next == FG_NEVER)
            return false;
        if (works) {
            uint64_t boundary = fg_samples_next();
            next = boundary < next ? boundary : next;
        }
        advance(e, &heads, next - e->t);
        fg_samples_take();
    }
}

/* ---- how long at least ------------------------------------------------------------------------------------ */

/* Work that another context has ready, in nanoseconds, as far as its first wait. */
static uint64_t ready_work(struct fg_engine *e, const struct head *head, uint64_t enough)
{
    struct fg_engine_stream *stream = &e->stream[head->stream];
    uint64_t sum = 0;
    for (uint64_t seq = stream->head; seq < stream->tail && sum < enough; seq++) {
        const struct fg_op *op = operation(stream, seq);
        if (!is_compute(op))
            break;
        sum += op->left >> 16;
    }
    return sum;
}

uint64_t fg_engine_least_ns(int index, uint64_t seq, int depth)
{
    struct fg_engine *e = &fg_state->engine;
    struct fg_engine_stream *stream = &e->stream[index];
    if (stream->head >= seq || !stream->context || depth > 8)
        return 0;
    struct fg_engine_context *context = &e->context[stream->context - 1];
    uint64_t fastest = e->mps ? context->part : context->slice_part, sum = 0, compute = 0;
    for (uint64_t at = stream->head; at < seq && at < stream->tail; at++) {
        const struct fg_op *op = operation(stream, at);
        uint64_t other = 0;
        if (is_compute(op)) {
            uint64_t own = op->left / (op->kind == FG_OP_MARK ? FG_WHOLE : fastest);
            compute += own;
            sum += own;
        } else if (op->kind == FG_OP_TO_HOST || op->kind == FG_OP_TO_DEVICE) {
            sum += op->begun ? op->ends - e->t : op->left >> 16;
        } else if (op->kind == FG_OP_WAIT && e->event[op->ref].done < op->ref_seq) {
            other = fg_engine_least_ns(e->event[op->ref].stream, e->event[op->ref].seq, depth + 1);
        } else if (op->kind == FG_OP_JOIN) {
            other = fg_engine_least_ns((int)op->ref, op->ref_seq, depth + 1);
        }
        sum = other > sum ? other : sum;
    }
    struct fg_engine_gpu *gpu = &e->gpu[context->gpu];
    if (e->mps || !compute)
        return sum;
    /* Slices of others that have work ready now: one before each of mine but the first, and what is left
     * of the present one. */
    static struct heads heads;
    collect(e, &heads);
    uint64_t left = gpu->slice_end > e->t ? gpu->slice_end - e->t : 0;
    bool mine = gpu->current == stream->context;
    uint64_t alone = mine ? left : e->slice_ns;
    uint64_t rounds = compute > alone ? (compute - alone + e->slice_ns - 1) / e->slice_ns : 0;
    for (int i = 0; i < heads.n; i++) {
        const struct head *head = &heads.at[i];
        if (head->context == context || head->context->gpu != context->gpu || !head->op->begun)
            continue;
        uint64_t most = rounds * e->slice_ns + (gpu->current - 1 == head->index ? left : 0);
        sum += ready_work(e, head, most) < most ? ready_work(e, head, most) : most;
    }
    return sum;
}
