/* A trace of the functions that a program resolves: what to send us of a driver or framework that
 * this library meets for the first time. ALNAIR_VGPU_TRACE=1, and only where nothing is limited: no
 * limits page, no marked copy. In a container the variable does nothing. */
#include <stdlib.h>

#include "driver/real_driver.h"
#include "session/session.h"

static bool is_traced(void)
{
    enum { UNKNOWN, NO, YES };
    static _Atomic int known;
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now == UNKNOWN) {
        const char *text = vg_folder() ? NULL : secure_getenv("ALNAIR_VGPU_TRACE");
        now = text && *text && *text != '0' ? YES : NO;
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == YES;
}

void vg_trace(const char *name, int version, uint64_t flags, const char *what)
{
    if (unlikely(is_traced()))
        vg_say("resolve %s %d %llu: %s", name, version, (unsigned long long)flags, what);
}
