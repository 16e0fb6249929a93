/* One thread releases physical memory while another maps it. Where the mapping was first, it alone
 * keeps the memory, and the program asks for more than the container then has left. On a machine
 * with other work each turn may take a slice of the scheduler's: it ends after SECONDS, too. */
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 6000
#define SECONDS 10
#define BYTES (2u << 20)

static CUcontext context;
static CUdeviceptr place;
static _Atomic CUmemGenericAllocationHandle handle;
static _Atomic int begun, mapped, is_mapped;

/* Whether the counter came to the value; it is -1 where there are no more rounds. */
static int wait_for(_Atomic int *counter, int value)
{
    int seen;
    for (int spins = 0; (seen = atomic_load(counter)) != value && seen >= 0; spins++)
        if (spins > 20000)
            sched_yield();
    return seen == value;
}

static void pause_for(int length)
{
    for (volatile int i = 0; i < length; i++) {
    }
}

static void *map(void *unused)
{
    cuCtxSetCurrent(context);
    for (int round = 1; round <= ROUNDS && wait_for(&begun, round); round++) {
        is_mapped = cuMemMap(place, BYTES, 0, handle, 0) == CUDA_SUCCESS;
        mapped = round;
    }
    return unused;
}

int main(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    pthread_t thread;
    int kept = 0, lead = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAddressReserve(&place, BYTES, 0, 0, 0) || pthread_create(&thread, NULL, map, NULL))
        return 1;
    time_t end = time(NULL) + SECONDS;
    for (int round = 1; round <= ROUNDS && time(NULL) < end; round++) {
        CUmemGenericAllocationHandle made;
        CUdeviceptr more;
        if (cuMemCreate(&made, BYTES, &property, 0))
            return 2;
        handle = made;
        begun = round;
        pause_for(lead + round * 13 % 100); /* who was late is earlier the next time */
        cuMemRelease(made);
        wait_for(&mapped, round);
        lead += is_mapped ? -20 : 20;
        if (!is_mapped)
            continue;
        kept++;
        if (cuMemAlloc(&more, BYTES) == CUDA_SUCCESS)
            cuMemFree(more);
        cuMemUnmap(place, BYTES);
    }
    begun = -1;
    pthread_join(thread, NULL);
    printf("%d\n", kept);
    return 0;
}
