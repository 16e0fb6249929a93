/* A tenant that tries to get a GPU without limits, in one of the ways that docs/concepts/isolation.md
 * names; for tests. Takes device memory, prints "held" or the driver's error, and stays.
 *
 *   escape plain MIB SECONDS            as any program
 *   escape bare MIB SECONDS             the same without any variable
 *   escape preload MIB SECONDS FILE     the same with a library of its own in LD_PRELOAD
 *   escape path MIB SECONDS FILE        opens this file as the driver
 *   escape deep MIB SECONDS             RTLD_DEEPBIND
 *   escape apart MIB SECONDS            in a namespace of the loader
 *   escape beside MIB SECONDS FILE      uses the GPU as any program, then by a copy of this driver
 *   escape hide MIB SECONDS             mounts over /run/alnair/vgpu in namespaces of its own
 *   escape forge MIB SECONDS            the same with pages of its own there, which limit nothing
 *   escape chroot MIB SECONDS FILE      loads a copy of this driver below another root
 *   escape loader MIB SECONDS FILE      the same by a loader that reads no /etc/ld.so.preload
 *
 * The last four end with 77 and a line on stderr where the system refuses it. SECONDS 0: until stdin
 * is closed. Copies go to ESCAPE_FOLDER, or /tmp/escape. It needs no CUDA toolkit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"

#define REFUSED 77
#define SELF "/proc/self/exe"

static char *mib, *seconds;

static void give_up(const char *what)
{
    fprintf(stderr, "escape: %s: %s\n", what, strerror(errno));
    exit(REFUSED);
}

/* ---- the GPU --------------------------------------------------------------------------------- */

static void *symbol(void *driver, const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "escape: no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

/* The same without asking dlsym, which may be another's: from the library's own table. */
static void *found_by_hand(void *driver, const char *name)
{
    const struct link_map *map = driver;
    const ElfW(Sym) *entry = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *part = map->l_ld; part->d_tag != DT_NULL; part++) {
        if (part->d_tag == DT_SYMTAB)
            entry = (const void *)part->d_un.d_ptr;
        if (part->d_tag == DT_STRTAB)
            names = (const void *)part->d_un.d_ptr;
    }
    /* the names follow the table */
    for (; entry && (const char *)entry < names; entry++)
        if (entry->st_shndx && !strcmp(names + entry->st_name, name))
            return (void *)(map->l_addr + entry->st_value);
    fprintf(stderr, "escape: no %s in the copy\n", name);
    exit(1);
}

static void *(*find)(void *driver, const char *name) = symbol;

static int take(void *driver)
{
    int device;
    void *context;
    unsigned long long memory;
    int (*init)(unsigned) = find(driver, "cuInit");
    int (*get)(int *, int) = find(driver, "cuDeviceGet");
    int (*retain)(void **, int) = find(driver, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = find(driver, "cuCtxSetCurrent");
    int (*allocate)(unsigned long long *, size_t) = find(driver, "cuMemAlloc_v2");
    int result = init(0);
    if (!result)
        result = get(&device, 0);
    if (!result)
        result = retain(&context, device);
    if (!result)
        result = set(context);
    return result ? result : allocate(&memory, strtoull(mib, NULL, 10) << 20);
}

static void *opened(void *driver)
{
    if (!driver) {
        fprintf(stderr, "escape: %s\n", dlerror());
        exit(1);
    }
    return driver;
}

static int stay(int result)
{
    char byte;
    if (result)
        printf("%d\n", result);
    else
        puts("held");
    fflush(stdout);
    if (result)
        return 0;
    if (atoi(seconds))
        sleep((unsigned)atoi(seconds));
    else
        while (read(0, &byte, 1) > 0)
            ;
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *folder(void)
{
    const char *given = getenv("ESCAPE_FOLDER");
    const char *found = given ? given : "/tmp/escape";
    if (mkdir(found, 0755) && errno != EEXIST)
        give_up(found);
    return found;
}

/* Copies a file into the folder under its own name, or `name`; returns the copy's path. */
static char *copied(const char *from, const char *name)
{
    static char path[4096];
    char text[4096];
    snprintf(text, sizeof text, "%s", from);
    snprintf(path, sizeof path, "%s/%s", folder(), name ? name : basename(text));
    int in = open(from, O_RDONLY), out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    struct stat size;
    if (in < 0 || out < 0 || fstat(in, &size))
        give_up(from);
    while (size.st_size > 0) {
        ssize_t done = sendfile(out, in, NULL, (size_t)size.st_size);
        if (done <= 0)
            give_up(path);
        size.st_size -= done;
    }
    close(in);
    close(out);
    return path;
}

/* The driver, and what lies beside it that it needs: the fake one has its state in a library. */
static char *copied_driver(const char *driver)
{
    char beside[4096], text[4096];
    snprintf(text, sizeof text, "%s", driver);
    snprintf(beside, sizeof beside, "%s/libfakegpu.so", dirname(text));
    if (!access(beside, F_OK))
        copied(beside, NULL);
    return copied(driver, "libcuda.so.1");
}

/* Copies what this process has loaded: its libraries, and the loader. */
static void copy_loaded(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352], path[4096], last[4096] = "";
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) == 1 && strstr(path, ".so") &&
            *path == '/' && !strstr(path, "alnair") && strcmp(path, last)) {
            copied(path, NULL);
            snprintf(last, sizeof last, "%s", path);
        }
    if (maps)
        fclose(maps);
}

/* Where the program's loader is. */
static const char *loader(void)
{
#if defined(__aarch64__)
    return "/lib/ld-linux-aarch64.so.1";
#else
    return "/lib64/ld-linux-x86-64.so.2";
#endif
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void again(char *what, char *variable)
{
    char *words[] = {"escape", what, mib, seconds, NULL}, *variables[] = {variable, NULL};
    execve(SELF, words, variables);
    give_up("exec");
}

static void write_to(const char *path, const char *format, unsigned id)
{
    FILE *file = fopen(path, "w");
    if (file) { /* some are not there on older kernels */
        fprintf(file, format, id);
        fclose(file);
    }
}

static void *read_page(const char *path, size_t size)
{
    void *page = calloc(1, size);
    FILE *file = fopen(path, "r");
    if (!page || !file || !fread(page, 1, size, file))
        give_up(path);
    fclose(file);
    return page;
}

static void write_page(const char *path, const void *page, size_t size)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(page, 1, size, file) != size || fclose(file))
        give_up(path);
}

static void hide(void)
{
    unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        give_up("unshare");
    write_to("/proc/self/setgroups", "deny", 0);
    write_to("/proc/self/uid_map", "0 %u 1", user);
    write_to("/proc/self/gid_map", "0 %u 1", group);
    if (mount("none", VG_FOLDER, "tmpfs", 0, NULL))
        give_up("mount over " VG_FOLDER);
}

static void forge(void)
{
    struct vg_limits *limits = read_page(VG_FOLDER "/limits", sizeof *limits);
    struct vg_counters *counters = read_page(VG_FOLDER "/counters", sizeof *counters);
    limits->state = VG_STATE_REGISTERED;
    limits->device[0].memory_limit = 0;
    limits->device[0].compute_percent = 0;
    hide();
    write_page(VG_FOLDER "/limits", limits, sizeof *limits);
    write_page(VG_FOLDER "/counters", counters, sizeof *counters);
}

/* Loads everything below another root, where no /etc/ld.so.preload is, and comes back to use it. */
static void change_root(const char *driver)
{
    char old[16], root[4096];
    snprintf(root, sizeof root, "%s", folder());
    copy_loaded();
    copied_driver(driver);
    copied(SELF, "escape");
    copied(loader(), "loader");
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    snprintf(old, sizeof old, "%d", fd);
    if (chroot(root) || chdir("/"))
        give_up("chroot");
    char *words[] = {"/loader", "--library-path", "/", "/escape", "loaded",
                     mib,       seconds,          old, NULL};
    char *variables[] = {NULL};
    execve(words[0], words, variables);
    give_up("exec below another root");
}

static void *loaded_below(int old_root)
{
    void *driver = opened(dlopen("/libcuda.so.1", RTLD_NOW));
    if (fchdir(old_root) || chroot("."))
        give_up("return from the other root");
    return driver;
}

/* A loader in which the name of the list of preloads is another. */
static void own_loader(const char *driver)
{
    static const char list[] = "/etc/ld.so.preload";
    char path[4096], where[4096];
    snprintf(where, sizeof where, "%s", dirname(copied_driver(driver)));
    snprintf(path, sizeof path, "%s", copied(loader(), "loader"));
    FILE *file = fopen(path, "r+");
    size_t size = 0;
    char *text = malloc(1 << 24);
    if (!file || !text || !(size = fread(text, 1, 1 << 24, file)))
        give_up(path);
    for (char *at = text; (at = memmem(at, size - (size_t)(at - text), list, sizeof list)); at++)
        at[1] = 'x';
    rewind(file);
    fwrite(text, 1, size, file);
    fclose(file);
    char program[4096]; /* the loader will be the program that SELF names */
    ssize_t length = readlink(SELF, program, sizeof program - 1);
    program[length < 0 ? 0 : length] = 0;
    char *words[] = {path, "--library-path", where, program, "plain", mib, seconds, NULL};
    char *variables[] = {NULL};
    execve(path, words, variables);
    give_up("exec of a loader of its own");
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr,
                "escape: what, MIB and SECONDS, please: see tests/native/clients/escape.c\n");
        return 2;
    }
    const char *what = argv[1], *file = argc > 4 ? argv[4] : "";
    char variable[4352];
    mib = argv[2];
    seconds = argv[3];
    if (!strcmp(what, "bare"))
        again("plain", NULL);
    if (!strcmp(what, "preload")) {
        snprintf(variable, sizeof variable, "LD_PRELOAD=%s", file);
        again("plain", variable);
    }
    if (!strcmp(what, "hide"))
        hide();
    if (!strcmp(what, "forge"))
        forge();
    if (!strcmp(what, "chroot"))
        change_root(file);
    if (!strcmp(what, "loader"))
        own_loader(file);
    if (!strcmp(what, "loaded"))
        return stay(take(loaded_below(atoi(file))));
    if (!strcmp(what, "path"))
        return stay(take(opened(dlopen(file, RTLD_NOW))));
    if (!strcmp(what, "deep"))
        return stay(take(opened(dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND))));
    if (!strcmp(what, "apart"))
        return stay(take(opened(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW))));
    int result = take(opened(dlopen("libcuda.so.1", RTLD_NOW)));
    if (!result && !strcmp(what, "beside")) {
        find = found_by_hand;
        result = take(opened(dlopen(copied_driver(file), RTLD_NOW)));
    }
    return stay(result);
}
