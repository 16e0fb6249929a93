/* The shape of a copy: from where to where it goes, and its bytes moved. */
#ifndef FG_COPY_SHAPE_H
#define FG_COPY_SHAPE_H
#include "driver/driver.h"

/* Where a copy goes: FG_OP_TO_HOST, ...; 0: an address is not the fake's. */
uint32_t fg_copy_kind(const CUDA_MEMCPY3D *shape);
/* Which GPUs a copy goes between, as fg_route(); 0: it stays in one, or goes to or from the host. */
uint32_t fg_copy_route(const CUDA_MEMCPY3D *shape);
void fg_copy_move(const CUDA_MEMCPY3D *shape);
/* Address of an end's first byte; 0: an array, whose content is not kept. */
uint64_t fg_copy_source(const CUDA_MEMCPY3D *shape);
uint64_t fg_copy_target(const CUDA_MEMCPY3D *shape);
bool fg_address_pinned(uint64_t address); /* page-locked or managed */
#endif
