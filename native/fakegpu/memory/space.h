/* First fit over a sorted list of free intervals: device addresses, blocks, pools. */
#ifndef FG_SPACE_H
#define FG_SPACE_H
#include <stdbool.h>
#include <stdint.h>

struct fg_gap { uint64_t at, bytes; };
struct fg_space {
    struct fg_gap *gap;
    unsigned gaps, room;
    uint64_t free;
};
/* free interval, or one given back */
void fg_space_add(struct fg_space *space, uint64_t at, uint64_t bytes);
uint64_t fg_space_take(struct fg_space *space, uint64_t bytes, uint64_t align); /* 0: none */
bool fg_space_take_at(struct fg_space *space, uint64_t at, uint64_t bytes);
void fg_space_end(struct fg_space *space);

uint64_t fg_round_up(uint64_t bytes, uint64_t step);
#endif
