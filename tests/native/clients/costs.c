/* The table of prices by itself, over a clock of our own: fills it, and asks whether kernels that
 * come later have a place; and which launches are timed. Prints a line of JSON. */
#include "../../../native/vgpu/compute/kernel_costs.c"
#include "../../../native/vgpu/compute/price_update.c"

#include <stdio.h>

static uint64_t now = 1000000000;

uint64_t vg_now_ns(void)
{
    return now;
}

static struct vg_cost *launched(uint64_t kernel)
{
    struct vg_cost *cost = vg_cost(0, (const void *)kernel, 0);
    atomic_store(&cost->used, atomic_load(&vg_costs_epoch));
    return cost;
}

/* Launches that the timed ones stand for, of so many threads that launch so often, and end. */
static uint64_t stood_for(const struct vg_cost *cost, int threads, int launches, int *timed)
{
    uint64_t sum = 0;
    for (int thread = 0; thread < threads; thread++) {
        for (int i = 0; i < launches; i++)
            if (vg_countdown_is_due(cost)) {
                sum += vg_countdown_begin(cost);
                ++*timed;
            }
        vg_countdowns_end();
    }
    return sum;
}

int main(void)
{
    enum { FILL = 40000, KEPT = 7, NEW = 64 };
    struct vg_cost *kept = launched(KEPT), *mine[NEW];
    struct vg_timed timed = {.elapsed = 5000, .stands_for = 1};
    vg_cost_measured(kept, atomic_load(&kept->key), &timed);
    for (uint64_t i = 0; i < FILL; i++)
        launched(1000 + i);
    bool in_use = false;
    for (uint64_t i = 0; i < NEW; i++)
        in_use |= launched(1000000 + i) != &crowd;
    for (int round = 0; round < 400; round++) {
        now += 50000000;
        launched(KEPT);
        for (uint64_t i = 0; i < NEW; i++)
            mine[i] = launched(2000000 + i);
    }
    int places = 0;
    for (int i = 0; i < NEW; i++) {
        bool is_own = mine[i] != &crowd;
        for (int other = 0; other < i; other++)
            is_own &= mine[i] != mine[other];
        places += is_own;
    }
    /* What was launched before its place was taken is owed, and is no part of the new price. */
    struct vg_timed late = {.elapsed = 9000000, .charged = 4000, .stands_for = 1};
    long long owed = (long long)vg_cost_measured(mine[0], 1, &late);
    bool is_kept = launched(KEPT) == kept && atomic_load(&kept->predicted) == 5000;
    kept->price.count = MANY;
    struct vg_cost before = *kept;
    int few = 0, many = 0;
    unsigned long long by_few = stood_for(kept, 2, 100000, &few);
    unsigned long long by_many = stood_for(kept, 20000, 10, &many);
    printf("{\"early\": %d, \"places\": %d, \"kept\": %d, \"owed\": %lld, \"learned\": %u,\n"
           " \"by_few\": %llu, \"few\": %d, \"by_many\": %llu, \"many\": %d, \"stored\": %d}\n",
           in_use, places, is_kept, owed, mine[0]->price.count, by_few, few, by_many, many,
           memcmp(&before, kept, sizeof before) != 0);
    return 0;
}
