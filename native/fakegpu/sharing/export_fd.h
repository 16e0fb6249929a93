/* What a file descriptor carries from one process to another: memory or a pool. */
#ifndef FG_EXPORT_FD_H
#define FG_EXPORT_FD_H
#include "driver/driver.h"

enum fg_export_kind { FG_EXPORT_HANDLE = 0x46474831, FG_EXPORT_POOL = 0x46475031 };
struct fg_export {
    uint32_t kind;
    int32_t shared, gpu;
    uint64_t id, size;
    CUmemAllocationProp properties;
    CUmemPoolProps pool;
};
int fg_export_make(const struct fg_export *text); /* a new descriptor; -1 */
bool fg_export_read(int fd, enum fg_export_kind kind, struct fg_export *text);
#endif
