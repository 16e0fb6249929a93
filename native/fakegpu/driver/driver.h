/* Inside the fake libcuda.so.1: what its modules offer each other.
 *
 * A model of a driver function is written `CUresult FG(cuMemAlloc_v2)(...)`; the generator makes
 * the exported function, which counts the call, refuses it before cuInit, injects faults, and
 * calls the model. A per-thread variant (_ptsz, _ptds) without a model of its own calls the
 * plain one with fg_per_thread set: NULL then means the thread's own stream. What has no model
 * answers CUDA_ERROR_NOT_SUPPORTED.
 *
 * Handles are pointers into this process, checked against its tables: a stale or foreign one
 * gives an error, never a crash. fg_mutex guards the tables. The order of locks: README.md.
 */
#ifndef FG_DRIVER_H
#define FG_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL 1 /* declare every ABI by its own name */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "state/state.h"

#define FG(name) fgi_##name
#include "fg_declarations.h"

extern __thread bool fg_per_thread; /* this call came by a per-thread variant */
extern pthread_mutex_t fg_mutex;    /* recursive; of this process's tables */
extern int fg_presented;            /* driver version, as in 13050 */

CUresult fg_initialized(void); /* CUDA_SUCCESS once cuInit has succeeded in this process */
/* looks for device files and reads CUDA_VISIBLE_DEVICES; how many */
void fg_read_visible_devices(int *devices);
int fg_gpu_of_device(CUdevice device); /* index in fg_state->gpu; -1: no such ordinal */
CUdevice fg_device_of_gpu(int gpu);    /* ordinal here; -1: not visible */
/* the MIG instance that is the one device of this process; NULL: its devices are whole GPUs */
const struct fg_mig *fg_instance(void);
void fg_enter_instance(int gpu); /* before anything is charged: it is the instance's memory */
CUresult fg_gpu_status(int gpu); /* CUDA_ERROR_UNKNOWN where it is lost */
#endif
