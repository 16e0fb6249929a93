/* Between state.c and ledger.c; everything here is called with the lock held. */
#ifndef FG_LEDGER_H
#define FG_LEDGER_H
#include "state/state.h"
void fg_recount(void);                /* all sums anew from the rows */
void fg_drop_all(int process);        /* a dead process's references to shared objects */
void fg_sweep_shared(void);           /* memory that nothing holds any more */
int fg_self_locked(void);
#endif
