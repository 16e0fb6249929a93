/* A small program of the CUDA driver API: takes memory of a GPU and keeps it busy for a while.
 *
 *   cuda_load [--memory-mib N] [--seconds S] [--kernel-us T] [--every E]
 *
 * Prints a line of JSON at the end, and with --every each E seconds: what it sees of the GPU, and
 * which part of the GPU's time its kernels took since the line before. Ends with 1 and a line on
 * stderr where a call fails. The kernel spins for T microseconds, on a real GPU by its clock; the
 * fake GPU goes by its name. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *driver;

static void *function(const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "cuda_load: the driver has no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    const char *name = NULL;
    ((CUresult (*)(CUresult, const char **))function("cuGetErrorName"))(result, &name);
    fprintf(stderr, "cuda_load: %s: %s (%d)\n", call, name ? name : "unknown error", (int)result);
    exit(1);
}

/* The name, and the version of its entry point, as cuda.h has it. */
#define TEXT(name) #name
#define ENTRY(name) TEXT(name)
#define CALL(name, ...) check(((__typeof__(&name))function(ENTRY(name)))(__VA_ARGS__), #name)

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double option(int argc, char **argv, const char *name, double otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], name))
            return atof(argv[i + 1]);
    return otherwise;
}

struct state {
    int gpus;
    char model[96], uuid[41];
    size_t total_bytes;
    double memory_mib, kernel_seconds, began, reported;
    long launched, reported_kernels;
};

static void report(struct state *state)
{
    double here = now(CLOCK_MONOTONIC), since = here - state->reported;
    double busy = (double)(state->launched - state->reported_kernels) * state->kernel_seconds;
    printf("{\"gpus\": %d, \"model\": \"%s\", \"uuid\": \"%s\", \"total_mib\": %zu, "
           "\"memory_mib\": %.0f, \"kernels\": %ld, \"seconds\": %.3f, \"time\": %.3f, "
           "\"percent\": %.1f}\n",
           state->gpus, state->model, state->uuid, state->total_bytes >> 20, state->memory_mib,
           state->launched, here - state->began, now(CLOCK_REALTIME),
           since > 0 ? 100 * busy / since : 0);
    fflush(stdout);
    state->reported = here;
    state->reported_kernels = state->launched;
}

/* As nvidia-smi writes it. */
static void write_uuid(char *text, const unsigned char *bytes)
{
    text += sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        text += sprintf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

int main(int argc, char **argv)
{
    struct state state = {.memory_mib = option(argc, argv, "--memory-mib", 256)};
    double seconds = option(argc, argv, "--seconds", 1);
    double every = option(argc, argv, "--every", 0);
    long kernel_ns = (long)(option(argc, argv, "--kernel-us", 1000) * 1000);
    state.kernel_seconds = (double)kernel_ns * 1e-9;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "cuda_load: there is no GPU driver here: %s\n", dlerror());
        return 1;
    }
    CUdevice device;
    CUuuid uuid;
    CUcontext context;
    CUdeviceptr memory;
    CUmodule module;
    CUfunction kernel;
    CALL(cuInit, 0);
    CALL(cuDeviceGetCount, &state.gpus);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDeviceGetName, state.model, sizeof state.model, device);
    CALL(cuDeviceGetUuid, &uuid, device);
    write_uuid(state.uuid, (const unsigned char *)uuid.bytes);
    CALL(cuDeviceTotalMem, &state.total_bytes, device);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuMemAlloc, &memory, (size_t)(state.memory_mib * 1048576));
    char name[32], code[640];
    snprintf(name, sizeof name, "ns_%ld", kernel_ns);
    snprintf(code, sizeof code,
             ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry %s()\n{\n"
             ".reg .u64 %%t<3>;\n.reg .pred %%p;\nmov.u64 %%t1, %%globaltimer;\n"
             "again:\nmov.u64 %%t2, %%globaltimer;\nsub.u64 %%t2, %%t2, %%t1;\n"
             "setp.lt.u64 %%p, %%t2, %ld;\n@%%p bra again;\nret;\n}\n",
             name, kernel_ns);
    CALL(cuModuleLoadData, &module, code);
    CALL(cuModuleGetFunction, &kernel, module, name);
    state.began = state.reported = now(CLOCK_MONOTONIC);
    do {
        CALL(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        if (++state.launched % 16 == 0)
            CALL(cuCtxSynchronize, );
        if (every > 0 && now(CLOCK_MONOTONIC) - state.reported >= every)
            report(&state);
    } while (now(CLOCK_MONOTONIC) - state.began < seconds);
    CALL(cuCtxSynchronize, );
    report(&state);
    return 0;
}
