/* The numbers by which launches are timed and priced. The last word says where each comes from:
 *
 * - Driver: assumed of NVIDIA's drivers, as the fake GPU does; not measured on a GPU of ours yet.
 * - Server: follows from the ticks of the vGPU server (TICK_NS, 50 ms).
 * - Arithmetic: follows from the others, or from the statistics of a moving mean.
 * - Tried: found on the fake GPU; test_compute_control.py and test_compute_shares.py hold it.
 * - Choice: a trade-off, and a number near it does as well. */
#ifndef ALNAIR_VGPU_PRICE_CONSTANTS_H
#define ALNAIR_VGPU_PRICE_CONSTANTS_H

/* ---- of the GPU ------------------------------------------------------------------------------ */
#define SLICE_NS 2000000u /* a time slice of one context beside others. Driver */
/* in which a slice may end, around a kernel that is timed: two events cost about 2 us, before and
 * behind it. Driver */
#define EVENTS_NS 4000u
/* a pair of events around nothing that shows more was cut: far above EVENTS_NS, far below
 * SLICE_NS. Arithmetic */
#define MAX_EMPTY_NS 20000u
/* the longest that a short kernel can take which was cut once: a slice of each of the others, a
 * quarter more for switches and rounding, and one of its own. Arithmetic */
#define OTHERS_SPAN(others) (SLICE_NS + (others) * (SLICE_NS + SLICE_NS / 4))

/* ---- of the page, which tells of others late ------------------------------------------------- */
#define LATE_MS 150u /* until the page tells of a neighbour that woke: three ticks. Server */
/* without neighbours for so long nobody is there: four ticks. Server */
#define QUIET_NS 200000000ull
#define LOOK_NS 20000000ull /* siblings are counted so often, in less than a tick. Choice */
/* undisturbed samples are preferred for so long; the server corrects what stays wrong longer.
 * Choice */
#define STALE_MS 3000u

/* ---- of timing ------------------------------------------------------------------------------- */
#define PRIOR_NS 20000u /* charged for a kernel that was never seen: a common length. Choice */
/* one timed launch per so much GPU time: its two events are 0.5 % of that. Arithmetic */
#define OVERHEAD_NS 400000u
#define SPARSEST 256u /* and per so many launches, or a change is seen late. Choice */
/* so many of a kernel are taken densely, to see soon whether all runs are alike, as of one that has
 * a long run in ten. Tried */
#define MANY 64u
#define DENSE 16u /* that is one of so many launches. Tried */
/* what events cannot time is waited for so long at most: longer, it may wait for us. Choice */
#define UNSEEN_MOST_NS 1000000000ull
#define UNSEEN_NS 20000000ull /* the same where its stream may not be asked. Choice */
/* a first launch is timed well enough where its call took no more than this part of it. Choice */
#define UNSURE_PART 8
/* in so much time together such calls are taken to have loaded code; then for kernels that ran: as
 * much as an idle tenant may save (BURST_NS). Choice */
#define TRUST_NS 300000000.0f
#define CALIBRATED 64u /* one sample in so many also times nothing at all. Choice */

/* ---- of the mean ----------------------------------------------------------------------------- */
/* samples over which the mean moves, per relative variance: its error is then 1 / sqrt(2 * 2500),
 * 1.4 %. Arithmetic */
#define SAMPLES_PER_SPREAD 2500
#define FEWEST_SAMPLES 16 /* and so many at least. Choice */
#define MOST_SAMPLES 4096 /* and at most. Choice */
/* at most of kernels longer than OVERHEAD_NS: each launch is timed and charged what it took, so
 * that their mean may be rough. Arithmetic */
#define LONG_KERNEL_SAMPLES 16
/* until then a single outlier is no part of the mean: twice the fewest. Choice */
#define SETTLED_COUNT 32
#define KNOWN_PART 8 /* a mean stands after this part of its samples. Tried */
/* the shortest run grows by so much with each sample: it doubles in 7,000. Choice */
#define FORGET_LEAST 1.0001f

/* a timed launch stands for so much more than can have run, as the mean of rare long runs needs it;
 * as much as may be queued (BACKLOG_NS). Choice */
#define LIKE_MOST_NS 100000000.0

/* ---- of runs that take long ------------------------------------------------------------------ */
#define FIRST_ONES 8u /* after so many samples the least is one that was not cut. Tried */
/* longer is a long run: jitter is far less, and a cut adds most of a slice. Arithmetic */
#define LONG_RUN(least) (4 * (least) + SLICE_NS / 4)
#define LONG_MEMORY 64 /* samples over which long runs are counted. Tried */
/* one was long among the last ones: half of what it counted then. Choice */
#define LONG_SEEN (0.5f / LONG_MEMORY)
/* cut kernels are long less often: slices cut (least + EVENTS_NS) / SLICE_NS of them; four times
 * that, and 4 %, which is chance among LONG_MEMORY. Arithmetic, and tried */
#define LONG_PART(least) (0.04f + 4 * ((least) + EVENTS_NS) / SLICE_NS)
/* in the own window an undisturbed run is no longer, with jitter of 20 %. Tried */
#define INSIDE_RUN(least) (1.6f * (least) + SLICE_NS / 4)
/* at both ends of a window, where a neighbour's last kernel may overrun. Tried */
#define EDGE_NS(window) ((window) / 8 < 4 * SLICE_NS ? (window) / 8 : 4 * SLICE_NS)

#endif
