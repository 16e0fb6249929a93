/* Between real_driver.c (the driver's functions), dlsym.c and get_proc_address.c. */
#ifndef ALNAIR_VGPU_RESOLVE_H
#define ALNAIR_VGPU_RESOLVE_H

#include "driver/tables.h"
#include "vgpu.h"

extern void *(*vg_libc_dlsym)(void *, const char *);
extern void *(*vg_libc_dlvsym)(void *, const char *, const char *);
extern void *(*vg_libc_dlopen)(const char *, int);
void vg_libc(void);            /* fills these three; cheap when done */
void *vg_driver_handle(void);  /* dlopen handle of the real driver; NULL: there is none */
int vg_find(const char *name); /* index of an exported name, -1: unknown */
/* the driver is our own proxy: it enforces, this copy only passes on */
extern _Atomic bool vg_proxied;
/* trace.c: tells what was handed out for a name, where that was asked for */
void vg_trace(const char *name, int version, uint64_t flags, const char *what);
void vg_count_unhooked(void); /* a driver function was handed out that no table knows */
uint64_t vg_unhooked(void);

#endif
