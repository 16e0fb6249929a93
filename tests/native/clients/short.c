/* One short process after another, each of which ends without ever asking whether its work is done:
 *
 *     short KERNEL SECONDS [BEGIN [ARRIVALS]]
 *
 * Each launches the kernel (as in native/fakegpu/fakegpu.h, ns_N) eight times, stays for as long as
 * the GPU needs for that, and exits, or with KILLED in its
 * environment is killed; then the next one begins. */
#include <cuda.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern uint64_t fakegpu_now_ns(void);
extern void fakegpu_sleep_until_ns(uint64_t when);
extern int fakegpu_attach(const char *state);
extern void fakegpu_join(void);

#define LAUNCHES 8
#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "short: %s gave %d\n", #call, result_);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int run(const char *name)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CHECK(cuInit(0));
    if (write(1, "s", 1) != 1)
        return 1;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, name));
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(cuLaunchKernel(function, 100, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
    fakegpu_sleep_until_ns(fakegpu_now_ns() + LAUNCHES * strtoull(name + 3, NULL, 10));
    if (write(1, "x", 1) != 1)
        return 1;
    if (getenv("KILLED"))
        raise(SIGKILL);
    return 0;
}

/* Real time in small pieces: for the fake, who sleeps long in one is idle, and time goes on. */
static void nap(void)
{
    usleep(1000);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "run"))
        return run(argv[2]);
    if (argc < 3)
        return 2;
    if (fakegpu_attach(NULL))
        return 1;
    fakegpu_join();
    uint64_t end = fakegpu_now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
    unsigned int processes = 0;
    for (; fakegpu_now_ns() < end; processes++) {
        int ends[2], status;
        if (pipe(ends))
            return 1;
        pid_t child = fork();
        if (!child) {
            dup2(ends[1], 1);
            execl("/proc/self/exe", argv[0], "run", argv[1], (char *)NULL);
            _exit(127);
        }
        close(ends[1]);
        /* Time waits while the child starts, which takes long on a busy machine. */
        char began;
        struct pollfd done = {.fd = ends[0], .events = POLLIN};
        while (!poll(&done, 1, 0))
            nap();
        if (read(ends[0], &began, 1) != 1)
            return 1;
        /* In the GPU's time, so that it goes on; then the child is about to end, and time waits. */
        while (!poll(&done, 1, 0) && fakegpu_now_ns() < end)
            fakegpu_sleep_until_ns(fakegpu_now_ns() + 1000000);
        if (fakegpu_now_ns() >= end)
            _exit(0);
        pid_t ended;
        while (!(ended = waitpid(child, &status, WNOHANG)))
            nap();
        if (ended != child || (status && !WIFSIGNALED(status)))
            return 1;
        close(ends[0]);
    }
    printf("{\"processes\": %u}\n", processes);
    return 0;
}
