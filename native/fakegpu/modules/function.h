/* Functions of modules and kernels of libraries, by handle; a name says how long one runs
 * (fakegpu.h). */
#ifndef FG_FUNCTION_H
#define FG_FUNCTION_H
#include <stdatomic.h>

#include "driver/current_context.h"
#include "driver/handles.h"

#define FG_MOST_THREADS 1024 /* of a block */

struct fg_function {
    struct fg_handle handle;
    struct fg_function *next;   /* of its module */
    struct fg_context *context; /* NULL: a CUkernel, which works in any */
    void *module;
    char name[128];
    uint64_t ns, other_ns, per_block_ns; /* other_ns: of the second mode */
    int jitter_pct;                      /* -1: as option jitter says */
    unsigned other_pct;                  /* how often the second mode */
    /* that many launches of the first mode, then of the second, in turns; 0: by chance */
    uint64_t phase, other_phase;
    _Atomic uint64_t launches; /* where it has phases */
    unsigned sms;              /* SMs that it can use; 0: all */
    bool is_loaded;            /* was launched before */
    int dynamic_shared, carveout;
    unsigned old_block[3]; /* cuFuncSetBlockShape */
};
/* A function of this name (NULL: not such a name, or no memory), and the end of all functions of
 * a module or library. A CUkernel is one with context NULL. */
struct fg_function *fg_function_new(struct fg_context *context, void *module, const char *name);
void fg_functions_end(void *module);
struct fg_function *fg_function_of(const void *handle); /* CUfunction or CUkernel; NULL: not live */
#endif
