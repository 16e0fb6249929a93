/* Faults on demand; faults.h has the names. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controls/faults.h"
#include "state/state.h"

#define MOST 32
static struct fault {
    char name[32], value[96];
    _Atomic uint64_t calls;
} faults[MOST];
static int armed;
static _Atomic uint64_t loaded_epoch = UINT64_MAX, allocations;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void parse(const char *text)
{
    while (text && *text && armed < MOST) {
        size_t word = strcspn(text, ","), name = strcspn(text, "=");
        struct fault *fault = &faults[armed];
        if (name && name < word) {
            snprintf(fault->name, sizeof fault->name, "%.*s", (int)name, text);
            snprintf(fault->value, sizeof fault->value, "%.*s", (int)(word - name - 1),
                     text + name + 1);
            fault->calls = 0;
            armed++;
        }
        text += word + (text[word] == ',');
    }
}

/* The lock is held. Returns the epoch of what is armed now. */
static uint64_t load(void)
{
    char common[sizeof fg_state->fault];
    fg_lock();
    memcpy(common, fg_state->fault, sizeof common);
    uint64_t epoch = atomic_load(&fg_state->fault_epoch);
    fg_unlock();
    armed = 0;
    parse(getenv("FAKEGPU_FAULT"));
    parse(common);
    atomic_store(&loaded_epoch, epoch);
    return epoch;
}

bool fg_fault_load(uint64_t *seen)
{
    if (!fg_attach())
        return false;
    uint64_t epoch = atomic_load(&fg_state->fault_epoch);
    if (epoch != atomic_load(&loaded_epoch)) {
        pthread_mutex_lock(&loading);
        /* Who waited for another thread finds them loaded: the others use them by now. */
        if (epoch != atomic_load(&loaded_epoch))
            epoch = load();
        pthread_mutex_unlock(&loading);
    }
    if (seen)
        __atomic_store_n(seen, epoch, __ATOMIC_RELAXED);
    return armed > 0;
}

static const struct fault *find(const char *name)
{
    fg_fault_load(NULL);
    for (int i = armed - 1; i >= 0; i--)
        if (!strcmp(faults[i].name, name))
            return &faults[i];
    return NULL;
}

uint64_t fg_fault_number(const char *name, uint64_t otherwise)
{
    const struct fault *fault = find(name);
    return fault ? strtoull(fault->value, NULL, 0) : otherwise;
}

int fg_fault_call(const char *symbol)
{
    for (int i = 0; i < armed; i++) {
        struct fault *fault = &faults[i];
        bool kills = !strcmp(fault->name, "kill");
        if (!kills && strcmp(fault->name, "fail"))
            continue;
        size_t length = strcspn(fault->value, ":");
        if (strncmp(fault->value, "*", length) &&
            (strlen(symbol) != length || strncmp(fault->value, symbol, length)))
            continue;
        char *end = fault->value + length;
        uint64_t at = *end ? strtoull(end + 1, &end, 0) : 1;
        uint64_t call = atomic_fetch_add(&fault->calls, 1) + 1;
        if (at && call != at)
            continue;
        if (kills)
            kill(getpid(), SIGKILL);
        else
            return *end ? atoi(end + 1) : 999;
    }
    return 0;
}

bool fg_fault_memory(int gpu, uint64_t bytes)
{
    (void)gpu;
    if (!fg_fault_load(NULL))
        return false;
    uint64_t at = fg_fault_number("oom_at", 0);
    if (at && (atomic_fetch_add(&allocations, 1) + 1) % at == 0)
        return true;
    return bytes > fg_fault_number("fragment", UINT64_MAX);
}

int fakegpu_fault(const char *text)
{
    if (!fg_attach())
        return -ENOENT;
    if (strlen(text) >= sizeof fg_state->fault)
        return -EINVAL;
    fg_lock();
    snprintf(fg_state->fault, sizeof fg_state->fault, "%s", text);
    const char *lost = strstr(text, "lost="), *wedge = strstr(text, "wedge=");
    for (int gpu = 0; gpu < fg_state->gpus; gpu++) {
        fg_state->gpu[gpu].lost = lost && atoi(lost + 5) == gpu;
        fg_state->gpu[gpu].wedged = wedge && atoi(wedge + 6) == gpu;
    }
    atomic_fetch_add(&fg_state->fault_epoch, 1);
    fg_unlock();
    return 0;
}
