/* Stands in for engine.c and clock.c until they are there. */
#include "clock.h"
#include "state.h"
#define WEAK __attribute__((weak))
WEAK void fg_engine_create(struct fg_state *state) { (void)state; }
WEAK void fg_engine_reset(const char *tag) { (void)tag; }
WEAK void fg_engine_process_gone(int process) { (void)process; }
WEAK int fg_engine_open(int process, int tag, int gpu, unsigned percent) { (void)process; (void)tag; (void)gpu; (void)percent; return 0; }
WEAK void fg_engine_close(int context) { (void)context; }
WEAK void fg_clock_spend(uint64_t ns) { (void)ns; }
WEAK uint64_t fakegpu_now_ns(void) { return 0; }
WEAK int fg_samples(int gpu, uint64_t since, struct fg_sample *out, int room) { (void)gpu; (void)since; (void)out; (void)room; return 0; }
