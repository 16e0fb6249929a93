/* One step after the other: what the GPUs do until a given time. Integers only, so that the same
 * calls at the same virtual times give the same nanoseconds on every machine.
 *
 * At an instant t, first everything that ends at t ends; then, only if t is certain (t < until:
 * nobody can queue anything at t any more), heads of streams begin and the compute engine is
 * given out; then time goes on to the next instant at which something may change.
 */
#include "simulation/simulate.h"

#include "simulation/samples.h"
#include "simulation/threads.h"
#include "state/state.h"

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

void fg_heads_collect(struct fg_engine *e, struct fg_heads *heads)
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
            heads->at[heads->n++] = (struct fg_head){
                .op = fg_operation(stream, stream->head),
                .context = &e->context[stream->context - 1],
                .index = stream->context - 1,
                .stream = index,
            };
        }
}

/* ---- ends and beginnings --------------------------------------------------------------------- */

static void finish(struct fg_engine *e, const struct fg_head *head)
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
    fg_threads_notify(FG_THREAD_OP, (uint32_t)head->stream, stream->head);
    if (kind == FG_OP_MARK)
        fg_threads_notify(FG_THREAD_EVENT, ref, e->event[ref].done);
}

static bool has_ended(const struct fg_engine *e, const struct fg_op *op)
{
    if (!op->begun)
        return false;
    if (fg_op_is_compute(op))
        return !op->left;
    return op->kind == FG_OP_HOST ? op->ends != 0 : op->ends <= e->t;
}

/* The legacy default stream and the blocking streams of its context wait for each other. */
static bool waits_for_legacy(const struct fg_engine *e, const struct fg_heads *heads,
                             const struct fg_head *head)
{
    uint32_t flags = e->stream[head->stream].flags;
    if (flags & FG_STREAM_NONBLOCKING || !head->context->legacy)
        return false;
    bool legacy = flags & FG_STREAM_LEGACY;
    for (int i = 0; i < heads->n; i++) {
        const struct fg_head *other = &heads->at[i];
        if (other->index != head->index || other->op->order >= head->op->order)
            continue;
        uint32_t theirs = e->stream[other->stream].flags;
        if (!(theirs & FG_STREAM_NONBLOCKING) && (legacy || theirs & FG_STREAM_LEGACY))
            return true;
    }
    return false;
}

static bool may_begin(const struct fg_engine *e, const struct fg_heads *heads,
                      const struct fg_head *head)
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

static void count_bytes(struct fg_engine *e, struct fg_engine_gpu *gpu, const struct fg_op *op)
{
    if (op->kind == FG_OP_TO_HOST)
        gpu->totals.to_host += op->ref_seq;
    else if (op->kind == FG_OP_TO_DEVICE)
        gpu->totals.from_host += op->ref_seq;
    else if (op->kind == FG_OP_FILL && op->ref) {
        e->gpu[(op->ref - 1) / FG_ENGINE_GPUS].totals.to_peers += op->ref_seq;
        e->gpu[(op->ref - 1) % FG_ENGINE_GPUS].totals.from_peers += op->ref_seq;
    }
}

static void begin(struct fg_engine *e, const struct fg_head *head)
{
    struct fg_op *op = head->op;
    struct fg_engine_gpu *gpu = &e->gpu[head->context->gpu];
    op->ends = op->kind == FG_OP_HOST ? 0 : e->t;
    count_bytes(e, gpu, op);
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
        fg_threads_host_due(head->context->process - 1);
}

/* What is left of an operation until it needs fewer SMs, or ends. */
static uint64_t until_change(const struct fg_op *op)
{
    bool has_tail = op->kind == FG_OP_KERNEL && op->ref && !fg_op_in_tail(op);
    return has_tail ? op->left - op->ref_seq : op->left;
}

/* ---- time goes on ---------------------------------------------------------------------------- */

static void advance(struct fg_engine *e, struct fg_heads *heads, uint64_t length)
{
    for (int i = 0; i < heads->n; i++) {
        struct fg_head *head = &heads->at[i];
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
    static struct fg_heads heads; /* under the lock; a thread's stack may be small */
    for (;;) {
        uint32_t woken = e->woken;
        bool changed = false;
        fg_heads_collect(e, &heads);
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
            struct fg_head *head = &heads.at[i];
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
            uint64_t change = fg_compute_share(e, g, &heads);
            next = change < next ? change : next;
        }
        for (int i = 0; i < heads.n; i++) {
            const struct fg_head *head = &heads.at[i];
            uint64_t end = FG_NEVER;
            if (!head->op->begun)
                continue;
            if (head->rate)
                end = e->t + (until_change(head->op) + head->rate - 1) / head->rate;
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
            boundary = e->drop_pct ? (e->t / e->clock_ns + 1) * e->clock_ns : FG_NEVER;
            next = boundary < next ? boundary : next;
        }
        advance(e, &heads, next - e->t);
        fg_samples_take();
    }
}
