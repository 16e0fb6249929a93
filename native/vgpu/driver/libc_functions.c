/* libc's own dlsym, dlvsym and dlopen, which ours stand before.
 *
 * Whoever is the first to call dlsym comes through here, perhaps before any constructor ran: so
 * this file, elf_symbols.c and dlsym.c call nothing that a sanitizer watches, and are built without
 * one.
 */
#include <stdlib.h>

#include "driver/elf_symbols.h"
#include "driver/real_driver.h"

void *(*vg_libc_dlsym)(void *, const char *);
void *(*vg_libc_dlvsym)(void *, const char *, const char *);
void *(*vg_libc_dlopen)(const char *, int);

static void *libc_symbol(const char *name)
{
    void *found = vg_first_symbol("libc.so.6", name);
    return found ? found : vg_first_symbol("libdl.so.2", name); /* before glibc 2.34 */
}

__attribute__((constructor)) static void find_libc(void)
{
    if (__atomic_load_n(&vg_libc_dlsym, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n((void **)&vg_libc_dlopen, libc_symbol("dlopen"), __ATOMIC_RELAXED);
    __atomic_store_n((void **)&vg_libc_dlvsym, libc_symbol("dlvsym"), __ATOMIC_RELAXED);
    if (vg_libc_dlopen && vg_libc_dlvsym)
        __atomic_store_n((void **)&vg_libc_dlsym, libc_symbol("dlsym"), __ATOMIC_RELEASE);
}

void vg_libc(void)
{
    if (likely(__atomic_load_n(&vg_libc_dlsym, __ATOMIC_ACQUIRE) != NULL))
        return;
    find_libc();
    if (!vg_libc_dlsym) {
        vg_say("no dlsym in this process: it needs glibc");
        abort();
    }
}

void *vg_real_dlsym(void *handle, const char *name)
{
    vg_libc();
    return vg_libc_dlsym(handle, name);
}
