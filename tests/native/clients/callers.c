/* callers: what an application sees of dlsym where a preloaded library has its own. One "NAME
 * VALUE" per line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *where(void *address)
{
    Dl_info info = {0};
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return "-";
    const char *base = strrchr(info.dli_fname, '/');
    return base ? base + 1 : info.dli_fname;
}

int main(void)
{
    printf("next %d\n", getpagesize() % 2);
    printf("chain %d\n", getdtablesize());
    printf("early %s\n", where(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"))); /* no driver is loaded yet */
    dlerror();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    dlerror();
    printf("missing %s\n", where(dlsym(driver, "cuNoSuchFunction")));
    const char *error = dlerror();
    printf("error %s\n", error && strstr(error, "cuNoSuchFunction") ? "names it"
                         : error                                    ? error
                                                                    : "none");
    printf("default %s\n", where(dlsym(RTLD_DEFAULT, "malloc")));
    printf("other %s\n", where(dlsym(dlopen("libm.so.6", RTLD_NOW), "cosf")));
    void *apart = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    printf("namespace %s\n", where(dlsym(apart, "cuMemAlloc_v2")));
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *again = dlsym(libc, "dlsym");
    printf("dlsym %s\n", where(again));
    pid_t child = vfork();
    if (!child)
        execl("/bin/true", "true", (char *)NULL);
    int status = -1;
    waitpid(child, &status, 0);
    printf("vfork %d\n", status);
    child = fork();
    if (!child)
        _exit(dlsym(driver, "cuMemAlloc_v2") ? 0 : 1);
    waitpid(child, &status, 0);
    printf("fork %d\n", status);
    return 0;
}
