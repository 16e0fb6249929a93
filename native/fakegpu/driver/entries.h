/* What the generated entry points are made of. */
#ifndef FG_ENTRIES_H
#define FG_ENTRIES_H

#include "driver/driver.h"
#include "fg_symbols.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* of what has no model */
#define FG_EXPORT __attribute__((visibility("default")))

struct fg_entry {
    const char *base;
    void *function;
    int version, per_thread;
};
extern const struct fg_entry fg_entries[]; /* by base, legacy before per-thread, oldest first */
extern const unsigned fg_entry_count;

/* Nonzero while calls need more than counting: not attached, not initialised, faults armed. */
extern int fg_slow;
CUresult fg_enter_slow(unsigned symbol, bool early);
/* Not 0 while another process has this one locked (driver/checkpoint.c). */
extern _Atomic uint32_t *fg_checkpoint;
void fg_wait_unlocked(void);

static inline CUresult fg_enter(unsigned symbol, bool early)
{
    if (__builtin_expect(__atomic_load_n(&fg_slow, __ATOMIC_RELAXED), 0))
        return fg_enter_slow(symbol, early);
    if (__builtin_expect(atomic_load_explicit(fg_checkpoint, memory_order_relaxed), 0))
        fg_wait_unlocked();
    atomic_fetch_add_explicit(&fg_state->calls[symbol], 1, memory_order_relaxed);
    return CUDA_SUCCESS;
}
#define ENTER(symbol)                                                                              \
    do {                                                                                           \
        CUresult r_ = fg_enter(symbol, false);                                                     \
        if (r_)                                                                                    \
            return r_;                                                                             \
    } while (0)
#define ENTER_EARLY(symbol)                                                                        \
    do {                                                                                           \
        CUresult r_ = fg_enter(symbol, true);                                                      \
        if (r_)                                                                                    \
            return r_;                                                                             \
    } while (0)
#define PER_THREAD(call)                                                                           \
    do {                                                                                           \
        bool was_ = fg_per_thread;                                                                 \
        fg_per_thread = true;                                                                      \
        CUresult r_ = call;                                                                        \
        fg_per_thread = was_;                                                                      \
        return r_;                                                                                 \
    } while (0)
#define WAIT(call, per_thread)                                                                     \
    do {                                                                                           \
        bool was_ = fg_per_thread;                                                                 \
        fg_per_thread = per_thread;                                                                \
        CUresult r_ = call;                                                                        \
        fg_per_thread = was_;                                                                      \
        fg_pools_synchronized();                                                                   \
        return r_;                                                                                 \
    } while (0)
#endif
