/* A new state's timing: the options of fakegpu_create (fakegpu.h lists them) and what they set. */
#define _GNU_SOURCE
#include "clock/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/engine_lock.h"

#define BEGINNING 1000000000ull /* virtual time of a new state */

/* The value that an option was given, in `value`; NULL: not given. */
static const char *option(const char *at, const char *key, char *value, size_t size)
{
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

static uint64_t number(const char *options, const char *key, uint64_t otherwise)
{
    char value[64];
    return option(options, key, value, sizeof value) ? strtoull(value, NULL, 0) : otherwise;
}

/* Below 100: a slice must have some length, and a GPU some speed. */
static uint32_t percent(const char *options, const char *key, uint64_t otherwise)
{
    uint64_t found = number(options, key, otherwise);
    return (uint32_t)(found < 99 ? found : 99);
}

static bool option_is(const char *options, const char *key, const char *value)
{
    char text[32];
    return option(options, key, text, sizeof text) && !strcmp(text, value);
}

bool fg_engine_options_known(const char *options)
{
    static const char *const known[] = {
        "clock",        "scale",          "start_threads", "window_ns",  "mode",
        "slice_us",     "switch_us",      "launch_ns",     "event_ns",   "call_ns",
        "sync_ns",      "jitter",         "seed",          "contention", "noise",
        "to_host_mbps", "to_device_mbps", "inside_mbps",   "load_us",    "slice_uneven",
        "tail",         "clock_drop",     "clock_ms",      "util_last",  "util_late_ms",
        "util_foreign", "loaded"};
    while (options && *options) {
        size_t word = strcspn(options, ","), key = strcspn(options, "=,");
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found |= strlen(known[i]) == key && !strncmp(options, known[i], key);
        if (!found || key == word) {
            fprintf(stderr, "fakegpu: no option '%.*s': fakegpu.h lists them\n", (int)word,
                    options);
            return false;
        }
        options += word + (options[word] == ',');
    }
    return true;
}

void fg_engine_create(struct fg_state *state)
{
    struct fg_engine *e = &state->engine;
    const char *options = state->options;
    const struct fg_profile *profile = &state->gpu[0].profile;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&e->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    e->virtual_clock = option_is(options, "clock", "virtual");
    e->mps = option_is(options, "mode", "mps");
    e->slice_ns = number(options, "slice_us", profile->slice_us) * 1000;
    e->switch_ns = number(options, "switch_us", profile->switch_us) * 1000;
    e->event_ns = number(options, "event_ns", profile->event_ns);
    e->launch_ns = number(options, "launch_ns", profile->launch_ns);
    e->load_ns = number(options, "load_us", profile->load_us) * 1000;
    e->loaded_pct = (uint32_t)number(options, "loaded", 100);
    e->call_ns = number(options, "call_ns", 500);
    e->sync_ns = number(options, "sync_ns", 3000);
    e->window_ns = number(options, "window_ns", 0);
    e->seed = number(options, "seed", 1);
    e->jitter_pct = (uint32_t)number(options, "jitter", 0);
    e->contention_pct = (uint32_t)number(options, "contention", profile->contention);
    e->uneven_pct = percent(options, "slice_uneven", profile->slice_uneven);
    e->tail_pct = percent(options, "tail", profile->tail);
    e->drop_pct = percent(options, "clock_drop", profile->clock_drop);
    e->clock_ns = number(options, "clock_ms", profile->clock_ms) * 1000000;
    e->util_last = number(options, "util_last", profile->util_last) != 0;
    e->util_late_ns = number(options, "util_late_ms", profile->util_late_ms) * 1000000;
    e->util_foreign = (uint32_t)number(options, "util_foreign", profile->util_foreign);
    e->noise_pct = (uint32_t)number(options, "noise", 0);
    e->start_threads = (uint32_t)number(options, "start_threads", 0);
    e->to_host_bps = number(options, "to_host_mbps", 25000) * 1000000;
    e->to_device_bps = number(options, "to_device_mbps", 25000) * 1000000;
    e->inside_bps = number(options, "inside_mbps", 1500000) * 1000000;
    char scale[32];
    double factor = option(options, "scale", scale, sizeof scale) ? strtod(scale, NULL) : 1;
    e->scale = factor > 0 ? (uint64_t)(factor * FG_WHOLE) : FG_WHOLE;
    if (!e->slice_ns)
        e->slice_ns = 1;
    if (!e->clock_ns)
        e->drop_pct = 0;
    e->gpus = (uint32_t)state->gpus;
    e->nonce = fg_monotonic() ^ (uint64_t)getpid() << 40;
    e->t = e->virtual_clock ? BEGINNING : fg_monotonic();
    for (uint32_t g = 0; g < e->gpus; g++) {
        e->gpu[g].sample_begun = e->t;
        e->gpu[g].totals.until = e->t;
        e->gpu[g].slice_end = e->t;
    }
}
