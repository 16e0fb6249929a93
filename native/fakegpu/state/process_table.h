/* The rows of processes. A process counts as dead when its pid is gone, a zombie, or another
 * process by its start time. Dead rows are swept (their memory released) before anything is
 * refused or judged over a limit. */
#ifndef FG_PROCESS_TABLE_H
#define FG_PROCESS_TABLE_H
#include "state/state.h"

/* One watcher, called under the lock when a row is swept: the engine forgets what that process
 * queued. */
void fg_when_process_gone(void (*watcher)(int process));
bool fg_process_alive(const struct fg_process *row);
int fg_own_process_locked(void);  /* fg_own_process, for who holds the lock */
void fg_own_process_forget(void); /* the state it was in is not mapped any more */

#pragma GCC visibility push(default)
/* This process's row, claimed at the first call (tag: FAKEGPU_TAG); -1 where the table is full.
 * After a fork the child has no row until it asks. */
int fg_own_process(void);
int fg_find_tag(const char *name, bool make); /* locked; -1: none */
uint64_t fg_sweep_dead(void);                 /* locked; bytes released of dead processes */
#pragma GCC visibility pop
#endif
