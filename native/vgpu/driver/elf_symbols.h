/* What is loaded in this process, read from the dynamic linker's own list (no dlsym, which is
 * ours). */
#ifndef ALNAIR_VGPU_LOADED_H
#define ALNAIR_VGPU_LOADED_H
#include <stdbool.h>
#include <stdint.h>

/* The address of `name` in a loaded object whose SONAME is `soname`; NULL: none. */
void *vg_loaded_symbol(const char *soname, const char *name);
/* The same for what was loaded at the start of the program: takes no lock, calls nothing. */
void *vg_first_symbol(const char *soname, const char *name);
/* Finds many names in the object of a dlopen handle itself, by their GNU hashes: a tenth of the
 * time of dlsym, and a hundredth for names that are not there. False where the object has no such
 * hash table. */
bool vg_object_symbols(void *handle, int count, const char *const *names, const uint32_t *hashes,
                       void **found);
/* Whether `address` lies in an object whose SONAME is the CUDA driver's or NVML's, and is not
 * us. */
bool vg_in_driver(const void *address);
#endif
