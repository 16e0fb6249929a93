/* A container sees the GPUs whose device files were put into it, whatever else the node has. The
 * folder is that of FAKEGPU_DEV, or /dev where the state is the mounted one. A test that makes a
 * machine of its own (FAKEGPU_STATE) has no device files for it; this machine's are of other GPUs.
 */
#include "state/device_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "state/mig.h"

static const char *folder(void)
{
    const char *given = getenv("FAKEGPU_DEV"), *state = getenv("FAKEGPU_STATE");
    return given && *given ? given : state && *state ? NULL : "/dev";
}

static bool is_there(const char *where, const char *name)
{
    char path[FG_PATH];
    int length = snprintf(path, sizeof path, "%s/%s", where, name);
    return length < (int)sizeof path && !access(path, F_OK);
}

static bool has(const char *name)
{
    const char *where = folder();
    /* Without nvidiactl there is no driver to speak of: a fake one that nobody gave files. */
    return !where || !is_there(where, "nvidiactl") || is_there(where, name);
}

bool fg_has_device_file(int gpu)
{
    char name[32];
    snprintf(name, sizeof name, "nvidia%d", gpu);
    return has(name);
}

bool fg_has_mig_files(int gpu, const struct fg_mig *mig)
{
    char name[64];
    snprintf(name, sizeof name, "nvidia-caps/nvidia-cap%u", fg_mig_minor(gpu, mig->gi, -1));
    if (!has(name))
        return false;
    snprintf(name, sizeof name, "nvidia-caps/nvidia-cap%u",
             fg_mig_minor(gpu, mig->gi, (int)mig->ci));
    return has(name);
}
