/* Numbers without a pattern, the same in each run. */
#ifndef FG_RANDOM_H
#define FG_RANDOM_H
#include <stdint.h>
uint64_t fg_mixed(uint64_t x); /* splitmix64 */
uint64_t fg_hash_text(const char *text);
#endif
