/* The fake GPU's one state, mapped by every process from the file that FAKEGPU_STATE names.
 *
 * How to lock: everything below is read and written between fg_lock() and fg_unlock(), except
 * what is _Atomic (counters of calls, `lost`, `fault_epoch`) and `engine`, whose rules are in
 * engine_state.h. The mutex is robust and shared between processes. Where a process dies inside
 * it, the next one to lock repairs the state: the rows in `process` and `shared` are the truth,
 * each changed by single stores, and every sum (`gpu.used`, `tag.used`) is computed anew from
 * them. So never keep a fact only in a sum. Order of locks: README.md.
 */
#ifndef FG_STATE_H
#define FG_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fakegpu.h"
#include "state/engine_state.h"
#include "state/xid.h"

#define FG_GPUS 16
#define FG_MIGS 7
#define FG_PROCESSES 1024
#define FG_TAGS 256
#define FG_SHARED 4096
#define FG_HOLDERS 64 /* processes that hold one shared object at once */
#define FG_CALLS 4096 /* names whose calls are counted: driver symbols, then NVML's as they come */
#define FG_PATH 1024
#define FG_MAGIC 0x3130555047454b46ull

/* A GPU model: public facts, and constants of the model (see README.md). */
/* clang-format off */
#define FG_PROFILE_NUMBERS(X) \
    X(memory_bytes) X(nvml_bytes) X(sm_count) X(capability_major) X(capability_minor) \
    X(context_bytes) X(block_bytes) X(small_bytes) X(align_bytes) X(pool_step_bytes) \
    X(pitch_align) X(green_context_bytes) X(module_align_bytes) X(event_ns) X(launch_ns) \
    X(slice_us) X(switch_us) X(threads_per_sm) X(shared_per_sm) X(l2_bytes) X(clock_mhz) \
    X(memory_clock_mhz) X(bus_bits) X(power_watts) X(pci_device_id) X(pcie_generation) \
    X(bar1_bytes) X(cooperative) X(managed_concurrent) X(load_us) X(slice_uneven) X(tail) \
    X(clock_drop) X(clock_ms) X(contention) X(util_last) X(util_late_ms) X(util_foreign)
/* clang-format on */
struct fg_profile {
    char name[96];
    char brand[32];
#define X(field) uint64_t field;
    FG_PROFILE_NUMBERS(X)
#undef X
};

struct fg_mig {       /* an instance of a GPU in MIG mode: a compute instance in a GPU instance */
    char profile[24]; /* 1g.10gb, 1g.10gb+me, 1c.2g.20gb */
    uint8_t uuid[16];
    uint32_t gi, ci;                 /* ids: the second is one within the first */
    uint32_t gi_slices, ci_slices;   /* sevenths of the GPU's compute */
    uint64_t memory_bytes, sm_count; /* memory is its GPU instance's, which shares it */
};

struct fg_gpu {
    struct fg_profile profile;
    uint8_t uuid[16];
    uint32_t mig_mode, migs; /* instances, which `fakegpu_mig` says */
    struct fg_mig mig[FG_MIGS];
    uint64_t used; /* sum over process and shared rows */
    uint64_t peak;
    int numa;
    _Atomic uint32_t lost;   /* fell off the bus: every call gives an error */
    _Atomic uint32_t wedged; /* NVML's calls for it do not return */
};

struct fg_process {
    /* 0: free; written last when claimed */
    int32_t pid;
    int32_t tag;
    uint64_t started;  /* clock ticks since boot, /proc/PID/stat */
    uint8_t image[16]; /* AT_RANDOM: tells an exec() from a second copy of the library */
    char name[64];
    uint64_t used[FG_GPUS];    /* bytes that only this process holds: contexts, modules, blocks */
    uint64_t managed[FG_GPUS]; /* part of `used`: managed memory */
    uint64_t managed_host;     /* managed memory that lies in the host's */
    uint32_t contexts[FG_GPUS];
    /* the MIG instance that it runs in: ids + 1; 0: none */
    uint8_t gi[FG_GPUS], ci[FG_GPUS];
    uint64_t host_bytes;  /* page-locked */
    uint32_t initialized; /* has called cuInit */
    /* CUprocessState: not 0 while its calls wait, and what it held when it was checkpointed */
#define FG_CHECKPOINTED 2
    _Atomic uint32_t checkpoint;
    uint64_t saved[FG_GPUS];
    uint32_t saved_contexts[FG_GPUS];
    int32_t asked_gpu;   /* fakegpu_ask: the request under way */
    uint32_t asked_fits; /* it would have fitted below the watched limit at every instant so far */
    uint64_t asked;      /* bytes; 0: none */
};

struct fg_tag { /* a "container" */
    char name[32];
    uint64_t used[FG_GPUS]; /* sum */
    uint64_t peak[FG_GPUS];
    uint64_t watched[FG_GPUS], over[FG_GPUS], over_bytes[FG_GPUS];
    /* the driver's own limits (tier A); 0: none */
    uint64_t hard_limit[FG_GPUS], soft_limit[FG_GPUS];
};

struct fg_holder {
    int32_t process;
    uint32_t count;
};
/* Device memory that several processes may hold (exported VMM handles, IPC): charged to the tag
 * that made it until the last holder lets go. */
struct fg_shared {
    /* -1: free */
    int32_t gpu;
    int32_t tag;
    uint64_t bytes, id; /* id: never used twice */
    uint32_t exported;  /* a file descriptor may hold it, too: see sharing/export_fd.c */
    struct fg_holder holder[FG_HOLDERS];
};

struct fg_state {
    /* written last */
    uint64_t magic;
    uint64_t size;
    /* no two states have the same: a test attaches to one after the other, and what was remembered
     * of the last one is not of the next */
    uint64_t born;
    pthread_mutex_t mutex;
    int32_t gpus, tags, processes, shareds; /* rows ever used */
    uint64_t next_id;
    char path[FG_PATH]; /* of this file */
    char options[512];  /* of fakegpu_create */
    char fault[512];    /* of fakegpu_fault, for all processes */
    _Atomic uint64_t fault_epoch;
    struct fg_gpu gpu[FG_GPUS];
    struct fg_tag tag[FG_TAGS];
    struct fg_process process[FG_PROCESSES];
    struct fg_shared shared[FG_SHARED];
    _Atomic uint64_t calls[FG_CALLS];
    char extra_name[512][64]; /* names counted beside the driver's symbols */
    _Atomic uint32_t extra_names;
    struct fg_xid_log xid;
    struct fg_engine engine;
};

/* What a container with the GPU has mounted, as it would have /dev/nvidia*: "state", the state's
 * file, and "proc", the machine's view of all processes. */
#define FG_MOUNTED "/run/fakegpu"

/* Maps the file (NULL: that FAKEGPU_STATE names, or the mounted one). 0, or -errno. */
int fg_state_map(const char *path, struct fg_state **out);
void fg_state_use(struct fg_state *state); /* instead of the present one; NULL: none */

#pragma GCC visibility push(default)
extern struct fg_state *fg_state; /* NULL until attached */
bool fg_attach(void);             /* to FAKEGPU_STATE, once; false where there is none */
void fg_lock(void);
void fg_unlock(void);
int fg_lock_robust(pthread_mutex_t *mutex); /* as pthread_mutex_lock of a robust one */

/* Calls are counted by symbol: the driver's by their number (generated), those of others by
 * name. */
extern const char *const fg_symbol_names[];
extern const unsigned fg_symbol_count;
#pragma GCC visibility pop
#endif
