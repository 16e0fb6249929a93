/* Which GPUs and MIG instances a process may see: those whose device files it has. */
#ifndef FG_DEVICE_FILES_H
#define FG_DEVICE_FILES_H

#include "state/state.h"

#pragma GCC visibility push(default)
/* Whether this process has the GPU's device file, as far as such files are there at all. */
bool fg_has_device_file(int gpu);
/* The same of the two files of a MIG instance: its GPU instance's and its compute instance's. */
bool fg_has_mig_files(int gpu, const struct fg_mig *mig);
#pragma GCC visibility pop
#endif
