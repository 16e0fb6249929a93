/* Races the ledger alone: N processes reserve, settle and release at random against a "driver" that
 * is a sum under a robust lock, and may be killed anywhere. Prints one JSON line.
 *
 *   ledger_race PROCESSES OPERATIONS LIMIT_BLOCKS KILLS SEED
 *
 * A refusal counts as false where the request would have fitted into the most that the driver had
 * given out at any instant of the call. */
#define ALNAIR_VGPU_H /* the ledger needs little of vgpu.h: here it is, over pages of our own */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "driver/cuda_abi.h"
#define unlikely(x) (x)
const struct vg_limits *vg_limits;
struct vg_counters *vg_counters;
bool vg_reserve(int row, uint64_t bytes);
void vg_settle(int row, uint64_t reserved, uint64_t actual);
void vg_release(int row, uint64_t bytes);
void vg_refused(int row);
bool vg_pools_give_back(int row);
void vg_leave(int row, uint64_t bytes);
void vg_left(int row, uint64_t leaving, uint64_t freed);
uint64_t vg_used(int row);
uint64_t vg_limit(int row);

static struct driver {
    pthread_mutex_t lock;
    uint64_t total, peak, of[VG_SLOTS];
    uint64_t most[VG_SLOTS]; /* of total, since the slot's call began */
    _Atomic uint64_t requests, refusals, wrong, over, slow_ns, done;
} *driver;
static int mine = -1;

uint64_t vg_pid(void)
{
    return (uint64_t)getpid();
}
struct vg_slot *vg_slot(void)
{
    return mine < 0 ? NULL : &vg_counters->slot[mine];
}
uint64_t vg_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
void vg_sleep_until_ns(uint64_t when)
{
    struct timespec t = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static void locked(void)
{
    if (pthread_mutex_lock(&driver->lock) == EOWNERDEAD) {
        driver->total = 0;
        for (int i = 0; i < VG_SLOTS; i++)
            driver->total += driver->of[i];
        pthread_mutex_consistent(&driver->lock);
    }
}
int vg_reap(void) /* the parent marks a slot dead (owner 1) once the driver has its memory back */
{
    int freed = 0;
    for (int i = 0; i < VG_SLOTS; i++) {
        uint64_t dead = 1;
        if (atomic_compare_exchange_strong(&vg_counters->slot[i].owner, &dead, 2)) {
            atomic_store(&vg_counters->slot[i].device[0].held, 0);
            atomic_store(&vg_counters->slot[i].device[0].pending, 0);
            atomic_store(&vg_counters->slot[i].leaving[0], 0);
            atomic_store(&vg_counters->slot[i].owner, 0);
            freed++;
        }
    }
    return freed;
}

bool vg_pools_give_back(int row)
{
    (void)row;
    return false;
}

uint64_t vg_loan(int row)
{
    (void)row;
    return 0;
}
bool vg_borrow(int row, uint64_t bytes)
{
    (void)row, (void)bytes;
    return false;
}
#include "ledger/container_ledger.c"

static void call_begins(int slot)
{
    locked();
    driver->most[slot] = driver->total;
    pthread_mutex_unlock(&driver->lock);
}

static uint64_t most_since(int slot)
{
    locked();
    uint64_t most = driver->most[slot];
    pthread_mutex_unlock(&driver->lock);
    return most;
}

static void give(int slot, uint64_t bytes, uint64_t limit)
{
    locked();
    driver->of[slot] += bytes;
    driver->total += bytes;
    if (driver->total > driver->peak)
        driver->peak = driver->total;
    if (driver->total > limit)
        atomic_fetch_add(&driver->over, 1);
    for (uint64_t i = 0; i < vg_counters->slots_used; i++)
        if (driver->total > driver->most[i])
            driver->most[i] = driver->total;
    pthread_mutex_unlock(&driver->lock);
}

static void take(int slot, uint64_t bytes)
{
    locked();
    driver->of[slot] -= bytes;
    driver->total -= bytes;
    pthread_mutex_unlock(&driver->lock);
}

static void work(int slot, long operations, uint64_t limit, unsigned seed)
{
    uint64_t held[16] = {0};
    mine = slot;
    for (long i = 0; i < operations; i++) {
        uint64_t *one = &held[rand_r(&seed) % 16];
        if (*one) {
            vg_leave(0, *one);
            take(slot, *one);
            vg_left(0, *one, *one);
            *one = 0;
            continue;
        }
        uint64_t bytes = (1 + rand_r(&seed) % 32) * VG_BLOCK, actual = bytes;
        if (rand_r(&seed) % 4 == 0)
            actual -= VG_BLOCK; /* shares a block with others */
        call_begins(slot);
        uint64_t begun = vg_now_ns();
        bool fits = vg_reserve(0, bytes);
        uint64_t took = vg_now_ns() - begun;
        atomic_fetch_add(&driver->requests, 1);
        if (took > atomic_load(&driver->slow_ns))
            atomic_store(&driver->slow_ns, took);
        if (fits) {
            give(slot, actual, limit);
            vg_settle(0, bytes, actual);
            *one = actual;
        } else {
            atomic_fetch_add(&driver->refusals, 1);
            if (most_since(slot) + bytes <= limit)
                atomic_fetch_add(&driver->wrong, 1);
        }
    }
    for (int i = 0; i < 16; i++)
        if (held[i]) {
            take(slot, held[i]);
            vg_release(0, held[i]);
        }
    atomic_fetch_add(&driver->done, 1);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    int processes = atoi(argv[1]), kills = atoi(argv[4]);
    long operations = atol(argv[2]);
    unsigned seed = (unsigned)atoi(argv[5]);
    uint64_t limit = strtoull(argv[3], NULL, 10) * VG_BLOCK;
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    struct vg_limits *limits = mmap(NULL, sizeof *limits, PROT_READ | PROT_WRITE, flags, -1, 0);
    vg_counters = mmap(NULL, sizeof *vg_counters, PROT_READ | PROT_WRITE, flags, -1, 0);
    driver = mmap(NULL, sizeof *driver, PROT_READ | PROT_WRITE, flags, -1, 0);
    limits->device[0].memory_limit = limit;
    vg_limits = limits;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&driver->lock, &attributes);
    atomic_store(&vg_counters->slots_used, processes);

    pid_t pids[VG_SLOTS];
    int alive = processes;
    for (int i = 0; i < processes; i++)
        if (!(pids[i] = fork())) {
            work(i, operations, limit, seed + (unsigned)i * 7919u);
            _exit(0);
        }
    for (int killed = 0; alive;) {
        if (killed < kills) {
            int victim = rand_r(&seed) % processes;
            usleep(rand_r(&seed) % 3000);
            if (pids[victim] > 0 && kill(pids[victim], SIGKILL) == 0)
                killed++;
        }
        int status;
        pid_t pid = waitpid(-1, &status, killed < kills ? WNOHANG : 0);
        if (pid <= 0)
            continue;
        for (int i = 0; i < processes; i++)
            if (pids[i] == pid) {
                /* the driver first, then the slot */
                locked();
                driver->total -= driver->of[i];
                driver->of[i] = 0;
                pthread_mutex_unlock(&driver->lock);
                atomic_store(&vg_counters->slot[i].owner, 1);
                /* another takes its place, in the slot once that is free */
                if (WIFSIGNALED(status)) {
                    vg_reap();
                    if (!(pids[i] = fork())) {
                        work(i, operations / 4, limit, seed + (unsigned)killed);
                        _exit(0);
                    }
                } else {
                    pids[i] = -1;
                    alive--;
                }
            }
    }
    vg_reap();
    printf(
        "{\"requests\": %llu, \"refused\": %llu, \"false\": %llu, \"over\": %llu, \"peak\": %llu, "
        "\"limit\": %llu, \"leaked\": %llu, \"truth\": %llu, \"worst_ms\": %.3f, \"done\": %llu}\n",
        (unsigned long long)driver->requests, (unsigned long long)driver->refusals,
        (unsigned long long)driver->wrong, (unsigned long long)driver->over,
        (unsigned long long)driver->peak, (unsigned long long)limit, (unsigned long long)vg_used(0),
        (unsigned long long)driver->total, (double)driver->slow_ns / 1e6,
        (unsigned long long)driver->done);
    return 0;
}
