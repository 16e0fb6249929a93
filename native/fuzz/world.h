/* The world that fuzz targets live in: a fake GPU, and a container's folder with valid pages. */
#ifndef ALNAIR_FUZZ_WORLD_H
#define ALNAIR_FUZZ_WORLD_H
#include "vgpu.h"

/* The library's own dlsym and dlvsym (build.mk says why they have other names here). */
void *fuzz_dlsym(void *handle, const char *name);
void *fuzz_dlvsym(void *handle, const char *name, const char *version);
/* Makes both once, before the first input, in a folder of this process on tmpfs (removed at
 * exit), and names them in the environment. */
void world_make(void);
/* The pages as a neighbour in the same container and the server may write them; laid out anew. */
struct vg_limits *world_limits(void);
struct vg_counters *world_counters(void);
void world_lay_out(void);
#endif
