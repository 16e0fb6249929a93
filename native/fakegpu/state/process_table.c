/* The process table: this process's row, tags ("containers"), and the end of processes that
 * died. */
#define _GNU_SOURCE
#include "state/process_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "state/holders.h"
#include "state/ledger.h"

static int self = -1; /* this process's row */
static pid_t self_pid;
static void (*process_gone)(int process);

void fg_when_process_gone(void (*watcher)(int process))
{
    process_gone = watcher;
}

/* Where processes are seen by the pids of the machine, also from a container, which has others. */
static const char *machine_proc(void)
{
    static const char *found;
    if (!found)
        found = access(FG_MOUNTED "/proc/self", F_OK) ? "/proc" : FG_MOUNTED "/proc";
    return found;
}

/* This process's pid as the machine has it. */
static pid_t machine_pid(void)
{
    char path[64], text[32];
    snprintf(path, sizeof path, "%s/self", machine_proc());
    ssize_t length = readlink(path, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    return length > 0 ? (pid_t)atoi(text) : getpid();
}

/* State letter, threads and start time of a process by /proc; false where it is gone. */
static bool read_stat(pid_t pid, char *letter, uint64_t *threads, uint64_t *started)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "%s/%d/stat", machine_proc(), (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = 0;
    char *field = strrchr(text, ')'); /* the name may hold anything */
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
    /* The driver holds a process's memory until its last thread is gone; its first may be dead
     * before. */
    return (letter != 'Z' && letter != 'X') || threads > 1;
}

static void free_row(int index)
{
    struct fg_process *row = &fg_state->process[index];
    if (process_gone)
        process_gone(index);
    fg_shared_drop_process(index);
    memset(row->managed, 0, sizeof row->managed);
    memset(row->used, 0, sizeof row->used);
    memset(row->contexts, 0, sizeof row->contexts);
    row->host_bytes = row->managed_host = 0;
    memset(row->saved, 0, sizeof row->saved);
    memset(row->saved_contexts, 0, sizeof row->saved_contexts);
    row->initialized = 0;
    row->checkpoint = 0;
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
    struct fg_process mine = {.pid = machine_pid()};
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
                return i; /* a second copy of the library in this process */
            free_row(i);  /* before our exec(), or another process of this pid */
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

void fg_own_process_forget(void)
{
    self = -1;
}
