/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_abi.h - the part of the CUDA driver's binary interface that the launcher uses.
 *
 * Written out here so that ptxgen builds, and behaves the same, with and without an installed toolkit.  The driver's
 * interface is versioned by symbol name (cuMemAlloc_v2), so what a name means never changes; names, argument order
 * and numbers are those of the CUDA Driver API reference.  The types have names of their own (cu_...), so that a
 * translation unit may include <cuda.h> as well: tests/unit/launch/test_cuda_abi.c compares the two where the toolkit is there.
 *
 * CUDA_TABLE rows: X(name, symbol, required, parameters).  Every function returns an int, a CUresult.
 */
#ifndef PTXGEN_CUDA_ABI_H
#define PTXGEN_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUlinkState_st;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_graph_exec;
typedef struct CUgraphNode_st *cu_graph_node;
typedef unsigned long long cu_condition;
typedef unsigned long long cu_pointer;
typedef int cu_device;

/* Results that get words of their own; every other result is quoted with the driver's. */
enum {
    CU_OK = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_INVALID_PTX = 218,
    CU_UNSUPPORTED_PTX = 222,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_PEER_ACCESS_ENABLED = 704,
    CU_MISALIGNED_ADDRESS = 716,
};

enum cu_device_attribute {
    CU_DEV_MULTIPROCESSORS = 16,
    CU_DEV_MEMORY_CLOCK = 36,
    CU_DEV_BUS_WIDTH = 37,
    CU_DEV_L2_SIZE = 38,
    CU_DEV_MAJOR = 75,
    CU_DEV_MINOR = 76,
    CU_DEV_SHARED_OPTIN = 97,
    CU_DEV_MEMORY_POOLS = 115,
};

enum cu_function_attribute {
    CU_FN_SHARED_STATIC = 1,
    CU_FN_LOCAL = 3,
    CU_FN_REGISTERS = 4,
    CU_FN_MAX_DYNAMIC_SHARED = 8,
    CU_FN_NONPORTABLE_CLUSTER = 14,
};

enum cu_jit_option { CU_JITOPT_ERROR_LOG = 5, CU_JITOPT_ERROR_LOG_BYTES = 6 };

enum { CU_EVENT_NO_TIMING = 2 };
enum {
    CU_STREAM_FLAG_NON_BLOCKING = 1,
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_CAPTURE_RELAXED = 2,
    CU_CAPTURE_NONE = 0,
    CU_CAPTURE_SET = 1,
    CU_GRAPH_NODE_PRIORITY = 8
};

enum cu_attribute_id { CU_ATTR_CLUSTER = 4, CU_ATTR_PROGRAMMATIC = 6 };

/* CUlaunchAttribute: an id, padded to 8, then a union of 64 bytes. */
struct cu_attribute {
    unsigned id;
    char pad[4];
    union {
        char bytes[64];
        int programmatic;
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
};

/* CUlaunchConfig */
struct cu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    cu_stream stream;
    struct cu_attribute *attribute;
    unsigned attribute_count;
};

enum { CU_NODE_CONDITIONAL = 13, CU_CONDITION_IF = 0, CU_CONDITION_WHILE = 1 };

/* CUgraphNodeParams of a node whose body runs where, or as long as, a condition is not 0. */
struct cu_condition_node {
    int type; /* CU_NODE_CONDITIONAL */
    int reserved[3];
    cu_condition condition;
    int kind;       /* CU_CONDITION_IF or CU_CONDITION_WHILE */
    unsigned size;  /* 1 */
    cu_graph *body; /* made by the driver: an array of `size` */
    cu_context context;
    long long rest[26];
};

/* CUDA_MEMCPY2D */
struct cu_copy_2d {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    cu_pointer from;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    cu_pointer to;
    void *to_array;
    size_t to_pitch;
    size_t width, rows;
};
enum { CU_MEMORY_DEVICE = 2 };

/* CUipcMemHandle */
struct cu_ipc_handle {
    char bytes[64];
};
enum { CU_HOST_PORTABLE_MAPPED = 3, CU_IPC_PEER_ACCESS = 1 };

/* clang-format off */
#define CUDA_TABLE(X)                                                                                                     \
    X(Init,               "cuInit",                        1, (unsigned flags))                                           \
    X(DriverGetVersion,   "cuDriverGetVersion",            1, (int *version))                                             \
    X(GetErrorName,       "cuGetErrorName",                1, (int result, const char **text))                            \
    X(GetErrorString,     "cuGetErrorString",              1, (int result, const char **text))                            \
    X(DeviceGetCount,     "cuDeviceGetCount",              1, (int *count))                                               \
    X(DeviceGet,          "cuDeviceGet",                   1, (cu_device *device, int ordinal))                           \
    X(DeviceGetName,      "cuDeviceGetName",               1, (char *name, int length, cu_device device))                 \
    X(DeviceTotalMem,     "cuDeviceTotalMem_v2",           1, (size_t *bytes, cu_device device))                          \
    X(DeviceGetAttribute, "cuDeviceGetAttribute",          1, (int *value, int attribute, cu_device device))              \
    X(PrimaryRetain,      "cuDevicePrimaryCtxRetain",      1, (cu_context *context, cu_device device))                    \
    X(PrimaryRelease,     "cuDevicePrimaryCtxRelease_v2",  1, (cu_device device))                                         \
    X(CtxGetCurrent,      "cuCtxGetCurrent",               1, (cu_context *context))                                      \
    X(CtxGetDevice,       "cuCtxGetDevice",                1, (cu_device *device))                                        \
    X(CtxPush,            "cuCtxPushCurrent_v2",           1, (cu_context context))                                       \
    X(CtxPop,             "cuCtxPopCurrent_v2",            1, (cu_context *context))                                      \
    X(CtxSynchronize,     "cuCtxSynchronize",              1, (void))                                                     \
    X(ModuleLoadDataEx,   "cuModuleLoadDataEx",            1, (cu_module *module, const void *image, unsigned count,      \
                                                               int *option, void **value))                                \
    X(ModuleUnload,       "cuModuleUnload",                1, (cu_module module))                                         \
    X(ModuleGetFunction,  "cuModuleGetFunction",           1, (cu_function *function, cu_module module, const char *name)) \
    X(FuncGetAttribute,   "cuFuncGetAttribute",            1, (int *value, int attribute, cu_function function))          \
    X(FuncSetAttribute,   "cuFuncSetAttribute",            1, (cu_function function, int attribute, int value))           \
    X(Occupancy,          "cuOccupancyMaxActiveBlocksPerMultiprocessor", 1, (int *blocks, cu_function function,           \
                                                               int threads, size_t dynamic_shared))                       \
    X(LaunchKernel,       "cuLaunchKernel",                1, (cu_function function, unsigned grid_x, unsigned grid_y,    \
                                                               unsigned grid_z, unsigned block_x, unsigned block_y,       \
                                                               unsigned block_z, unsigned shared_bytes, cu_stream stream, \
                                                               void **params, void **extra))                              \
    X(LaunchKernelEx,     "cuLaunchKernelEx",              0, (const struct cu_launch_config *config,                     \
                                                               cu_function function, void **params, void **extra))        \
    X(MemAlloc,           "cuMemAlloc_v2",                 1, (cu_pointer *pointer, size_t bytes))                        \
    X(MemFree,            "cuMemFree_v2",                  1, (cu_pointer pointer))                                       \
    X(MemAllocAsync,      "cuMemAllocAsync",               0, (cu_pointer *pointer, size_t bytes, cu_stream stream))      \
    X(MemFreeAsync,       "cuMemFreeAsync",                0, (cu_pointer pointer, cu_stream stream))                     \
    X(ThreadCaptureMode,  "cuThreadExchangeStreamCaptureMode", 0, (int *mode))                                            \
    X(MemHostAlloc,       "cuMemHostAlloc",                0, (void **memory, size_t bytes, unsigned flags))               \
    X(MemFreeHost,        "cuMemFreeHost",                 0, (void *memory))                                             \
    X(CtxEnablePeerAccess, "cuCtxEnablePeerAccess",        0, (cu_context context, unsigned flags))                       \
    X(IpcGetHandle,       "cuIpcGetMemHandle",             0, (struct cu_ipc_handle *handle, cu_pointer pointer))         \
    X(IpcOpen,            "cuIpcOpenMemHandle_v2",         0, (cu_pointer *pointer, struct cu_ipc_handle handle, unsigned flags)) \
    X(IpcClose,           "cuIpcCloseMemHandle",           0, (cu_pointer pointer))                                       \
    X(MemcpyHtoD,         "cuMemcpyHtoD_v2",               1, (cu_pointer to, const void *from, size_t bytes))            \
    X(MemcpyDtoH,         "cuMemcpyDtoH_v2",               1, (void *to, cu_pointer from, size_t bytes))                  \
    X(MemcpyDtoDAsync,    "cuMemcpyDtoDAsync_v2",          1, (cu_pointer to, cu_pointer from, size_t bytes,              \
                                                               cu_stream stream))                                         \
    X(Memcpy2DAsync,      "cuMemcpy2DAsync_v2",            1, (const struct cu_copy_2d *copy, cu_stream stream))          \
    X(MemsetD8Async,      "cuMemsetD8Async",               1, (cu_pointer to, unsigned char byte, size_t bytes,           \
                                                               cu_stream stream))                                         \
    X(StreamCreate,       "cuStreamCreate",                1, (cu_stream *stream, unsigned flags))                        \
    X(StreamCreateWithPriority, "cuStreamCreateWithPriority", 0, (cu_stream *stream, unsigned flags, int priority))       \
    X(StreamPriorities,   "cuCtxGetStreamPriorityRange",   0, (int *least, int *greatest))                                \
    X(StreamWaitEvent,    "cuStreamWaitEvent",             1, (cu_stream stream, cu_event event, unsigned flags))         \
    X(StreamDestroy,      "cuStreamDestroy_v2",            1, (cu_stream stream))                                         \
    X(StreamSynchronize,  "cuStreamSynchronize",           1, (cu_stream stream))                                         \
    X(StreamQuery,        "cuStreamQuery",                 1, (cu_stream stream))                                         \
    X(StreamGetId,        "cuStreamGetId",                 0, (cu_stream stream, unsigned long long *id))                 \
    X(StreamGetCtx,       "cuStreamGetCtx",                1, (cu_stream stream, cu_context *context))                    \
    X(StreamIsCapturing,  "cuStreamIsCapturing",           1, (cu_stream stream, int *status))                            \
    X(StreamBeginCapture, "cuStreamBeginCapture_v2",       1, (cu_stream stream, int mode))                               \
    X(StreamEndCapture,   "cuStreamEndCapture",            1, (cu_stream stream, cu_graph *graph))                        \
    X(BeginCaptureTo,     "cuStreamBeginCaptureToGraph",   0, (cu_stream stream, cu_graph graph, const cu_graph_node *after, \
                                                               const void *edge, size_t count, int mode))                 \
    X(GetCaptureInfo,     "cuStreamGetCaptureInfo_v2",     0, (cu_stream stream, int *status, unsigned long long *id,     \
                                                               cu_graph *graph, const cu_graph_node **after, size_t *count)) \
    X(UpdateCapture,      "cuStreamUpdateCaptureDependencies", 0, (cu_stream stream, cu_graph_node *after, size_t count, \
                                                               unsigned flags))                                           \
    X(EventCreate,        "cuEventCreate",                 1, (cu_event *event, unsigned flags))                          \
    X(EventDestroy,       "cuEventDestroy_v2",             1, (cu_event event))                                           \
    X(EventRecord,        "cuEventRecord",                 1, (cu_event event, cu_stream stream))                         \
    X(EventSynchronize,   "cuEventSynchronize",            1, (cu_event event))                                           \
    X(EventElapsedTime,   "cuEventElapsedTime",            1, (float *milliseconds, cu_event begin, cu_event end))        \
    X(GraphCreate,        "cuGraphCreate",                 0, (cu_graph *graph, unsigned flags))                          \
    X(GraphAddNode,       "cuGraphAddNode_v2",             0, (cu_graph_node *node, cu_graph graph, const cu_graph_node *after, \
                                                               const void *edge, size_t count, struct cu_condition_node *params)) \
    X(ConditionCreate,    "cuGraphConditionalHandleCreate", 0, (cu_condition *condition, cu_graph graph, cu_context context, \
                                                               unsigned value, unsigned flags))                           \
    X(GraphInstantiate,   "cuGraphInstantiateWithFlags",   1, (cu_graph_exec *exec, cu_graph graph,                       \
                                                               unsigned long long flags))                                 \
    X(GraphLaunch,        "cuGraphLaunch",                 1, (cu_graph_exec exec, cu_stream stream))                     \
    X(GraphDestroy,       "cuGraphDestroy",                1, (cu_graph graph))                                           \
    X(GraphExecDestroy,   "cuGraphExecDestroy",            1, (cu_graph_exec exec))
/* clang-format on */

#endif
