/* runtime LIBRARY: what a program on the CUDA runtime gets: "STEP RESULT" lines. LIBRARY is a
 * libcudart to load, with RTLD_DEEPBIND if a second argument is given; "-": the one it is linked
 * with (-DLINKED). With -DPER_THREAD the default stream is per thread. Its own declarations: the
 * runtime's headers need those of the compiler. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef PER_THREAD
#define STREAM(name) name##_ptsz
#else
#define STREAM(name) name
#endif
typedef struct stream *cudaStream_t;
int cudaGetDeviceCount(int *);
int cudaSetDevice(int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemGetInfo(size_t *, size_t *);
int cudaStreamCreate(cudaStream_t *);
int STREAM(cudaMemsetAsync)(void *, int, size_t, cudaStream_t);
int STREAM(cudaStreamSynchronize)(cudaStream_t);
int STREAM(cudaMallocAsync)(void **, size_t, cudaStream_t);
int STREAM(cudaFreeAsync)(void *, cudaStream_t);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);

#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name
#ifdef LINKED
#define GET(name) (name)
#else
#define GET(name) dlsym(library, TEXT(name))

#endif
#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        int got = ((__typeof__(&name))GET(name))(__VA_ARGS__);                                     \
        printf("%s %d\n", TEXT(name), got);                                                        \
        if (got)                                                                                   \
            return 1;                                                                              \
    } while (0)

int main(int argc, char **argv)
{
    void *library = argc > 1 && strcmp(argv[1], "-")
                        ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0))
                        : NULL;
    if (argc > 1 && strcmp(argv[1], "-") && !library) {
        puts(dlerror());
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int count = 0;
    void *memory = NULL;
    size_t free_bytes = 0, total = 0;
    cudaStream_t stream;
    CALL(cudaGetDeviceCount, &count);
    CALL(cudaSetDevice, 0);
    CALL(cudaMalloc, &memory, 64 << 20);
    CALL(cudaStreamCreate, &stream);
    CALL(STREAM(cudaMemsetAsync), memory, 0, 64 << 20, stream);
    CALL(STREAM(cudaStreamSynchronize), stream);
    CALL(cudaMemGetInfo, &free_bytes, &total);
    printf("count %d total %zu\n", count, total);
    CALL(cudaFree, memory);
    CALL(STREAM(cudaMallocAsync), &memory, 32 << 20, stream);
    CALL(STREAM(cudaFreeAsync), memory, stream);
    CALL(cudaDeviceSynchronize);
    CALL(cudaDeviceReset);
    return 0;
}
