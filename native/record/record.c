/* Records which driver calls a program makes: LD_PRELOAD=librecord.so RECORD=file program.
 *
 * It answers dlsym and cuGetProcAddress with a wrapper for each function of calls.h, which calls
 * the driver and then writes one line: name, result, arguments, and what the driver gave back.
 * The lines hold addresses of that run; native/record/fixture.py turns them into names and
 * offsets.
 *
 * A wrapper passes twelve machine words on whatever the function takes: on x86-64 and aarch64 words
 * that a function does not take are left unread, and no function of calls.h takes a float or a
 * struct. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t word;
typedef int (*function)(word, word, word, word, word, word, word, word, word, word, word, word);
enum {
#define NUMBER(name, kinds) CALL_##name,
    RECORDED_CALLS(NUMBER) CALLS
};
static const char *const names[CALLS] = {
#define NAME(name, kinds) #name,
    RECORDED_CALLS(NAME)};
static const char *const kinds_of[CALLS] = {
#define KINDS(name, kinds) kinds,
    RECORDED_CALLS(KINDS)};
static function real[CALLS];
static void *(*next_dlsym)(void *, const char *);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* calls that the driver or the interposer makes itself are not the program's */
static __thread int inside;

static FILE *out(void)
{
    static FILE *file;
    static pid_t of;
    const char *path = getenv("RECORD");
    if (path && of != getpid()) { /* a forked child writes a file of its own */
        char name[4096];
        of = getpid();
        snprintf(name, sizeof name, "%s.%d", path, (int)of);
        file = fopen(name, "we");
    }
    return file;
}

/* Bytes of a module image, which no argument says: ELF, a fatbin, the fatbin's wrapper, PTX
 * text. */
static uint64_t image_size(const void *image)
{
    uint32_t magic;
    uint64_t size, offset;
    uint16_t header, entry, count;
    const char *bytes = image;

    memcpy(&magic, bytes, 4);
    if (magic == 0x466243b1) {
        memcpy(&bytes, bytes + 8, 8);
        memcpy(&magic, bytes, 4);
    }
    if (magic == 0xba55ed50) {
        memcpy(&header, bytes + 6, 2);
        memcpy(&size, bytes + 8, 8);
        return header + size;
    }
    if (magic == 0x464c457f) {
        memcpy(&offset, bytes + 40, 8);
        memcpy(&entry, bytes + 58, 2);
        memcpy(&count, bytes + 60, 2);
        return offset + (uint64_t)entry * count;
    }
    return strlen(bytes) + 1;
}

static void before(FILE *file, int call, const word *a)
{
    const char *k = kinds_of[call];
    for (int i = 0; *k; i++, k++) {
        fputc('\t', file);
        if (*k == 'b') {
            int n = (int)strtol(k + 1, (char **)&k, 10);
            fputs("b:", file);
            for (int j = 0; j < n && a[i]; j++)
                fprintf(file, "%02x", ((unsigned char *)a[i])[j]);
        } else if (*k == 'c') {
            fprintf(file, "c:%s", a[i] ? (const char *)a[i] : "");
        } else if (*k == 'i') {
            fprintf(file, "i:%lu", (unsigned long)image_size((const void *)a[i]));
        } else if (*k != 'H' && *k != 'D') {
            fprintf(file, "%c:%lx", *k, (unsigned long)a[i]);
        } else {
            fprintf(file, "%c", *k);
        }
    }
}

static int recorded(int call, word *a)
{
    int result, outer = inside++;
    FILE *file = outer ? NULL : out();
    char *text = NULL;
    size_t n = 0;

    /* the fake knows a kernel's time by its name: all take 20 us */
    if (call == CALL_cuModuleGetFunction)
        a[2] = (word)(uintptr_t)"ns_20000";
    if (file) {
        FILE *memory = open_memstream(&text, &n);
        before(memory, call, a);
        fclose(memory);
    }
    result = real[call](a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    if (file) {
        const char *k = kinds_of[call];
        pthread_mutex_lock(&lock);
        fprintf(file, "%s\t%d%s", names[call], result, text);
        for (int i = 0; *k; i++, k++) {
            if (*k == 'b')
                k = strchr(k, ';');
            else if ((*k == 'H' || *k == 'D') && !result)
                fprintf(file, "\t>%d:%lx", i, *(unsigned long *)a[i]);
        }
        fputc('\n', file);
        fflush(file);
        pthread_mutex_unlock(&lock);
        free(text);
    }
    inside--;
    return result;
}

#define WRAP(name, kinds)                                                                          \
    static int wrap_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, \
                           word j, word k, word l)                                                 \
    {                                                                                              \
        return recorded(CALL_##name, (word[]){a, b, c, d, e, f, g, h, i, j, k, l});                \
    }
RECORDED_CALLS(WRAP)
static const function wrappers[CALLS] = {
#define WRAPPER(name, kinds) wrap_##name,
    RECORDED_CALLS(WRAPPER)};

static void *of_name(void *found, const char *name)
{
    for (int i = 0; found && i < CALLS; i++)
        if (!strcmp(names[i], name)) {
            real[i] = (function)found;
            return (void *)wrappers[i];
        }
    return found;
}

/* What cuGetProcAddress found is known by its address: the name does not tell the variant. */
static void *of_address(void *found)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; library && found && i < CALLS; i++)
        if (next_dlsym(library, names[i]) == found) {
            real[i] = (function)found;
            return (void *)wrappers[i];
        }
    return found;
}

static int (*get_v1)(const char *, void **, int, uint64_t);
static int (*get_v2)(const char *, void **, int, uint64_t, int *);
static int wrap_get_v1(const char *name, void **found, int version, uint64_t flags)
{
    int result = get_v1(name, found, version, flags);
    if (!result && found)
        *found = strncmp(name, "cuGetProcAddress", 16) ? of_address(*found) : (void *)wrap_get_v1;
    return result;
}
static int wrap_get_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    int result = get_v2(name, found, version, flags, status);
    if (!result && found)
        *found = strncmp(name, "cuGetProcAddress", 16) ? of_address(*found) : (void *)wrap_get_v2;
    return result;
}

EXPORT void *dlsym(void *handle, const char *name)
{
    void *found;

    if (!next_dlsym && !(*(void **)&next_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34")))
        *(void **)&next_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    found = next_dlsym(handle, name);
    if (inside || strncmp(name, "cu", 2))
        return found;
    if (!strcmp(name, "cuGetProcAddress")) {
        *(void **)&get_v1 = found;
        return found ? (void *)wrap_get_v1 : NULL;
    }
    if (!strcmp(name, "cuGetProcAddress_v2")) {
        *(void **)&get_v2 = found;
        return found ? (void *)wrap_get_v2 : NULL;
    }
    return of_name(found, name);
}
