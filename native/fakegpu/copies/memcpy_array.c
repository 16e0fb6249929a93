/* Copies from and to arrays, whose content is not kept. */
#include "copies/copy.h"

/* Each with its present types (_v2) and with those of CUDA 3.1. */
CUresult FG(cuMemcpyDtoA_v2)(CUarray to, size_t at, CUdeviceptr from, size_t n)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoA)(CUarray to, unsigned int at, CUdeviceptr_v1 from, unsigned int n)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyAtoD_v2)(CUdeviceptr to, CUarray from, size_t at, size_t n)
{
    (void)from;
    (void)at;
    return fg_copy_flat(DEVICE, to, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoD)(CUdeviceptr_v1 to, CUarray from, unsigned int at, unsigned int n)
{
    (void)from;
    (void)at;
    return fg_copy_flat(DEVICE, to, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyHtoA_v2)(CUarray to, size_t at, const void *from, size_t n)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyHtoA)(CUarray to, unsigned int at, const void *from, unsigned int n)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyAtoH_v2)(void *to, CUarray from, size_t at, size_t n)
{
    (void)from;
    (void)at;
    return fg_copy_flat(HOST, AT(to), ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoH)(void *to, CUarray from, unsigned int at, unsigned int n)
{
    (void)from;
    (void)at;
    return fg_copy_flat(HOST, AT(to), ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoA_v2)(CUarray to, size_t at, CUarray from, size_t from_at, size_t n)
{
    (void)to;
    (void)at;
    (void)from;
    (void)from_at;
    return fg_copy_flat(ARRAY, 0, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyAtoA)(CUarray to, unsigned int at, CUarray from, unsigned int from_at,
                          unsigned int n)
{
    (void)to;
    (void)at;
    (void)from;
    (void)from_at;
    return fg_copy_flat(ARRAY, 0, ARRAY, 0, n, NULL, false);
}
CUresult FG(cuMemcpyHtoAAsync_v2)(CUarray to, size_t at, const void *from, size_t n, CUstream s)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyHtoAAsync)(CUarray to, unsigned int at, const void *from, unsigned int n,
                               CUstream s)
{
    (void)to;
    (void)at;
    return fg_copy_flat(ARRAY, 0, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyAtoHAsync_v2)(void *to, CUarray from, size_t at, size_t n, CUstream s)
{
    (void)from;
    (void)at;
    return fg_copy_flat(HOST, AT(to), ARRAY, 0, n, s, true);
}
CUresult FG(cuMemcpyAtoHAsync)(void *to, CUarray from, unsigned int at, unsigned int n, CUstream s)
{
    (void)from;
    (void)at;
    return fg_copy_flat(HOST, AT(to), ARRAY, 0, n, s, true);
}
