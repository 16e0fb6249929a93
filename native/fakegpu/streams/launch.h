/* One launch, whichever function of the driver asks for it. */
#ifndef FG_LAUNCH_H
#define FG_LAUNCH_H
#include "driver/driver.h"
CUresult fg_launch(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, CUstream stream, bool cooperative,
                   void **params, void **extra);
#endif
