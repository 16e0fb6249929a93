/* Calls cuInit while a thread sets and removes variables of the environment. Prints the result and
 * what CUDA_VISIBLE_DEVICES is then ("None": not set). Ends with 1 if a variable of its own is lost. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int ends;

static void *change(void *unused)
{
    (void)unused;
    for (int i = 0; !ends; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        setenv("MINE", text, 1);
        setenv("OTHERS", text, 1);
        unsetenv("OTHERS");
    }
    setenv("MINE", "last", 1);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    setenv("KEPT", "kept", 1);
    pthread_create(&thread, NULL, change, NULL);
    int result = cuInit(0);
    ends = 1;
    pthread_join(thread, NULL);
    const char *own = getenv("CUDA_VISIBLE_DEVICES");
    printf("%d %s\n", result, own ? own : "None");
    return !getenv("KEPT") || strcmp(getenv("KEPT"), "kept") || strcmp(getenv("MINE"), "last") ||
           getenv("OTHERS");
}
