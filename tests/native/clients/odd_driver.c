/* A libcuda.so.1 as no test double of ours is, but as a driver may be: what cuGetProcAddress hands
 * out is not what it exports, it knows a function that no table does, and asked for a version to
 * come it gives the last it has. */
#include <stddef.h>
#include <string.h>

typedef int function(void);
#define EXPORT __attribute__((visibility("default")))

static int inside(void)
{
    return 0;
}
static int inside_legacy(void)
{
    return 1;
}
static int inside_future(void)
{
    return 2;
}
static int inside_proc(const char *, void **, int, unsigned long long);
static int inside_proc2(const char *, void **, int, unsigned long long, int *);

EXPORT int cuInit(unsigned flags)
{
    return (int)flags * 0;
}
EXPORT int cuDriverGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}
EXPORT int cuDeviceGetCount(int *count)
{
    *count = 0;
    return 0;
}
EXPORT int cuMemAlloc(unsigned *memory, unsigned bytes)
{
    *memory = bytes;
    return 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long *memory, size_t bytes)
{
    *memory = bytes;
    return 0;
}
EXPORT int cuFutureThing(void)
{
    return 0;
}

static void *find(const char *symbol, int version)
{
    if (!strcmp(symbol, "cuMemAlloc"))
        return version < 3020 ? (void *)inside_legacy : (void *)inside;
    if (!strcmp(symbol, "cuFutureThing"))
        return (void *)inside_future;
    if (!strcmp(symbol, "cuGetProcAddress"))
        return version >= 12000 && VERSION >= 12000 ? (void *)inside_proc2 : (void *)inside_proc;
    return NULL;
}

static int inside_proc(const char *symbol, void **found, int version, unsigned long long flags)
{
    *found = find(symbol, version);
    return *found || flags > 9 ? 0 : 500;
}

static int inside_proc2(const char *symbol, void **found, int version, unsigned long long flags,
                        int *status)
{
    int result = inside_proc(symbol, found, version, flags);
    if (status)
        *status = result != 0;
    return result;
}

EXPORT int cuGetProcAddress(const char *symbol, void **found, int version, unsigned long long flags)
{
    return inside_proc(symbol, found, version, flags);
}

EXPORT int cuGetProcAddress_v2(const char *symbol, void **found, int version,
                               unsigned long long flags, int *status)
{
    return inside_proc2(symbol, found, version, flags, status);
}
