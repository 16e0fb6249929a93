/* The options of fakegpu_create that the timing knows. */
#ifndef FG_SETTINGS_H
#define FG_SETTINGS_H
#include "state/state.h"

bool fg_engine_options_known(const char *options); /* false, and a line: a wrong key */
void fg_engine_create(struct fg_state *state);     /* as its options say */
#endif
