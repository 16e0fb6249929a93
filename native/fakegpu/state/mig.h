/* MIG instances: what they are called, who runs in them. Here "instance" is a MIG device: a compute
 * instance and the GPU instance around it. */
#ifndef FG_MIG_H
#define FG_MIG_H
#include "state/state.h"

#pragma GCC visibility push(default)
/* The instance that a process runs in; NULL: in none. */
const struct fg_mig *fg_mig_of(int gpu, const struct fg_process *process);
uint64_t fg_mig_used(int gpu, uint32_t gi); /* locked; bytes of all who run in a GPU instance */
/* Of the file /dev/nvidia-caps/nvidia-cap<minor>, by ids alone, whatever the layout; ci -1: the GPU
 * instance's own. */
unsigned fg_mig_minor(int gpu, uint32_t gi, int ci);
#pragma GCC visibility pop
#endif
