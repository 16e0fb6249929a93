#define _GNU_SOURCE
#include "modules/function.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fg_handles functions = FG_HANDLES(struct fg_function, 1);
static struct fg_function *list; /* all live ones */

static bool number(const char **at, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    *value = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

static bool word(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length))
        return false;
    *at += length;
    return true;
}

/* ns_N, bi_A_B_P, ph_A_B_N_M, blk_N, empty; then _jP (jitter, %) and _smK (uses K SMs), in any order. */
static bool parse(const char *at, struct fg_function *function)
{
    uint64_t value, percent;
    if (word(&at, "ns_")) {
        if (!number(&at, &function->ns))
            return false;
    } else if (word(&at, "bi_")) {
        if (!number(&at, &function->ns) || !word(&at, "_") || !number(&at, &function->other_ns) ||
            !word(&at, "_") || !number(&at, &percent) || percent > 100)
            return false;
        function->other_pct = (unsigned)percent;
    } else if (word(&at, "ph_")) {
        if (!number(&at, &function->ns) || !word(&at, "_") || !number(&at, &function->other_ns) ||
            !word(&at, "_") || !number(&at, &function->phase) || !word(&at, "_") ||
            !number(&at, &function->other_phase) || !function->phase)
            return false;
    } else if (word(&at, "blk_")) {
        if (!number(&at, &function->per_block_ns))
            return false;
    } else if (!word(&at, "empty")) {
        return false;
    }
    function->jitter_pct = -1;
    for (;;) {
        if (word(&at, "_j") && number(&at, &value) && value <= 100)
            function->jitter_pct = (int)value;
        else if (word(&at, "_sm") && number(&at, &value) && value)
            function->sms = (unsigned)value;
        else
            return true;
    }
}

/* Also inside a mangled name, as _Z7ns_4000v. */
static bool understand(const char *name, struct fg_function *function)
{
    for (const char *at = name; *at; at++)
        if ((at == name || !isalpha((unsigned char)at[-1])) && parse(at, function))
            return true;
    return false;
}

struct fg_function *fg_function_new(struct fg_context *context, void *module, const char *name)
{
    struct fg_function *function = fg_handle_take(&functions);
    if (!function)
        return NULL;
    if (!understand(name, function)) {
        fg_handle_give(&functions, function);
        return NULL;
    }
    snprintf(function->name, sizeof function->name, "%s", name);
    function->context = context;
    function->module = module;
    pthread_mutex_lock(&fg_mutex);
    function->next = list;
    list = function;
    pthread_mutex_unlock(&fg_mutex);
    return function;
}

void fg_functions_end(void *module)
{
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_function **at = &list; *at;) {
        struct fg_function *function = *at;
        if (function->module == module) {
            *at = function->next;
            fg_handle_give(&functions, function);
        } else {
            at = &function->next;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
}

struct fg_function *fg_function_of(const void *handle)
{
    return fg_handle_is(&functions, handle) ? (struct fg_function *)handle : NULL;
}
