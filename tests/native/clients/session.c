/* session WHAT [N]: a process of a container, and what it sees of the session. Linked with the
 * driver.
 *   init        cuInit, then a call that needs it: prints both results
 *   hold        cuInit, says so, and stays until stdin is closed
 *   untouched   prints what of the process changed over cuInit and a context: descriptors,
 *               handlers, mask, umask, environment
 *   race N      N threads call cuInit at once: prints how many succeeded
 *   fork        after cuInit one child that does not use CUDA, and one that does; then as hold
 *   crowd N     N processes call cuInit: prints how many succeeded, and holds them until stdin
 *               is closed
 *   again       cuInit, then this program anew by execve, as hold
 *   step        cuInit and a context, then for each line of stdin takes 1 MiB and prints the result
 *   sms         how many SMs the GPU has
 *   contexts    a context on each of two GPUs; 1 MiB on whichever is current in each way to make
 *               one so; then as hold
 *   few         cuInit while no descriptor is free, and again when some are: prints both results
 *   leaderless  cuInit, then its first thread ends while another stays, as hold
 *   orphan      a child calls cuInit and dies, and is not waited for; then as hold
 *   kill N      calls cuInit and dies by SIGKILL about N microseconds after it began to */
#define _GNU_SOURCE
#include <cuda.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void hold(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

static void describe(char *text, size_t size)
{
    size_t used = 0;
    DIR *folder = opendir("/proc/self/fd");
    unsigned long long descriptors = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        descriptors |= entry->d_name[0] != '.' ? 1ull << (atoi(entry->d_name) & 63) : 0;
    closedir(folder);
    used += snprintf(text + used, size - used, "fds %llx handlers", descriptors);
    for (int signal = 1; signal < 65; signal++) {
        struct sigaction action;
        if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL)
            used += snprintf(text + used, size - used, " %d", signal);
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    used += snprintf(text + used, size - used, " blocked");
    for (int signal = 1; signal < 65; signal++)
        if (sigismember(&mask, signal))
            used += snprintf(text + used, size - used, " %d", signal);
    mode_t bits = umask(0);
    umask(bits);
    unsigned long hash = 5381;
    for (char **entry = environ; *entry; entry++)
        for (char *c = *entry; *c; c++)
            hash = hash * 33 + (unsigned char)*c;
    snprintf(text + used, size - used, " umask %o environment %lx", bits, hash);
}

static int untouched(void)
{
    char before[1024], after[1024];
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigprocmask(SIG_BLOCK, &some, NULL);
    signal(SIGUSR1, SIG_IGN);
    umask(027);
    describe(before, sizeof before);
    CUcontext context;
    int result = cuInit(0);
    if (!result)
        result = cuDevicePrimaryCtxRetain(&context, 0);
    describe(after, sizeof after);
    if (!strcmp(before, after))
        printf("%d the same\n", result);
    else
        printf("%d\n%s\n%s\n", result, before, after);
    return 0;
}

static pthread_barrier_t barrier;

static void *racer(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    return (void *)(long)cuInit(0);
}

static int race(int count)
{
    pthread_t thread[256];
    int good = 0;
    pthread_barrier_init(&barrier, NULL, count);
    for (int i = 0; i < count; i++)
        pthread_create(&thread[i], NULL, racer, NULL);
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(thread[i], &result);
        good += result == NULL;
    }
    printf("%d\n", good);
    return 0;
}

static int crowd(int count)
{
    int good = 0, ready[2], go[2], result;
    if (pipe(ready) || pipe(go))
        return 2;
    for (int i = 0; i < count; i++)
        if (!fork()) {
            result = cuInit(0);
            if (write(ready[1], &result, sizeof result) != sizeof result)
                _exit(2);
            close(go[1]);
            if (read(go[0], &result, 1))
                _exit(2);
            _exit(0);
        }
    for (int i = 0; i < count && read(ready[0], &result, sizeof result) == sizeof result; i++)
        good += result == 0;
    printf("%d\n", good);
    fflush(stdout);
    hold();
    return 0;
}

static void take(size_t mib)
{
    CUdeviceptr memory;
    if (cuMemAlloc(&memory, mib << 20))
        exit(3);
}

static void *elsewhere(void *context)
{
    CUcontext popped;
    if (cuCtxPushCurrent(context))
        exit(3);
    take(16);
    if (cuCtxPopCurrent(&popped))
        exit(3);
    return NULL;
}

static int contexts(void)
{
    CUcontext first, second, popped;
    pthread_t thread;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&first, 0) || cuDevicePrimaryCtxRetain(&second, 1))
        return 2;
    int failed = cuCtxSetCurrent(first);
    take(2);
    failed += cuCtxPushCurrent(second);
    take(4);
    pthread_create(&thread, NULL, elsewhere, first);
    pthread_join(thread, NULL);
    take(32);
    failed += cuCtxPopCurrent(&popped);
    take(8);
    printf("%d\n", failed);
    fflush(stdout);
    hold();
    return 0;
}

static int few(void)
{
    struct rlimit all, none;
    int version;
    cuDriverGetVersion(&version); /* the fake driver opens what it needs */
    getrlimit(RLIMIT_NOFILE, &all);
    none = all;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    int first = cuInit(0);
    setrlimit(RLIMIT_NOFILE, &all);
    printf("%d %d\n", first, cuInit(0));
    return 0;
}

static void *stay(void *unused)
{
    hold();
    exit(0);
    return unused;
}

static int leaderless(void)
{
    pthread_t thread;
    printf("%d\n", cuInit(0));
    fflush(stdout);
    pthread_create(&thread, NULL, stay, NULL);
    pthread_exit(NULL);
}

static int orphan(void)
{
    pid_t child = fork();
    if (!child)
        _exit(cuInit(0));
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    printf("%d %d\n", child, info.si_status);
    fflush(stdout);
    hold();
    return 0;
}

static void *killer(void *us)
{
    usleep((useconds_t)(long)us);
    kill(getpid(), SIGKILL);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "init";
    int count = argc > 2 ? atoi(argv[2]) : 1;
    if (!strcmp(what, "untouched"))
        return untouched();
    if (!strcmp(what, "race"))
        return race(count);
    if (!strcmp(what, "crowd"))
        return crowd(count);
    if (!strcmp(what, "contexts"))
        return contexts();
    if (!strcmp(what, "few"))
        return few();
    if (!strcmp(what, "leaderless"))
        return leaderless();
    if (!strcmp(what, "orphan"))
        return orphan();
    if (!strcmp(what, "kill")) {
        pthread_t thread;
        pthread_create(&thread, NULL, killer, (void *)(long)count);
        cuInit(0);
        hold();
    }
    if (!strcmp(what, "sms")) {
        int value = -1;
        if (cuInit(0) || cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
            return 2;
        printf("%d\n", value);
        return 0;
    }
    CUcontext context;
    int result = cuInit(0), second = cuDevicePrimaryCtxRetain(&context, 0);
    printf("%d %d\n", result, second);
    fflush(stdout);
    if (!strcmp(what, "again")) {
        execl("/proc/self/exe", argv[0], "hold", (char *)NULL);
        return 2;
    }
    if (!strcmp(what, "fork")) {
        pid_t idle = fork();
        if (!idle) {
            hold();
            _exit(0);
        }
        pid_t busy = fork();
        if (!busy) {
            CUdeviceptr memory;
            /* the parent's context is not the child's: whatever this gives */
            cuMemAlloc(&memory, 1 << 20);
            hold();
            _exit(0);
        }
        printf("%d %d\n", idle, busy);
        fflush(stdout);
        hold();
        while (wait(NULL) > 0)
            ;
    }
    if (!strcmp(what, "hold"))
        hold();
    CUdeviceptr memory;
    char line[16];
    if (!strcmp(what, "step") && !cuCtxSetCurrent(context))
        while (fgets(line, sizeof line, stdin)) {
            printf("%d\n", (int)cuMemAlloc(&memory, 1 << 20));
            fflush(stdout);
        }
    return 0;
}
