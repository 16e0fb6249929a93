/* Who uses which 2 MiB block of device memory, in this process.
 *
 * The driver takes physical memory by blocks and cuts small allocations out of them. NVML charges the
 * blocks, and so does the ledger: one that several allocations share is charged with the first of
 * them and credited with the last. The table maps a block's number (address / 2 MiB) to its users; a
 * process has one address space for all GPUs, so the number alone identifies it.
 *
 * The order of a free matters when two threads race: the driver first, then vg_blocks_leave. A block
 * given out again in between has two users for a moment and is charged throughout. */
#include <pthread.h>
#include <stdlib.h>

#include "ledger/memory.h"

struct vg_block { uint64_t number; uint64_t users; }; /* users 0: a free entry */

static pthread_mutex_t vg_blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_block *vg_blocks;
static size_t vg_blocks_size, vg_blocks_used;

static size_t vg_block_home(uint64_t number)
{
    uint64_t h = number * 0x9e3779b97f4a7c15ull;
    return (size_t)(h ^ (h >> 32)) & (vg_blocks_size - 1);
}

static struct vg_block *vg_block_find(uint64_t number)
{
    size_t i = vg_block_home(number);
    while (vg_blocks[i].users && vg_blocks[i].number != number)
        i = (i + 1) & (vg_blocks_size - 1);
    return &vg_blocks[i];
}

static bool vg_blocks_grow(void)
{
    struct vg_block *old = vg_blocks;
    size_t size = vg_blocks_size;
    struct vg_block *new = calloc(size ? size * 2 : 256, sizeof *new);
    if (!new)
        return false;
    vg_blocks = new;
    vg_blocks_size = size ? size * 2 : 256;
    for (size_t i = 0; i < size; i++)
        if (old[i].users)
            *vg_block_find(old[i].number) = old[i];
    free(old);
    return true;
}

static void vg_block_remove(size_t gap)
{
    size_t mask = vg_blocks_size - 1;
    for (size_t i = (gap + 1) & mask; vg_blocks[i].users; i = (i + 1) & mask)
        if (((i - vg_block_home(vg_blocks[i].number)) & mask) >= ((i - gap) & mask)) {
            vg_blocks[gap] = vg_blocks[i];
            gap = i;
        }
    vg_blocks[gap].users = 0;
    vg_blocks_used--;
}

static uint64_t vg_block_use(uint64_t number)
{
    if (vg_blocks_used * 2 >= vg_blocks_size && !vg_blocks_grow())
        return VG_BLOCK; /* without memory for an entry: charged, and never credited */
    struct vg_block *block = vg_block_find(number);
    bool fresh = block->users == 0;
    vg_blocks_used += fresh;
    *block = (struct vg_block){number, block->users + 1};
    return fresh ? VG_BLOCK : 0;
}

static uint64_t vg_block_leave(uint64_t number)
{
    struct vg_block *block = vg_blocks_size ? vg_block_find(number) : NULL;
    if (!block || !block->users)
        return 0;
    if (block->users > 1) {
        block->users--;
        return 0;
    }
    vg_block_remove((size_t)(block - vg_blocks));
    return VG_BLOCK;
}

/* Only the first and the last block of an allocation can be shared; those between are its own. */
static uint64_t vg_blocks_change(uint64_t address, uint64_t bytes, uint64_t (*change)(uint64_t number))
{
    if (!bytes)
        return 0;
    uint64_t first = address / VG_BLOCK, last = (address + bytes - 1) / VG_BLOCK, charge = 0;
    bool tail = (address + bytes) % VG_BLOCK != 0, head = address % VG_BLOCK != 0;
    if (first == last)
        head |= tail;
    if (last > first + 1)
        charge = (last - first - 1) * VG_BLOCK;
    pthread_mutex_lock(&vg_blocks_lock);
    charge += head ? change(first) : VG_BLOCK;
    if (last != first)
        charge += tail ? change(last) : VG_BLOCK;
    pthread_mutex_unlock(&vg_blocks_lock);
    return charge;
}

uint64_t vg_blocks_use(uint64_t address, uint64_t bytes)
{
    return vg_blocks_change(address, bytes, vg_block_use);
}

uint64_t vg_blocks_leave(uint64_t address, uint64_t bytes)
{
    return vg_blocks_change(address, bytes, vg_block_leave);
}

void vg_blocks_forked(void)
{
    pthread_mutex_init(&vg_blocks_lock, NULL);
    free(vg_blocks);
    vg_blocks = NULL;
    vg_blocks_size = vg_blocks_used = 0;
}
