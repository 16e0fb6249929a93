/* Physical memory (cuMemCreate), and what holds it: handles, mappings, exports, and bindings to
 * what is no address range (sparse and deferred arrays, multicast objects). With fg_mutex held. */
#ifndef FG_PHYSICAL_H
#define FG_PHYSICAL_H
#include "memory/ranges.h"

#define FG_GRANULE (2ull << 20) /* sizes and addresses are multiples of it */

struct fg_physical { /* physical memory: lives while held, mapped, or exported */
    uint64_t number; /* CUmemGenericAllocationHandle */
    struct fg_physical *next;
    int gpu; /* -1: of the host */
    uint64_t size;
    unsigned held, mapped;
    CUmemAllocationProp properties;
    bool multicast;   /* no memory, but binds that of several GPUs */
    unsigned devices; /* of a multicast object: bits by GPU */
    int shared;       /* as in struct fg_range */
    uint64_t shared_id;
    struct fg_content content;
};
/* held; NULL: no such handle */
struct fg_physical *fg_physical_of(CUmemGenericAllocationHandle number);
struct fg_physical *fg_physical_new(int gpu, uint64_t size, const CUmemAllocationProp *properties);
struct fg_physical *fg_multicast_new(uint64_t size);
void fg_physical_end_if_unheld(struct fg_physical *physical);

void fg_physical_make_shareable(struct fg_physical *physical, int shared, uint64_t shared_id);
struct fg_physical *fg_physical_of_shared(uint64_t shared_id); /* NULL: not in this process */

/* A binding holds the memory as a mapping does: after cuMemRelease it lives until unbound, or until
 * what it is bound to goes. owner: an array, or struct fg_physical of a multicast object; where:
 * in it. */
void fg_physical_bind(const void *owner, const uint64_t where[5], struct fg_physical *memory);
/* NULL: all of it. How many there were */
int fg_physical_unbind(const void *owner, const uint64_t *where);
void fg_bindings_end(const void *owner);
#endif
