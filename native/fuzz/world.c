/* See world.h. libfakegpu.so is loaded as a test loads it; the library under test is linked in. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

static char folder[64];
static pid_t maker;
static uint8_t uuid[16];
static struct vg_limits *limits;
static struct vg_counters *counters;

static void *mapped(const char *name, size_t size)
{
    char path[128];
    int file;
    void *page;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) ||
        (page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(file);
    return page;
}

static void remove_it(void)
{
    static const char *const names[] = {"gpu", "limits", "counters"};
    char path[128];

    if (getpid() != maker)
        return;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

void world_make(void)
{
    char state[128];
    void *fake = dlopen("libfakegpu.so", RTLD_NOW | RTLD_GLOBAL);
    int (*create)(const char *, const char *, int, const char *), (*attach)(const char *),
        (*id)(int, uint8_t *);

    if (folder[0])
        return;
    if (!fake) {
        fprintf(stderr, "fuzz: %s (LD_LIBRARY_PATH: the folder of the fake GPU)\n", dlerror());
        exit(2);
    }
    *(void **)&create = dlsym(fake, "fakegpu_create");
    *(void **)&attach = dlsym(fake, "fakegpu_attach");
    *(void **)&id = dlsym(fake, "fakegpu_uuid");
    maker = getpid();
    snprintf(folder, sizeof folder, "/dev/shm/alnair-fuzz-%d", (int)maker);
    snprintf(state, sizeof state, "%s/gpu", folder);
    if (mkdir(folder, 0700) || create(state, "h200", 1, "") || attach(state) || id(0, uuid))
        exit(2);
    atexit(remove_it);
    setenv("FAKEGPU_STATE", state, 1);
    setenv("FAKEGPU_TAG", "fuzz", 1);
    setenv("ALNAIR_VGPU_DIR", folder, 1);
    limits = mapped("limits", sizeof *limits);
    counters = mapped("counters", sizeof *counters);
    world_lay_out();
}

struct vg_limits *world_limits(void)
{
    return limits;
}
struct vg_counters *world_counters(void)
{
    return counters;
}

void world_lay_out(void)
{
    memset(limits, 0, sizeof *limits);
    memset(counters, 0, 8 * 4096);
    counters->magic = VG_COUNTERS_MAGIC;
    counters->abi = VG_ABI;
    counters->n_slots = VG_SLOTS;
    counters->generation = 1;
    limits->abi = VG_ABI;
    limits->n_devices = 1;
    limits->state = VG_STATE_REGISTERED;
    limits->deadline_ms = 100;
    limits->generation = 1;
    memcpy(limits->device[0].uuid, uuid, 16);
    limits->device[0].memory_limit = 8ull << 30;
    limits->device[0].context_bytes = VG_CONTEXT_DEFAULT;
    limits->magic = VG_LIMITS_MAGIC;
}
