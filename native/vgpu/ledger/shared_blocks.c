/* Who uses which 2 MiB block of device memory, in this process.
 *
 * The driver takes physical memory by blocks and cuts small allocations out of them. NVML charges
 * the blocks, and so does the ledger: one that several allocations share is charged with the first
 * of them and credited with the last. The table maps a block's number (address / 2 MiB) to its
 * users; a process has one address space for all GPUs, so the number alone identifies it.
 *
 * The order of a free matters when two threads race: the driver first, then vg_blocks_leave. A
 * block given out again in between has two users for a moment and is charged throughout. */
#include <pthread.h>

#include "ledger/hash_table.h"
#include "ledger/ledger.h"

struct block {
    uint64_t number;
    uint8_t kind;
    uint64_t users;
};
_Static_assert(offsetof(struct block, number) == offsetof(struct vg_table_key, key) &&
                   offsetof(struct block, kind) == offsetof(struct vg_table_key, kind),
               "an entry of a hash table");

enum { IN_USE = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_table table = {.bytes = sizeof(struct block)};

static uint64_t use(uint64_t number)
{
    struct block *block = vg_table_add(&table, IN_USE, number);
    if (!block)
        return VG_BLOCK; /* without memory for an entry: charged, and never credited */
    return block->users++ ? 0 : VG_BLOCK;
}

static uint64_t leave(uint64_t number)
{
    struct block *block = vg_table_find(&table, IN_USE, number);
    if (!block || --block->users)
        return 0;
    vg_table_remove(&table, block);
    return VG_BLOCK;
}

/* Only the first and the last block of an allocation can be shared; those between are its own. */
static uint64_t change_span(uint64_t address, uint64_t bytes, uint64_t (*change)(uint64_t number))
{
    if (!bytes)
        return 0;
    uint64_t first = address / VG_BLOCK, last = (address + bytes - 1) / VG_BLOCK, charge = 0;
    bool tail = (address + bytes) % VG_BLOCK != 0, head = address % VG_BLOCK != 0;
    if (first == last)
        head |= tail;
    if (last > first + 1)
        charge = (last - first - 1) * VG_BLOCK;
    pthread_mutex_lock(&lock);
    charge += head ? change(first) : VG_BLOCK;
    if (last != first)
        charge += tail ? change(last) : VG_BLOCK;
    pthread_mutex_unlock(&lock);
    return charge;
}

uint64_t vg_blocks_use(uint64_t address, uint64_t bytes)
{
    return change_span(address, bytes, use);
}

uint64_t vg_blocks_leave(uint64_t address, uint64_t bytes)
{
    return change_span(address, bytes, leave);
}

void vg_blocks_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    vg_table_clear(&table);
}
