/* dlsym and dlvsym of the application.
 *
 * Only names of the driver, of NVML, and dlsym's own are looked at; for all others the call jumps
 * to libc's function with registers and stack as the caller left them, so that RTLD_NEXT and
 * RTLD_DEFAULT are resolved from the caller's place and dlerror says what it would have said.
 *
 * The proxy has none of this: it is found under the driver's own name.
 */
#ifndef VG_PROXY
#include <dlfcn.h>

#include "driver/elf_symbols.h"
#include "driver/real_driver.h"

struct answer {
    void *value;
    long jump;
}; /* returned in two registers: value, or "call libc's" */

void *vg_own_dlsym(void *, const char *) __asm__("dlsym");
void *vg_own_dlvsym(void *, const char *, const char *) __asm__("dlvsym");

/* What follows the prefix; NULL where the name has another. */
static const char *after(const char *name, const char *prefix)
{
    for (; *prefix; name++, prefix++)
        if (*name != *prefix)
            return NULL;
    return name;
}

static const char *home(const char *name)
{
    return after(name, "nvml") ? "libnvidia-ml.so.1" : "libcuda.so.1";
}

/* version: NULL for dlsym */
__attribute__((used)) struct answer vg_lookup(void *handle, const char *name, const char *version)
{
    const struct answer jump = {NULL, 1};
    vg_libc();
    if (!name)
        return jump;
    const char *rest = after(name, "dlsym");
    if (!rest)
        rest = after(name, "dlvsym");
    bool itself = rest && !*rest;
    const char *tail = after(name, "cu") ? after(name, "cu") : after(name, "nvml");
    if (!itself && (!tail || *tail < 'A' || *tail > 'Z')) /* cublasCreate is none of the driver's */
        return jump;
    void *ours =
        name[0] == 'd' ? (name[2] == 's' ? (void *)vg_own_dlsym : (void *)vg_own_dlvsym) : NULL;
    int index = itself ? -1 : vg_find(name);
    if (index >= 0)
        ours = (void *)vg_hook[index];
    if (index >= 0 && !ours)
        return jump; /* known, and passed as it is */
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
        /* RTLD_DEFAULT finds our export, or that of somebody who comes before us; but also of what
         * this driver lacks, or while no driver is loaded. RTLD_NEXT, asked by a library behind us,
         * finds the driver's. */
        bool there = itself || vg_loaded_symbol(home(name), name);
        if (!ours || (there && handle == RTLD_DEFAULT))
            return jump;
        return (struct answer){
            there ? ours : vg_libc_dlsym(RTLD_DEFAULT, "a function that this driver lacks"), 0};
    }
    void *found = version ? vg_libc_dlvsym(handle, name, version) : vg_libc_dlsym(handle, name);
    if (!found || (itself ? found != (void *)vg_libc_dlsym && found != (void *)vg_libc_dlvsym
                          : !vg_in_driver(found)))
        return (struct answer){found, 0};
    if (!itself && index < 0 && after(name, "cu")) /* of NVML only what we alter is in the table */
        vg_count_unhooked();
    vg_trace(name, 0, 0, ours ? "hooked" : "unknown");
    return (struct answer){ours ? ours : found, 0};
}

// clang-format off: a line of assembly each
#if defined(__x86_64__)
#define ENTRY(name, target)                                                                     \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                 \
        ".cfi_startproc\n"                                                                      \
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"            \
        "push %rdx\n.cfi_adjust_cfa_offset 8\n" THIRD(name)                                     \
        "call vg_lookup\n"                                                                      \
        "mov %rdx, %rcx\npop %rdx\n.cfi_adjust_cfa_offset -8\n"                                 \
        "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"            \
        "test %rcx, %rcx\njnz 1f\nret\n1: jmp *" #target "(%rip)\n"                             \
        ".cfi_endproc\n.size " #name ", .-" #name "\n.previous\n")
#define THIRD(name) THIRD_##name
#define THIRD_dlsym "xor %edx, %edx\n"
#define THIRD_dlvsym ""
#elif defined(__aarch64__)
#define ENTRY(name, target)                                                                     \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                 \
        ".cfi_startproc\n"                                                                      \
        "stp x29, x30, [sp, #-48]!\n.cfi_adjust_cfa_offset 48\n"                                \
        "stp x0, x1, [sp, #16]\nstr x2, [sp, #32]\n" THIRD(name)                                \
        "bl vg_lookup\n"                                                                        \
        "cbnz x1, 1f\nldp x29, x30, [sp], #48\nret\n"                                           \
        "1: ldp x0, x1, [sp, #16]\nldr x2, [sp, #32]\nldp x29, x30, [sp], #48\n"                \
        "adrp x16, " #target "\nldr x16, [x16, :lo12:" #target "]\nbr x16\n"                    \
        ".cfi_endproc\n.size " #name ", .-" #name "\n.previous\n")
#define THIRD(name) THIRD_##name
#define THIRD_dlsym "mov x2, xzr\n"
#define THIRD_dlvsym ""
#else
#error "dlsym needs an entry for this processor"
#endif
// clang-format on

ENTRY(dlsym, vg_libc_dlsym);
ENTRY(dlvsym, vg_libc_dlvsym);
#endif
