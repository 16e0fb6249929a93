/* The mark that an agent sets in the copies which it installs on a node and mounts into containers.
 *
 * A copy without it is inert where there is no folder, as tests and trials by hand want it. One with
 * it knows by itself that it must limit: whoever hides the folder, or copies the library to where
 * there is none, gets no CUDA. It is in the file because that is the one thing that cannot be
 * hidden from the library. `alnair.node.vgpu.installed_library` sets it; it finds the text. */
#include "session/session.h"

static const char mark[] __attribute__((section(".alnair_mark"), used)) =
    "ALNAIR-VGPU-MUST-LIMIT=0"; /* 1: set */

bool vg_must_limit(void)
{
    /* the compiler knows another value than the file has */
    return *(const volatile char *)&mark[sizeof mark - 2] != '0';
}
