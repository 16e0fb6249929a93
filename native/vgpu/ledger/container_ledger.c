/* Device memory of one container, exact, without a lock and without a total.
 *
 * Each process has two words per GPU in its own slot of the counters page: `held` (bytes the driver
 * gave it) and `pending` (bytes it has announced and not yet settled). To reserve n bytes it
 *   1. announces: pending += n,
 *   2. then sums held + pending over all slots, and the server's overhead,
 *   3. is admitted if that sum is within the limit, else withdraws: pending -= n,
 * and after the driver's answer settles: held += actual FIRST, then pending -= n. All of them are
 * single sequentially consistent operations, and a reader takes `pending` before `held`, so that
 * bytes on their way from one word to the other are seen (perhaps twice, never not at all).
 *
 * Why the limit can then never be exceeded, not even by processes that are killed half-way, is
 * proved in docs/concepts/memory-limit.md. The slot of a dead process is freed by vg_reap, by any
 * peer or the server.
 *
 * The price: two announcements can see each other and both find the limit exceeded although one
 * would fit, and bytes count until their process has credited them, a little longer than the driver
 * holds them. So no refusal is given at once where the bytes in the way are only announced, or are
 * leaving (a hint that counts for nothing else). The process withdraws, waits and tries again
 * (contend); among those that try, the one in the lowest slot lets its announcement stand, which
 * makes the others withdraw. */
#include <sched.h>

#include "ledger/ledger.h"
#include "pools/pools.h"
#include "session/session.h"

/* The longest wait for others' announcements: a process that the kernel took off a busy CPU in the
 * middle of one comes back by then. */
#define CONTEND_NS 250000000ull
#define REAP_NS 5000000ull /* after this wait, see whether those in the way have died */
#define STEADY 64          /* readings at most, for two that are equal */
#define CONTEND_SPINS 32   /* yields before the first sleep */

struct sum {
    uint64_t held;  /* of all slots, and the server's overhead, less its credit */
    uint64_t firm;  /* the part of it that is not leaving */
    uint64_t total; /* held and pending: what decides */
    bool lower;     /* a lower slot has announced something */
    uint64_t print; /* of all that was read: equal twice, it was true at an instant */
};

static uint64_t saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t load_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

uint64_t vg_slice(int row)
{
    return vg_limits ? load_word(&vg_limits->device[row].memory_limit) : 0;
}

bool vg_borrows(int row)
{
    return __atomic_load_n(&vg_limits->device[row].flags, __ATOMIC_RELAXED) & VG_BORROWS;
}

uint64_t vg_limit(int row)
{
    uint64_t slice = vg_slice(row);
    return slice && unlikely(vg_borrows(row)) ? saturated(slice, vg_loan(row)) : slice;
}

static struct sum scan(int row, const struct vg_slot *mine)
{
    uint64_t overhead = load_word(&vg_limits->device[row].memory_overhead), pending = 0;
    uint64_t credit = load_word(&vg_limits->device[row].memory_credit), loaded = 0;
    struct sum sum = {overhead, overhead, 0, false, 0};
    uint64_t used = atomic_load(&vg_counters->slots_used);

    for (uint64_t i = 0; i < used && i < VG_SLOTS; i++) {
        struct vg_slot *slot = &vg_counters->slot[i];
        uint64_t announced = atomic_load(&slot->device[row].pending); /* before held: see above */
        uint64_t leaving = atomic_load(&slot->leaving[row]); /* before held, which falls first */
        uint64_t held = atomic_load(&slot->device[row].held);
        /* after held: who is freed loses this first */
        uint64_t modules = atomic_load(&slot->loaded[row]);
        loaded = saturated(loaded, modules < held ? modules : held);
        sum.held = saturated(sum.held, held);
        sum.firm = saturated(sum.firm, leaving < held ? held - leaving : 0);
        pending = saturated(pending, announced);
        sum.lower |= announced && slot < mine;
        sum.print = (sum.print ^ held ^ leaving << 1 ^ modules << 2) * 0x9e3779b97f4a7c15ull;
    }
    credit = credit < loaded ? credit : loaded;
    sum.held -= credit < sum.held ? credit : sum.held;
    sum.firm -= credit < sum.firm ? credit : sum.firm;
    sum.total = saturated(sum.held, pending);
    return sum;
}

/* Slots are read one after the other, so what one gave back and another took meanwhile counts
 * twice: safe to admit by, but not to refuse by. Two equal readings are what was true in
 * between. */
static struct sum scan_steady(int row, const struct vg_slot *mine)
{
    struct sum sum = scan(row, mine), again;
    for (int i = 0; i < STEADY; i++, sum = again) {
        again = scan(row, mine);
        if (again.print == sum.print)
            break;
    }
    return again;
}

uint64_t vg_used(int row)
{
    return vg_limits ? scan(row, NULL).held : 0;
}

/* One thread of a process at a time contends for a GPU, else its own announcements, which look like
 * one, would block each other. The holder's pid is the lock, so a forked child never inherits
 * it. */
static _Atomic uint64_t turn_of[VG_DEVICES];

static bool take_turn(int row, uint64_t deadline)
{
    uint64_t me = vg_pid();
    for (int spins = 0;; spins++) {
        uint64_t holder = 0;
        if (atomic_compare_exchange_strong(&turn_of[row], &holder, me))
            return true;
        if (holder != me && atomic_compare_exchange_strong(&turn_of[row], &holder, me))
            return true;
        uint64_t now = vg_now_ns();
        if (now >= deadline)
            return false;
        if (spins < CONTEND_SPINS)
            sched_yield();
        else
            vg_sleep_until_ns(now + 50000);
    }
}

/* Waits a little, longer each time and not in step with the other slots. */
static void back_off(int round, const struct vg_slot *mine)
{
    if (round < CONTEND_SPINS) {
        sched_yield();
        return;
    }
    uint64_t index = (uint64_t)(mine - vg_counters->slot);
    vg_sleep_until_ns(vg_now_ns() + 20000 +
                      (index * 2654435761u + (uint64_t)round * 40503u) % 60000);
}

/* The first announcement was withdrawn: is the limit reached, or are others only in the way? */
static bool contend(int row, uint64_t bytes, struct vg_slot *mine)
{
    _Atomic uint64_t *pending = &mine->device[row].pending;
    uint64_t begun = vg_now_ns(), deadline = begun + CONTEND_NS;
    bool admitted = false, reaped = false, announced = false;

    bool turn = take_turn(row, deadline);
    for (int round = 0; !admitted; round++) {
        if (!announced) {
            atomic_fetch_add(pending, bytes);
            announced = true;
        }
        uint64_t limit = vg_limit(row); /* after the announcement: see vg_try_reserve */
        struct sum sum = scan_steady(row, mine);
        uint64_t now = vg_now_ns();
        bool late = now >= deadline;
        if (!limit || sum.total <= limit) {
            admitted = true;
            break;
        }
        if (saturated(sum.firm, bytes) > limit || late) {
            /* Refused by what is held; but the dead hold nothing and announce nothing. */
            atomic_fetch_sub(pending, bytes);
            announced = false;
            int freed = reaped ? 0 : vg_reap();
            if (!freed || (freed < 0 && late))
                break;
            reaped = freed > 0;
            if (freed < 0)
                back_off(round, mine);
            continue;
        }
        if (sum.lower) {
            atomic_fetch_sub(pending, bytes);
            announced = false;
        }
        if (!reaped && now - begun > REAP_NS)
            reaped = vg_reap() >= 0;
        back_off(round, mine);
    }
    if (turn)
        atomic_store(&turn_of[row], 0);
    return admitted;
}

bool vg_try_reserve(int row, uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine || !bytes)
        return true;
    uint64_t limit = vg_limit(row);
    if (limit && bytes > limit)
        return false;
    atomic_fetch_add(&mine->device[row].pending, bytes);
    /* Read again: who lowers it, as a loan is, then looks for announcements, so that either they
     * are seen or the new limit is. */
    if (!limit || (limit = vg_limit(row), scan(row, mine).total <= limit))
        return true;
    atomic_fetch_sub(&mine->device[row].pending, bytes);
    return contend(row, bytes, mine);
}

void vg_refused(int row)
{
    atomic_fetch_add(&vg_slot()->device[row].refused, 1);
}

bool vg_reserve_or_not(int row, uint64_t bytes)
{
    /* Before a refusal: what this process keeps in stock and does not use, then a loan. */
    return vg_try_reserve(row, bytes) || (vg_pools_give_back(row) && vg_try_reserve(row, bytes)) ||
           vg_borrow(row, bytes);
}

bool vg_reserve(int row, uint64_t bytes)
{
    if (vg_reserve_or_not(row, bytes))
        return true;
    vg_refused(row);
    return false;
}

void vg_note_module(const struct vg_record *record, bool is_there)
{
    struct vg_slot *slot = NULL;
    if (record->row >= 0 && (record->kind == VG_KIND_MODULE || record->kind == VG_KIND_COPY))
        slot = vg_slot();
    if (slot && is_there)
        atomic_fetch_add(&slot->loaded[record->row], record->bytes);
    else if (slot)
        atomic_fetch_sub(&slot->loaded[record->row], record->bytes);
}

void vg_settle(int row, uint64_t reserved, uint64_t actual)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return;
    if (actual)
        atomic_fetch_add(&mine->device[row].held, actual);
    if (reserved)
        atomic_fetch_sub(&mine->device[row].pending, reserved);
}

/* Never below zero, whatever another process wrote here: an underflow would read as 2^64. */
static void subtract(_Atomic uint64_t *word, uint64_t bytes)
{
    uint64_t now = atomic_load(word);
    while (!atomic_compare_exchange_weak(word, &now, now > bytes ? now - bytes : 0))
        ;
}

void vg_leave(int row, uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (mine)
        atomic_fetch_add(&mine->leaving[row], bytes);
}

void vg_left(int row, uint64_t leaving, uint64_t freed)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return;
    if (freed)
        subtract(&mine->device[row].held, freed);
    if (leaving)
        subtract(&mine->leaving[row], leaving);
}

void vg_release(int row, uint64_t bytes)
{
    vg_left(row, 0, bytes);
}
