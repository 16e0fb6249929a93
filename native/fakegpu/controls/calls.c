/* Counts calls by name. Driver symbols have a number from the generator, so that counting is one
 * relaxed add; names of other libraries get the next free place when they first ask. */
#include <stdio.h>
#include <string.h>

#include "controls/calls.h"
#include "state/state.h"

_Atomic uint64_t *fg_call_counter(const char *name)
{
    static _Atomic uint64_t nowhere;
    if (!fg_attach())
        return &nowhere;
    for (unsigned i = 0; i < fg_symbol_count; i++)
        if (!strcmp(fg_symbol_names[i], name))
            return &fg_state->calls[i];
    const unsigned most = sizeof fg_state->extra_name / sizeof fg_state->extra_name[0];
    _Atomic uint64_t *counter = &nowhere;
    fg_lock();
    unsigned used = fg_state->extra_names, at = 0;
    while (at < used && strcmp(fg_state->extra_name[at], name))
        at++;
    if (at < most && fg_symbol_count + at < FG_CALLS) {
        if (at == used) {
            snprintf(fg_state->extra_name[at], sizeof fg_state->extra_name[at], "%s", name);
            fg_state->extra_names = used + 1;
        }
        counter = &fg_state->calls[fg_symbol_count + at];
    }
    fg_unlock();
    return counter;
}

uint64_t fakegpu_calls(const char *name)
{
    if (!fg_attach())
        return 0;
    uint64_t calls = 0;
    unsigned extra = fg_state->extra_names;
    for (unsigned i = 0; i < fg_symbol_count + extra; i++) {
        const char *known =
            i < fg_symbol_count ? fg_symbol_names[i] : fg_state->extra_name[i - fg_symbol_count];
        if (!*name || !strcmp(known, name))
            calls += fg_state->calls[i];
    }
    return calls;
}
