/* The generated tables (native/tools/vgpu_symbols.py): all functions of the driver, sorted by
 * name. */
#ifndef ALNAIR_VGPU_TABLES_H
#define ALNAIR_VGPU_TABLES_H

#include "symbols.h"

struct vg_base {
    const char *name;
    unsigned short first, count;
}; /* a span of vg_variant */

extern const char *const vg_name[VG_SYMBOLS];
extern const unsigned vg_gnu_hash[VG_SYMBOLS];        /* of the names, for elf_symbols.c */
extern const void *const vg_hook[VG_SYMBOLS];         /* NULL where the real one is handed out */
extern const unsigned short vg_since[VG_SYMBOLS];     /* CUDA version, as 12040 */
extern const unsigned char vg_per_thread[VG_SYMBOLS]; /* the default stream is per thread */
extern const unsigned short vg_variant[];
extern const struct vg_base vg_base[]; /* names of cuGetProcAddress, sorted */
extern const unsigned vg_bases;

#endif
