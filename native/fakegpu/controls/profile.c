/* Reads a GPU model: "key value" lines; '#' starts a comment. Every key must be known, so that a
 * misspelt constant cannot be silently zero. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controls/profile.h"

static FILE *open_profile(const char *name)
{
    if (strchr(name, '/'))
        return fopen(name, "re");
    Dl_info here; /* profiles/ lies beside the library */
    char path[4096];
    if (!dladdr((void *)&fg_read_profile, &here))
        return NULL;
    const char *slash = strrchr(here.dli_fname, '/');
    int folder = slash ? (int)(slash - here.dli_fname) : 1;
    snprintf(path, sizeof path, "%.*s/profiles/%s", folder, slash ? here.dli_fname : ".", name);
    return fopen(path, "re");
}

static bool set_field(struct fg_profile *profile, const char *key, const char *value)
{
    if (!strcmp(key, "name"))
        return snprintf(profile->name, sizeof profile->name, "%s", value) > 0;
    if (!strcmp(key, "brand"))
        return snprintf(profile->brand, sizeof profile->brand, "%s", value) > 0;
    char *end;
    uint64_t number = strtoull(value, &end, 0);
    if (!strcmp(end, " MiB"))
        number <<= 20;
    else if (!strcmp(end, " KiB"))
        number <<= 10;
    else if (*end)
        return false;
#define X(field)                                                                                   \
    if (!strcmp(key, #field)) {                                                                    \
        profile->field = number;                                                                   \
        return true;                                                                               \
    }
    FG_PROFILE_NUMBERS(X)
#undef X
    return false;
}

static const struct fg_profile defaults = {
    .block_bytes = 2 << 20,
    .small_bytes = 1 << 20,
    .align_bytes = 512,
    .pool_step_bytes = 32 << 20,
    .pitch_align = 512,
    .green_context_bytes = 2 << 20,
    .module_align_bytes = 4096,
    .event_ns = 1500,
    .launch_ns = 2200,
    .slice_us = 2000,
    .switch_us = 100,
    .clock_ms = 1000,
    .threads_per_sm = 2048,
    .cooperative = 1,
    .managed_concurrent = 1,
};

int fg_read_profile(const char *name, struct fg_profile *out)
{
    FILE *file = open_profile(name);
    if (!file) {
        fprintf(stderr, "fakegpu: no profile '%s' in profiles/\n", name);
        return -ENOENT;
    }
    *out = defaults;
    char line[256];
    int number = 0, wrong = 0;
    while (fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "#\n")] = 0;
        size_t length = strlen(line);
        while (length && isspace((unsigned char)line[length - 1]))
            line[--length] = 0;
        if (!length)
            continue;
        char *value = strchr(line, ' ');
        if (value) {
            *value++ = 0;
            value += strspn(value, " ");
        }
        if (!value || !set_field(out, line, value)) {
            fprintf(stderr, "fakegpu: profile %s, line %d: '%s' is not known\n", name, number,
                    line);
            wrong = 1;
        }
    }
    fclose(file);
    if (wrong || !out->memory_bytes || !out->context_bytes || !out->sm_count)
        return -EINVAL;
    if (!out->nvml_bytes)
        out->nvml_bytes = out->memory_bytes;
    return 0;
}
