/* Handles of one kind: objects that the program knows by address, in chunks that are never given
 * back, so that any value a program passes can be checked: a foreign or stale one is refused,
 * never followed. The freed object that has waited longest is used next: a stale handle stays
 * stale for long. */
#ifndef FG_HANDLES_H
#define FG_HANDLES_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fg_handle {
    uint64_t magic;
    struct fg_handle *next_free;
}; /* first member of each object */
struct fg_handles {
    /* of an object */
    size_t size;
    uint64_t magic;
    unsigned chunks, used; /* used: of the last chunk */
    char *chunk[24];       /* of 64, 128, 256, ... objects */
    struct fg_handle *first_free, *last_free;
    pthread_mutex_t mutex;
};
#define FG_HANDLES(type, number)                                                                   \
    {.size = sizeof(type),                                                                         \
     .magic = 0xfa6e000000000000ull | number,                                                      \
     .mutex = PTHREAD_MUTEX_INITIALIZER}
void *fg_handle_take(struct fg_handles *handles); /* zeroed; NULL: no memory */
void fg_handle_give(struct fg_handles *handles, void *object);
bool fg_handle_is(const struct fg_handles *handles, const void *object);
#endif
