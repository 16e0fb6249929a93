/* Replays a recorded sequence of driver calls: replay FIXTURE [refuse].
 *
 * Calls go where dlsym on libcuda.so.1 leads, so through the interposer where that is preloaded.
 * Every result must be the recorded one. With `refuse` the container's memory limit is one byte
 * while each taking of memory is first tried, so that it must be refused (or take nothing new); the
 * limit is then as before and the call is tried again: that, and all that follows, must go on as
 * recorded.
 *
 * Prints: calls, takings of memory, how many were refused, results that were not as recorded, bytes
 * taken in spite of the limit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"

#define MOST_NAMES 65536
#define MOST_ARGUMENTS 12
#define REFUSED 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define NOT_READY 600
typedef uint64_t word;
typedef int (*function)(word, word, word, word, word, word, word, word, word, word, word, word);

static word values[MOST_NAMES];
static unsigned char scratch[256 << 20]; /* for all that a program's own memory was */
static const char *const takers[] = {
    "cuMemAlloc_v2",
    "cuMemAllocPitch_v2",
    "cuMemAllocManaged",
    "cuMemCreate",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleLoadFatBinary",
    "cuLibraryLoadData",
    "cuDevicePrimaryCtxRetain",
    "cuCtxCreate_v2",
    NULL,
};
static struct vg_limits *limits;
static uint64_t (*used)(const char *, int);

static void *image(word size) /* a fatbin of this size, with nothing in it */
{
    unsigned char *bytes = calloc(1, size < 16 ? 16 : size);
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header = 16;
    uint64_t body = size - 16;

    memcpy(bytes, &magic, 4);
    memcpy(bytes + 4, &version, 2);
    memcpy(bytes + 6, &header, 2);
    memcpy(bytes + 8, &body, 8);
    return bytes;
}

/* One argument's text as a machine word; made: where its name is kept if it is a new one. */
static word argument(const char *text, word **made)
{
    unsigned id;
    word offset = 0;
    unsigned char *bytes;

    switch (*text) {
    case 'H':
    case 'D':
        *made = &values[strtoul(text + 1, NULL, 10) % MOST_NAMES];
        return (word)(uintptr_t)*made;
    case 'h':
    case 'd':
        if (text[1] == '=')
            return strtoul(text + 2, NULL, 10);
        sscanf(text + 1, "%u+%lu", &id, &offset);
        return values[id % MOST_NAMES] + offset;
    case 'b':
        bytes = calloc(1, 256);
        for (int i = 0; text[2 + 2 * i]; i++)
            sscanf(text + 2 + 2 * i, "%2hhx", &bytes[i]);
        return (word)(uintptr_t)bytes;
    case 'c': return (word)(uintptr_t)strdup(text + 2);
    case 'i': return (word)(uintptr_t)image(strtoul(text + 2, NULL, 10));
    case 'p': return (word)(uintptr_t)scratch;
    case 'z': return 0;
    default: return strtoul(text, NULL, 10);
    }
}

static int takes_memory(const char *name)
{
    for (int i = 0; takers[i]; i++)
        if (!strcmp(name, takers[i]))
            return 1;
    return 0;
}

static uint64_t truth(void)
{
    return used ? used(getenv("FAKEGPU_TAG"), 0) : 0;
}

static void limit_to(uint64_t bytes)
{
    atomic_fetch_add(&limits->sequence, 1);
    limits->device[0].memory_limit = bytes;
    atomic_fetch_add(&limits->sequence, 1);
}

static void open_limits(void)
{
    char path[4096];
    int file;

    snprintf(path, sizeof path, "%s/limits", getenv("ALNAIR_VGPU_DIR"));
    if ((file = open(path, O_RDWR | O_CLOEXEC)) < 0)
        exit(3);
    limits = mmap(NULL, sizeof *limits, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    *(void **)&used = dlsym(RTLD_DEFAULT, "fakegpu_used");
    if (!used)
        *(void **)&used = dlsym(dlopen("libfakegpu.so", RTLD_NOW), "fakegpu_used");
}

int main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    FILE *file = argc > 1 ? fopen(argv[1], "re") : NULL;
    long calls = 0, allocations = 0, refused = 0, mismatches = 0, number = 0;
    int refuse = argc > 2 && !strcmp(argv[2], "refuse");
    uint64_t taken = 0;
    char *line = NULL;
    size_t room = 0;

    if (!library || !file) {
        fprintf(stderr, "replay: %s\n", library ? "no fixture" : dlerror());
        return 2;
    }
    if (refuse)
        open_limits();
    while (getline(&line, &room, file) > 0) {
        char *rest = line, *name, *text;
        word a[MOST_ARGUMENTS] = {0}, *made = NULL, kept;
        int wanted, got, n = 0;
        function call;

        number++;
        line[strcspn(line, "\n")] = 0;
        if (*line == '#' || !*line)
            continue;
        name = strsep(&rest, "\t");
        wanted = atoi(strsep(&rest, "\t"));
        while ((text = strsep(&rest, "\t")) && n < MOST_ARGUMENTS)
            a[n++] = argument(text, &made);
        if (!(*(void **)&call = dlsym(library, name))) {
            fprintf(stderr, "replay: line %ld: the driver has no %s\n", number, name);
            return 2;
        }
        kept = made ? *made : 0;
        calls++;
        allocations += takes_memory(name);
        if (refuse && takes_memory(name)) {
            uint64_t before = truth();
            uint64_t limit = limits->device[0].memory_limit;
            limit_to(1);
            got = call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
            limit_to(limit);
            if (truth() > before)
                taken += truth() - before;
            refused += got == REFUSED;
            if (got == REFUSED)
                got =
                    call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
        } else {
            got = call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
        }
        if (made && got)
            *made = kept;
        if (got != wanted &&
            !((got == 0 || got == NOT_READY) && (wanted == 0 || wanted == NOT_READY))) {
            mismatches++;
            fprintf(stderr, "replay: line %ld: %s gave %d, recorded was %d\n", number, name, got,
                    wanted);
        }
    }
    printf("%ld %ld %ld %ld %lu\n", calls, allocations, refused, mismatches, (unsigned long)taken);
    return 0;
}
