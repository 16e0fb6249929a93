/* The bytes themselves. Device memory has content as far as it was written by copies of up to
 * FAKEGPU_DATA bytes (default 64 MiB); what was not reads as zero. Addresses of host memory are
 * used as they are. */
#ifndef FG_CONTENT_H
#define FG_CONTENT_H
#include <stdbool.h>
#include <stdint.h>

bool fg_address_valid(uint64_t address, uint64_t bytes); /* false: reaches out of an allocation */
void fg_copy_bytes(uint64_t to, uint64_t from, uint64_t bytes);
void fg_fill_bytes(uint64_t at, uint32_t value, unsigned width, uint64_t count); /* width 1, 2, 4 */
#endif
