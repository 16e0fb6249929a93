/* Holders of shared memory; everything here is called with the lock held. */
#ifndef FG_HOLDERS_H
#define FG_HOLDERS_H
#include "state/state.h"

/* NULL: it holds none of it */
struct fg_holder *fg_holder_of(struct fg_shared *shared, int process);
void fg_shared_end_if_unheld(struct fg_shared *shared);
void fg_shared_drop_process(int process); /* a dead process's references */
void fg_shared_sweep(void);               /* memory that nothing holds any more */
#endif
