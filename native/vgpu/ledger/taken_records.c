/* Records that a hook took out before a call of the driver which ends many handles at once: kept
 * until the driver has answered. */
#include <stdlib.h>

#include "ledger/ledger.h"

struct vg_taken_more {
    struct vg_taken_more *next;
    struct vg_record record;
};

void vg_taken_add(const struct vg_record *record, void *argument)
{
    struct vg_taken *taken = argument;
    if (!taken->count) {
        taken->first = *record;
        taken->count = 1;
        return;
    }
    struct vg_taken_more *one = malloc(sizeof *one);
    if (!one)
        return;
    *one = (struct vg_taken_more){taken->more, *record};
    taken->more = one;
    taken->count++;
}

void vg_taken_each(const struct vg_taken *taken, void (*then)(const struct vg_record *, void *),
                   void *argument)
{
    if (taken->count)
        then(&taken->first, argument);
    for (const struct vg_taken_more *one = taken->more; one; one = one->next)
        then(&one->record, argument);
}

void vg_taken_forget(struct vg_taken *taken)
{
    while (taken->more) {
        struct vg_taken_more *one = taken->more;
        taken->more = one->next;
        free(one);
    }
    taken->count = 0;
}
