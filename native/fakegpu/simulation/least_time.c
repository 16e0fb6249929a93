/* How long an operation takes at least: what a waiter by the wall clock may sleep. */
#include "simulation/simulate.h"
#include "state/state.h"

/* Work that another context has ready, in nanoseconds, as far as its first wait. */
static uint64_t ready_work(struct fg_engine *e, const struct fg_head *head, uint64_t enough)
{
    struct fg_engine_stream *stream = &e->stream[head->stream];
    uint64_t sum = 0;
    for (uint64_t seq = stream->head; seq < stream->tail && sum < enough; seq++) {
        const struct fg_op *op = fg_operation(stream, seq);
        if (!fg_op_is_compute(op))
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
        const struct fg_op *op = fg_operation(stream, at);
        uint64_t other = 0;
        if (fg_op_is_compute(op)) {
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
    /* Slices of others that have work ready now: one before each of mine but the first, and what
     * is left of the present one. */
    static struct fg_heads heads;
    fg_heads_collect(e, &heads);
    uint64_t uneven = e->slice_ns / 100 * e->uneven_pct;
    uint64_t longest = e->slice_ns + uneven, shortest = e->slice_ns - uneven;
    uint64_t left = gpu->slice_end > e->t ? gpu->slice_end - e->t : 0;
    bool mine = gpu->current == stream->context;
    uint64_t alone = mine ? left : longest;
    uint64_t rounds = compute > alone ? (compute - alone + longest - 1) / longest : 0;
    for (int i = 0; i < heads.n; i++) {
        const struct fg_head *head = &heads.at[i];
        if (head->context == context || head->context->gpu != context->gpu || !head->op->begun)
            continue;
        uint64_t most = rounds * shortest + (gpu->current - 1 == head->index ? left : 0);
        sum += ready_work(e, head, most) < most ? ready_work(e, head, most) : most;
    }
    return sum;
}
