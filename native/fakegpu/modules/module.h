/* Modules, to libraries (which have one in each context) and to contexts that end. With fg_mutex
 * held. */
#ifndef FG_MODULE_H
#define FG_MODULE_H
#include "memory/ranges.h"
#include "modules/function.h"

struct fg_library;
struct fg_global;
struct fg_named_function {
    struct fg_named_function *next;
    struct fg_function *function;
};
struct fg_module {
    struct fg_module *next;
    struct fg_context *context;
    struct fg_library *library; /* NULL: loaded by itself */
    uint64_t charged;
    struct fg_named_function *functions;
    struct fg_global *globals;
};
/* bytes: of its image. Made in the current context. */
CUresult fg_module_load(struct fg_module **out, uint64_t bytes, struct fg_library *library);
void fg_module_unload(struct fg_module *module);
struct fg_module *fg_modules(void); /* all of this process */
/* The function of this name, made at need. owner: the module or library. */
struct fg_function *fg_module_function(struct fg_named_function **list, struct fg_context *context,
                                       void *owner, const char *name);
void fg_named_functions_end(struct fg_named_function *list, void *owner);
CUresult fg_module_global(CUdeviceptr *out, size_t *bytes, struct fg_module *module,
                          const char *name);
void fg_modules_context_gone(struct fg_context *context);
#endif
