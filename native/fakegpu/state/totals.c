/* The sums over the rows of processes and shared objects, which are the truth. With the lock
 * held. */
#include "state/ledger.h"

void fg_totals_recount(void)
{
    struct fg_state *s = fg_state;
    for (int g = 0; g < s->gpus; g++) {
        uint64_t by_tag[FG_TAGS] = {0}, all = 0;
        for (int i = 0; i < s->processes; i++)
            if (s->process[i].pid) {
                by_tag[s->process[i].tag] += s->process[i].used[g];
                all += s->process[i].used[g];
            }
        for (int i = 0; i < s->shareds; i++)
            if (s->shared[i].gpu == g) {
                by_tag[s->shared[i].tag] += s->shared[i].bytes;
                all += s->shared[i].bytes;
            }
        for (int i = 0; i < s->tags; i++)
            s->tag[i].used[g] = by_tag[i];
        s->gpu[g].used = all;
    }
}

uint64_t fg_tag_limited_bytes(int gpu, const struct fg_tag *tag)
{
    uint64_t counted = tag->used[gpu];
    for (int i = 0; i < fg_state->processes; i++)
        if (fg_state->process[i].pid && &fg_state->tag[fg_state->process[i].tag] == tag)
            counted -= fg_state->process[i].managed[gpu];
    return counted;
}
