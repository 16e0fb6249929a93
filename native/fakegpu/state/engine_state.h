/* What the state keeps of the GPUs' timing: streams, contexts, events, threads of the clock,
 * samples.
 *
 * Everything here has a fixed size and is addressed by index, so that any process may map it. It
 * is read and written under `engine.lock` (robust; see clock/engine_lock.h), which is taken
 * after fg_lock() and never the other way round. A SIGKILL may fall anywhere: a stream is a ring
 * of operations whose head and tail only ever grow, so that an operation either was queued or
 * was not; an interrupted step of the simulation loses or repeats at most that step.
 */
#ifndef FG_ENGINE_STATE_H
#define FG_ENGINE_STATE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FG_ENGINE_GPUS 16
#define FG_ENGINE_TAGS 256
#define FG_ENGINE_THREADS 512 /* joined threads of all processes */
#define FG_ENGINE_CONTEXTS 1024
#define FG_ENGINE_STREAMS 1024
#define FG_ENGINE_DEPTH 1024 /* operations, or kernels, queued in a stream before the host blocks */
#define FG_ENGINE_EVENTS 65536
#define FG_INSTANCES 16
#define FG_SAMPLES 128 /* utilisation samples kept per GPU: 21 s */
#define FG_SAMPLE_ROWS 32
#define FG_SAMPLE_NS 166666667ull
#define FG_WHOLE 65536u /* all SMs; 16.16 fixed point */
#define FG_NEVER UINT64_MAX
#define FG_LOOK_NS 20 /* virtual cost of a look at the clock */

enum fg_op_kind {
    FG_OP_NONE,
    FG_OP_KERNEL, /* compute, `count` kernels in one after the other */
    /* compute without counting as a kernel: memset, copies inside a GPU or, with `ref` fg_route(),
     * from one GPU to another */
    FG_OP_FILL,
    FG_OP_MARK, /* event record: `ref` event, `ref_seq` which record of it */
    FG_OP_WAIT, /* waits for that record of an event */
    FG_OP_JOIN, /* waits for operation `ref_seq` of stream `ref` */
    FG_OP_HOST, /* a function of the process: `ref` is its own number for it */
    FG_OP_TO_HOST,
    FG_OP_TO_DEVICE, /* copies */
    FG_OP_NOTHING,   /* completes at once */
};
static inline uint32_t fg_route(int from, int to)
{
    return 1 + (uint32_t)(from * FG_ENGINE_GPUS + to);
}
struct fg_op {      /* 64 bytes */
    uint64_t stamp; /* may not begin before */
    uint64_t left;  /* nanoseconds of all SMs it still needs, << 16 */
    uint64_t order; /* of all operations of its context: legacy stream semantics */
    uint64_t begun; /* 0: not yet */
    /* of a copy: its bytes; of a kernel: how much is left when its last blocks run, << 16 */
    uint64_t ref_seq;
    uint32_t kind, ref, count; /* ref of a kernel: the SMs of its last blocks, 16.16; 0: as all */
    uint32_t share;            /* of the SMs that it can use, 16.16 */
    uint64_t ends;             /* copies: when */
};
enum fg_engine_stream_flags { FG_STREAM_NONBLOCKING = 1, FG_STREAM_LEGACY = 2 };
struct fg_engine_stream {
    /* operations done, operations queued: never reset, also not on reuse */
    _Atomic uint64_t head, tail;
    int32_t context;  /* + 1; 0: free */
    int32_t priority; /* as CUDA: less is more urgent */
    uint32_t flags, closing;
    uint64_t kernels; /* queued: those of graphs one by one */
    struct fg_op ring[FG_ENGINE_DEPTH];
};
struct fg_engine_context {
    /* + 1; 0: free */
    int32_t process;
    int32_t gpu, tag;
    uint32_t part;       /* MPS: its part of the SMs, 16.16 */
    uint32_t slice_part; /* the same in a slice */
    int32_t legacy;      /* its legacy stream + 1 */
    uint64_t order;      /* operations queued so far */
    uint64_t draws;      /* random numbers drawn */
    uint64_t busy;       /* SM time in the present sample, << 16 */
    uint64_t copy_busy;  /* copy time in the present sample, ns */
    uint64_t identity;   /* seeds its random numbers: tag and number within the tag */
};
struct fg_engine_event {
    /* + 1; 0: free */
    int32_t process;
    uint32_t holders;
    uint64_t first;          /* records of earlier events that had this row */
    uint64_t recorded, done; /* records queued, records completed */
    uint64_t time;           /* of the last completed record */
    uint64_t seq;            /* the last record: its stream's operation */
    int32_t stream;
};

struct fg_sample_row {
    int32_t process, pid;
    uint32_t sm_ppm, memory_ppm;
};
struct fg_sample {       /* of one sixth of a second */
    uint64_t end_ns;     /* 0: none yet */
    uint32_t busy_ppm;   /* some kernel was on the GPU */
    uint32_t memory_ppm; /* copies, and a fifth of kernel time */
    uint32_t rows;
    struct fg_sample_row row[FG_SAMPLE_ROWS];
};
/* Of a GPU since it was made; these only grow. */
struct fg_totals {
    uint64_t until;                       /* all but the bytes is counted up to this time */
    uint64_t busy, copy;                  /* ns: kernels ran, copies to or from the host did */
    uint64_t instance_busy[FG_INSTANCES]; /* ns, by GPU instance of MIG; 0: of none */
    uint64_t to_host, from_host;          /* bytes over PCIe */
    uint64_t to_peers, from_peers;        /* bytes over NVLink */
};
struct fg_engine_gpu {
    /* context that has the slice, + 1 */
    int32_t current;
    uint64_t last; /* its identity */
    uint64_t slice_end, switch_end;
    uint64_t slices;       /* begun so far: seeds their lengths */
    uint64_t copy_free[2]; /* when each copy engine will be free: to the host, to the device */
    uint64_t sample_begun, busy, copy_busy;
    struct fg_totals totals;
    uint64_t samples; /* taken so far; the last one is ring[(samples - 1) % FG_SAMPLES] */
    struct fg_sample ring[FG_SAMPLES];
    uint64_t work[FG_ENGINE_TAGS]; /* GPU time executed, << 16 */
    uint64_t kernels[FG_ENGINE_TAGS];
};

enum fg_thread_state {
    FG_THREAD_FREE,
    FG_THREAD_RUNS,
    FG_THREAD_TIME,   /* waits until all others have reached `need` */
    FG_THREAD_OP,     /* until operation `seq` of stream `ref` is done */
    FG_THREAD_EVENT,  /* until record `seq` of event `ref` is done */
    FG_THREAD_HOST,   /* a callback thread: until a function of its process is due */
    FG_THREAD_PARKED, /* blocks outside the fake: the clock does not wait for it */
};
struct fg_engine_thread {
    _Atomic uint32_t state;    /* also the futex word */
    int32_t process, pid, tid; /* process: row + 1 */
    _Atomic uint64_t now;      /* its own virtual time: it can do nothing before */
    uint64_t need, seq;
    uint64_t rank; /* who goes first of two at one time, whoever joined first */
    uint32_t ref, sleeping;
    _Atomic uint32_t locking; /* it waits for the engine's lock, and goes on by itself */
    uint64_t seen_switches, seen_now, seen_at;
};

struct fg_engine {
    _Alignas(64) pthread_mutex_t lock;
    uint32_t virtual_clock, mps;
    uint64_t slice_ns, switch_ns, event_ns, launch_ns, load_ns, call_ns, sync_ns, window_ns;
    uint64_t seed, scale; /* scale: factor of all durations, 16.16 */
    uint64_t nonce;       /* tells this state from another one mapped at the same address */
    uint32_t jitter_pct, contention_pct, noise_pct, start_threads, gpus;
    uint32_t uneven_pct; /* slices are longer or shorter by up to this */
    uint32_t loaded_pct; /* of a module is loaded, and takes memory */
    uint32_t tail_pct;   /* the last part of a kernel's time, on half of its SMs */
    uint32_t drop_pct;   /* slower by this in every other clock_ns */
    uint32_t util_last, util_foreign;
    uint64_t clock_ns, util_late_ns;
    uint32_t joined;             /* threads that ever joined */
    uint32_t woken;              /* times that a waiter was woken */
    _Atomic uint64_t t;          /* simulated up to here; with the virtual clock, the time */
    _Atomic uint64_t checked_ns; /* CLOCK_MONOTONIC of the last look for dead processes */
    uint64_t to_host_bps, to_device_bps, inside_bps;
    _Atomic uint32_t host_epoch; /* futex: grows when a host function is queued, or has returned */
    uint32_t threads, contexts, streams, events; /* rows ever used */
    /* ever opened, ever joined */
    uint64_t tag_contexts[FG_ENGINE_TAGS], tag_threads[FG_ENGINE_TAGS];
    uint64_t active[FG_ENGINE_STREAMS / 64]; /* streams with operations */
    struct fg_engine_thread thread[FG_ENGINE_THREADS];
    struct fg_engine_context context[FG_ENGINE_CONTEXTS];
    struct fg_engine_gpu gpu[FG_ENGINE_GPUS];
    struct fg_engine_event event[FG_ENGINE_EVENTS];
    struct fg_engine_stream stream[FG_ENGINE_STREAMS];
};
#endif
