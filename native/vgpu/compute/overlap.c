/* Kernels of several streams that run side by side.
 *
 * Each has a price by its own span, but GPU time is that in which any of them runs; so NVML counts
 * it, too. Now and then all launches of a few batches of one thread are timed: by how much the time
 * that their spans cover is shorter than the sum of the spans is what this process is charged less.
 * Whole batches, for between two of them the limiter waits, and nothing runs side by side. Where the
 * GPU still had work when they began, or had at the end, only what lies between is looked at: from
 * when all of the streams came to the first of these launches until one is done with its last.
 *
 * How far kernels overlap depends on how they are launched: few at a time, as a limit lets them, or
 * many, in a turn. So where the pace changes, what was found before it is forgotten. A group counts
 * for nothing that a slice of another cut (all that it shows may be one kernel, which seems to run
 * for as long as all others together), or of which a launch was not timed.
 *
 * It is looked at only where launches that are timed come from several streams, and until that is
 * found to be over. Several threads that launch side by side do not see one another here: what they
 * overlap is the server's to correct. */
#include <sched.h>

#include "compute/compute.h"

/* launches of a group, which then ends with the batch: the four gradients of twenty kernels each that
 * the tests' training has in a step; with half of them groups differed by a third. Tried */
#define ENOUGH 80u
/* of kernels so long that it took this time, so many. Choice */
#define LONG_NS 100000000ull
#define FEWEST 8u
#define MOST 110u            /* where a batch has no end. Choice */
#define EVERY_NS 20000000ull /* a group so often. Choice */
/* And some batches later, up to so many, at random: launches come in bursts as long as what is queued
 * ahead, of which a training's step may be a multiple; all groups would be of one part of it. Tried */
#define BATCHES 32u
/* Between two timed kernels of a stream lie their events, and what the driver needs: no pause. Choice */
#define PAUSE_NS 10000.0
/* Groups that were cut one after the other, until one counts: kernels with long runs. Choice */
#define CUT_IN_A_ROW 4u
#define PATIENCE_NS 1000000000ull    /* a group that does not come back is given up. Choice */
#define SEVERAL_FOR_NS 1000000000ull /* streams count as several so long after they were. Choice */
#define REMEMBERED 0.98              /* of the groups before, at each one: fifty count. Choice */

struct span {
    double begin, end; /* ns from the first one's begin */
    uint64_t stream;
};

/* The group that is timed now: one in a process. */
static struct {
    uint32_t joined, taken;
    bool is_closed, is_spoilt, is_cut, began_idle, ended_idle;
    int row;
    enum vg_pace pace;
    uint64_t begun;
    struct span span[MOST];
} group;
static _Atomic uint32_t open_number; /* of the group; 0: there is none */
static atomic_flag lock = ATOMIC_FLAG_INIT;

static _Atomic uint32_t batches_left; /* until the next group begins, when it is due */
static _Atomic uint64_t last_stream[VG_DEVICES], several_ns[VG_DEVICES], next_ns[VG_DEVICES];
static _Atomic uint32_t part_ppm[VG_DEVICES]; /* 0: not measured, which is all */
static double covered[VG_DEVICES], summed[VG_DEVICES];
static enum vg_pace found_at[VG_DEVICES];
static uint32_t cut_in_a_row;
/* the group that this thread's launches go into */
static VG_TLS uint32_t mine;

static void lock_begin(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
}

static void lock_end(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

double vg_overlap(int row)
{
    uint32_t ppm = atomic_load_explicit(&part_ppm[row], memory_order_relaxed);
    return ppm ? ppm / (double)VG_PPM : 1;
}

/* The time in which all streams of the group did nothing else, as far as they did anything. */
static struct span seen_whole(void)
{
    struct span whole = {-1e18, 1e18, 0};
    for (uint32_t i = 0; i < group.joined; i++) {
        double first = 1e18, last = -1e18;
        for (uint32_t j = 0; j < group.joined; j++) {
            const struct span *other = &group.span[j];
            if (other->stream != group.span[i].stream)
                continue;
            first = other->begin < first ? other->begin : first;
            last = other->end > last ? other->end : last;
        }
        if (!group.began_idle && first > whole.begin)
            whole.begin = first;
        if (!group.ended_idle && last < whole.end)
            whole.end = last;
    }
    return whole;
}

/* What its events cost is no pause of a stream: without them its kernels follow one another. */
static void close_gaps(struct span *spans, uint32_t count)
{
    for (uint32_t i = count; i-- > 1;)
        for (uint32_t j = i; j--;)
            if (spans[j].stream == spans[i].stream) {
                double gap = spans[i].begin - spans[j].end;
                if (gap > 0 && gap < PAUSE_NS)
                    spans[i].begin = spans[j].end;
                break;
            }
}

static void sort_by_begin(struct span *spans, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct span moved = spans[i];
        uint32_t at = i;
        for (; at && spans[at - 1].begin > moved.begin; at--)
            spans[at] = spans[at - 1];
        spans[at] = moved;
    }
}

/* The lock is held. */
static void conclude(void)
{
    int row = group.row;
    close_gaps(group.span, group.joined);
    struct span whole = seen_whole();
    double until = whole.begin, time = 0, sum = 0;
    sort_by_begin(group.span, group.joined);
    for (uint32_t i = 0; i < group.joined; i++) {
        double begin = group.span[i].begin, end = group.span[i].end;
        begin = begin > whole.begin ? begin : whole.begin;
        end = end < whole.end ? end : whole.end;
        if (end <= begin)
            continue;
        sum += end - begin;
        if (end > until) {
            time += end - (begin > until ? begin : until);
            until = end;
        }
    }
    if (found_at[row] != group.pace)
        covered[row] = summed[row] = 0;
    found_at[row] = group.pace;
    covered[row] = REMEMBERED * covered[row] + time;
    summed[row] = REMEMBERED * summed[row] + sum;
    uint32_t ppm = summed[row] > 0 ? (uint32_t)(VG_PPM * covered[row] / summed[row]) : 0;
    atomic_store_explicit(&part_ppm[row], ppm, memory_order_relaxed);
}

/* The lock is held. */
static void end_if_done(void)
{
    if (!group.is_closed || group.taken < group.joined)
        return;
    cut_in_a_row = group.is_cut ? cut_in_a_row + 1 : 0;
    if (!group.is_spoilt && group.joined >= FEWEST &&
        (!group.is_cut || cut_in_a_row > CUT_IN_A_ROW))
        conclude();
    atomic_store(&open_number, 0);
}

static bool is_due(int row, uint64_t now)
{
    uint64_t several = atomic_load_explicit(&several_ns[row], memory_order_relaxed);
    if (!several || now < atomic_load_explicit(&next_ns[row], memory_order_relaxed))
        return false;
    if (now >= several + SEVERAL_FOR_NS && vg_overlap(row) >= 0.99)
        return false;
    uint32_t left = atomic_load_explicit(&batches_left, memory_order_relaxed);
    if (left)
        atomic_store_explicit(&batches_left, left - 1, memory_order_relaxed);
    return !left;
}

static void begin(int row, uint64_t now, bool is_idle)
{
    static uint32_t number;
    lock_begin();
    if (!atomic_load(&open_number) || now > group.begun + PATIENCE_NS) {
        group.joined = group.taken = 0;
        group.is_closed = group.is_spoilt = group.is_cut = group.ended_idle = false;
        group.began_idle = is_idle;
        group.row = row;
        group.pace = vg_pace(row, now);
        group.begun = now;
        number += number + 1 ? 1 : 2;
        mine = number;
        atomic_store(&open_number, mine);
        atomic_store_explicit(&next_ns[row], now + EVERY_NS, memory_order_relaxed);
        uint32_t most = number < BATCHES ? number : BATCHES;
        atomic_store_explicit(&batches_left, (number * 0x9E3779B9u >> 8) % most,
                              memory_order_relaxed);
    }
    lock_end();
}

bool vg_overlap_times(int row, uint64_t starts)
{
    if (likely(!mine)) {
        uint64_t now;
        if (starts && atomic_load_explicit(&several_ns[row], memory_order_relaxed) &&
            is_due(row, now = vg_now_ns()))
            begin(row, now, starts <= now);
        return mine;
    }
    lock_begin();
    bool is_ours = mine == atomic_load(&open_number);
    uint64_t now = starts ? vg_now_ns() : 0;
    bool is_enough = now && group.joined >= (now > group.begun + LONG_NS ? FEWEST : ENOUGH);
    bool goes_on = is_ours && group.row == row && group.joined < MOST && !is_enough;
    if (is_ours && !goes_on) {
        group.is_closed = true;
        group.ended_idle = starts && starts <= now;
        end_if_done();
    }
    lock_end();
    if (!goes_on)
        mine = 0;
    return goes_on;
}

struct vg_overlap_place vg_overlap_joined(int row, CUstream stream, bool is_known)
{
    uint64_t its = (uint64_t)(uintptr_t)stream + 1;
    uint64_t last = atomic_exchange_explicit(&last_stream[row], its, memory_order_relaxed);
    struct vg_overlap_place place = {0, 0};
    if (last && last != its)
        atomic_store_explicit(&several_ns[row], vg_now_ns(), memory_order_relaxed);
    if (likely(!mine) || !is_known)
        return place;
    lock_begin();
    if (mine == atomic_load(&open_number) && group.row == row && group.joined < MOST) {
        group.span[group.joined].stream = its;
        place = (struct vg_overlap_place){mine, group.joined++};
    }
    lock_end();
    return place;
}

void vg_overlap_missed(void)
{
    if (likely(!mine))
        return;
    lock_begin();
    group.is_spoilt |= mine == atomic_load(&open_number);
    lock_end();
}

void vg_overlap_taken(struct vg_overlap_place place, const double *begin_ns, uint64_t elapsed,
                      bool is_cut)
{
    lock_begin();
    if (place.group == atomic_load(&open_number)) {
        struct span *span = &group.span[place.at];
        span->begin = begin_ns ? *begin_ns : 0;
        span->end = span->begin + (double)elapsed;
        group.is_spoilt |= !begin_ns;
        group.is_cut |= is_cut;
        group.taken++;
        end_if_done();
    }
    lock_end();
}

void vg_overlap_forked(void)
{
    atomic_flag_clear(&lock);
    atomic_store(&open_number, 0);
    mine = 0;
}
