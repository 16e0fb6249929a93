/* What this process holds: which handle is charged with how much (struct vg_record).
 *
 * One mutex guards the table, never held across a driver call: a hook takes a record out BEFORE it
 * frees the handle, because afterwards the driver may at once give the same handle to another
 * thread, and puts it back if the driver refuses. If there is no memory for a record its bytes stay
 * charged until the process ends, which errs on the safe side of the limit. */
#include <pthread.h>

#include "ledger/hash_table.h"
#include "ledger/ledger.h"

_Static_assert(offsetof(struct vg_record, key) == offsetof(struct vg_table_key, key) &&
                   offsetof(struct vg_record, kind) == offsetof(struct vg_table_key, kind),
               "an entry of a hash table");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_table table = {.bytes = sizeof(struct vg_record)};

bool vg_record_exchange(const struct vg_record *record, struct vg_record *replaced)
{
    pthread_mutex_lock(&lock);
    size_t before = table.used;
    struct vg_record *entry = vg_table_add(&table, record->kind, record->key);
    bool did = entry && table.used == before;
    if (did) {
        *replaced = *entry;
        vg_note_module(replaced, false);
    }
    if (entry) {
        *entry = *record;
        vg_note_module(record, true);
    }
    pthread_mutex_unlock(&lock);
    return did;
}

void vg_record_put(const struct vg_record *record)
{
    struct vg_record replaced;
    vg_record_exchange(record, &replaced);
}

static bool look(enum vg_kind kind, uint64_t key, struct vg_record *record, bool remove)
{
    pthread_mutex_lock(&lock);
    struct vg_record *entry = vg_table_find(&table, (uint8_t)kind, key);
    if (entry)
        *record = *entry;
    if (entry && remove) {
        vg_note_module(record, false);
        vg_table_remove(&table, entry);
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

bool vg_record_get(enum vg_kind kind, uint64_t key, struct vg_record *record)
{
    return look(kind, key, record, false);
}

bool vg_record_take(enum vg_kind kind, uint64_t key, struct vg_record *record)
{
    return look(kind, key, record, true);
}

bool vg_record_grow(enum vg_kind kind, uint64_t key, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct vg_record *entry = vg_table_find(&table, (uint8_t)kind, key);
    if (entry)
        entry->bytes += bytes;
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

int64_t vg_record_count(enum vg_kind kind, uint64_t key, uint64_t serial, int change,
                        struct vg_record *record)
{
    int64_t count = -1;
    pthread_mutex_lock(&lock);
    struct vg_record *entry = vg_table_find(&table, (uint8_t)kind, key);
    if (entry && (!serial || entry->serial == serial)) {
        count = entry->count = (uint32_t)((int64_t)entry->count + change);
        *record = *entry;
        if (!count)
            vg_table_remove(&table, entry);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

void vg_record_sweep(bool (*match)(const struct vg_record *, const void *), void *argument,
                     void (*then)(const struct vg_record *, void *))
{
    for (bool again = true; again;) { /* a few at a time, since `then` runs without the lock */
        struct vg_record batch[32];
        size_t n = 0;
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < table.size && n < 32;) {
            struct vg_record *entry = vg_table_at(&table, i);
            if (entry && match(entry, argument)) {
                vg_note_module(entry, false);
                batch[n++] = *entry;
                vg_table_remove(&table, entry); /* may move another entry here: look again */
            } else {
                i++;
            }
        }
        again = n == 32;
        pthread_mutex_unlock(&lock);
        for (size_t i = 0; i < n; i++)
            then(&batch[i], argument);
    }
}

void vg_records_forked(void) /* in the child: another thread may have held the lock */
{
    pthread_mutex_init(&lock, NULL);
    vg_table_clear(&table);
}
