/* What this library may print: one line on stderr where it refuses, and one where it waits long. One
 * write, so that lines of many processes do not mix; no malloc and no stdio, so it works in any
 * state the application is in. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "vgpu.h"

void vg_say(const char *format, ...)
{
    char line[512] = "alnair-vgpu: ";
    int kept = errno;
    size_t used = sizeof "alnair-vgpu: " - 1;
    va_list args;
    va_start(args, format);
    int written = vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    if (written > 0)
        used += (size_t)written < sizeof line - used - 1 ? (size_t)written : sizeof line - used - 2;
    /* messages may come from a page or a socket: one line, no escapes */
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = ' ';
    line[used++] = '\n';
    ssize_t ignored = write(2, line, used);
    (void)ignored;
    errno = kept;
}
