/* Which GPUs a process may see: those whose device files it has. */
#ifndef FG_DEVICE_FILES_H
#define FG_DEVICE_FILES_H

#include "state/state.h"

#pragma GCC visibility push(default)
/* Whether this process has the GPU's device file, as far as such files are there at all. */
bool fg_has_device_file(int gpu);
#pragma GCC visibility pop
#endif
