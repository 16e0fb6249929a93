/* Utilisation samples of the fake GPUs, as its simulation takes them; NVML reads them by
 * fg_engine_samples. */
#ifndef FG_SAMPLES_H
#define FG_SAMPLES_H
#include <stdint.h>
uint64_t fg_samples_next(void); /* when the present sample ends */
void fg_samples_take(void);     /* closes samples that have ended */
#endif
