/* Makes the driver calls that a test writes on its stdin, one a line, and prints each result.
 *
 *   call NAME ARGUMENT...    a driver function of integer and pointer arguments; prints its result
 *   open &X HANDLE FLAGS     cuIpcOpenMemHandle_v2, whose 64 bytes go by value
 *   get X                    prints the variable as a number
 *   hex X N                  prints N bytes of the variable
 *   set X #HEX               fills the variable
 *   bypass NAME              from now on NAME is called as if the library did not hook it
 *   close FD                 close(2)
 *   fork                     goes on as a forked child, whose parent waits for it; prints its pid
 *
 * Arguments: a number, &X (address of the variable X, 512 zeroed bytes), $X (its value), #HEX
 * (address of these bytes), "TEXT (a string).
 * Functions are found by dlsym in libcuda.so.1, as programs do that are not linked with it; with
 * the argument `proc`, by cuGetProcAddress_v2 of the given CUDA version (NAME is then the base
 * name). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char name[32];
    unsigned char bytes[512];
} variable[256];

/* A function of the driver itself, past every hook of dlsym: read from its symbol table, which ends
 * where its strings begin. */
static void *symbol(const struct link_map *map, const char *name)
{
    const ElfW(Sym) *from = NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            from = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    }
    for (; from && (const char *)from < strings; from++)
        if (from->st_shndx != SHN_UNDEF && !strcmp(strings + from->st_name, name))
            return (void *)(map->l_addr + from->st_value);
    return NULL;
}

static void *driver;
static char bypassed[32][64];

static void *unhooked(const char *name)
{
    for (int i = 0; i < 32 && bypassed[i][0]; i++)
        if (!strcmp(bypassed[i], name))
            return symbol(driver, name);
    return NULL;
}

static unsigned char *find(const char *name)
{
    int i = 0;
    while (variable[i].name[0] && strcmp(variable[i].name, name))
        i++;
    snprintf(variable[i].name, sizeof variable[i].name, "%s", name);
    return variable[i].bytes;
}

static uint64_t value(char *text)
{
    uint64_t number;
    if (*text == '&')
        return (uint64_t)find(text + 1);
    if (*text == '$') {
        memcpy(&number, find(text + 1), sizeof number);
        return number;
    }
    if (*text == '"')
        return (uint64_t)strdup(text + 1);
    if (*text == '#') {
        size_t n = strlen(text + 1) / 2;
        unsigned char *bytes = calloc(1, n + 64);
        for (size_t i = 0; i < n; i++)
            sscanf(text + 1 + 2 * i, "%2hhx", &bytes[i]);
        return (uint64_t)bytes; /* for good: the driver may keep it */
    }
    return strtoull(text, NULL, 0);
}

typedef uint64_t u;
typedef int (*function)(u, u, u, u, u, u, u, u, u, u, u, u);

int main(int argc, char **argv)
{
    static char line[1 << 20];
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int version = argc > 2 && !strcmp(argv[1], "proc") ? atoi(argv[2]) : 0;
    uint64_t flags = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
    int (*proc)(const char *, void **, int, uint64_t, void *) = NULL;
    if (version)
        *(void **)&proc = dlsym(driver, "cuGetProcAddress_v2");
    while (fgets(line, sizeof line, stdin)) {
        char *word[16] = {0}, *rest = line;
        int n = 0;
        line[strcspn(line, "\n")] = 0;
        while (n < 16 && (word[n] = strsep(&rest, " ")))
            n++;
        if (!strcmp(word[0], "call")) {
            u a[12] = {0};
            void *found = unhooked(word[1]);
            for (int i = 2; i < n; i++)
                a[i - 2] = value(word[i]);
            if (found)
                ;
            else if (proc)
                proc(word[1], &found, version, flags, NULL);
            else
                found = dlsym(driver, word[1]);
            printf("%d\n", found ? ((function)found)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7],
                                                     a[8], a[9], a[10], a[11])
                                 : -1);
        } else if (!strcmp(word[0], "open")) {
            struct { char bytes[64]; } handle;
            memcpy(&handle, (void *)value(word[2]), sizeof handle);
            int (*ipc)(void *, __typeof__(handle), unsigned);
            *(void **)&ipc = dlsym(driver, "cuIpcOpenMemHandle_v2");
            printf("%d\n", ipc((void *)value(word[1]), handle, (unsigned)value(word[3])));
        } else if (!strcmp(word[0], "get")) {
            uint64_t number;
            memcpy(&number, find(word[1]), sizeof number);
            printf("%llu\n", (unsigned long long)number);
        } else if (!strcmp(word[0], "hex")) {
            for (int i = 0; i < atoi(word[2]); i++)
                printf("%02x", find(word[1])[i]);
            printf("\n");
        } else if (!strcmp(word[0], "set")) {
            memcpy(find(word[1]), (void *)value(word[2]), strlen(word[2] + 1) / 2);
            printf("0\n");
        } else if (!strcmp(word[0], "bypass")) {
            int i = 0;
            while (bypassed[i][0])
                i++;
            snprintf(bypassed[i], sizeof bypassed[i], "%s", word[1]);
            printf("%d\n", unhooked(word[1]) ? 0 : -1);
        } else if (!strcmp(word[0], "close")) {
            printf("%d\n", close((int)value(word[1])));
        } else if (!strcmp(word[0], "fork")) {
            pid_t child = fork();
            if (child) {
                int status;
                waitpid(child, &status, 0);
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
            }
            printf("%d\n", (int)getpid());
        } else {
            printf("?\n");
        }
        fflush(stdout);
    }
    return 0;
}
