/* Bytes of a GPU's memory, for whoever keeps something in them. */
#ifndef FG_GPU_MEMORY_H
#define FG_GPU_MEMORY_H
#include "driver/driver.h"

/* fg_charge with faults, with what can be released under need, and as a CUresult. Back:
 * fg_uncharge. */
CUresult fg_take_gpu_memory(int gpu, uint64_t bytes);
/* need not be in one piece */
CUresult fg_take_gpu_memory_in_pieces(int gpu, uint64_t bytes, uint64_t largest);
CUresult fg_take_managed_memory(int gpu, uint64_t bytes); /* back: fg_uncharge_managed */

/* One helper in need: gives back what memory pools of a GPU reserve and do not use; true:
 * something. */
void fg_when_gpu_memory_is_short(bool (*release)(int gpu));
#endif
