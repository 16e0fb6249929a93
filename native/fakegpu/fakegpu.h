/* The fake GPU: the hardware and kernel module that the fake libcuda.so.1 and libnvidia-ml.so.1
 * drive.
 *
 * libfakegpu.so keeps one state, mapped by all processes from the file that FAKEGPU_STATE names (on
 * tmpfs; made by fakegpu_create). libcuda.so.1 and libnvidia-ml.so.1 (both link to it by
 * $ORIGIN) are the user-space drivers over it. A test drives it by these functions: from C, or
 * from Python by tests/native/fake.py.
 *
 * Environment of a client process:
 *   FAKEGPU_STATE        the state file (default: /run/fakegpu/state, which containers of a real
 *                        node have mounted); without any, cuInit gives CUDA_ERROR_NO_DEVICE
 * FAKEGPU_TAG          the "container" that the process belongs to (default: "none"), at most 31
 * characters
 *   FAKEGPU_CUDA         driver version presented: 11080, 12040, 13000, 13050 (default: the newest)
 *   FAKEGPU_FAULT        faults of this process, "name=value,..."; see faults.h
 *   CUDA_VISIBLE_DEVICES as the real driver (ordinals, UUIDs)
 *   CUDA_LAUNCH_BLOCKING 1: a launch of a kernel returns when it has run
 *
 * A kernel's name tells what it does, so that any program can be a load: cuModuleGetFunction
 * accepts
 *   ns_4000              4,000 ns
 *   ns_5000000_j20       5 ms with 20 % jitter (uniform, deterministic per launch number)
 *   bi_4000_400000_25    bimodal: 4 us, and 400 us in 25 % of launches
 *   ph_4000_400000_9_5   4 us in nine launches, then 400 us in five, in turns
 *   blk_100              100 ns per block of the grid
 *   empty                0 work: only launch cost
 * ns_4000_sm16         on 16 SMs only: others run beside it (any of the above; without it, a
 * kernel
 *                        takes all SMs, whatever its grid)
 * A module image of any of the driver's kinds is accepted (cubin ELF, fatbin, PTX text); its
 * size is its cost. */
#ifndef FAKEGPU_H
#define FAKEGPU_H
#include <stddef.h>
#include <stdint.h>
#pragma GCC visibility push(default)

/* Makes a state file. profile: a model name of profiles/ ("h200", "v100", ...) or a path, gpus:
 * how many; options: "key=value,...". 0, or -errno with a line on stderr (an unknown key, for
 * one).
 *   clock=wall|virtual   see clock/clock.h; scale=1.0: factor of all durations
 *   start_threads=0      virtual: time stands still until so many threads have joined
 * window_ns=0          virtual: how far threads may be apart in what they do outside of the
 * fake; 0: they
 *                        take turns, so that all is the same in each run
 *   mode=timeslice|mps   see engine/engine.h; slice_us, switch_us: as the profile says
 *   launch_ns, event_ns  host time of a launch (virtual), GPU time of an event: as the profile says
 *   load_us=0            virtual: host time of the first launch of a function or executable graph
 *   loaded=100           percent of a module that is loaded, and takes memory, as with lazy loading
 *   call_ns=500          virtual: host time of other calls; sync_ns=3000: of waking up
 *   jitter=0             percent, of kernels whose name says nothing of it; seed=1
 *   noise=0              percent points by which NVML's samples are wrong at most
 *   contention=0         percent by which each neighbour at work lengthens a context's kernels: 43
 *                        makes them 30 % slower
 *   slice_uneven=0       slices are longer or shorter by up to this percent
 *   tail=0               percent of a kernel's time at its end, in which it needs half of its SMs
 *   clock_drop=0         percent by which kernels are slower in every other clock_ms=1000
 *   util_last=0          1: NVML gives a process's last sample, not the mean of those asked for
 *   util_late_ms=0       NVML tells of a sample so much later
 *   util_foreign=0       a pid that runs nothing here, of which NVML says 90 %
 *                        (a profile may set these from contention on, and load_us)
 *   to_host_mbps=25000, to_device_mbps=25000, inside_mbps=1500000   copies */
int fakegpu_create(const char *state, const char *profile, int gpus, const char *options);
int fakegpu_attach(const char *state); /* map it in this process (NULL: FAKEGPU_STATE) */
void fakegpu_detach(void);

/* ---- the machine ----------------------------------------------------------------------------- */
/* the bytes that CUDA gives and NVML prints; 0 or -ENODEV */
int fakegpu_uuid(int gpu, uint8_t uuid[16]);
uint64_t fakegpu_total(int gpu); /* bytes, as cuDeviceTotalMem says */

/* MIG: NULL: off; else on, with these instances: "1g.10gb,1g.10gb+me,1c.2g.20gb", "" for none. A
 * GPU instance is made for each, with the ids 1, 2, ... in this order; one smaller than its GPU
 * instance (1c.2g.20gb) joins that of the one before it where that has room. What the kernel module
 * would tell of them in /proc/driver/nvidia/capabilities is written beside the state:
 * capabilities/gpu<i>/mig/gi<j>/access and .../ci<k>/access. 0; -EINVAL: no GPU can be cut up so;
 * -EBUSY: processes run in what would change. */
int fakegpu_mig(int gpu, const char *layout);

/* ---- time (CLOCK_MONOTONIC nanoseconds where clock=wall; virtual nanoseconds else) ----------- */
uint64_t fakegpu_now_ns(void);
void fakegpu_sleep_until_ns(uint64_t when);
/* virtual clock: time advances only while every joined thread waits (in a sleep, a
 * synchronisation, a full launch queue). Threads that call cuInit join; a test's own thread
 * joins and leaves by these. */
void fakegpu_join(void);
void fakegpu_leave(void);

/* ---- the oracle: what is true, per tag ("container") and GPU --------------------------------- */
uint64_t fakegpu_used(const char *tag, int gpu); /* bytes now: contexts, modules, blocks */
uint64_t fakegpu_managed_host(const char *tag);  /* bytes of managed memory in the host's now */
uint64_t fakegpu_peak(const char *tag, int gpu); /* high-water mark, taken inside the lock */
/* GPU time really executed for it (no waiting, no slices of others) */
uint64_t fakegpu_work_ns(const char *tag, int gpu);
uint64_t fakegpu_kernels(const char *tag, int gpu);           /* kernels completed */
void fakegpu_watch(const char *tag, int gpu, uint64_t limit); /* count instants over this limit */
/* how many changes left it over the watched limit */
uint64_t fakegpu_over(const char *tag, int gpu);
uint64_t fakegpu_over_bytes(const char *tag, int gpu); /* the worst of them, bytes over */
/* Around a request of this process (one at a time) for so many bytes: whether it would have
 * fitted below the watched limit at every instant in between. A refusal of such a request is
 * false. */
void fakegpu_ask(int gpu, uint64_t bytes);
int fakegpu_answered(void);
void fakegpu_reset(const char *tag); /* peak, work, over: from now on */
uint64_t fakegpu_sweep(void);        /* release what dead processes held; bytes */
/* Calls by name since creation, "" for all; which calls a program made is a test's fixture. */
uint64_t fakegpu_calls(const char *name);

/* ---- faults and events ----------------------------------------------------------------------- */
int fakegpu_xid(int gpu, unsigned xid); /* an XID event to all event sets */
int fakegpu_fault(const char *text);    /* "name=value": the same names, for all processes */
#pragma GCC visibility pop
#endif
