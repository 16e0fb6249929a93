/* The state file: mapping it. */
#define _GNU_SOURCE
#include "state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct fg_state *fg_state;
static bool refused; /* FAKEGPU_STATE is no state: said once */
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

int fg_state_map(const char *path, struct fg_state **out)
{
    if (!path)
        path = getenv("FAKEGPU_STATE");
    if (!path || !*path)
        path = FG_MOUNTED "/state";
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat file;
    struct fg_state *state = MAP_FAILED;
    if (!fstat(fd, &file) && file.st_size == sizeof *state)
        state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (state == MAP_FAILED || state->magic != FG_MAGIC || state->size != sizeof *state) {
        fprintf(stderr, "fakegpu: %s is no state of this build\n", path);
        return -EINVAL;
    }
    *out = state;
    return 0;
}

void fg_state_use(struct fg_state *state)
{
    if (fg_state)
        munmap(fg_state, sizeof *fg_state);
    __atomic_store_n(&fg_state, state, __ATOMIC_RELEASE); /* fg_attach looks without the lock */
}

bool fg_attach(void)
{
    if (__atomic_load_n(&fg_state, __ATOMIC_ACQUIRE))
        return true;
    pthread_mutex_lock(&attaching);
    struct fg_state *state;
    if (!fg_state && !refused && !fg_state_map(NULL, &state))
        fg_state_use(state);
    bool attached = fg_state != NULL;
    refused = !attached && getenv("FAKEGPU_STATE");
    pthread_mutex_unlock(&attaching);
    return attached;
}
