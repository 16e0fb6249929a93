/* The driver calls that are recorded and replayed, with the kind of each argument:
 *   n a number             h a handle            d a device pointer (into an allocation)
 *   H the place of a new handle                  D the place of a new device pointer
 *   b24; 24 bytes at the pointer, copied         c a name
 * i a module image: its size counts            p other memory of the host: its content is not
 * kept
 *   z a count of options that p arguments hold: none are given when it is replayed
 * Only what takes or gives back memory, starts work, or waits for it: queries of attributes are
 * left out. */
#define RECORDED_CALLS(X)                                                                          \
    X(cuInit, "n")                                                                                 \
    X(cuDevicePrimaryCtxRetain, "Hn")                                                              \
    X(cuDevicePrimaryCtxRelease_v2, "n")                                                           \
    X(cuCtxCreate_v2, "Hnn")                                                                       \
    X(cuCtxSetCurrent, "h")                                                                        \
    X(cuCtxPushCurrent_v2, "h")                                                                    \
    X(cuCtxPopCurrent_v2, "p")                                                                     \
    X(cuCtxSynchronize, "")                                                                        \
    X(cuCtxSetLimit, "nn")                                                                         \
    X(cuMemGetInfo_v2, "pp")                                                                       \
    X(cuModuleLoadData, "Hi")                                                                      \
    X(cuModuleLoadDataEx, "Hizpp")                                                                 \
    X(cuModuleLoadFatBinary, "Hi")                                                                 \
    X(cuModuleUnload, "h")                                                                         \
    X(cuModuleGetFunction, "Hhc")                                                                  \
    X(cuLibraryLoadData, "Hippzppz")                                                               \
    X(cuLibraryUnload, "h")                                                                        \
    X(cuLibraryGetKernel, "Hhc")                                                                   \
    X(cuLibraryGetModule, "Hh")                                                                    \
    X(cuKernelGetFunction, "Hh")                                                                   \
    X(cuMemAlloc_v2, "Dn")                                                                         \
    X(cuMemAllocPitch_v2, "Dpnnn")                                                                 \
    X(cuMemAllocManaged, "Dnn")                                                                    \
    X(cuMemFree_v2, "d")                                                                           \
    X(cuMemHostAlloc, "Dnn")                                                                       \
    X(cuMemAllocHost_v2, "Dn")                                                                     \
    X(cuMemFreeHost, "d")                                                                          \
    X(cuMemAllocAsync, "Dnh")                                                                      \
    X(cuMemAllocAsync_ptsz, "Dnh")                                                                 \
    X(cuMemAllocFromPoolAsync, "Dnhh")                                                             \
    X(cuMemAllocFromPoolAsync_ptsz, "Dnhh")                                                        \
    X(cuMemFreeAsync, "dh")                                                                        \
    X(cuMemFreeAsync_ptsz, "dh")                                                                   \
    X(cuDeviceGetDefaultMemPool, "Hn")                                                             \
    X(cuDeviceGetMemPool, "Hn")                                                                    \
    X(cuDeviceSetMemPool, "nh")                                                                    \
    X(cuMemPoolCreate, "Hb88;")                                                                    \
    X(cuMemPoolDestroy, "h")                                                                       \
    X(cuMemPoolTrimTo, "hn")                                                                       \
    X(cuMemPoolSetAttribute, "hnb8;")                                                              \
    X(cuMemPoolGetAttribute, "hnp")                                                                \
    X(cuMemPoolSetAccess, "hb12;n")                                                                \
    X(cuMemGetAllocationGranularity, "pb32;n")                                                     \
    X(cuMemAddressReserve, "Dnnnn")                                                                \
    X(cuMemAddressFree, "dn")                                                                      \
    X(cuMemCreate, "Hnb32;n")                                                                      \
    X(cuMemRelease, "h")                                                                           \
    X(cuMemMap, "dnnhn")                                                                           \
    X(cuMemUnmap, "dn")                                                                            \
    X(cuMemSetAccess, "dnb12;n")                                                                   \
    X(cuStreamCreate, "Hn")                                                                        \
    X(cuStreamCreateWithPriority, "Hnn")                                                           \
    X(cuStreamDestroy_v2, "h")                                                                     \
    X(cuStreamSynchronize, "h")                                                                    \
    X(cuStreamQuery, "h")                                                                          \
    X(cuStreamWaitEvent, "hhn")                                                                    \
    X(cuStreamBeginCapture_v2, "hn")                                                               \
    X(cuStreamEndCapture, "hH")                                                                    \
    X(cuThreadExchangeStreamCaptureMode, "b4;")                                                    \
    X(cuEventCreate, "Hn")                                                                         \
    X(cuEventDestroy_v2, "h")                                                                      \
    X(cuEventRecord, "hh")                                                                         \
    X(cuEventQuery, "h")                                                                           \
    X(cuEventSynchronize, "h")                                                                     \
    X(cuGraphInstantiateWithFlags, "Hhn")                                                          \
    X(cuGraphLaunch, "hh")                                                                         \
    X(cuGraphExecDestroy, "h")                                                                     \
    X(cuGraphDestroy, "h")                                                                         \
    X(cuLaunchKernel, "hnnnnnnnhpp")                                                               \
    X(cuMemcpyHtoDAsync_v2, "dpnh")                                                                \
    X(cuMemcpyDtoHAsync_v2, "pdnh")                                                                \
    X(cuMemcpyDtoDAsync_v2, "ddnh")                                                                \
    X(cuMemcpyHtoD_v2, "dpn")                                                                      \
    X(cuMemcpyDtoH_v2, "pdn")                                                                      \
    X(cuMemsetD8Async, "dnnh")                                                                     \
    X(cuMemsetD8_v2, "dnn")                                                                        \
    X(cuMemsetD32Async, "dnnh")                                                                    \
    X(cuMemsetD32_v2, "dnn")
