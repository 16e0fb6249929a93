/* What this process holds: a hash table of (kind, handle) with linear probing, which doubles at half
 * full and closes the gap when an entry is removed (no tombstones, so it does not age).
 *
 * One mutex guards it, never held across a driver call: a hook takes a record out BEFORE it frees the
 * handle, because afterwards the driver may at once give the same handle to another thread, and puts
 * it back if the driver refuses. If there is no memory for a record its bytes stay charged until the
 * process ends, which errs on the safe side of the limit. */
#include <pthread.h>
#include <stdlib.h>

#include "ledger/memory.h"

static pthread_mutex_t vg_book_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_record *vg_book; /* a power of two of entries; kind 0: free */
static size_t vg_book_size, vg_book_used;

static size_t vg_home(uint8_t kind, uint64_t key)
{
    uint64_t h = (key ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15ull;
    return (size_t)(h ^ (h >> 32)) & (vg_book_size - 1);
}

static struct vg_record *vg_find(uint8_t kind, uint64_t key) /* its entry, or the free one it would take */
{
    size_t i = vg_home(kind, key);
    while (vg_book[i].kind && !(vg_book[i].kind == kind && vg_book[i].key == key))
        i = (i + 1) & (vg_book_size - 1);
    return &vg_book[i];
}

static bool vg_grow(void)
{
    struct vg_record *old = vg_book;
    size_t size = vg_book_size;
    struct vg_record *new = calloc(size ? size * 2 : 256, sizeof *new);
    if (!new)
        return false;
    vg_book = new;
    vg_book_size = size ? size * 2 : 256;
    for (size_t i = 0; i < size; i++)
        if (old[i].kind)
            *vg_find(old[i].kind, old[i].key) = old[i];
    free(old);
    return true;
}

static void vg_remove(size_t gap)
{
    size_t mask = vg_book_size - 1;
    for (size_t i = (gap + 1) & mask; vg_book[i].kind; i = (i + 1) & mask)
        /* an entry may fill the gap unless its home lies behind the gap */
        if (((i - vg_home(vg_book[i].kind, vg_book[i].key)) & mask) >= ((i - gap) & mask)) {
            vg_book[gap] = vg_book[i];
            gap = i;
        }
    vg_book[gap].kind = VG_KIND_NONE;
    vg_book_used--;
}

bool vg_book_exchange(const struct vg_record *record, struct vg_record *replaced)
{
    bool did = false;
    pthread_mutex_lock(&vg_book_lock);
    if (vg_book_used * 2 < vg_book_size || vg_grow()) {
        struct vg_record *entry = vg_find(record->kind, record->key);
        did = entry->kind != VG_KIND_NONE;
        if (did)
            *replaced = *entry;
        else
            vg_book_used++;
        *entry = *record;
    }
    pthread_mutex_unlock(&vg_book_lock);
    return did;
}

void vg_book_put(const struct vg_record *record)
{
    struct vg_record replaced;
    vg_book_exchange(record, &replaced);
}

static bool vg_look(enum vg_kind kind, uint64_t key, struct vg_record *record, bool remove)
{
    bool found = false;
    pthread_mutex_lock(&vg_book_lock);
    if (vg_book_size) {
        struct vg_record *entry = vg_find((uint8_t)kind, key);
        found = entry->kind != VG_KIND_NONE;
        if (found) {
            *record = *entry;
            if (remove)
                vg_remove((size_t)(entry - vg_book));
        }
    }
    pthread_mutex_unlock(&vg_book_lock);
    return found;
}

bool vg_book_get(enum vg_kind kind, uint64_t key, struct vg_record *record)
{
    return vg_look(kind, key, record, false);
}

bool vg_book_take(enum vg_kind kind, uint64_t key, struct vg_record *record)
{
    return vg_look(kind, key, record, true);
}

int64_t vg_book_count(enum vg_kind kind, uint64_t key, uint64_t serial, int change, struct vg_record *record)
{
    int64_t count = -1;
    pthread_mutex_lock(&vg_book_lock);
    if (vg_book_size) {
        struct vg_record *entry = vg_find((uint8_t)kind, key);
        if (entry->kind && (!serial || entry->serial == serial)) {
            count = entry->count = (uint32_t)((int64_t)entry->count + change);
            *record = *entry;
            if (!count)
                vg_remove((size_t)(entry - vg_book));
        }
    }
    pthread_mutex_unlock(&vg_book_lock);
    return count;
}

void vg_book_sweep(bool (*match)(const struct vg_record *, const void *), void *argument,
                   void (*then)(const struct vg_record *, void *))
{
    for (bool again = true; again;) { /* a few at a time, since `then` runs without the lock */
        struct vg_record batch[32];
        size_t n = 0;
        pthread_mutex_lock(&vg_book_lock);
        for (size_t i = 0; i < vg_book_size && n < 32;)
            if (vg_book[i].kind && match(&vg_book[i], argument)) {
                batch[n++] = vg_book[i];
                vg_remove(i); /* may move another entry here: look again */
            } else {
                i++;
            }
        again = n == 32;
        pthread_mutex_unlock(&vg_book_lock);
        for (size_t i = 0; i < n; i++)
            then(&batch[i], argument);
    }
}

struct vg_taken_more { struct vg_taken_more *next; struct vg_record record; };

void vg_taken_add(const struct vg_record *record, void *argument)
{
    struct vg_taken *taken = argument;
    if (!taken->count) {
        taken->first = *record;
        taken->count = 1;
        return;
    }
    struct vg_taken_more *one = malloc(sizeof *one);
    if (!one)
        return;
    *one = (struct vg_taken_more){taken->more, *record};
    taken->more = one;
    taken->count++;
}

void vg_taken_each(const struct vg_taken *taken, void (*then)(const struct vg_record *, void *), void *argument)
{
    if (taken->count)
        then(&taken->first, argument);
    for (const struct vg_taken_more *one = taken->more; one; one = one->next)
        then(&one->record, argument);
}

void vg_taken_forget(struct vg_taken *taken)
{
    while (taken->more) {
        struct vg_taken_more *one = taken->more;
        taken->more = one->next;
        free(one);
    }
    taken->count = 0;
}

void vg_book_forked(void) /* in the child: another thread may have held the lock */
{
    pthread_mutex_init(&vg_book_lock, NULL);
    free(vg_book);
    vg_book = NULL;
    vg_book_size = vg_book_used = 0;
}
