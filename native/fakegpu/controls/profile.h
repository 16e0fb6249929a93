/* GPU models: the files in profiles/. */
#ifndef FG_PROFILE_H
#define FG_PROFILE_H
#include "state/state.h"

/* name: of a file in profiles/ beside the library, or a path. 0, or -errno with a line on
 * stderr. */
int fg_read_profile(const char *name, struct fg_profile *out);
#endif
