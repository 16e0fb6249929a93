/* This process's slot in the counters page, and what becomes of the slots of dead processes.
 *
 * Claiming is one compare-and-swap of `owner` from 0; freeing another's slot is done under a file
 * lock that the kernel releases with its holder (see abi.h). Whether an owner lives: its pid, and
 * its start time, since pids come again.
 *
 * A process does not free its own slot when it exits: the driver holds its memory until the kernel
 * has closed it, which is after the last line of code that could run here. Whoever is refused
 * memory, or needs a slot, frees the slots of the dead first; the server does so at once (it holds
 * a pidfd).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <unistd.h>

#include "compute/compute.h"
#include "driver/real_driver.h"
#include "session/session.h"

static struct vg_slot *_Atomic own;
static _Atomic uint64_t own_pid;
static _Atomic bool claiming;

struct life {
    char state;
    uint64_t threads, started;
};

/* /proc/PID/stat; false where it cannot be read. */
static bool read_life(uint64_t pid, struct life *life)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = 0;
    char *field = strrchr(text, ')'); /* the name before it may hold anything */
    if (!field)
        return false;
    *life = (struct life){.state = field[1] ? field[2] : 0};
    int number = 2;
    for (field++; *field && number < 22; field++)
        if (*field == ' ') {
            number++;
            if (number == 20)
                life->threads = strtoull(field + 1, NULL, 10);
            else if (number == 22)
                life->started = strtoull(field + 1, NULL, 10);
        }
    return number == 22;
}

/* Changes with every execve; a hash, since the kernel's random bytes also seed stack protectors. */
static uint64_t image(void)
{
    const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; bytes && i < 16; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash | 1;
}

static uint64_t pid_namespace(void)
{
    char text[64];
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *number = strchr(text, '[');
    return number ? strtoull(number + 1, NULL, 10) : 0;
}

/* Sure only of death: everything that cannot be read counts as life. */
static bool dead(struct vg_slot *slot, uint64_t namespace)
{
    uint64_t owner = atomic_load(&slot->owner), started = atomic_load(&slot->started);
    uint64_t where = atomic_load(&slot->pid_namespace);
    if (where && where != namespace)
        return false;
    if (owner == vg_pid() && started)
        return atomic_load(&slot->image) != image();
    if (vg_gone(owner))
        return true;
    struct life life;
    if (!read_life(owner, &life))
        return false;
    if ((life.state == 'Z' || life.state == 'X') && life.threads <= 1)
        return true; /* a dead leader of a process whose threads go on is a zombie, too */
    return started && life.started != started;
}

static uint64_t used_slots(void)
{
    uint64_t used = atomic_load(&vg_counters->slots_used);
    return used < VG_SLOTS ? used : VG_SLOTS;
}

static void wipe(struct vg_slot *slot)
{
    _Atomic uint64_t *words = &slot->owner;
    vg_left_behind(slot);
    for (size_t i = 1; i < sizeof *slot / sizeof *words; i++)
        atomic_store(&words[i], 0);
    atomic_store(&slot->owner, 0);
}

int vg_reap(void)
{
    if (!vg_counters)
        return 0;
    int kept = errno, freed = 0, fd = -1;
    uint64_t namespace = pid_namespace();
    for (uint64_t i = 0; i < used_slots(); i++) {
        struct vg_slot *slot = &vg_counters->slot[i];
        if (!atomic_load(&slot->owner) || !dead(slot, namespace))
            continue;
        if (fd < 0) {
            fd = vg_open_page("counters", O_RDONLY);
            if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
                /* somebody else is at it */
                freed = -1;
                break;
            }
        }
        if (atomic_load(&slot->owner) && dead(slot, namespace)) {
            wipe(slot);
            freed++;
        }
    }
    if (fd >= 0)
        close(fd);
    errno = kept;
    return freed;
}

/* At an orderly end it is known when that is; else it is when the slot is freed. */
__attribute__((destructor)) static void leave(void)
{
    struct vg_slot *slot = vg_slot_now();
    int kept = errno, fd = -1;
    if (slot && vg_counters && atomic_load(&slot->owner) == vg_pid() && vg_has_unsettled(slot))
        fd = vg_open_page("counters", O_RDONLY);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
        vg_left_behind(slot);
    if (fd >= 0)
        close(fd);
    errno = kept;
}

/* Whether some owner is surely gone: a cheap look before the thorough one. */
static bool some_are_gone(void)
{
    uint64_t self = vg_pid(), now = image();
    for (uint64_t i = 0; i < used_slots(); i++) {
        struct vg_slot *slot = &vg_counters->slot[i];
        uint64_t owner = atomic_load(&slot->owner);
        if (owner && (owner == self ? atomic_load(&slot->image) != now : vg_gone(owner)))
            return true;
    }
    return false;
}

static struct vg_slot *take(uint64_t limit)
{
    uint64_t self = vg_pid();
    for (uint64_t i = 0; i < limit; i++) {
        struct vg_slot *slot = &vg_counters->slot[i];
        uint64_t free_owner = 0;
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) ||
            !atomic_compare_exchange_strong(&slot->owner, &free_owner, self))
            continue;
        struct life life;
        atomic_store(&slot->unhooked, vg_unhooked());
        atomic_store(&slot->image, image());
        atomic_store(&slot->classes, VG_COUNTED);
        atomic_store(&slot->pid_namespace, pid_namespace());
        atomic_store(&slot->started, read_life(self, &life) ? life.started : 0);
        uint64_t used = atomic_load(&vg_counters->slots_used);
        while (used < i + 1 &&
               !atomic_compare_exchange_weak(&vg_counters->slots_used, &used, i + 1))
            ;
        return slot;
    }
    return NULL;
}

CUresult vg_slot_claim(void)
{
    if (atomic_load(&own))
        return CUDA_SUCCESS;
    while (atomic_exchange(&claiming, true))
        usleep(50);
    struct vg_slot *slot = atomic_load(&own);
    if (!slot)
        slot = take(used_slots());
    if (!slot && some_are_gone() && vg_reap())
        slot = take(used_slots());
    if (!slot)
        slot = take(VG_SLOTS);
    if (!slot && vg_reap())
        slot = take(VG_SLOTS);
    atomic_store(&own_pid, vg_pid());
    atomic_store(&own, slot);
    atomic_store(&claiming, false);
    if (slot)
        return CUDA_SUCCESS;
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        vg_say("no CUDA in this process: %d processes of this container use it already", VG_SLOTS);
    return CUDA_ERROR_NOT_PERMITTED;
}

struct vg_slot *vg_slot_now(void)
{
    return atomic_load_explicit(&own, memory_order_relaxed);
}

struct vg_slot *vg_slot(void)
{
    struct vg_slot *slot = vg_slot_now();
    if (unlikely(!slot)) {
        if (atomic_load(&vg_mode) == VG_MODE_LIMITED && vg_slot_claim() == CUDA_SUCCESS)
            slot = vg_slot_now();
    } else if (unlikely(atomic_load_explicit(&slot->owner, memory_order_relaxed) !=
                        atomic_load_explicit(&own_pid, memory_order_relaxed)))
        vg_refuse("the vGPU server made the counters anew; this process must start again");
    return slot;
}

void vg_slot_forked(void)
{
    atomic_store(&own, NULL);
    atomic_store(&claiming, false);
}
