/* fakegpu_create: a new state file, and the GPUs in it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock/settings.h"
#include "controls/profile.h"
#include "state/state.h"

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
    /* faults read from another state are never taken for this one's */
    state->fault_epoch = state->born;
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
