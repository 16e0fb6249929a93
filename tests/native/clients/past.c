/* A library that, loaded with RTLD_DEEPBIND, has libc's dlsym whatever is preloaded; see
 * start.c. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *libc_dlsym(void *handle, const char *name)
{
    return dlsym(handle, name);
}
