/* Which GPU a call is about, as a row of the limits page.
 *
 * Rows are found by UUID: ordinals change with CUDA_VISIBLE_DEVICES. Where one GPU is visible its
 * row is a constant. Else each thread remembers the row of its current context until a call of its
 * own may have changed that, or any thread created or destroyed a context. Work belongs to the GPU
 * of its stream, which may be another one: that of the last stream is remembered likewise.
 */
#include <string.h>

#include "session/session.h"

#define ORDINALS 64
#define NOT_KNOWN (-2)

static signed char row_of[ORDINALS];
static signed char device_of[VG_DEVICES];
static _Atomic int only = NOT_KNOWN; /* the row where one GPU is visible, or -1 where inert */
static _Atomic bool known;
static _Atomic uint32_t epoch = 1;
static VG_TLS uint32_t seen; /* epoch at which `current` was asked for; 0: not known */
static VG_TLS int current;

static int find_row(CUdevice device)
{
    CUuuid uuid;
    /* _v2 tells MIG instances apart */
    __typeof__(&cuDeviceGetUuid) get =
        REAL(cuDeviceGetUuid_v2) ? REAL(cuDeviceGetUuid_v2) : REAL(cuDeviceGetUuid);
    if (!get || get(&uuid, device) != CUDA_SUCCESS)
        return -1;
    for (uint32_t row = 0; row < vg_limits->n_devices && row < VG_DEVICES; row++)
        if (!memcmp(uuid.bytes, vg_limits->device[row].uuid, sizeof uuid.bytes))
            return (int)row;
    return -1;
}

/* After the driver's cuInit. Threads that race write the same. The ordinal of a GPU that is visible
 * but not granted, or -1. */
static int learn(void)
{
    if (atomic_load(&vg_mode) != VG_MODE_LIMITED) {
        if (atomic_load(&vg_mode) == VG_MODE_INERT)
            atomic_store(&only, -1);
        return -1;
    }
    int count = 0, stray = -1;
    if (REAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS)
        return -1;
    signed char rows[ORDINALS], devices[VG_DEVICES];
    memset(rows, -1, sizeof rows);
    memset(devices, -1, sizeof devices);
    for (int device = 0; device < count && device < ORDINALS; device++) {
        rows[device] = (signed char)find_row(device);
        if (rows[device] < 0)
            stray = device;
        else
            devices[(int)rows[device]] = (signed char)device;
    }
    for (int i = 0; i < ORDINALS; i++)
        __atomic_store_n(&row_of[i], rows[i], __ATOMIC_RELAXED);
    for (int i = 0; i < VG_DEVICES; i++)
        __atomic_store_n(&device_of[i], devices[i], __ATOMIC_RELAXED);
    atomic_store(&known, true);
    if (count == 1 && stray < 0)
        atomic_store(&only, rows[0]);
    return count > ORDINALS ? ORDINALS : stray;
}

static CUresult learn_or_refuse(void)
{
    int stray = learn();
    if (stray >= 0)
        return vg_refuse(
            "GPU %d is visible in it but was not given to it (see `limits` of the vGPU server)",
            stray);
    return CUDA_SUCCESS;
}

VG_EXPORT CUresult cuInit(unsigned int flags)
{
    VG_ENTER();
    CUresult result = vg_init_granted(flags);
    return result == CUDA_SUCCESS ? learn_or_refuse() : result;
}

static bool rows_known(void)
{
    if (likely(atomic_load_explicit(&known, memory_order_acquire)))
        return true;
    learn_or_refuse(); /* another thread is in cuInit still */
    return atomic_load(&known);
}

int vg_row(CUdevice device)
{
    if (device < 0 || device >= ORDINALS || !rows_known())
        return -1;
    return __atomic_load_n(&row_of[device], __ATOMIC_RELAXED);
}

CUdevice vg_row_device(int row)
{
    if (row < 0 || row >= VG_DEVICES || !rows_known())
        return -1;
    return __atomic_load_n(&device_of[row], __ATOMIC_RELAXED);
}

static __attribute__((noinline)) int ask_current(uint32_t now)
{
    CUdevice device;
    if (!rows_known() || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return -1;
    current = vg_row(device);
    seen = now;
    return current;
}

int vg_current_row(void)
{
    int row = atomic_load_explicit(&only, memory_order_relaxed);
    if (likely(row != NOT_KNOWN))
        return row;
    uint32_t now = atomic_load_explicit(&epoch, memory_order_relaxed);
    return likely(seen == now) ? current : ask_current(now);
}

static int ask_stream(CUstream stream)
{
    CUcontext context = NULL, popped;
    CUdevice device;
    if (!REAL(cuStreamGetCtx) || REAL(cuStreamGetCtx)(stream, &context) != CUDA_SUCCESS ||
        !context || context == vg_context() || REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return vg_current_row();
    int row = REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? vg_row(device) : -1;
    REAL(cuCtxPopCurrent_v2)(&popped);
    return row;
}

int vg_stream_row(CUstream stream)
{
    static VG_TLS struct {
        CUstream stream;
        uint32_t seen; /* epoch at which it was asked for */
        int row;
    } last;
    int row = atomic_load_explicit(&only, memory_order_relaxed);
    if (likely(row != NOT_KNOWN))
        return row;
    if (!vg_is_handle(stream))
        return vg_current_row();
    uint32_t now = atomic_load_explicit(&epoch, memory_order_relaxed);
    if (last.stream != stream || last.seen != now) {
        last.row = ask_stream(stream);
        last.stream = stream;
        last.seen = now;
    }
    return last.row;
}

void vg_context_changed(void)
{
    uint32_t now = atomic_fetch_add(&epoch, 1) + 1;
    if (!now) /* 0 means not known */
        atomic_fetch_add(&epoch, 1);
}

void *vg_context(void)
{
    CUcontext context = NULL;
    if (REAL(cuCtxGetCurrent))
        REAL(cuCtxGetCurrent)(&context);
    return context;
}

VG_EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    VG_ENTER();
    seen = 0;
    return REAL(cuCtxSetCurrent)(context);
}

VG_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    VG_ENTER();
    seen = 0;
    return REAL(cuCtxPushCurrent_v2)(context);
}

VG_EXPORT CUresult cuCtxPushCurrent(CUcontext context)
{
    VG_ENTER();
    seen = 0;
    return REAL(cuCtxPushCurrent)(context);
}

VG_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    VG_ENTER();
    seen = 0;
    return REAL(cuCtxPopCurrent_v2)(context);
}

VG_EXPORT CUresult cuCtxPopCurrent(CUcontext *context)
{
    VG_ENTER();
    seen = 0;
    return REAL(cuCtxPopCurrent)(context);
}

void vg_current_gpu_forked(void)
{
    seen = 0;
    atomic_store(&known, false);
    atomic_store(&only, NOT_KNOWN);
}
