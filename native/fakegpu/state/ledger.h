/* Who holds how many bytes of which GPU. */
#ifndef FG_LEDGER_H
#define FG_LEDGER_H
#include "state/state.h"

#pragma GCC visibility push(default)
void fg_totals_recount(void); /* locked: all sums anew from the rows */

/* Device memory of this process. 0, or -ENOMEM where the GPU or the tag's hard limit has no
 * room. */
int fg_charge(int gpu, uint64_t bytes);
void fg_uncharge(int gpu, uint64_t bytes);
/* Managed memory is the system's: the driver's limit of a tag does not count it. */
int fg_charge_managed(int gpu, uint64_t bytes);
void fg_uncharge_managed(int gpu, uint64_t bytes);
/* locked; what that limit counts */
uint64_t fg_tag_limited_bytes(int gpu, const struct fg_tag *tag);

/* Moves bytes of this process into a shared object (held once by it). Its index, or -ENOMEM. */
int fg_shared_make(int gpu, uint64_t bytes, uint64_t *id);
int fg_shared_hold(int shared, uint64_t id); /* one more reference of this process; -ENOENT: gone */
void fg_shared_drop(int shared, uint64_t id); /* one less; the memory is released with the last */
void fg_shared_export_path(uint64_t id, char *path, size_t size);
void fg_shared_exported(int shared, uint64_t id); /* a descriptor of this memory was given out */
uint64_t fg_new_id(void);
#pragma GCC visibility pop
#endif
