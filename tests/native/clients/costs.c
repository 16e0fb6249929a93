/* The table of prices by itself, over a clock of our own: fills it, and asks whether kernels that
 * come later have a place. Prints a line of JSON. */
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
    atomic_fetch_add(&cost->left, 1);
    return cost;
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
    printf("{\"early\": %d, \"places\": %d, \"kept\": %d, \"owed\": %lld, \"learned\": %u}\n",
           in_use, places, launched(KEPT) == kept && atomic_load(&kept->predicted) == 5000, owed,
           mine[0]->price.count);
    return 0;
}
