/* Who gets the SMs: slices in turn, or all contexts at once under MPS. */
#include "simulation/random.h"
#include "simulation/simulate.h"

static bool before(const struct fg_engine *e, const struct fg_head *a, const struct fg_head *b)
{
    int32_t mine = e->stream[a->stream].priority, other = e->stream[b->stream].priority;
    if (mine != other)
        return mine < other;
    return a->op->begun != b->op->begun ? a->op->begun < b->op->begun : a->op->order < b->op->order;
}

/* Percent of its speed that the clock has now: it steps down, and up again. */
static uint64_t speed(const struct fg_engine *e)
{
    return e->drop_pct && e->t / e->clock_ns % 2 ? 100 - e->drop_pct : 100;
}

/* Gives out `budget` SMs among the heads of one context; percent: contention slows them to that. */
static void give(const struct fg_engine *e, struct fg_heads *heads, int32_t context,
                 uint32_t budget, uint32_t percent)
{
    static struct fg_head *list[FG_ENGINE_STREAMS];
    int n = 0;
    for (int i = 0; i < heads->n; i++) {
        struct fg_head *head = &heads->at[i];
        if (head->index != context || !head->op->begun || !fg_op_is_compute(head->op))
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
        struct fg_head *head = list[i];
        uint32_t wants = fg_op_in_tail(head->op) ? head->op->ref : head->op->share;
        head->got = wants < budget ? wants : budget;
        budget -= head->got;
        head->rate = ((uint64_t)head->got << 16) / wants * speed(e) / percent;
        head->rate += !head->rate;
    }
}

/* The contexts of a GPU that have work; how many. */
static int at_work(const struct fg_heads *heads, int number, int32_t *seen)
{
    int n = 0;
    for (int i = 0; i < heads->n; i++) {
        const struct fg_head *head = &heads->at[i];
        if (head->context->gpu != number || !head->op->begun || !fg_op_is_compute(head->op))
            continue;
        int known = 0;
        while (known < n && seen[known] != head->index)
            known++;
        if (known == n)
            seen[n++] = head->index;
    }
    return n;
}

static uint64_t slice_length(const struct fg_engine *e, const struct fg_engine_gpu *gpu)
{
    uint64_t span = e->slice_ns / 100 * e->uneven_pct;
    return span ? e->slice_ns - span + fg_mixed(e->seed ^ gpu->slices) % (2 * span + 1)
                : e->slice_ns;
}

/* Who has the slice; the next time at which that changes by itself. */
static uint64_t slice(struct fg_engine *e, struct fg_engine_gpu *gpu, int number,
                      struct fg_heads *heads)
{
    int32_t current = gpu->current - 1, next = -1;
    bool wants = false;
    /* Round robin: the first after the last one, by what does not depend on who came first. */
    uint64_t last = gpu->last + 1;
    for (int i = 0; i < heads->n; i++) {
        const struct fg_head *head = &heads->at[i];
        if (head->context->gpu != number || !head->op->begun || !fg_op_is_compute(head->op))
            continue;
        if (head->index == current)
            wants = true;
        else if (next < 0 || head->context->identity - last < e->context[next].identity - last)
            next = head->index;
    }
    if (!wants && next < 0)
        return FG_NEVER;
    if (wants && (e->t < gpu->slice_end || next < 0 || e->t > gpu->slice_end)) {
        /* it was alone: its slices went on one after the other */
        if (e->t >= gpu->slice_end)
            gpu->slice_end += (e->t - gpu->slice_end) / e->slice_ns * e->slice_ns + e->slice_ns;
    } else {
        gpu->switch_end = e->t + (current >= 0 ? e->switch_ns : 0);
        gpu->slices++;
        gpu->slice_end = gpu->switch_end + slice_length(e, gpu);
        gpu->current = next + 1;
        gpu->last = e->context[next].identity;
    }
    if (e->t < gpu->switch_end)
        return gpu->switch_end;
    uint32_t percent = 100;
    if (e->contention_pct && next >= 0) { /* what others left in the caches is not its own */
        static int32_t seen[FG_ENGINE_CONTEXTS];
        percent += e->contention_pct * (uint32_t)(at_work(heads, number, seen) - 1);
    }
    give(e, heads, gpu->current - 1, e->context[gpu->current - 1].slice_part, percent);
    return next >= 0 ? gpu->slice_end : FG_NEVER;
}

static void share_by_mps(struct fg_engine *e, int number, struct fg_heads *heads)
{
    static int32_t seen[FG_ENGINE_CONTEXTS];
    uint64_t sum = 0;
    int n = at_work(heads, number, seen);
    for (int i = 0; i < n; i++)
        sum += e->context[seen[i]].part;
    for (int i = 0; i < n; i++) {
        uint64_t part = e->context[seen[i]].part;
        give(e, heads, seen[i], (uint32_t)(sum > FG_WHOLE ? part * FG_WHOLE / sum : part),
             100 + e->contention_pct * (uint32_t)(n - 1));
    }
}

uint64_t fg_compute_share(struct fg_engine *e, int gpu, struct fg_heads *heads)
{
    if (!e->mps)
        return slice(e, &e->gpu[gpu], gpu, heads);
    share_by_mps(e, gpu, heads);
    return FG_NEVER;
}
