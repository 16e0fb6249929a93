/* What the vGPU server (Python, alnair.node.vgpu) and libalnair_vgpu.so share: the pages of one
 * container and the frames of its socket. Both sides are held to this file by a test that compares
 * every offset (tests/native/test_abi.py). Little-endian, fixed-width, no pointers.
 *
 * A container sees one folder, /run/alnair/vgpu (VG_FOLDER), with three entries:
 *   limits    read-only to it (a read-only bind mount of a tmpfs file); only the server writes
 *   counters  shared by the container's processes, which write; the server reads it by pread and
 *             writes it by pwrite (a mapping of a file that a tenant may truncate could kill it)
 *   socket    where the first process registers the container; identity is SO_PEERCRED and cgroup
 *
 * Everything a tenant may read must be safe to read, everything it writes is untrusted.
 *
 * Who frees the slot of another process (vg_reap in the container, the server outside) first takes
 * flock(LOCK_EX | LOCK_NB) on a descriptor of `counters` of its own, looks again whether the slot
 * still has the dead owner, adds what it left unsettled to its buckets, zeroes all else of it (the
 * next owner counts from zero, and says when it started only after it claimed the slot), then owner,
 * and closes the descriptor. Who does not get the lock leaves the slot to who has it. So nobody
 * frees a slot that was freed and claimed again in between (the server has no compare-and-swap: it
 * writes by pwrite). The kernel gives the lock back when its holder is killed; claiming, counting
 * and admitting never take it.
 */
#ifndef ALNAIR_VGPU_ABI_H
#define ALNAIR_VGPU_ABI_H

#include <stdint.h>

#define VG_FOLDER "/run/alnair/vgpu"
#define VG_ABI 1u
#define VG_LIMITS_MAGIC 0x314c4756414e4c41ull /* "ALNAVGL1" */
#define VG_COUNTERS_MAGIC 0x314347564e4c4155ull
#define VG_FRAME_MAGIC 0x31464756414e4c41ull
#define VG_DEVICES 16 /* GPUs that one container may see */
#define VG_SLOTS 256  /* processes of one container that use CUDA at once */
/* GPU time that one process leaves unsettled counts up to this: more would be what it did not use,
 * but only never asked for */
#define VG_LEFT_MOST_NS 10000000000ull

/* ---- limits: one page per container, written by the server ----------------------------------- */

enum vg_state {
    VG_STATE_WAITING = 1,    /* prepared, no process has registered yet */
    VG_STATE_REGISTERED = 2, /* the server knows the container: processes may go on */
    VG_STATE_REFUSED = 3,    /* the server refuses it (see message): no CUDA */
};
/* VG_BORROWS apart for people and tools: the library needs only what follows from the others */
enum vg_device_flags {
    VG_SOFT = 1u,         /* compute: work-conserving, may borrow what others leave */
    VG_LOW_PRIORITY = 2u, /* compute: yields to tenants without this flag */
    VG_TIER_A = 4u,       /* the driver itself enforces memory_limit (NVML memory limits) */
    VG_BORROWS = 8u,      /* memory: may have a loan beyond memory_limit (struct vg_loan) */
};

struct vg_device_limit {      /* 128 bytes; a row per GPU that the container may use */
    uint8_t uuid[16];         /* the GPU's UUID: rows are found by it, never by ordinal */
    uint64_t memory_limit;    /* bytes; 0: no limit */
    uint64_t memory_overhead; /* bytes that NVML charges to the container beyond its ledger: the
                                 server's slow correction; counts as used */
    uint64_t context_bytes;   /* cost of one context on this GPU and driver, as the server measured
                                 it; 0: not known (the library takes VG_CONTEXT_DEFAULT) */
    uint32_t compute_percent; /* guaranteed share of GPU time, 1-100; 0: no limit */
    uint32_t flags;           /* enum vg_device_flags */
    /* GPU time per time now granted, in millionths: the guaranteed share or more; less where the
     * container must yield by its priority, and by a fiftieth where greedy tenants take turns on a
     * GPU that is booked in full; 0: no rate given, the guaranteed share holds */
    uint64_t rate_ppm;
    uint64_t rate_until_ns;  /* CLOCK_MONOTONIC until which rate_ppm holds; then the guaranteed
                                share again (a dead server never leaves a borrowed rate behind) */
    uint64_t cost_scale_ppm; /* outer correction: predicted GPU time is multiplied by this; 0: 1 */
    uint32_t neighbours; /* other tenants that had GPU work in the last tick and whose time slices
                            cut this one's kernels (contention): no clients of its MPS server */
    uint32_t sm_count;   /* SMs that the container shall see; 0: all */
    /* GPU time per time that those neighbours use together, in millionths; 0: not known */
    uint64_t others_ppm;
    /* 0: no windows. Else tenants that all want more than they may have take turns: of each period
     * (CLOCK_MONOTONIC modulo it) this one's launches belong into [begin, begin + window); holds
     * until rate_until_ns */
    uint32_t window_period_us;
    uint32_t window_begin_us, window_us;
    uint32_t reserved_a;
    /* CLOCK_MONOTONIC before which nothing is launched, whatever the bucket says: what the container
     * owes by the driver's account. Seconds ahead at most; a dead server's is soon past. */
    uint64_t not_before_ns;
    /* bytes of the host's memory that the container may have beyond memory_limit, where a program
     * asks the GPU for more (memory/swapped.c); 0: none, it is refused */
    uint64_t swap_limit;
    /* bytes by which the ledger exceeds what NVML charges, for modules that the driver loads only in
     * part: counts as free, as far as modules are charged with so much (loaded) */
    uint64_t memory_credit;
};
#define VG_CONTEXT_DEFAULT (512ull << 20)

/* Memory of the GPU that nobody was granted, lent to who has VG_BORROWS: memory_limit and `bytes`
 * together are the limit until `until_ns`, then memory_limit alone again (a dead server lends
 * nothing; what is held by then stays). Programs do not see it: their GPU is memory_limit large.
 * A loan may shrink at any moment, so a process reads it after it has announced its bytes. */
struct vg_loan {
    uint64_t bytes;
    uint64_t until_ns; /* CLOCK_MONOTONIC */
    /* CLOCK_MONOTONIC of when the server last read what is `asked`, and gave what it will give:
     * written after `bytes`. Who asked before then, and got nothing, is refused. */
    uint64_t answered_ns;
    uint64_t reserved;
};

struct vg_limits { /* 4096 bytes */
    /* VG_LIMITS_MAGIC, written last */
    uint64_t magic;
    uint32_t abi;           /* VG_ABI */
    uint32_t n_devices;     /* rows in use */
    _Atomic uint32_t state; /* enum vg_state */
    uint32_t deadline_ms;   /* how long a process waits for registration before it fails */
    /* odd while the server writes: for who reads several fields as one. The library does not: each
     * field that it reads is good by itself */
    _Atomic uint64_t sequence;
    _Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC when the server last looked at it */
    uint64_t host_limit;           /* bytes of page-locked host memory; 0: only counted */
    uint8_t container[32];         /* opaque id, for messages */
    char message[160];             /* why refused, NUL-terminated */
    uint64_t generation;           /* changes when the server rebuilt `counters` */
    uint8_t reserved[8];
    struct vg_device_limit device[VG_DEVICES];
    struct vg_loan loan[VG_DEVICES]; /* of a page of before: zeros, which is none */
    uint8_t padding[4096 - 256 - 160 * VG_DEVICES];
};

/* ---- counters: one file per container, written by its processes ------------------------------ */

/* API classes of struct vg_calls. New ones come at the end, and VG_CLASSES may grow into the
 * padding behind them: a server before this library reads those it knows, and one after it is told
 * by `classes` in the slot how many this library counts. */
enum vg_class {
    VG_CALL_LAUNCH, /* kernels launched one by one; before VG_CALL_GRAPH graphs, too */
    VG_CALL_ALLOC,
    VG_CALL_FREE,
    VG_CALL_H2D,
    VG_CALL_D2H,
    VG_CALL_D2D,
    VG_CALL_PEER,
    VG_CALL_MEMSET,
    VG_CALL_SYNC,
    VG_CALL_OTHER,  /* copies whose direction is not told, contexts */
    VG_CALL_GRAPH,  /* graphs launched */
    VG_CALL_EVENT,  /* streams and events: made, recorded, waited for by a stream, asked */
    VG_CALL_MODULE, /* modules and libraries loaded */
    VG_CLASSES = 16
};
#define VG_COUNTED (VG_CALL_MODULE + 1)                 /* that this library counts */
struct vg_calls { _Atomic uint64_t calls, bytes, ns; }; /* ns: sampled 1 in 64, scaled */

struct vg_slot_device {    /* 64 bytes: what one process uses of one GPU (row of limits) */
    _Atomic uint64_t held; /* bytes admitted: context, modules, allocations */
    /* bytes announced, not yet admitted (see native/vgpu/ledger/container_ledger.c) */
    _Atomic uint64_t pending;
    _Atomic uint64_t charged_ns;   /* GPU time debited, after settlement */
    _Atomic uint64_t throttled_ns; /* time its threads waited for credit */
    _Atomic uint64_t launches;     /* kernels and graphs */
    _Atomic uint64_t refused;      /* allocations refused by the limit */
    _Atomic uint64_t waiting;      /* threads that wait for credit now */
    _Atomic uint64_t contexts;     /* contexts open now */
};
struct vg_slot {              /* 4096 bytes: one process */
    _Atomic uint64_t owner;   /* pid in the container's namespace, 0: free. Claimed by compare-and-
                                 swap; given back by the process at exit, or by whoever finds the
                                 process gone (all else is zeroed first) */
    _Atomic uint64_t started; /* its start time in clock ticks since boot (/proc/PID/stat): tells a
                                 reused pid apart */
    _Atomic uint64_t host_bytes; /* page-locked host memory */
    _Atomic uint64_t unhooked;   /* calls resolved to a driver function that no table knows */
    /* inode; only peers of the same one can judge whether owner lives */
    _Atomic uint64_t pid_namespace;
    _Atomic uint64_t image; /* of this execve: after another one the process holds no GPU memory */
    _Atomic uint64_t classes;  /* that its library counts; 0: up to VG_CALL_OTHER (before 0.2) */
    _Atomic uint64_t start_ns; /* in which it was let in: pages, registration, slot */
    struct vg_calls calls[VG_CLASSES];
    _Atomic uint64_t loaded[VG_DEVICES]; /* the part of held that modules are charged with */
    uint8_t padding_a[1024 - 64 - 24 * VG_CLASSES - 8 * VG_DEVICES];
    struct vg_slot_device device[VG_DEVICES];
    _Atomic uint64_t leaving[VG_DEVICES]; /* part of held that the driver is freeing now: a refusal
                                             waits for it; it never admits anybody */
    /* 0: all that was timed is settled. Else since when (CLOCK_MONOTONIC) the GPU may have been at
     * work on what is not, less charged_ns at that time: should the process end so, whoever frees
     * its slot adds to left_ns what has passed since and was not charged */
    _Atomic uint64_t unsettled[VG_DEVICES];
    /* bytes in the host's memory beyond memory_limit; before the driver is asked for them as after */
    _Atomic uint64_t swapped[VG_DEVICES];
    /* bytes that are missing now for allocations which wait for a loan: a request, never a charge */
    _Atomic uint64_t asked[VG_DEVICES];
    uint8_t padding_b[4096 - 1024 - 96 * VG_DEVICES];
};
struct vg_bucket { /* 64 bytes: one GPU's compute bucket, shared by all processes */
    /* theoretical arrival time (GCRA): CLOCK_MONOTONIC at which all debited GPU time will have been
     * earned at the current rate; 0: none was debited yet. Set back by a tenant, it meets
     * not_before_ns of its limits */
    _Atomic uint64_t tat_ns;
    _Atomic uint64_t rate_ppm; /* the rate at which tat_ns was last reckoned; 0: none yet */
    /* when the GPU will have done what was debited, were it alone with it */
    _Atomic uint64_t busy_ns;
    /* GPU time that processes which ended left unsettled, when there was more of it last (only who
     * holds the lock for freeing slots writes the two), and how much of it has been debited */
    _Atomic uint64_t left_ns, left_at_ns, left_debited_ns;
    uint64_t reserved[2];
};
struct vg_counters {
    /* VG_COUNTERS_MAGIC */
    uint64_t magic;
    uint32_t abi, n_slots;
    uint64_t generation;
    _Atomic uint64_t slots_used; /* slots [0, slots_used) have ever been claimed */
    _Atomic uint64_t registrar;  /* pid of the process that registers the container now; 0: none */
    uint64_t reserved[3];
    struct vg_bucket bucket[VG_DEVICES];
    uint8_t padding[4096 - 64 - 64 * VG_DEVICES];
    struct vg_slot slot[VG_SLOTS];
};

/* ---- socket: SOCK_SEQPACKET, one frame each way, 256 bytes ----------------------------------- */

enum vg_operation { VG_OP_REGISTER = 1, VG_OP_PING = 2 };
enum vg_reply { VG_REPLY_OK = 0, VG_REPLY_REFUSED = 1, VG_REPLY_BAD = 2, VG_REPLY_BUSY = 3 };
struct vg_frame {
    /* VG_FRAME_MAGIC */
    uint64_t magic;
    uint32_t abi;
    uint32_t operation;      /* request: enum vg_operation; reply: enum vg_reply */
    uint64_t pid;            /* in the sender's namespace: for messages only, never believed */
    uint32_t driver_version; /* cuDriverGetVersion, 0 where not known yet */
    uint32_t library_version;
    uint8_t reserved[32];
    char text[192]; /* reply: what is wrong and what to do; NUL-terminated */
};

_Static_assert(sizeof(struct vg_device_limit) == 128, "device limit");
_Static_assert(sizeof(struct vg_loan) == 32, "loan");
_Static_assert(sizeof(struct vg_limits) == 4096, "limits page");
_Static_assert(sizeof(struct vg_slot_device) == 64, "slot device");
_Static_assert(sizeof(struct vg_slot) == 4096, "slot");
_Static_assert(sizeof(struct vg_counters) == 4096 * (1 + VG_SLOTS), "counters");
_Static_assert(sizeof(struct vg_frame) == 256, "frame");

#endif
