/* What a training program's data loader does: workers N. Allocates in every way, forks N workers
 * that never touch CUDA, waits for them, gives all back. Prints "working" and waits for a line
 * while they run; exit 0 if each worker ended well and the parent's memory was still its own.
 *
 * Workers end by exit(), so that what runs in them at their fork and end is seen by a coverage
 * build.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 8, pipes[2], status, good = 0;
    CUdeviceptr direct, small, pooled;
    CUcontext context;
    char byte;

    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc(&direct, 64 << 20) || cuMemAlloc(&small, 4096) ||
        cuMemAllocAsync(&pooled, 1 << 20, NULL) || pipe(pipes))
        return 2;
    if (cuMemFreeAsync(direct, NULL)) /* still under way when the workers are forked */
        return 2;
    for (int i = 0; i < n; i++)
        if (!fork()) {
            close(pipes[1]);
            exit(read(pipes[0], &byte, 1) != 0); /* until the parent closes its end */
        }
    close(pipes[0]);
    puts("working");
    fflush(stdout);
    getchar();
    close(pipes[1]);
    while (wait(&status) > 0)
        good += WIFEXITED(status) && !WEXITSTATUS(status);
    return good != n || cuCtxSynchronize() || cuMemFree(small) || cuMemFreeAsync(pooled, NULL) ||
           cuCtxSynchronize();
}
