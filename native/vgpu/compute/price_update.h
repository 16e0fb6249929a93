/* What a kernel costs, learnt from launches that were timed: without state, clock or lock, so that
 * a table of cases can say what becomes of a price (tests/native/test_price_update.py). */
#ifndef ALNAIR_VGPU_PRICE_UPDATE_H
#define ALNAIR_VGPU_PRICE_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#define VG_PPM 1000000ull

/* What is known of others on the GPU while a launch is timed; times in ns. */
struct vg_contention {
    /* other containers that work on it */
    uint32_t neighbours;
    uint32_t siblings;   /* other processes of this one that were charged lately */
    bool is_quiet;       /* no neighbours for so long that the page would tell of one */
    uint64_t others_ppm; /* GPU time that neighbours are known to use; 0: not known */
    /* this tenant's window, where tenants take turns; period 0: they do not */
    uint64_t period, begin, length;
};

/* All that is remembered of a kernel's samples; zero: nothing. */
struct vg_price {
    uint32_t count;            /* samples in the mean */
    float long_runs;           /* part of the last ones that took much longer than the shortest */
    float mean, square;        /* of ns and ns^2, moving */
    float least;               /* ns; the shortest, slowly forgotten */
    uint32_t alone_ms;         /* when a sample that nobody could disturb last came */
    uint32_t doubt_ms, doubts; /* when the first of the doubtful ones came, how many there are */
    float doubted;             /* their mean in ns */
    float doubted_like;        /* ns that would be owed for the launches that they stand for;
                                  beside neighbours for those that were taken to be cut */
};

/* A launch that was timed. */
struct vg_timed {
    /* ns: when the GPU came to it, and what its pair of events spans */
    uint64_t start, elapsed;
    uint64_t charged;    /* ns: what it was charged, as each of those that it stands for */
    uint32_t stands_for; /* launches, itself included */
    uint64_t passed; /* ns from when the one timed before it was launched to now; 0: not known */
    uint64_t now;    /* ns */
    struct vg_contention contention;
};

struct vg_price_change {
    struct vg_price price;
    int64_t owed; /* ns: still owed (or, negative, charged too much) for it and its like */
};

struct vg_price_change vg_price_update(struct vg_price price, const struct vg_timed *timed);

#endif
