/* Host functions that are queued. */
#ifndef FG_HOST_THREAD_H
#define FG_HOST_THREAD_H
#include "driver/driver.h"
/* the engine's number for a call of it; runs once */
uint32_t fg_host_call_number(CUhostFn function, void *data);
void fg_host_thread_start(void); /* returns when the thread that calls host functions runs */
#endif
