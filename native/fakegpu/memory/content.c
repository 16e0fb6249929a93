/* The content of device memory. A range gets backing when a copy first writes to it, so that
 * tests of data work and a 100 GiB allocation costs nothing. Writes of more than FAKEGPU_DATA
 * bytes at once (default 64 MiB) are forgotten: they would only burn the host's memory. */
#define _GNU_SOURCE
#include "memory/content.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/ranges.h"

static uint64_t most(void)
{
    static uint64_t bytes;
    if (!bytes) {
        const char *text = getenv("FAKEGPU_DATA");
        bytes = text ? strtoull(text, NULL, 0) : 64 << 20;
    }
    return bytes;
}

static bool host_readable(const struct fg_range *range)
{
    return range->kind == FG_MANAGED || range->kind == FG_HOST || range->kind == FG_REGISTERED;
}

static void *backing(struct fg_range *range, bool make)
{
    if (host_readable(range))
        return (void *)range->base;
    struct fg_content *content = range->content;
    if (!content->data && make) {
        void *mapped = mmap(NULL, content->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        content->data = mapped == MAP_FAILED ? NULL : mapped;
    }
    return content->data;
}

/* Host memory where `address` has its content, and how many bytes go on from there. */
static unsigned char *span(uint64_t address, uint64_t *bytes, bool write)
{
    struct fg_range *range = fg_range_at(address);
    if (!range)
        return (void *)address;
    uint64_t offset = address - range->base, rest = range->size - offset;
    if (*bytes > rest)
        *bytes = rest;
    unsigned char *data = backing(range, write);
    return data ? data + offset : NULL;
}

bool fg_address_valid(uint64_t address, uint64_t bytes)
{
    bool valid = address != 0;
    pthread_mutex_lock(&fg_mutex);
    while (bytes && valid) {
        struct fg_range *range = fg_range_at(address);
        if (!range) { /* pageable host memory is not ours to know */
            valid = !fg_va_ours(address);
            break;
        }
        uint64_t rest = range->base + range->size - address;
        if (rest >= bytes)
            break;
        address += rest;
        bytes -= rest;
        valid = fg_range_at(address) != NULL || host_readable(range);
    }
    pthread_mutex_unlock(&fg_mutex);
    return valid;
}

void fg_copy_bytes(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (bytes > most())
        return;
    while (bytes) {
        uint64_t step = bytes;
        pthread_mutex_lock(&fg_mutex);
        unsigned char *source = span(from, &step, false);
        unsigned char *target = span(to, &step, true);
        pthread_mutex_unlock(&fg_mutex);
        if (target && source)
            memmove(target, source, step);
        else if (target)
            memset(target, 0, step);
        to += step;
        from += step;
        bytes -= step;
    }
}

void fg_fill_bytes(uint64_t at, uint32_t value, unsigned width, uint64_t count)
{
    uint64_t bytes = count * width, done = 0;
    if (bytes > most())
        return;
    while (done < bytes) {
        uint64_t step = bytes - done;
        pthread_mutex_lock(&fg_mutex);
        unsigned char *target = span(at + done, &step, true);
        pthread_mutex_unlock(&fg_mutex);
        for (uint64_t i = 0; target && i < step; i++)
            target[i] = (unsigned char)(value >> 8 * ((done + i) % width));
        done += step;
    }
}
