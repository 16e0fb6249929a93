/* Between state.c and ledger.c; everything here is called with the lock held. */
#ifndef FG_LEDGER_H
#define FG_LEDGER_H
#include "state/state.h"
void fg_totals_recount(void);                /* all sums anew from the rows */
void fg_shared_drop_process(int process);        /* a dead process's references to shared objects */
void fg_shared_sweep(void);           /* memory that nothing holds any more */
int fg_own_process_locked(void);
#endif
