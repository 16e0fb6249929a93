/* Who holds how many bytes of which GPU, and the oracle over it.
 *
 * Exact under any number of racing processes because each change, the refusal at the GPU's end, and
 * the judgement against a watched limit happen in one hold of the lock. A death inside it is made
 * good by fg_totals_recount(): rows are changed by one store each, sums are computed from rows. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state/ledger.h"
#include "state/state.h"

void fg_totals_recount(void)
{
    struct fg_state *s = fg_state;
    for (int g = 0; g < s->gpus; g++) {
        uint64_t by_tag[FG_TAGS] = {0}, all = 0;
        for (int i = 0; i < s->processes; i++)
            if (s->process[i].pid) {
                by_tag[s->process[i].tag] += s->process[i].used[g];
                all += s->process[i].used[g];
            }
        for (int i = 0; i < s->shareds; i++)
            if (s->shared[i].gpu == g) {
                by_tag[s->shared[i].tag] += s->shared[i].bytes;
                all += s->shared[i].bytes;
            }
        for (int i = 0; i < s->tags; i++)
            s->tag[i].used[g] = by_tag[i];
        s->gpu[g].used = all;
    }
}

/* An increase has been written down: high-water marks and the watched limit. */
static void judge(int gpu, struct fg_tag *tag)
{
    struct fg_gpu *g = &fg_state->gpu[gpu];
    uint64_t watched = tag->watched[gpu];
    if (watched && tag->used[gpu] > watched) {
        fg_sweep_dead();
        if (tag->used[gpu] > watched) {
            uint64_t over = tag->used[gpu] - watched;
            tag->over[gpu]++;
            if (over > tag->over_bytes[gpu])
                tag->over_bytes[gpu] = over;
        }
    }
    for (int i = 0; i < fg_state->processes; i++) {
        struct fg_process *p = &fg_state->process[i];
        if (p->asked && p->asked_gpu == gpu && &fg_state->tag[p->tag] == tag && tag->used[gpu] + p->asked > watched)
            p->asked_fits = 0;
    }
    if (tag->used[gpu] > tag->peak[gpu])
        tag->peak[gpu] = tag->used[gpu];
    if (g->used > g->peak)
        g->peak = g->used;
}

uint64_t fg_tag_limited_bytes(int gpu, const struct fg_tag *tag)
{
    uint64_t counted = tag->used[gpu];
    for (int i = 0; i < fg_state->processes; i++)
        if (fg_state->process[i].pid && &fg_state->tag[fg_state->process[i].tag] == tag)
            counted -= fg_state->process[i].managed[gpu];
    return counted;
}

static bool room(int gpu, const struct fg_tag *tag, uint64_t bytes, bool managed)
{
    const struct fg_gpu *g = &fg_state->gpu[gpu];
    if (bytes > g->profile.memory_bytes || g->used > g->profile.memory_bytes - bytes)
        return false;
    return managed || !tag->hard_limit[gpu] || fg_tag_limited_bytes(gpu, tag) + bytes <= tag->hard_limit[gpu];
}

static bool make_room(int gpu, const struct fg_tag *tag, uint64_t bytes, bool managed)
{
    return room(gpu, tag, bytes, managed) || (fg_sweep_dead() && room(gpu, tag, bytes, managed));
}

static int charge(int gpu, uint64_t bytes, bool managed)
{
    if (!bytes)
        return 0;
    fg_lock();
    int row = fg_own_process_locked(), result = -ENOMEM;
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        struct fg_tag *tag = &fg_state->tag[p->tag];
        if (make_room(gpu, tag, bytes, managed)) {
            p->used[gpu] += bytes;
            p->managed[gpu] += managed ? bytes : 0;
            tag->used[gpu] += bytes;
            fg_state->gpu[gpu].used += bytes;
            judge(gpu, tag);
            result = 0;
        }
    }
    fg_unlock();
    return result;
}

int fg_charge(int gpu, uint64_t bytes) { return charge(gpu, bytes, false); }
int fg_charge_managed(int gpu, uint64_t bytes) { return charge(gpu, bytes, true); }

void fg_uncharge_managed(int gpu, uint64_t bytes)
{
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0)
        fg_state->process[row].managed[gpu] -= bytes;
    fg_unlock();
    fg_uncharge(gpu, bytes);
}

void fg_uncharge(int gpu, uint64_t bytes)
{
    if (!bytes)
        return;
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        if (bytes > p->used[gpu]) {    /* a bug of the fake: say so, never wrap around */
            fprintf(stderr, "fakegpu: %llu bytes given back, %llu held\n",
                    (unsigned long long)bytes, (unsigned long long)p->used[gpu]);
            bytes = p->used[gpu];
        }
        p->used[gpu] -= bytes;
        fg_state->tag[p->tag].used[gpu] -= bytes;
        fg_state->gpu[gpu].used -= bytes;
    }
    fg_unlock();
}

/* ---- memory that several processes hold ---------------------------------------------------------- */

static struct fg_holder *find_holder(struct fg_shared *shared, int process)
{
    for (int i = 0; i < FG_HOLDERS; i++)
        if (shared->holder[i].count && shared->holder[i].process == process)
            return &shared->holder[i];
    return NULL;
}

static void release_if_unheld(struct fg_shared *shared)
{
    for (int i = 0; i < FG_HOLDERS; i++)
        if (shared->holder[i].count)
            return;
    if (shared->exported) {
        char path[FG_PATH + 64];
        fg_shared_export_path(shared->id, path, sizeof path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        bool held = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
        if (fd >= 0)
            close(fd);
        if (held)
            return;
        unlink(path);
    }
    int gpu = shared->gpu;
    shared->gpu = -1;
    fg_state->tag[shared->tag].used[gpu] -= shared->bytes;
    fg_state->gpu[gpu].used -= shared->bytes;
}

void fg_shared_sweep(void)
{
    for (int i = 0; i < fg_state->shareds; i++)
        if (fg_state->shared[i].gpu >= 0)
            release_if_unheld(&fg_state->shared[i]);
}

void fg_shared_export_path(uint64_t id, char *path, size_t size)
{
    snprintf(path, size, "%s.export.%llu", fg_state->path, (unsigned long long)id);
}

void fg_shared_exported(int index, uint64_t id)
{
    fg_lock();
    if (fg_state->shared[index].gpu >= 0 && fg_state->shared[index].id == id)
        fg_state->shared[index].exported = 1;
    fg_unlock();
}

uint64_t fg_new_id(void)
{
    fg_lock();
    uint64_t id = fg_state->next_id++;
    fg_unlock();
    return id;
}

int fg_shared_make(int gpu, uint64_t bytes, uint64_t *id)
{
    fg_lock();
    int row = fg_own_process_locked(), index = -ENOMEM;
    for (int i = 0; i < FG_SHARED && row >= 0; i++)
        if (i >= fg_state->shareds || fg_state->shared[i].gpu < 0) {
            index = i;
            break;
        }
    if (row >= 0 && index >= 0) {
        struct fg_shared *shared = &fg_state->shared[index];
        shared->gpu = -1;
        if (index == fg_state->shareds)
            fg_state->shareds++;
        memset(shared->holder, 0, sizeof shared->holder);
        shared->tag = fg_state->process[row].tag;
        shared->bytes = bytes;
        shared->exported = 0;
        shared->id = *id = fg_state->next_id++;
        shared->holder[0] = (struct fg_holder){row, 1};
        /* Sums stay: it only moves from the process's row to its own. */
        fg_state->process[row].used[gpu] -= bytes;
        shared->gpu = gpu;
    }
    fg_unlock();
    return index;
}

int fg_shared_hold(int index, uint64_t id)
{
    if (index < 0 || index >= FG_SHARED)
        return -ENOENT;
    fg_lock();
    int row = fg_own_process_locked(), result = -ENOENT;
    struct fg_shared *shared = &fg_state->shared[index];
    if (row >= 0 && index < fg_state->shareds && shared->gpu >= 0 && shared->id == id) {
        struct fg_holder *holder = find_holder(shared, row);
        for (int i = 0; i < FG_HOLDERS && !holder; i++)
            if (!shared->holder[i].count) {
                holder = &shared->holder[i];
                holder->process = row;
            }
        result = -EMFILE;
        if (holder) {
            holder->count++;
            result = 0;
        }
    }
    fg_unlock();
    return result;
}

void fg_shared_drop(int index, uint64_t id)
{
    if (index < 0 || index >= FG_SHARED)
        return;
    fg_lock();
    int row = fg_own_process_locked();
    struct fg_shared *shared = &fg_state->shared[index];
    struct fg_holder *holder = row < 0 || shared->gpu < 0 || shared->id != id ? NULL : find_holder(shared, row);
    if (holder) {
        holder->count--;
        release_if_unheld(shared);
    }
    fg_unlock();
}

void fg_shared_drop_process(int process)
{
    for (int i = 0; i < fg_state->shareds; i++) {
        struct fg_shared *shared = &fg_state->shared[i];
        struct fg_holder *holder = shared->gpu < 0 ? NULL : find_holder(shared, process);
        if (holder) {
            holder->count = 0;
            release_if_unheld(shared);
        }
    }
}

/* ---- the oracle ---------------------------------------------------------------------------------- */

enum oracle { USED, PEAK, OVER, OVER_BYTES };
static uint64_t ask(const char *name, int gpu, enum oracle what)
{
    uint64_t answer = 0;
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return 0;
    fg_lock();
    fg_sweep_dead();
    int index = fg_find_tag(name, false);
    if (index >= 0) {
        struct fg_tag *tag = &fg_state->tag[index];
        answer = what == USED ? tag->used[gpu] : what == PEAK ? tag->peak[gpu]
               : what == OVER ? tag->over[gpu] : tag->over_bytes[gpu];
    }
    fg_unlock();
    return answer;
}

uint64_t fakegpu_used(const char *tag, int gpu) { return ask(tag, gpu, USED); }
uint64_t fakegpu_peak(const char *tag, int gpu) { return ask(tag, gpu, PEAK); }
uint64_t fakegpu_over(const char *tag, int gpu) { return ask(tag, gpu, OVER); }
uint64_t fakegpu_over_bytes(const char *tag, int gpu) { return ask(tag, gpu, OVER_BYTES); }

int fakegpu_uuid(int gpu, uint8_t out[16])
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return -ENODEV;
    memcpy(out, fg_state->gpu[gpu].uuid, 16);
    return 0;
}

uint64_t fakegpu_total(int gpu)
{
    return fg_attach() && gpu >= 0 && gpu < fg_state->gpus ? fg_state->gpu[gpu].profile.memory_bytes : 0;
}

void fakegpu_watch(const char *name, int gpu, uint64_t limit)
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return;
    fg_lock();
    int index = fg_find_tag(name, true);
    if (index >= 0) {
        struct fg_tag *tag = &fg_state->tag[index];
        tag->watched[gpu] = limit;
        tag->over[gpu] = tag->over_bytes[gpu] = 0;
    }
    fg_unlock();
}

void fakegpu_reset(const char *name)
{
    if (!fg_attach())
        return;
    fg_lock();
    fg_sweep_dead();
    int index = fg_find_tag(name, false);
    for (int gpu = 0; index >= 0 && gpu < fg_state->gpus; gpu++) {
        struct fg_tag *tag = &fg_state->tag[index];
        tag->peak[gpu] = tag->used[gpu];
        tag->over[gpu] = tag->over_bytes[gpu] = 0;
    }
    fg_unlock();
    fg_engine_reset_tag(name);
}

uint64_t fakegpu_sweep(void)
{
    if (!fg_attach())
        return 0;
    fg_lock();
    uint64_t bytes = fg_sweep_dead();
    fg_unlock();
    return bytes;
}

/* ---- was a refusal false? --------------------------------------------------------------------------- */

__attribute__((visibility("default"))) void fakegpu_ask(int gpu, uint64_t bytes)
{
    fg_lock();
    int row = fg_own_process_locked();
    if (row >= 0) {
        struct fg_process *p = &fg_state->process[row];
        const struct fg_tag *tag = &fg_state->tag[p->tag];
        p->asked = bytes;
        p->asked_gpu = gpu;
        p->asked_fits = tag->used[gpu] + bytes <= tag->watched[gpu];
    }
    fg_unlock();
}

__attribute__((visibility("default"))) int fakegpu_answered(void)
{
    fg_lock();
    int row = fg_own_process_locked(), fits = 0;
    if (row >= 0) {
        fits = fg_state->process[row].asked_fits != 0;
        fg_state->process[row].asked = 0;
    }
    fg_unlock();
    return fits;
}
