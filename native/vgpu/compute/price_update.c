/* How a timed launch changes a kernel's price (price_update.h); the numbers are in
 * price_constants.h.
 *
 * The mean matters, not the minimum nor the last value: kernels jitter, and the same kernel may be
 * short or long by its data. The window over which it moves grows with the spread, so that a
 * spread-out kernel does not make the rate of the whole container noisy.
 *
 * With neighbours on the GPU a pair of events also spans the time slices of others. Such a sample
 * is used only where no undisturbed one came for a while, and then less what the others took. What
 * remains wrong is the server's to correct (cost_scale_ppm), slowly. */
#include "compute/price_update.h"

#include "compute/price_constants.h"

/* GPU time of its own in what the events span. While others are at work they have half of the time
 * (k others k / (k + 1): slices are equal), or what they are known to use where that is less. Where
 * tenants take turns, they are at work outside of the tenant's own windows. */
static double own_time(uint64_t start, uint64_t elapsed, struct vg_contention contention)
{
    if (!contention.neighbours || elapsed < SLICE_NS / 2)
        return (double)elapsed;
    double most = contention.neighbours / (contention.neighbours + 1.0);
    if (!contention.period) {
        double others = contention.others_ppm / (double)VG_PPM;
        return (double)elapsed * (1 - (others > 0 && others < most ? others : most));
    }
    double own = 0;
    for (uint64_t at = start, end = start + elapsed; at < end;) {
        uint64_t in = (at + contention.period - contention.begin) % contention.period;
        bool is_mine = in < contention.length;
        uint64_t until = at + (is_mine ? contention.length : contention.period) - in;
        until = until < end ? until : end;
        own += (double)(until - at) * (is_mine ? 1 : 1 - most);
        at = until;
    }
    return own;
}

static void note_least(struct vg_price *price, uint64_t elapsed)
{
    price->least *= FORGET_LEAST;
    if (!price->count || (float)elapsed < price->least)
        price->least = (float)elapsed;
}

/* Whether it ran in the tenant's own window; a short kernel away from the edges, where the last one
 * of another may overrun. (A long one may have met that: see vg_price_update.) */
static bool is_inside(uint64_t start, uint64_t elapsed, struct vg_contention contention,
                      bool has_long)
{
    if (!contention.period)
        return false;
    uint64_t in = (start + contention.period - contention.begin) % contention.period;
    uint64_t edge = EDGE_NS(contention.length);
    if (elapsed > SLICE_NS && !has_long)
        edge = 0;
    /* What is shorter than the edge is judged by its start alone, or of runs that differ the longer
     * ones would be left out more often. */
    uint64_t until = in + edge + (elapsed > edge ? elapsed : 0);
    return in >= edge && until < contention.length;
}

/* Samples over which the mean moves. */
static double window(const struct vg_price *price)
{
    double spread = price->count > 1 ? price->square / ((double)price->mean * price->mean) - 1 : 0;
    double samples = SAMPLES_PER_SPREAD * spread,
           most = price->mean > OVERHEAD_NS ? LONG_KERNEL_SAMPLES : MOST_SAMPLES;
    return samples < FEWEST_SAMPLES ? FEWEST_SAMPLES : samples > most ? most : samples;
}

static void learn(struct vg_price *price, double ns)
{
    double samples = window(price);
    double weight = price->count + 1 < samples ? 1.0 / (price->count + 1) : 1 / samples;
    price->mean += (float)(weight * (ns - price->mean));
    price->square += (float)(weight * (ns * ns - price->square));
    if (price->count < UINT32_MAX)
        price->count++;
}

/* What was learnt beside others is worth less than the first sample without; of a kernel whose runs
 * differ, than so many more as its mean takes more samples. */
static void trust_less(struct vg_price *price)
{
    uint32_t most = (uint32_t)(window(price) / FEWEST_SAMPLES);
    if (price->count > most)
        price->count = most;
}

/* Slices of others cut a kernel the seldomer the shorter it is. One that takes much longer far more
 * often than that has long runs of its own. */
static bool has_long_runs(const struct vg_price *price)
{
    return price->long_runs > LONG_PART(price->least);
}

static float longest_short(const struct vg_price *price)
{
    return LONG_RUN(price->least);
}

static void note_length(struct vg_price *price, uint64_t elapsed)
{
    note_least(price, elapsed);
    if (price->count >= FIRST_ONES)
        price->long_runs +=
            (((float)elapsed > longest_short(price)) - price->long_runs) / LONG_MEMORY;
}

/* The first ones were cut, or the very first one spans what the driver did for it (code loaded, a
 * graph uploaded). They were charged all the same: who runs a kernel long once and then short shall
 * not have the long one for nothing. */
static void forget_first(struct vg_price *price, uint32_t neighbours)
{
    if (price->count && price->count < (neighbours ? FEWEST_SAMPLES : 2) &&
        price->mean > longest_short(price) && !has_long_runs(price))
        price->count = 0, price->mean = price->square = 0;
}

/* What is owed for the other launches that a timed one stands for, had each taken so long: they were
 * charged by what was known, and who changes what his kernels do shall not have that for nothing.
 * They ran since the last timed one was launched: a run that was long for once (code that loads, a
 * page that moves) stands for little more than that time, not for hundreds like it. */
static int64_t owed_for_like(const struct vg_timed *timed, double each)
{
    double others = timed->stands_for - 1.0, took = others * each;
    double most = LIKE_MOST_NS;
    if (timed->passed > timed->elapsed)
        most += (double)(timed->passed - timed->elapsed);
    if (timed->passed && took > most)
        took = most;
    return (int64_t)(took - others * (double)timed->charged);
}

/* What would be owed for a launch that was taken to be cut, and for its like, had it been long:
 * its like ran since the one timed before, so they took no longer than that. */
static double owed_if_long(const struct vg_price *price, const struct vg_timed *timed, double ns)
{
    double like = (timed->stands_for - 1.0) * ns;
    if (timed->passed && like > (double)timed->passed)
        like = (double)timed->passed;
    return ns + like - timed->stands_for * (double)price->mean;
}

/* Samples beside neighbours: of the last ones that were taken to be cut it is owed what they took,
 * once it is known that the kernel has long runs of its own. */
static int64_t owed_for_cut(struct vg_price *price)
{
    int64_t owed = 0;
    if (price->doubts)
        price->doubts = 0, price->doubted_like = 0;
    price->doubted_like -= price->doubted_like / LONG_MEMORY;
    if (has_long_runs(price)) {
        owed = (int64_t)price->doubted_like;
        price->doubted_like = 0;
    }
    return owed;
}

/* Samples without: what was long counts once nobody can have come, and is owed. */
static int64_t owed_for_doubted(struct vg_price *price, uint32_t now_ms)
{
    if (!price->doubts || now_ms - price->doubt_ms <= LATE_MS)
        return 0;
    int64_t owed = (int64_t)(((double)price->doubted - price->mean) * price->doubts);
    owed += (int64_t)price->doubted_like;
    price->doubted_like = 0;
    /* a single one is no part of a mean that does not stand yet */
    if (price->doubts == 1 && price->count < SETTLED_COUNT)
        price->doubts = 0;
    for (; price->doubts; price->doubts--)
        learn(price, price->doubted);
    return owed;
}

/* A short kernel that takes much longer now and then either was cut by a slice of another, which
 * says nothing of itself, or does have long runs. Seldom, and with neighbours, it was cut. Without,
 * they may have come just now: such samples count, and what was not charged is owed, once it is
 * sure that nobody came. `ns` is its own time. */
static bool is_doubtful(struct vg_price *price, const struct vg_timed *timed, uint32_t neighbours,
                        uint32_t now_ms, double ns)
{
    float longest = longest_short(price);
    uint64_t elapsed = timed->elapsed;
    if ((float)elapsed <= longest || has_long_runs(price))
        return false;
    if (neighbours) {
        /* A short one is cut once at most: what takes longer than all others' slices is a long
         * run. */
        if (elapsed > OTHERS_SPAN(neighbours))
            return false;
        price->doubted_like += (float)owed_if_long(price, timed, ns);
        return true;
    }
    if (!price->doubts++)
        price->doubt_ms = now_ms, price->doubted_like = 0;
    price->doubted += ((float)elapsed - price->doubted) / (float)price->doubts;
    price->doubted_like += (float)owed_for_like(timed, (double)elapsed);
    return true;
}

struct vg_price_change vg_price_update(struct vg_price price, const struct vg_timed *timed)
{
    struct vg_contention contention = timed->contention;
    uint64_t start = timed->start, elapsed = timed->elapsed;
    uint32_t now_ms = (uint32_t)(timed->now / 1000000) | 1; /* never 0, which says: not yet */
    /* Processes of one container that begin together are in one another's way before their launches
     * are spaced out by the limit. */
    uint32_t disturbers = contention.neighbours + contention.siblings;
    if (contention.siblings && price.count < FIRST_ONES)
        contention = (struct vg_contention){.neighbours = disturbers};
    double ns = own_time(start, elapsed, contention);
    note_length(&price, elapsed);
    forget_first(&price, disturbers);
    bool has_long = has_long_runs(&price);
    bool is_alone = contention.is_quiet || (is_inside(start, elapsed, contention, has_long) &&
                                            (has_long || (float)elapsed < INSIDE_RUN(price.least)));
    bool was_alone = price.alone_ms && now_ms - price.alone_ms < STALE_MS;
    bool is_known = price.count >= FEWEST_SAMPLES && price.count >= window(&price) / KNOWN_PART;
    if (is_alone) {
        if (!was_alone)
            trust_less(&price);
        price.alone_ms = now_ms;
    }
    int64_t charged = (int64_t)timed->charged;
    int64_t owed = disturbers ? owed_for_cut(&price) : owed_for_doubted(&price, now_ms);
    bool is_cut = is_doubtful(&price, timed, disturbers, now_ms, ns);
    if (!is_alone && was_alone && is_known) {
        owed += (int64_t)price.mean - charged;
    } else if (is_cut) {
        /* Of runs that differ, the end of a slice hits one the likelier the longer it is. */
        if (disturbers && is_known)
            learn(&price, price.square / price.mean);
        owed += price.count ? (int64_t)price.mean - charged : 0;
    } else {
        learn(&price, ns);
        owed += (int64_t)ns - charged + owed_for_like(timed, ns);
    }
    return (struct vg_price_change){price, owed};
}
