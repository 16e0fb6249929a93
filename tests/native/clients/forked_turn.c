/* A thread of the parent contends for memory while another forks; the child contends, too. A libc
 * that remembers the pid over a clone (glibc before 2.25) tells the child its parent's: the child
 * must see all the same that the turn is none of its own threads'. Exit status: 0 where it gets the
 * turn at once. */
#define ALNAIR_VGPU_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
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
uint64_t vg_used(int row);
uint64_t vg_limit(int row);
struct vg_slot *vg_slot(void)
{
    return NULL;
}
int vg_reap(void)
{
    return 0;
}
bool vg_pools_give_back(int row)
{
    return row < 0;
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
static pid_t remembered;
uint64_t vg_pid(void)
{
    return (uint64_t)syscall(SYS_getpid);
}
#define getpid() remembered
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
#undef getpid

int main(void)
{
    int status = 0;
    remembered = getpid();
    if (!take_turn(0, vg_now_ns() + 100000000u))
        return 2;
    pid_t child = fork();
    if (!child)
        _exit(!take_turn(0, vg_now_ns() + 100000000u));
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
