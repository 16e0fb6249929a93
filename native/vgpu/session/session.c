/* Opens the session of this process with its container: fail closed.
 *
 *   no folder, no mark (mark.c)   INERT: no limits, every hook passes on
 *   pages valid, registered       LIMITED
 *   anything else                 REFUSED: no CUDA, one line on stderr that says why
 *
 * A container registers once. The first process to take `registrar` in the counters page talks to
 * the server; the others watch the state in the limits page, and take over should it die. Everybody
 * gives up at the deadline. A process that comes later maps two pages and claims a slot, no
 * more. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "driver/real_driver.h"
#include "session/session.h"

#define SHORTEST_DEADLINE_MS 100u
#define LONGEST_DEADLINE_MS 60000u
#define SILENT_MS 3000u /* after which a wait is told: an agent that starts anew is back before */

_Atomic int vg_mode;
_Atomic bool vg_entered;
const struct vg_limits *vg_limits;
struct vg_counters *vg_counters;
static const struct vg_limits *mapped; /* also while not LIMITED yet */
static _Atomic bool opening, said;

static void nap(long ns)
{
    struct timespec time = {0, ns};
    int kept = errno;
    nanosleep(&time, NULL);
    errno = kept;
}

/* One thread at a time. No driver call is made inside; a forked child starts with it free. */
static void lock(void)
{
    for (long ns = 1000; atomic_exchange_explicit(&opening, true, memory_order_acquire);
         ns = ns < 1000000 ? ns * 2 : ns)
        nap(ns);
}

static void unlock(void)
{
    atomic_store_explicit(&opening, false, memory_order_release);
}

static void say_once(const char *why)
{
    if (!atomic_exchange(&said, true))
        vg_say("no CUDA in this container: %s", why);
}

CUresult vg_refuse(const char *format, ...)
{
    char why[400];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    atomic_store(&vg_mode, VG_MODE_REFUSED);
    atomic_store(&vg_entered, false);
    say_once(why);
    return CUDA_ERROR_NOT_PERMITTED;
}

static struct vg_outcome pages(void)
{
    struct vg_outcome outcome = {.kind = VG_DONE};
    if (!mapped)
        outcome = vg_map_limits(&mapped);
    if (outcome.kind == VG_DONE && !vg_counters)
        outcome = vg_map_counters(mapped, &vg_counters);
    return outcome;
}

/* Registers the container or waits for the process that does. */
static struct vg_outcome registered(uint32_t driver_version)
{
    uint32_t ms = mapped->deadline_ms;
    ms = ms < SHORTEST_DEADLINE_MS  ? SHORTEST_DEADLINE_MS
         : ms > LONGEST_DEADLINE_MS ? LONGEST_DEADLINE_MS
                                    : ms;
    uint64_t begun = vg_wall_ns(), deadline = begun + ms * 1000000ull, self = vg_pid();
    bool told = false;
    struct vg_outcome last = {.kind = VG_AGAIN, .text = "another process of it is registering"};
    for (int round = 0;; round++) {
        uint32_t state = atomic_load(&mapped->state);
        if (state == VG_STATE_REGISTERED)
            return (struct vg_outcome){.kind = VG_DONE};
        struct vg_outcome outcome = {.kind = VG_FAILED};
        if (state != VG_STATE_WAITING) {
            snprintf(outcome.text, sizeof outcome.text, "%.*s", (int)sizeof mapped->message,
                     state == VG_STATE_REFUSED && *mapped->message ? mapped->message
                                                                   : "the vGPU server refused it");
            return outcome;
        }
        if (vg_wall_ns() >= deadline) {
            snprintf(
                outcome.text, sizeof outcome.text,
                "not registered within %u ms (%.100s); does the Alnair agent run on this node?", ms,
                last.text);
            return outcome;
        }
        if (!told && vg_wall_ns() >= begun + SILENT_MS * 1000000ull) {
            vg_say("waiting for the Alnair agent of this node, at most %u ms (%.100s)", ms,
                   last.text);
            told = true;
        }
        uint64_t holder = atomic_load(&vg_counters->registrar);
        if ((!holder || holder == self || (round % 32 == 31 && vg_gone(holder))) &&
            atomic_compare_exchange_strong(&vg_counters->registrar, &holder, self)) {
            last = vg_register(driver_version, deadline);
            atomic_store(&vg_counters->registrar, 0);
            if (last.kind == VG_FAILED)
                return last;
            if (last.kind == VG_AGAIN)
                nap(5000000);
        }
        nap(told ? 2000000 : 200000);
    }
}

static CUresult open_session(uint32_t driver_version)
{
    struct vg_outcome outcome = pages();
    if (outcome.kind == VG_NONE) {
        atomic_store(&vg_mode, VG_MODE_INERT);
        return CUDA_SUCCESS;
    }
    if (outcome.kind == VG_DONE)
        outcome = registered(driver_version);
    if (outcome.kind == VG_AGAIN) { /* may work at the next call */
        say_once(outcome.text);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (outcome.kind == VG_FAILED)
        return vg_refuse("%s", outcome.text);
    vg_limits = mapped;
    atomic_store(&vg_mode, VG_MODE_LIMITED);
    return CUDA_SUCCESS;
}

CUresult vg_session(void)
{
    int mode = atomic_load(&vg_mode), version = 0;
    if (mode == VG_MODE_UNKNOWN && !atomic_load(&vg_proxied) && REAL(cuDriverGetVersion))
        REAL(cuDriverGetVersion)(&version);
    CUresult result = CUDA_SUCCESS;
    if (mode == VG_MODE_UNKNOWN) {
        lock();
        if (atomic_load(&vg_mode) == VG_MODE_UNKNOWN) {
            if (atomic_load(&vg_proxied))
                /* the proxy limits, whatever comes through here */
                atomic_store(&vg_mode, VG_MODE_INERT);
            else
                result = open_session((uint32_t)version);
        }
        unlock();
        mode = atomic_load(&vg_mode);
    }
    return mode == VG_MODE_REFUSED ? CUDA_ERROR_NOT_PERMITTED : result;
}

bool vg_view(void)
{
    lock();
    bool known = mapped && vg_counters;
    if (!known)
        known = pages().kind == VG_DONE;
    if (known)
        vg_limits = mapped;
    unlock();
    return known;
}

CUresult vg_enter(void)
{
    uint64_t from = vg_wall_ns();
    vg_resolve();
    if (!atomic_load(
            &vg_resolved)) /* no driver in this container: hidden together with the pages? */
        return vg_must_limit() && !vg_view()
                   ? vg_refuse("neither its limits nor a driver are there")
                   : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    CUresult result = vg_session();
    if (result == CUDA_SUCCESS && atomic_load(&vg_mode) == VG_MODE_LIMITED)
        result = vg_slot_claim();
    if (result != CUDA_SUCCESS)
        return result;
    struct vg_slot *slot = vg_slot_now();
    uint64_t none = 0;
    if (slot) /* of several threads that come at once, the first to be through */
        atomic_compare_exchange_strong(&slot->start_ns, &none, vg_wall_ns() - from);
    atomic_store(&vg_entered, true);
    if (atomic_load(&vg_mode) != VG_MODE_REFUSED)
        return CUDA_SUCCESS;
    atomic_store(&vg_entered, false); /* another thread refused in between */
    return CUDA_ERROR_NOT_PERMITTED;
}

void vg_session_forked(void)
{
    atomic_store(&opening, false);
    /* refused for the parent: refused for the child */
    if (atomic_load(&vg_mode) != VG_MODE_REFUSED)
        atomic_store(&vg_entered, false);
}
