/* Faults, by FAKEGPU_FAULT of a process or fakegpu_fault() for all: "name=value,...".
 *
 *   kill=NAME:N         SIGKILL at this process's N-th call of the driver function NAME (all: "*")
 *   fail=NAME:N:CODE    that call gives CUresult CODE (N 0: every call)
 *   oom_at=N            the N-th allocation of device memory finds no room (N, 2N, ...)
 *   fragment=BYTES      no allocation above BYTES finds room (a fragmented GPU)
 *   slow_context_ms=N   a context takes so long to make
 *   lost=GPU            the GPU (its index) fell off the bus; also fakegpu_xid(gpu, 79)
 *   wedge=GPU           NVML's calls for it return only once this fault is over; for all processes
 * Names that this file does not know are kept for others: fg_fault_number("name", otherwise).
 */
#ifndef FG_FAULTS_H
#define FG_FAULTS_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)
/* Reads the faults again where they changed; true: some are armed. *seen: the epoch it has read. */
bool fg_fault_load(uint64_t *seen);
int fg_fault_call(const char *symbol);         /* before a call: may not return; 0 or a CUresult */
bool fg_fault_memory(int gpu, uint64_t bytes); /* true: this allocation finds no room */
uint64_t fg_fault_number(const char *name, uint64_t otherwise);
#pragma GCC visibility pop
#endif
