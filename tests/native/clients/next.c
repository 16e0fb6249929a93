/* A library that wraps two functions of libc as an interposer of the application would: by
 * RTLD_NEXT, whose answer depends on who asks. Preloaded behind ours. */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef int function(void);

int getpagesize(void)
{
    function *next = (function *)dlsym(RTLD_NEXT, "getpagesize");
    return next == getpagesize ? -1 : next() + 1;
}

int getdtablesize(void)
{
    /* As some interposers do: dlsym itself by dlvsym, and then by that. */
    void *(*real)(void *, const char *) = 0;
    const char *versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (int i = 0; i < 3 && !real; i++)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    function *next = real ? (function *)real(RTLD_NEXT, "getdtablesize") : 0;
    return !next || next == getdtablesize ? -1 : 1;
}
