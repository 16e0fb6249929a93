/* fakegpu_attach and fakegpu_detach: which state this process works on. */
#include "state/process_table.h"
#include "state/state.h"

int fakegpu_attach(const char *path)
{
    struct fg_state *state;
    int result = fg_state_map(path, &state);
    if (result)
        return result;
    fakegpu_detach();
    fg_state_use(state);
    return 0;
}

void fakegpu_detach(void)
{
    /* the virtual clock: a thread cannot stay in a state that is gone */
    fakegpu_leave();
    fg_state_use(NULL);
    fg_own_process_forget();
}
