/* fakegpu_mig: the MIG mode of a GPU and its instances, and what the kernel module tells of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/mig.h"
#include "state/process_table.h"

#define SLICES 7 /* of compute; of memory there are 8 */
#define GIB (1ull << 30)

static void name(int gpu, struct fg_mig *mig)
{
    uint64_t hash = 0xcbf29ce484222325ull + (mig->gi << 8 | mig->ci);
    for (int i = 0; i < 16; i++)
        hash = (hash ^ fg_state->gpu[gpu].uuid[i]) * 0x100000001b3ull;
    for (const char *c = mig->profile; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    for (int i = 0; i < 16; i++) {
        hash = (hash ^ (uint8_t)(i * 37)) * 0x100000001b3ull;
        mig->uuid[i] = (uint8_t)(hash >> 40);
    }
}

/* "1g.10gb", "1g.10gb+me" or "1c.2g.20gb"; false: it is none. */
static bool parse(const char *text, size_t length, struct fg_mig *mig, unsigned *gb)
{
    char attribute[16] = "";
    int end = 0;
    if (!length || length >= sizeof mig->profile)
        return false;
    memcpy(mig->profile, text, length);
    mig->profile[length] = 0;
    if (sscanf(mig->profile, "%uc.%ug.%ugb%n", &mig->ci_slices, &mig->gi_slices, gb, &end) != 3 ||
        !end) {
        if (sscanf(mig->profile, "%ug.%ugb%n", &mig->gi_slices, gb, &end) != 2 || !end)
            return false;
        mig->ci_slices = mig->gi_slices;
    }
    return mig->profile[end] == 0 ||
           (sscanf(mig->profile + end, "+%15[a-z.]", attribute) == 1 && *attribute);
}

/* Reads a layout into `out`; how many instances, or -1. */
static int read_layout(int gpu, const char *text, struct fg_mig out[FG_MIGS])
{
    const struct fg_profile *profile = &fg_state->gpu[gpu].profile;
    unsigned all_gb = (unsigned)((profile->nvml_bytes + GIB - 1) / GIB), gb, last_gb = 0;
    unsigned left = 0, compute = 0, memory = 0;
    uint32_t gi = 0;
    int found = 0;
    for (; *text; found++) {
        size_t length = strcspn(text, ",");
        struct fg_mig *mig = &out[found];
        if (found == FG_MIGS || !parse(text, length, mig, &gb) || !mig->ci_slices)
            return -1;
        text += length + (text[length] == ',');
        unsigned eighths = (gb * 8 + all_gb / 2) / all_gb;
        const struct fg_mig *before = found ? mig - 1 : NULL;
        bool is_within = before && mig->ci_slices < mig->gi_slices && left >= mig->ci_slices &&
                         before->gi_slices == mig->gi_slices && last_gb == gb;
        if (!is_within) {
            gi++;
            left = mig->gi_slices;
            compute += mig->gi_slices;
            memory += eighths;
        }
        if (left < mig->ci_slices || !eighths || compute > SLICES || memory > 8)
            return -1;
        left -= mig->ci_slices;
        last_gb = gb;
        mig->gi = gi;
        mig->ci = is_within ? before->ci + 1 : 0;
        mig->memory_bytes =
            profile->memory_bytes / 8 / profile->block_bytes * profile->block_bytes * eighths;
        mig->sm_count =
            mig->ci_slices == SLICES ? profile->sm_count : profile->sm_count / 8 * mig->ci_slices;
        name(gpu, mig);
    }
    return found;
}

/* Whether processes run on the GPU in an instance that the layout does not leave alone. */
static bool in_use(int gpu, bool mode, const struct fg_mig *layout, int count)
{
    fg_sweep_dead();
    for (int i = 0; i < fg_state->processes; i++) {
        const struct fg_process *process = &fg_state->process[i];
        const struct fg_mig *its = fg_mig_of(gpu, process);
        bool stays = its ? false : !mode;
        for (int j = 0; its && j < count; j++)
            stays = stays || !memcmp(its, &layout[j], sizeof *its);
        if (process->pid && process->contexts[gpu] && !stays)
            return true;
    }
    return false;
}

static int drop(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

/* Writes capabilities/gpu<i>/mig/gi<j>[/ci<k>]/access beside the state's file. */
static int tell(int gpu, const struct fg_mig *layout, int count)
{
    char path[FG_PATH + 128];
    const char *slash = strrchr(fg_state->path, '/');
    int base = (int)(slash - fg_state->path);
    snprintf(path, sizeof path, "%.*s/capabilities/gpu%d", base, fg_state->path, gpu);
    nftw(path, drop, 8, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < count * 2; i++) {
        const struct fg_mig *mig = &layout[i / 2];
        int ci = i % 2 ? (int)mig->ci : -1;
        snprintf(path, sizeof path, "%.*s/capabilities/gpu%d/mig/gi%u/", base, fg_state->path, gpu,
                 mig->gi);
        if (ci >= 0)
            snprintf(path + strlen(path), 32, "ci%d/", ci);
        for (char *at = path + base + 1; (at = strchr(at, '/')); at++) {
            *at = 0;
            if (mkdir(path, 0755) && errno != EEXIST)
                return -errno;
            *at = '/';
        }
        strcat(path, "access");
        FILE *file = fopen(path, "w");
        if (!file)
            return -errno;
        fprintf(file, "DeviceFileMinor: %u\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
                fg_mig_minor(gpu, mig->gi, ci));
        fclose(file);
    }
    return 0;
}

__attribute__((visibility("default"))) int fakegpu_mig(int gpu, const char *layout)
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return -ENODEV;
    struct fg_mig found[FG_MIGS] = {0};
    int count = layout ? read_layout(gpu, layout, found) : 0;
    if (count < 0) {
        fprintf(stderr, "fakegpu: GPU %d cannot be cut up into '%s'\n", gpu, layout);
        return -EINVAL;
    }
    fg_lock();
    struct fg_gpu *its = &fg_state->gpu[gpu];
    bool busy = in_use(gpu, layout != NULL, found, count);
    if (!busy) {
        its->mig_mode = layout != NULL;
        its->migs = (uint32_t)count;
        memcpy(its->mig, found, sizeof found);
    }
    fg_unlock();
    return busy ? -EBUSY : tell(gpu, found, count);
}
