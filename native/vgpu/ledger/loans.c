/* Memory beyond the slice that the GPU has and nobody was granted: lent by the server, on request.
 *
 * What the slice has no room for is asked for in this process's slot, and the server answers at its
 * next tick by a larger loan, or by none. So an allocation that goes beyond waits for some 50 ms,
 * and one that fits into what is lent already does not. The server alone knows what is free, so two
 * containers cannot both take the last of it. */
#include "ledger/ledger.h"
#include "session/session.h"

/* The longest wait: of a server that takes back from one what another asks for, and of one at rest,
 * which looks every 200 ms only. */
#define ANSWER_NS 1000000000ull
#define LOOK_NS 1000000ull
#define DEAD_NS 3000000000ull /* a heartbeat so old is of no server that will answer */

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

uint64_t vg_loan(int row)
{
    const struct vg_loan *loan = &vg_limits->loan[row];
    uint64_t bytes = load(&loan->bytes);
    return bytes && vg_now_ns() < load(&loan->until_ns) ? bytes : 0;
}

static bool is_served(uint64_t now)
{
    uint64_t beat = atomic_load(&vg_limits->heartbeat_ns);
    return beat > now || now - beat < DEAD_NS;
}

/* Until the server has answered what was asked at `asked_at`. */
static void await_answer(int row, uint64_t limit, uint64_t asked_at, uint64_t deadline)
{
    for (;;) {
        uint64_t now = vg_now_ns();
        if (load(&vg_limits->loan[row].answered_ns) > asked_at || vg_limit(row) > limit ||
            now >= deadline || !is_served(now))
            return;
        vg_sleep_until_ns(now + LOOK_NS);
    }
}

bool vg_borrow(int row, uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine || !bytes || !vg_slice(row) || !vg_borrows(row))
        return false;
    uint64_t begun = vg_now_ns(), deadline = begun + ANSWER_NS, now = begun;
    bool admitted = false, grew = true;
    while (!admitted && grew && now < deadline && is_served(now)) {
        uint64_t limit = vg_limit(row), used = vg_used(row), needed;
        if (__builtin_add_overflow(used, bytes, &needed))
            return false;
        uint64_t missing = needed > limit ? needed - limit : 0;
        atomic_fetch_add(&mine->asked[row], missing);
        if (missing)
            await_answer(row, limit, vg_now_ns(), deadline);
        /* While it is asked for the server leaves it to us. */
        grew = !missing || vg_limit(row) > limit;
        admitted = grew && vg_try_reserve(row, bytes);
        atomic_fetch_sub(&mine->asked[row], missing);
        now = vg_now_ns();
    }
    return admitted;
}
