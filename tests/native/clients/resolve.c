/* resolve STYLE [init]: for each line "NAME VERSION FLAGS" of stdin prints "NAME VERSION FLAGS
 * OBJECT SYMBOL STATUS": where the address that STYLE gives for it lies. Styles: dlsym, dlvsym,
 * default, next, proc1, proc2. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int proc1(const char *, void **, int, unsigned long long);
typedef int proc2(const char *, void **, int, unsigned long long, int *);

int main(int argc, char **argv)
{
    const char *style = argc > 1 ? argv[1] : "dlsym";
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    proc1 *first = (proc1 *)dlsym(handle, "cuGetProcAddress");
    proc2 *second = (proc2 *)dlsym(handle, "cuGetProcAddress_v2");
    char name[128], object[64];
    int version, flags;
    while (scanf("%127s %d %d", name, &version, &flags) == 3) {
        void *found = NULL;
        int status = -1;
        if (!strcmp(style, "dlsym"))
            found = dlsym(handle, name);
        else if (!strcmp(style, "dlvsym"))
            /* the driver has no versions: any will do */
            found = dlvsym(handle, name, "NO_SUCH_VERSION");
        else if (!strcmp(style, "default"))
            found = dlsym(RTLD_DEFAULT, name);
        else if (!strcmp(style, "next"))
            found = dlsym(RTLD_NEXT, name);
        else if (!strcmp(style, "proc1"))
            first(name, &found, version, (unsigned long long)flags);
        else if (second)
            second(name, &found, version, (unsigned long long)flags, &status);
        Dl_info info = {0};
        if (found)
            dladdr(found, &info);
        const char *base = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        snprintf(object, sizeof object, "%s",
                 base             ? base + 1
                 : info.dli_fname ? info.dli_fname
                                  : "-");
        printf("%s %d %d %s %s %d\n", name, version, flags, object,
               info.dli_sname ? info.dli_sname : "-", status);
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(handle, "cuInit");
    return argc > 2 && init ? init(0) : 0; /* so that this process has a slot, with its counts */
}
