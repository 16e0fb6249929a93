/* Holds the in-process tables (handle_records.c, shared_blocks.c) to a plain model through random
 * operations.
 *
 *   records_model OPERATIONS SEED     exit status 0, or a line that says where they differ */
#define ALNAIR_VGPU_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "driver/cuda_abi.h"
#include "ledger/hash_table.c"
#include "ledger/handle_records.c"
#define lock blocks_lock
#define table blocks
#include "ledger/shared_blocks.c"

enum { KEYS = 700, SPACE = 64 }; /* blocks of address space */
static struct {
    bool there;
    uint64_t bytes;
    uint32_t count;
} model[KEYS];
void vg_note_module(const struct vg_record *record, bool is_there)
{
    (void)record, (void)is_there;
}
static int users[SPACE];
static int swept;
static bool odd(const struct vg_record *r, const void *argument)
{
    return r->key % 8 == *(const uint64_t *)argument;
}
static void drop(const struct vg_record *r, void *argument)
{
    (void)argument;
    model[r->key / 512].there = false;
    swept++;
}

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("step %ld: %s\n", i, #what);                                                    \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 100000;
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    static struct { uint64_t address, bytes; } spans[64];
    for (long i = 0; i < steps; i++) {
        int k = rand_r(&seed) % KEYS;
        uint64_t key = (uint64_t)k * 512 + (uint64_t)k % 8;
        struct vg_record r = {.key = key, .kind = VG_KIND_DIRECT, .bytes = (uint64_t)i, .count = 1},
                         got;
        switch (rand_r(&seed) % 5) {
        case 0:
        case 1:
            vg_record_put(&r);
            model[k].there = true;
            model[k].bytes = (uint64_t)i;
            model[k].count = 1;
            break;
        case 2:
            CHECK(vg_record_take(VG_KIND_DIRECT, key, &got) == model[k].there);
            CHECK(!model[k].there || got.bytes == model[k].bytes);
            model[k].there = false;
            break;
        case 3: {
            int change = rand_r(&seed) % 2 ? 1 : -1;
            int64_t left = vg_record_count(VG_KIND_DIRECT, key, 0, change, &got);
            CHECK((left >= 0) == model[k].there);
            if (model[k].there) {
                model[k].count += (uint32_t)change;
                CHECK(left == model[k].count);
                model[k].there = left != 0;
            }
            break;
        }
        default:
            CHECK(vg_record_get(VG_KIND_DIRECT, key, &got) == model[k].there);
            CHECK(!vg_record_get(VG_KIND_ARRAY, key, &got)); /* kinds do not mix */
        }
        if (i % 5000 == 4999) {
            uint64_t which = 3;
            int there = 0;
            for (int j = 0; j < KEYS; j++)
                there += model[j].there && j % 8 == 3;
            swept = 0;
            vg_record_sweep(odd, &which, drop);
            CHECK(swept == there);
        }
        /* blocks: a span comes or goes; what is charged is what the model finds newly used */
        int s = rand_r(&seed) % 64;
        uint64_t charge = 0, expected = 0;
        bool use = !spans[s].bytes;
        if (use) {
            /* spans overlap in shared blocks only where the model says a driver may put them */
            uint64_t blocks = (uint64_t)rand_r(&seed) % 3;
            spans[s].bytes =
                blocks ? blocks * VG_BLOCK : 512u * (1 + (uint64_t)rand_r(&seed) % 4095);
            uint64_t slot = blocks ? 16 + (uint64_t)(s % 12) * 4 : (uint64_t)rand_r(&seed) % 14;
            spans[s].address =
                slot * VG_BLOCK + (blocks ? 0 : 512u * ((uint64_t)rand_r(&seed) % 4096));
            bool clash = false;
            for (int j = 0; j < 64; j++)
                clash |= j != s && blocks && spans[j].bytes && spans[j].address / VG_BLOCK >= 16 &&
                         spans[j].address / VG_BLOCK / 4 == slot / 4;
            if (clash) {
                spans[s].bytes = 0;
                continue;
            }
            charge = vg_blocks_use(spans[s].address, spans[s].bytes);
        } else {
            charge = vg_blocks_leave(spans[s].address, spans[s].bytes);
        }
        for (uint64_t n = spans[s].address / VG_BLOCK;
             n <= (spans[s].address + spans[s].bytes - 1) / VG_BLOCK; n++)
            expected += VG_BLOCK * (use ? users[n]++ == 0 : --users[n] == 0);
        CHECK(charge == expected);
        if (!use)
            spans[s].bytes = 0;
    }
    vg_records_forked();
    vg_blocks_forked();
    struct vg_record got;
    long i = steps;
    CHECK(!vg_record_get(VG_KIND_DIRECT, 0, &got));
    CHECK(vg_blocks_leave(0, 512) == 0);
    return 0;
}
