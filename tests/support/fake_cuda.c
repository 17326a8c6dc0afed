/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.c - see fake_cuda.h. Every entry point of CUDA_TABLE, under its exported name. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_graphs.h"

enum { NO_CONTEXT = 201, PEER_ACCESS_UNSUPPORTED = 217, CAPTURE_UNSUPPORTED = 900 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char context_memory[FAKE_DEVICES];
static _Thread_local cu_context stack[8];
static _Thread_local int depth;
static unsigned long long stream_ids = 10;

struct CUstream_st {
    unsigned long long id;
};

struct fake_cuda fake = {
    .version = 13000,
    .devices = 1,
    .sm = 90,
    .multiprocessors = 132,
    .shared_optin = 232448,
    .pools = 1,
    .registers = 32,
    .blocks = 4,
};

struct fake_cuda *fake_cuda_state(void) { return &fake; }
size_t fake_cuda_python(void) { return offsetof(struct fake_cuda, nnodes); }

#include "fake_cuda_log.h"

/* Record a call; the place to fill in the rest. */
struct fake_call *fake_record(const char *name, const void *stream, uint64_t a, uint64_t b)
{
    static _Thread_local struct fake_call overflow; /* the caller reads it on after the lock */
    struct fake_call *c;
    pthread_mutex_lock(&lock);
    c = fake.ncalls < FAKE_CALLS ? &fake.call[fake.ncalls++] : &overflow;
    *c = (struct fake_call){ .name = name, .stream = stream, .a = a, .b = b };
    c->context = depth ? stack[depth - 1] : NULL;
    pthread_mutex_unlock(&lock);
    sched_yield(); /* let other threads come between the calls of this one */
    return c;
}

/* As the real driver does, what is not asked of a device needs a current context. */
int fake_result(const char *name)
{
    if (!depth && strcmp(name, "cuInit") != 0 && strncmp(name, "cuDevice", 8) != 0)
        return NO_CONTEXT;
    return fake.fail && strcmp(fake.fail, name) == 0 ? fake.fail_result : CU_OK;
}

int fake_count(const char *name, int change)
{
    if (fake_result(name) == CU_OK)
        __atomic_add_fetch(&fake.live, change, __ATOMIC_RELAXED);
    return fake_result(name);
}

/* The elements of the first array to the second one, i32; the last params of 8 bytes are their FAKE_CUDA_COPIES dimensions,
 * and before them the stride of blocks that ranks have in turn: where it is not 0, an element is a block of FAKE_CUDA_BLOCK. */
static void copy_array(const struct fake_call *c)
{
    const struct fake_kernel *k = fake.kernel;
    size_t n = 1;
    while (strcmp(k->name, c->kernel) != 0)
        k++;
    for (int i = k->nparams - 1, rank = atoi(getenv("FAKE_CUDA_COPIES")); i >= 0 && rank >= 0; i--)
        if (k->bytes[i] == 8 && rank-- > 0)
            n *= (size_t)c->param[i];
        else if (k->bytes[i] == 8 && c->param[i] && getenv("FAKE_CUDA_BLOCK"))
            n *= (size_t)atoi(getenv("FAKE_CUDA_BLOCK"));
    memcpy((void *)(uintptr_t)c->param[1], (const void *)(uintptr_t)c->param[0], n * sizeof(int32_t));
    if (getenv("FAKE_CUDA_WRONG") && c->context == (const void *)&context_memory[atoi(getenv("FAKE_CUDA_WRONG"))])
        ++*(char *)(uintptr_t)c->param[1];
}

/* ---- start, devices, contexts ---------------------------------------------------------------- */
ENTRY(cuInit, unsigned flags)
{
    (void)flags;
    if (getenv("FAKE_CUDA_FAIL")) {
        fake.fail = getenv("FAKE_CUDA_FAIL");
        fake.fail_result = CU_OUT_OF_MEMORY;
    }
    if (getenv("FAKE_CUDA_DEVICES"))
        fake.devices = atoi(getenv("FAKE_CUDA_DEVICES"));
    if (getenv("FAKE_CUDA_COPIES"))
        fake.runs = copy_array;
    if (getenv("FAKE_CUDA_LOG") && !log_file) {
        log_file = fopen(getenv("FAKE_CUDA_LOG"), "w");
        setvbuf(log_file, NULL, _IOLBF, 0);
    }
    return fake_result("cuInit");
}
ENTRY(cuDriverGetVersion, int *version)
{
    *version = getenv("FAKE_CUDA_VERSION") ? atoi(getenv("FAKE_CUDA_VERSION")) : fake.version;
    return CU_OK;
}
ENTRY(cuGetErrorName, int code, const char **text)
{
    *text = code == CU_OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
    return CU_OK;
}
ENTRY(cuGetErrorString, int code, const char **text)
{
    *text = code == CU_OUT_OF_MEMORY ? "the words for memory" : "the driver's words";
    return CU_OK;
}
ENTRY(cuDeviceGetCount, int *n)
{
    *n = fake.devices;
    return CU_OK;
}
ENTRY(cuDeviceGet, cu_device *device, int ordinal)
{
    *device = ordinal;
    return CU_OK;
}
ENTRY(cuDeviceGetName, char *name, int length, cu_device device)
{
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return CU_OK;
}
ENTRY(cuDeviceTotalMem_v2, size_t *bytes, cu_device device)
{
    (void)device;
    *bytes = (size_t)16 << 30;
    return CU_OK;
}
ENTRY(cuDeviceGetAttribute, int *value, int attribute, cu_device device)
{
    (void)device;
    switch (attribute) {
    case CU_DEV_MAJOR: *value = fake.sm / 10; break;
    case CU_DEV_MINOR: *value = fake.sm % 10; break;
    case CU_DEV_MULTIPROCESSORS: *value = fake.multiprocessors; break;
    case CU_DEV_SHARED_OPTIN: *value = fake.shared_optin; break;
    case CU_DEV_MEMORY_POOLS: *value = fake.pools; break;
    default: *value = 1; break;
    }
    return CU_OK;
}
ENTRY(cuDevicePrimaryCtxRetain, cu_context *context, cu_device device)
{
    *context = (cu_context)(void *)&context_memory[device];
    return fake_count("cuDevicePrimaryCtxRetain", 1);
}
ENTRY(cuDevicePrimaryCtxRelease_v2, cu_device device)
{
    (void)device;
    return fake_count("cuDevicePrimaryCtxRelease", -1);
}
ENTRY(cuCtxGetCurrent, cu_context *context)
{
    *context = depth ? stack[depth - 1] : NULL;
    return CU_OK;
}
ENTRY(cuCtxGetDevice, cu_device *device)
{
    *device = (cu_device)((char *)stack[depth - 1] - context_memory);
    return CU_OK;
}
ENTRY(cuCtxSetCurrent, cu_context context)
{
    depth = 0;
    stack[depth++] = context;
    return CU_OK;
}
ENTRY(cuCtxPushCurrent_v2, cu_context context)
{
    stack[depth++] = context;
    return CU_OK;
}
ENTRY(cuCtxPopCurrent_v2, cu_context *context)
{
    *context = stack[--depth];
    return CU_OK;
}
ENTRY(cuCtxSynchronize, void)
{
    fake_record("cuCtxSynchronize", NULL, 0, 0);
    return fake_result("cuCtxSynchronize");
}

/* ---- modules and kernels --------------------------------------------------------------------- */
/* A module that says "bad" does not compile. */
ENTRY(cuModuleLoadDataEx, cu_module *module, const void *image, unsigned n, int *option, void **value)
{
    fake_record("cuModuleLoadDataEx", NULL, (uintptr_t)image, 0);
    if (strstr(image, "bad")) {
        for (unsigned i = 0; i < n; i++)
            if (option[i] == CU_JITOPT_ERROR_LOG)
                strcpy(value[i], "ptxas line 7: a log");
        return CU_INVALID_PTX;
    }
    if (log_file || fake.runs || strstr(image, "cudaGraphSetConditional")) { /* names of kernels are different then */
        pthread_mutex_lock(&lock);
        learn_kernels(image);
        pthread_mutex_unlock(&lock);
    }
    *module = (cu_module)(uintptr_t)1;
    return fake_count("cuModuleLoadDataEx", 1);
}
ENTRY(cuModuleLoadData, cu_module *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}
GIVE_BACK(cuModuleUnload, "cuModuleUnload", cu_module)
ENTRY(cuModuleGetFunction, cu_function *function, cu_module module, const char *name)
{
    (void)module;
    pthread_mutex_lock(&lock);
    *function = (cu_function)(void *)kernel_of(name, strlen(name));
    pthread_mutex_unlock(&lock);
    return *function ? fake_result("cuModuleGetFunction") : 500;
}
ENTRY(cuFuncGetAttribute, int *value, int attribute, cu_function function)
{
    (void)function;
    *value = attribute == CU_FN_SHARED_STATIC ? fake.shared_static
             : attribute == CU_FN_REGISTERS   ? fake.registers
                                              : fake.local;
    return fake_result("cuFuncGetAttribute");
}
ENTRY(cuFuncSetAttribute, cu_function function, int attribute, int value)
{
    fake_record("cuFuncSetAttribute", NULL, (uint64_t)attribute, (uint64_t)value)->kernel =
        ((struct fake_kernel *)(void *)function)->name;
    return fake_result("cuFuncSetAttribute");
}
ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, cu_function function, int threads, size_t shared)
{
    (void)function;
    fake_record("cuOccupancy", NULL, (uint64_t)threads, shared);
    *blocks = fake.blocks;
    return fake_result("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

static void take_params(struct fake_call *c, cu_function function, void **params)
{
    const struct fake_kernel *k = (const struct fake_kernel *)(void *)function;

    c->kernel = k->name;
    for (int i = 0; i < k->nparams; i++)
        memcpy(&c->param[i], params[i], (size_t)k->bytes[i]);
}
ENTRY(cuLaunchKernel, cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, cu_stream stream, void **params, void **extra)
{
    struct fake_call *c = fake_record("cuLaunchKernel", stream, 0, 0);
    (void)extra;
    c->grid = gx * gy * gz;
    c->block = bx * by * bz;
    c->shared = shared;
    take_params(c, function, params);
    struct fake_node *node = fake_capture(stream, c->kernel, c);
    if (node && strncmp(c->kernel, "ptxgen_exchange", 15) == 0) {
        node->table = memcpy(malloc(FAKE_TABLE), params[0], FAKE_TABLE);
        node->grid[0] = gx;
        node->grid[1] = gy;
    }
    if (!node && fake.launched)
        fake.launched(c->kernel, (unsigned[]){ gx, gy }, bx, params);
    if (!node)
        fake_do_launch(c);
    return fake_result("cuLaunchKernel");
}
ENTRY(cuLaunchKernelEx, const struct cu_launch_config *config, cu_function function, void **params, void **extra)
{
    struct fake_call *c = fake_record("cuLaunchKernelEx", config->stream, 0, 0);
    (void)extra;
    c->grid = config->grid_x * config->grid_y * config->grid_z;
    c->block = config->block_x * config->block_y * config->block_z;
    c->shared = config->shared_bytes;
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct cu_attribute *a = &config->attribute[i];

        if (a->id == CU_ATTR_PROGRAMMATIC)
            c->programmatic = a->value.programmatic;
        if (a->id == CU_ATTR_CLUSTER)
            c->cluster = a->value.cluster.x * a->value.cluster.y * a->value.cluster.z;
    }
    take_params(c, function, params);
    if (!fake_capture(config->stream, c->kernel, c))
        fake_do_launch(c);
    return fake_result("cuLaunchKernelEx");
}

/* ---- memory ---------------------------------------------------------------------------------- */
static int allocate(const char *name, cu_pointer *pointer, size_t bytes, cu_stream stream)
{
    struct fake_call *c = fake_record(name, stream, 0, bytes);
    if (fake_result(name) != CU_OK)
        return fake_result(name);
    *pointer = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset((void *)(uintptr_t)*pointer, 0xa5, bytes);
    c->a = *pointer;
    log_allocation(*pointer, bytes);
    return fake_count(name, 1);
}
ENTRY(cuMemAlloc_v2, cu_pointer *pointer, size_t bytes)
{
    return fake_spoils_capture() ? CAPTURE_UNSUPPORTED : allocate("cuMemAlloc", pointer, bytes, NULL);
}
ENTRY(cuMemAllocAsync, cu_pointer *pointer, size_t bytes, cu_stream stream)
{
    return allocate("cuMemAllocAsync", pointer, bytes, stream);
}
ENTRY(cuMemHostAlloc, void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    *memory = calloc(1, bytes);
    return fake_count("cuMemHostAlloc", 1);
}
ENTRY(cuMemFreeHost, void *memory)
{
    free(memory);
    return fake_count("cuMemFreeHost", -1);
}
ENTRY(cuCtxEnablePeerAccess, cu_context context, unsigned flags)
{
    const bool alone = fake.peers == FAKE_FIRST_ALONE && stack[depth - 1] == (cu_context)(void *)&context_memory[0];
    (void)context, (void)flags;
    return fake.peers && !alone ? CU_OK : PEER_ACCESS_UNSUPPORTED;
}
/* A handle is the address, as all processes of the fake are one. */
ENTRY(cuIpcGetMemHandle, struct cu_ipc_handle *handle, cu_pointer pointer)
{
    memcpy(handle->bytes, &pointer, sizeof pointer);
    return CU_OK;
}
ENTRY(cuIpcOpenMemHandle_v2, cu_pointer *pointer, struct cu_ipc_handle handle, unsigned flags)
{
    (void)flags;
    memcpy(pointer, handle.bytes, sizeof *pointer);
    return fake_count("cuIpcOpenMemHandle", 1);
}
ENTRY(cuIpcCloseMemHandle, cu_pointer pointer)
{
    (void)pointer;
    return fake_count("cuIpcCloseMemHandle", -1);
}
ENTRY(cuMemFree_v2, cu_pointer pointer)
{
    if (fake_spoils_capture())
        return CAPTURE_UNSUPPORTED;
    fake_record("cuMemFree", NULL, pointer, 0);
    free((void *)(uintptr_t)pointer);
    return fake_count("cuMemFree", -1);
}
ENTRY(cuMemFreeAsync, cu_pointer pointer, cu_stream stream)
{
    fake_record("cuMemFreeAsync", stream, pointer, 0);
    free((void *)(uintptr_t)pointer);
    return fake_count("cuMemFreeAsync", -1);
}
ENTRY(cuMemcpyHtoD_v2, cu_pointer to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return fake_result("cuMemcpyHtoD");
}
bool fake_holds(uint64_t flag)
{
    static int reads;
    if (!log_file)
        return *(char *)(uintptr_t)flag != 0;
    fprintf(log_file, "read %s\n", log_place(flag));
    return getenv("FAKE_CUDA_STEPS") && ++reads % atoi(getenv("FAKE_CUDA_STEPS")) == 0;
}
ENTRY(cuMemcpyDtoH_v2, void *to, cu_pointer from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    if (log_file && bytes == 1)
        *(char *)to = fake_holds(from);
    return fake_result("cuMemcpyDtoH");
}
void fake_do_copy(const struct fake_call *c)
{
    if (log_file)
        fprintf(log_file, "copy %s %s %zu\n", log_place(c->a), log_place(c->b), (size_t)c->param[0]);
    memcpy((void *)(uintptr_t)c->a, (void *)(uintptr_t)c->b, (size_t)c->param[0]);
}
ENTRY(cuMemcpyDtoDAsync_v2, cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream)
{
    const struct fake_call c = { .a = to, .b = from, .param = { bytes } }; /* what is recorded may overflow */
    fake_record("cuMemcpyDtoDAsync", stream, to, from);
    if (!fake_capture(stream, "copy", &c))
        fake_do_copy(&c);
    return fake_result("cuMemcpyDtoDAsync");
}
void fake_do_fill(const struct fake_call *c)
{
    if (log_file)
        fprintf(log_file, "fill %s %d %zu\n", log_place(c->a), (int)c->param[0], (size_t)c->b);
    memset((void *)(uintptr_t)c->a, (int)c->param[0], (size_t)c->b);
}
void fake_do_copy_2d(const struct fake_call *c)
{
    for (size_t i = 0; i < c->param[1]; i++)
        memcpy((char *)(uintptr_t)c->a + i * c->param[2], (const char *)(uintptr_t)c->b + i * c->param[3],
               (size_t)c->param[0]);
}
ENTRY(cuMemcpy2DAsync_v2, const struct cu_copy_2d *copy, cu_stream stream)
{
    const struct fake_call c = { .a = copy->to,
                                 .b = copy->from,
                                 .param = { copy->width, copy->rows, copy->to_pitch, copy->from_pitch } };
    fake_record("cuMemcpy2DAsync", stream, copy->to, copy->width * copy->rows);
    if (!fake_capture(stream, "copy 2d", &c))
        fake_do_copy_2d(&c);
    return fake_result("cuMemcpy2DAsync");
}
ENTRY(cuMemsetD8Async, cu_pointer to, unsigned char byte, size_t bytes, cu_stream stream)
{
    const struct fake_call c = { .a = to, .b = bytes, .param = { byte } };
    fake_record("cuMemsetD8Async", stream, to, bytes);
    if (!fake_capture(stream, "fill", &c))
        fake_do_fill(&c);
    return fake_result("cuMemsetD8Async");
}

/* ---- streams ----------------------------------------------------------------- */
ENTRY(cuStreamCreate, cu_stream *stream, unsigned flags)
{
    (void)flags;
    if (fake_result("cuStreamCreate") != CU_OK)
        return fake_result("cuStreamCreate");
    *stream = fake.next_handle ? fake.next_handle : malloc(sizeof **stream);
    (*stream)->id = __atomic_add_fetch(&stream_ids, 1, __ATOMIC_RELAXED);
    return fake_count("cuStreamCreate", 1);
}
ENTRY(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return fake_result("cuCtxGetStreamPriorityRange");
}
ENTRY(cuStreamCreateWithPriority, cu_stream *stream, unsigned flags, int priority)
{
    fake_record("cuStreamCreateWithPriority", NULL, (uint64_t)-priority, 0);
    return cuStreamCreate(stream, flags);
}
ENTRY(cuStreamDestroy_v2, cu_stream stream)
{
    free(stream);
    return fake_count("cuStreamDestroy", -1);
}
ENTRY(cuStreamSynchronize, cu_stream stream)
{
    fake_record("cuStreamSynchronize", stream, 0, 0);
    return fake_result("cuStreamSynchronize");
}
ENTRY(cuStreamQuery, cu_stream stream)
{
    (void)stream;
    return fake.busy ? CU_NOT_READY : fake_result("cuStreamQuery");
}
/* As the real driver does, a capture that is asked for its stream's id is refused, and spoiled. */
ENTRY(cuStreamGetId, cu_stream stream, unsigned long long *id)
{
    if (fake_captures(stream)) {
        fake.capture_spoiled = 1;
        return CAPTURE_UNSUPPORTED;
    }
    *id = (uintptr_t)stream >> 20 ? stream->id : (uintptr_t)stream; /* numbers of tests are no addresses */
    return fake_result("cuStreamGetId");
}
/* Streams of tests, which are small numbers: the digit above 0xFFFF is their device. */
ENTRY(cuStreamGetCtx, cu_stream stream, cu_context *context)
{
    const uintptr_t number = (uintptr_t)stream;
    *context = (cu_context)(void *)&context_memory[number >> 20 ? 0 : number >> 16];
    return fake_result("cuStreamGetCtx");
}
