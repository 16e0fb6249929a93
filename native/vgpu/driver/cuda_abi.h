/* The CUDA driver's binary interface, as far as this library takes part in it: our own
 * declarations.
 *
 * Sizes, offsets and argument types are facts of the interface (x86-64 and aarch64 Linux); the
 * names of members are ours. Types that are only handed through are left incomplete. A test
 * compiles this file beside NVIDIA's cuda.h and compares every size, offset and function type
 * (tests/native/test_symbols.py), so a mistake here, or a change there, fails the build of a
 * developer and never a tenant's process. The functions are in cuda_functions.h.
 */
#ifndef ALNAIR_CUDA_ABI_H
#define ALNAIR_CUDA_ABI_H

#ifndef CUDA_VERSION /* else NVIDIA's cuda.h was included first: the test that compares the two */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1; /* CUDA before 3.2 */
typedef int CUdevice;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef unsigned int CUlogicalEndpointId;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef void (*CUhostFn)(void *);

/* ---- enumerations: only the values that we look at ------------------------------------------- */
typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;
typedef enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;
enum { CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2 };
typedef enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
} CUdevice_attribute;
typedef enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
} CUpointer_attribute;
typedef enum {
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8
} CUmemPool_attribute;
typedef enum {
    CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
    CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3
} CUgraphMem_attribute;
typedef enum {
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_EMPTY = 5,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_GRAPH_NODE_TYPE_MEMCPY_BATCH = 14
} CUgraphNodeType;
typedef enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;
typedef enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;
typedef enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_INVISIBLE = 5,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6
} CUmemLocationType;
typedef enum {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_ALLOCATION_TYPE_MANAGED = 2
} CUmemAllocationType;
typedef enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
} CUmemAllocationHandleType;
typedef enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
} CUmemAllocationGranularity_flags;
typedef enum { CU_MEM_OPERATION_TYPE_MAP = 1, CU_MEM_OPERATION_TYPE_UNMAP = 2 } CUmemOperationType;
typedef enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;
typedef enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20
} CUarray_format;
typedef enum {
    CU_LIMIT_STACK_SIZE = 0,
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2
} CUlimit;
typedef enum { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 } CUdevResourceType;
typedef enum {
    CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
    CU_MEM_ADVISE_SET_ACCESSED_BY = 5
} CUmem_advise;
enum { CU_MEM_ATTACH_HOST = 2 };
#define CU_DEVICE_CPU ((CUdevice) - 1)
typedef unsigned int CUfunction_attribute, CUjit_option, CUlibraryOption;
typedef unsigned int CUgraphExecUpdateResult, CUgraphInstantiateResult;
enum {
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2
};
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

/* ---- structures ------------------------------------------------------------------------------ */
typedef struct { unsigned char bytes[16]; } CUuuid;
typedef struct { char bytes[64]; } CUipcMemHandle;
typedef struct { char bytes[64]; } CUmemPoolPtrExportData;
typedef struct {
    CUmemLocationType type;
    int id;
} CUmemLocation;
typedef struct {
    CUmemLocation location;
    unsigned int flags;
} CUmemAccessDesc;
typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType handle_types;
    CUmemLocation location;
    void *security;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} CUmemAllocationProp;
typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType handle_types;
    CUmemLocation location;
    void *security;
    size_t max_size;
    unsigned short usage;
    unsigned char rdma, reserved[53];
} CUmemPoolProps;
typedef struct {
    size_t width, height;
    CUarray_format format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR;
typedef struct {
    unsigned int width, height;
    CUarray_format format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct {
    size_t width, height, depth;
    CUarray_format format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;
typedef struct {
    unsigned int width, height, depth;
    CUarray_format format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;
enum {
    CUDA_ARRAY3D_LAYERED = 1,
    CUDA_ARRAY3D_CUBEMAP = 4,
    CUDA_ARRAY3D_SPARSE = 0x40,
    CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80
};
typedef struct {
    size_t size, alignment;
    unsigned int reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;
typedef struct {
    unsigned int resource_type;
    union {
        CUmipmappedArray mipmap;
        CUarray array;
    } resource;
    unsigned int subresource_type;
    union {
        struct { unsigned int level, layer, x, y, z, width, height, depth; } tile;
        struct {
            unsigned int layer;
            unsigned long long offset, size;
        } tail;
    } subresource;
    CUmemOperationType operation;
    unsigned int handle_type;
    CUmemGenericAllocationHandle handle;
    unsigned long long offset;
    unsigned int device_mask, flags, reserved[2];
} CUarrayMapInfo;
typedef struct {
    unsigned int devices;
    size_t size;
    unsigned long long handle_types, flags;
} CUmulticastObjectProp;

typedef struct {
    size_t src_x, src_y;
    CUmemorytype src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    size_t src_pitch, dst_x, dst_y;
    CUmemorytype dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    size_t dst_pitch, width, height;
} CUDA_MEMCPY2D;
typedef struct {
    unsigned int src_x, src_y;
    CUmemorytype src_type;
    const void *src_host;
    CUdeviceptr_v1 src_device;
    CUarray src_array;
    unsigned int src_pitch, dst_x, dst_y;
    CUmemorytype dst_type;
    void *dst_host;
    CUdeviceptr_v1 dst_device;
    CUarray dst_array;
    unsigned int dst_pitch, width, height;
} CUDA_MEMCPY2D_v1;
typedef struct { /* also the peer copy, whose contexts are the two `context` */
    size_t src_x, src_y, src_z, src_level;
    CUmemorytype src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    CUcontext src_context;
    size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_level;
    CUmemorytype dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    CUcontext dst_context;
    size_t dst_pitch, dst_height, width, height, depth;
} CUDA_MEMCPY3D;
typedef CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER;
typedef struct {
    unsigned int src_x, src_y, src_z, src_level;
    CUmemorytype src_type;
    const void *src_host;
    CUdeviceptr_v1 src_device;
    CUarray src_array;
    void *reserved_a;
    unsigned int src_pitch, src_height, dst_x, dst_y, dst_z, dst_level;
    CUmemorytype dst_type;
    void *dst_host;
    CUdeviceptr_v1 dst_device;
    CUarray dst_array;
    void *reserved_b;
    unsigned int dst_pitch, dst_height, width, height, depth;
} CUDA_MEMCPY3D_v1;
typedef struct { size_t x, y, z; } CUoffset3D;
typedef struct { size_t width, height, depth; } CUextent3D;
typedef struct {
    unsigned int type;
    union {
        struct {
            CUdeviceptr ptr;
            size_t row_length, layer_height;
            CUmemLocation location;
        } ptr;
        struct {
            CUarray array;
            CUoffset3D offset;
        } array;
    } op;
} CUmemcpy3DOperand;
typedef struct {
    CUmemcpy3DOperand src, dst;
    CUextent3D extent;
    unsigned int order, flags;
} CUDA_MEMCPY3D_BATCH_OP;

typedef struct { unsigned char from, to, type, reserved[5]; } CUgraphEdgeData;
typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    void **params, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    void **params, **extra;
    CUkernel kernel;
    CUcontext context;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct {
    CUmemPoolProps pool;
    const CUmemAccessDesc *access;
    size_t accesses, bytes;
    CUdeviceptr ptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct {
    CUgraphNodeType type;
    int reserved_a[3];
    union {
        long long reserved_b[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct { CUdeviceptr ptr; } free;
        struct {
            CUgraph graph;
            unsigned int ownership;
        } child;
        struct {
            cuuint64_t handle;
            unsigned int type, size;
            CUgraph *bodies;
            CUcontext context;
        } conditional;
    };
    long long reserved_c;
} CUgraphNodeParams;
typedef struct {
    cuuint64_t flags;
    CUstream upload_stream;
    CUgraphNode error_node;
    CUgraphInstantiateResult result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct {
    CUgraphExecUpdateResult result;
    CUgraphNode error_node, error_from;
} CUgraphExecUpdateResultInfo;

typedef struct {
    unsigned int id;
    char padding[4];
    char value[64];
} CUlaunchAttribute;
typedef struct {
    unsigned int grid[3], block[3], shared;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned int n_attributes;
} CUlaunchConfig;
typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared;
    CUstream stream;
    void **params;
} CUDA_LAUNCH_PARAMS;

typedef struct CUdevResource {
    CUdevResourceType type;
    unsigned char padding[92];
    union {
        struct { unsigned int count, minimum, alignment, flags, domain; } sm;
        unsigned char bytes[40];
    };
    struct CUdevResource *next;
} CUdevResource;

/* handed through as they are */
typedef CUresult (*CUgraphRecaptureCallback)(void);
typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
typedef struct CU_DEV_SM_RESOURCE_GROUP_PARAMS CU_DEV_SM_RESOURCE_GROUP_PARAMS;
typedef struct CUcheckpointCheckpointArgs CUcheckpointCheckpointArgs;
typedef struct CUcheckpointLockArgs CUcheckpointLockArgs;
typedef struct CUcheckpointRestoreArgs CUcheckpointRestoreArgs;
typedef struct CUcheckpointUnlockArgs CUcheckpointUnlockArgs;
typedef struct CUctxCreateParams CUctxCreateParams;
typedef struct CUexecAffinityParam CUexecAffinityParam;
typedef struct CUlogicalEndpointProp CUlogicalEndpointProp;
typedef struct CUmemDecompressParams CUmemDecompressParams;
typedef struct CUmemcpyAttributes CUmemcpyAttributes;
typedef struct CUstreamCigCaptureParams CUstreamCigCaptureParams;
#endif /* CUDA_VERSION */

#include "cuda_functions.h"

#endif
