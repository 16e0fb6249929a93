/* The state file: making it, mapping it, its one lock, and the process table. See state.h for the
 * rules that keep it right when a process dies anywhere. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "state/ledger.h"
#include "state/state.h"

struct fg_state *fg_state;
static int self = -1;          /* this process's row */
static pid_t self_pid;
static bool refused;           /* FAKEGPU_STATE is no state: said once */
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

/* ---- the file ---------------------------------------------------------------------------------- */

static void name_gpus(struct fg_state *state, const struct fg_profile *profile, int gpus)
{
    for (int i = 0; i < gpus; i++) {
        struct fg_gpu *gpu = &state->gpu[i];
        gpu->profile = *profile;
        gpu->numa = i * 2 >= gpus && gpus > 1;
        uint64_t hash = 0xcbf29ce484222325ull + (uint64_t)i;
        for (const char *c = profile->name; *c; c++)
            hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
        for (int byte = 0; byte < 16; byte++) {
            hash = (hash ^ (uint8_t)(byte * 31 + i)) * 0x100000001b3ull;
            gpu->uuid[byte] = (uint8_t)(hash >> 40);
        }
    }
}

int fakegpu_create(const char *path, const char *profile_name, int gpus, const char *options)
{
    struct fg_profile profile;
    int result = fg_read_profile(profile_name, &profile);
    if (result)
        return result;
    if (gpus < 0 || gpus > FG_GPUS || (options && strlen(options) >= sizeof fg_state->options)) {
        fprintf(stderr, "fakegpu: %d GPUs or the options are more than it has room for\n", gpus);
        return -EINVAL;
    }
    if (!fg_engine_options_known(options))
        return -EINVAL;
    /* Made beside and renamed, so that nobody maps half a state. */
    char fresh[4096];
    snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof(struct fg_state))) {
        result = -errno;
        fprintf(stderr, "fakegpu: cannot make %s: %s\n", fresh, strerror(errno));
        if (fd >= 0)
            close(fd);
        return result;
    }
    struct fg_state *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (state == MAP_FAILED)
        return -errno;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&state->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    state->born = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    state->fault_epoch = state->born; /* faults read from another state are never taken for this one's */
    state->size = sizeof *state;
    state->gpus = gpus;
    state->next_id = 1;
    if (!realpath(fresh, state->path))
        return -errno;
    state->path[strlen(state->path) - strlen(strrchr(fresh, '.'))] = 0;
    snprintf(state->options, sizeof state->options, "%s", options ? options : "");
    name_gpus(state, &profile, gpus);
    fg_engine_create(state);
    state->magic = FG_MAGIC;
    munmap(state, sizeof *state);
    if (rename(fresh, path))
        return -errno;
    return 0;
}

int fakegpu_attach(const char *path)
{
    if (!path)
        path = getenv("FAKEGPU_STATE");
    if (!path || !*path)
        return -ENOENT;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat file;
    struct fg_state *state = MAP_FAILED;
    if (!fstat(fd, &file) && file.st_size == sizeof *state)
        state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (state == MAP_FAILED || state->magic != FG_MAGIC || state->size != sizeof *state) {
        fprintf(stderr, "fakegpu: %s is no state of this build\n", path);
        return -EINVAL;
    }
    fakegpu_detach();
    __atomic_store_n(&fg_state, state, __ATOMIC_RELEASE);   /* fg_attach looks without the lock */
    return 0;
}

void fakegpu_detach(void)
{
    fakegpu_leave();
    if (fg_state)
        munmap(fg_state, sizeof *fg_state);
    __atomic_store_n(&fg_state, NULL, __ATOMIC_RELEASE);
    self = -1;
}

bool fg_attach(void)
{
    if (__atomic_load_n(&fg_state, __ATOMIC_ACQUIRE))
        return true;
    pthread_mutex_lock(&attaching);
    bool attached = fg_state || (!refused && !fakegpu_attach(NULL));
    refused = !attached && getenv("FAKEGPU_STATE");
    pthread_mutex_unlock(&attaching);
    return attached;
}

/* ---- the lock ---------------------------------------------------------------------------------- */

/* Never waits for long at once: where the kernel wakes one waiter because the owner died, and that
 * waiter is killed before it looks, nobody wakes the others, though the mutex is free (seen on 6.18). */
int fg_lock_robust(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_trylock(mutex);
    while (result == EBUSY || result == ETIMEDOUT) {
        struct timespec until;
#ifdef __SANITIZE_THREAD__             /* it does not know that a timed lock may find the owner dead */
        usleep(100);
        result = pthread_mutex_trylock(mutex);
        continue;
#endif
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        result = pthread_mutex_timedlock(mutex, &until);
    }
    return result;
}

void fg_lock(void)
{
    int result = fg_lock_robust(&fg_state->mutex);
    if (result == EOWNERDEAD) {
        /* Its owner died halfway: rows are whole, sums may not be. */
        fg_totals_recount();
        pthread_mutex_consistent(&fg_state->mutex);
    } else if (result) {
        fprintf(stderr, "fakegpu: the state's lock is broken: %s\n", strerror(result));
        abort();
    }
}

void fg_unlock(void) { pthread_mutex_unlock(&fg_state->mutex); }

/* ---- processes --------------------------------------------------------------------------------- */

/* State letter, threads and start time of a process by /proc; false where it is gone. */
static bool read_stat(pid_t pid, char *letter, uint64_t *threads, uint64_t *started)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = 0;
    char *field = strrchr(text, ')');  /* the name may hold anything */
    if (!field || sscanf(field + 1, " %c", letter) != 1)
        return false;
    field += 2;
    for (int skip = 0; skip < 19; skip++) {
        field = strchr(field + 1, ' ');
        if (!field)
            return false;
        if (skip == 16)
            *threads = strtoull(field, NULL, 10);
    }
    *started = strtoull(field, NULL, 10);
    return true;
}

bool fg_process_alive(const struct fg_process *row)
{
    char letter;
    uint64_t threads = 0, started;
    if (!row->pid || !read_stat(row->pid, &letter, &threads, &started) || started != row->started)
        return false;
    /* The driver holds a process's memory until its last thread is gone; its first may be dead before. */
    return (letter != 'Z' && letter != 'X') || threads > 1;
}

static void free_row(int index)
{
    struct fg_process *row = &fg_state->process[index];
    fg_engine_process_gone(index);
    fg_shared_drop_process(index);
    memset(row->managed, 0, sizeof row->managed);
    memset(row->used, 0, sizeof row->used);
    memset(row->contexts, 0, sizeof row->contexts);
    row->host_bytes = 0;
    row->initialized = 0;
    row->pid = 0;
    fg_totals_recount();
}

uint64_t fg_sweep_dead(void)
{
    uint64_t before = 0, after = 0;
    for (int gpu = 0; gpu < fg_state->gpus; gpu++)
        before += fg_state->gpu[gpu].used;
    for (int i = 0; i < fg_state->processes; i++)
        if (fg_state->process[i].pid && !fg_process_alive(&fg_state->process[i]))
            free_row(i);
    fg_shared_sweep();
    for (int gpu = 0; gpu < fg_state->gpus; gpu++)
        after += fg_state->gpu[gpu].used;
    return before - after;
}

static int claim(void)
{
    struct fg_process mine = {.pid = getpid()};
    char letter;
    uint64_t threads;
    if (!read_stat(mine.pid, &letter, &threads, &mine.started))
        return -1;
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random)
        memcpy(mine.image, random, sizeof mine.image);
    const char *tag = getenv("FAKEGPU_TAG");
    mine.tag = fg_find_tag(tag && *tag ? tag : "none", true);
    ssize_t length = readlink("/proc/self/exe", mine.name, sizeof mine.name - 1);
    if (length < 0)
        mine.name[0] = 0;
    if (mine.tag < 0)
        return -1;
    int vacant = -1;
    for (int i = 0; i < fg_state->processes; i++) {
        struct fg_process *row = &fg_state->process[i];
        if (row->pid == mine.pid) {
            if (row->started == mine.started && !memcmp(row->image, mine.image, sizeof mine.image))
                return i;              /* a second copy of the library in this process */
            free_row(i);               /* before our exec(), or another process of this pid */
        }
        if (!row->pid && vacant < 0)
            vacant = i;
    }
    if (vacant < 0 && fg_state->processes < FG_PROCESSES)
        vacant = fg_state->processes++;
    if (vacant < 0)
        return -1;
    pid_t pid = mine.pid;
    mine.pid = 0;
    fg_state->process[vacant] = mine;
    __atomic_store_n(&fg_state->process[vacant].pid, pid, __ATOMIC_RELEASE);
    return vacant;
}

/* Locked or not: the callers below hold the lock. */
int fg_own_process_locked(void)
{
    if (self < 0 || self_pid != getpid()) {
        self = claim();
        if (self < 0 && fg_sweep_dead())
            self = claim();
        self_pid = getpid();
    }
    return self;
}

int fg_own_process(void)
{
    if (self >= 0 && self_pid == getpid())
        return self;
    fg_lock();
    int row = fg_own_process_locked();
    fg_unlock();
    return row;
}

int fg_find_tag(const char *name, bool make)
{
    for (int i = 0; i < fg_state->tags; i++)
        if (!strncmp(fg_state->tag[i].name, name, sizeof fg_state->tag[i].name - 1))
            return i;
    if (!make || fg_state->tags == FG_TAGS)
        return -1;
    snprintf(fg_state->tag[fg_state->tags].name, sizeof fg_state->tag[0].name, "%s", name);
    return fg_state->tags++;
}

/* ---- options ----------------------------------------------------------------------------------- */

const char *fg_option(const char *key, char *value, size_t size)
{
    const char *at = fg_state ? fg_state->options : "";
    size_t length = strlen(key);
    while (*at) {
        size_t word = strcspn(at, ",");
        if (word > length && !strncmp(at, key, length) && at[length] == '=') {
            snprintf(value, size, "%.*s", (int)(word - length - 1), at + length + 1);
            return value;
        }
        at += word + (at[word] == ',');
    }
    return NULL;
}

uint64_t fg_option_number(const char *key, uint64_t otherwise)
{
    char value[64];
    return fg_option(key, value, sizeof value) ? strtoull(value, NULL, 0) : otherwise;
}
