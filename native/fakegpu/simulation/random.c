#include "simulation/random.h"

uint64_t fg_mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint64_t fg_hash_text(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325ull;
    while (*text)
        sum = (sum ^ (unsigned char)*text++) * 0x100000001b3ull;
    return sum;
}
