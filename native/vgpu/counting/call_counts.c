/* Calls, bytes and time per API class, in the slot of this process.
 *
 * Launches are the one call that is made a million times per second: each thread counts its own,
 * kernels and graphs together, and how many were graphs; it tells the slot at every 64th, when it also takes the time of one of them (two clock reads cost
 * more than all else that is done here). What a thread holds back it gives at its end, by the
 * destructor of a thread key, so that counts are exact once a program is quiet. The key's functions
 * are looked up by name: their symbol versions moved with glibc 2.34. Other classes go to the slot
 * at once. */
#include "compute/compute.h"

#include <dlfcn.h>
#include <pthread.h>

#define SAMPLED 64u

static VG_TLS struct {
    int32_t row;
    uint32_t launches; /* of this batch, not yet told */
    uint32_t graphs;   /* of those */
    uint32_t calls;    /* of other classes: which one is timed */
    bool is_armed;
} mine;

static pthread_key_t key;
static int (*set_key)(pthread_key_t, const void *);
static _Atomic int has_key; /* 0: not asked, 1: being made, 2: yes, 3: cannot be had */

static void at_thread_end(void *unused)
{
    (void)unused;
    vg_limiter_flush();
    vg_count_flush();
    vg_countdowns_end();
    mine.is_armed = false; /* destructors of others that launch come here again */
}

static void arm(void)
{
    int state = 0;
    if (atomic_compare_exchange_strong(&has_key, &state, 1)) {
        int (*create)(pthread_key_t *, void (*)(void *)) =
            (__typeof__(create))vg_real_dlsym(RTLD_DEFAULT, "pthread_key_create");
        set_key = (__typeof__(set_key))vg_real_dlsym(RTLD_DEFAULT, "pthread_setspecific");
        state = create && set_key && !create(&key, at_thread_end) ? 2 : 3;
        atomic_store(&has_key, state);
    }
    if (state == 2)
        set_key(key, &mine);
    mine.is_armed = state >= 2;
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void vg_count_flush(void)
{
    uint32_t launches = mine.launches, graphs = mine.graphs;
    struct vg_slot *slot = launches ? vg_slot() : NULL;
    mine.launches = mine.graphs = 0;
    if (!slot)
        return;
    if (graphs)
        add(&slot->calls[VG_CALL_GRAPH].calls, graphs);
    if (launches > graphs)
        add(&slot->calls[VG_CALL_LAUNCH].calls, launches - graphs);
    if (mine.row >= 0)
        add(&slot->device[mine.row].launches, launches);
}

static __attribute__((noinline)) uint64_t batch(int row)
{
    if (!mine.is_armed)
        arm();
    bool is_full = mine.launches >= SAMPLED - 1;
    vg_count_flush();
    mine.row = row;
    mine.launches = 1;
    return is_full ? vg_now_ns() : 0;
}

uint64_t vg_count_launch(int row)
{
    if (likely(mine.launches - 1 < SAMPLED - 2 && mine.row == row)) { /* neither none nor full */
        mine.launches++;
        return 0;
    }
    return batch(row);
}

void vg_count_graph(void)
{
    if (mine.graphs < mine.launches)
        mine.graphs++;
}

uint64_t vg_count_begin(void)
{
    return vg_counters && ++mine.calls % SAMPLED == 0 ? vg_now_ns() : 0;
}

void vg_count_end(enum vg_class cls, uint64_t begun, uint64_t bytes)
{
    struct vg_slot *slot = vg_counters ? vg_slot() : NULL;
    if (!slot)
        return;
    struct vg_calls *calls = &slot->calls[cls];
    if (begun)
        add(&calls->ns, (vg_now_ns() - begun) * SAMPLED);
    if (cls == VG_CALL_LAUNCH || cls == VG_CALL_GRAPH) /* counted in its batch */
        return;
    add(&calls->calls, 1);
    if (bytes)
        add(&calls->bytes, bytes);
}
