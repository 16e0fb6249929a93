#include "memory/space.h"

#include <stdlib.h>
#include <string.h>

uint64_t fg_round_up(uint64_t bytes, uint64_t step)
{
    return step ? (bytes + step - 1) / step * step : bytes;
}

static unsigned first_at_or_after(const struct fg_space *space, uint64_t at)
{
    unsigned low = 0, high = space->gaps;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (space->gap[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct fg_space *space, unsigned index, uint64_t at, uint64_t bytes)
{
    if (space->gaps == space->room) {
        space->room = space->room ? space->room * 2 : 4;
        space->gap = realloc(space->gap, space->room * sizeof *space->gap);
        if (!space->gap)
            abort();
    }
    memmove(&space->gap[index + 1], &space->gap[index], (space->gaps - index) * sizeof *space->gap);
    space->gap[index] = (struct fg_gap){at, bytes};
    space->gaps++;
}

static void delete(struct fg_space *space, unsigned index)
{
    space->gaps--;
    memmove(&space->gap[index], &space->gap[index + 1], (space->gaps - index) * sizeof *space->gap);
}

void fg_space_add(struct fg_space *space, uint64_t at, uint64_t bytes)
{
    unsigned index = first_at_or_after(space, at);
    struct fg_gap *before = index ? &space->gap[index - 1] : NULL;
    struct fg_gap *after = index < space->gaps ? &space->gap[index] : NULL;
    space->free += bytes;
    if (before && before->at + before->bytes == at) {
        before->bytes += bytes;
        if (after && after->at == at + bytes) {
            before->bytes += after->bytes;
            delete(space, index);
        }
    } else if (after && after->at == at + bytes) {
        after->at = at;
        after->bytes += bytes;
    } else {
        insert(space, index, at, bytes);
    }
}

static void cut(struct fg_space *space, unsigned index, uint64_t at, uint64_t bytes)
{
    struct fg_gap *gap = &space->gap[index];
    uint64_t tail = gap->at + gap->bytes - (at + bytes);
    space->free -= bytes;
    if (at == gap->at && !tail) {
        delete(space, index);
    } else if (at == gap->at) {
        gap->at += bytes;
        gap->bytes = tail;
    } else {
        gap->bytes = at - gap->at;
        if (tail)
            insert(space, index + 1, at + bytes, tail);
    }
}

uint64_t fg_space_take(struct fg_space *space, uint64_t bytes, uint64_t align)
{
    for (unsigned i = 0; i < space->gaps; i++) {
        struct fg_gap *gap = &space->gap[i];
        uint64_t at = fg_round_up(gap->at, align);
        if (at - gap->at <= gap->bytes && gap->bytes - (at - gap->at) >= bytes) {
            cut(space, i, at, bytes);
            return at;
        }
    }
    return 0;
}

bool fg_space_take_at(struct fg_space *space, uint64_t at, uint64_t bytes)
{
    unsigned index = first_at_or_after(space, at + 1);
    if (!index)
        return false;
    struct fg_gap *gap = &space->gap[index - 1];
    if (at + bytes > gap->at + gap->bytes)
        return false;
    cut(space, index - 1, at, bytes);
    return true;
}

void fg_space_end(struct fg_space *space)
{
    free(space->gap);
    *space = (struct fg_space){0};
}
