/* SPDX-License-Identifier: Apache-2.0 */
/* header_driver.c - drives the header that test_program.c generates, with a driver that only writes down what it is
 * asked.
 *
 * Compiled by that test with -DGENERATED="…/demo.h", as C99 and as C++, and run.  Prints one line per call of the
 * driver.
 */
#include GENERATED

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static int driver_version = 13000;
CUresult cuDriverGetVersion(int *version)
{
    *version = driver_version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 132
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                         : 232448;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *option, void **value)
{
    static int loaded;
    (void)n, (void)option, (void)value;
    printf("load %zu bytes, %.8s\n", strlen((const char *)image), (const char *)image);
    *module = (CUmodule)(uintptr_t)++loaded;
    return CUDA_SUCCESS;
}

/* Machine code that begins with `no` is for another driver. */
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    printf("machine code %.16s\n", (const char *)image);
    if (!strncmp((const char *)image, "no", 2))
        return CUDA_ERROR_INVALID_IMAGE;
    *module = (CUmodule)(uintptr_t)11;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    printf("unload %d\n", (int)(uintptr_t)module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    printf("function %s of %d\n", name, (int)(uintptr_t)module);
    *function = (CUfunction)(uintptr_t)name;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    printf("attribute %d of %s: %d\n", (int)attribute, (const char *)(uintptr_t)function, value);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
    printf("occupancy of %s, %d threads, %zu bytes\n", (const char *)(uintptr_t)function, threads, shared);
    *blocks = 2;
    return CUDA_SUCCESS;
}

static char workspace_memory[1 << 16];
static uint64_t place(uint64_t address) /* in the workspace */
{
    const uint64_t base = ((uint64_t)(uintptr_t)workspace_memory + 255) / 256 * 256;
    return address >= base && address < base + sizeof workspace_memory ? address - base : address;
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char byte, size_t bytes, CUstream stream)
{
    (void)stream;
    printf("fill %d at %llu, %zu bytes\n", byte, (unsigned long long)place(p), bytes);
    return CUDA_SUCCESS;
}

static void print_arguments(void **args)
{
    int i;
    for (i = 0; args[i] != NULL; i++) {
        uint64_t x = 0;
        memcpy(&x, args[i], i == 3 ? 4 : 8); /* the fourth parameter of every kernel has four bytes */
        printf(" %llx", (unsigned long long)place(x));
    }
    printf("\n");
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **args, void **extra)
{
    (void)stream, (void)extra;
    printf("launch %s<%u,%u,%u;%u,%u,%u;%u>", (const char *)(uintptr_t)f, gx, gy, gz, bx, by, bz, shared);
    print_arguments(args);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **args, void **extra)
{
    unsigned i;
    (void)extra;
    printf("launch %s<%u;%u;%u>", (const char *)(uintptr_t)f, c->gridDimX, c->blockDimX, c->sharedMemBytes);
    for (i = 0; i < c->numAttrs; i++)
        printf(" [%d %u]", (int)c->attrs[i].id,
               c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                   ? c->attrs[i].value.clusterDim.x
                   : (unsigned)c->attrs[i].value.programmaticStreamSerializationAllowed);
    print_arguments(args);
    return CUDA_SUCCESS;
}
#ifdef __cplusplus
}
#endif

static demo_program program;

static void launch(int64_t n, CUdeviceptr x, void *workspace, size_t bytes)
{
    const CUresult result = demo_launch(&program, NULL, n, ptxgen_pointer(x), ptxgen_pointer(0x2000),
                                        ptxgen_pointer(0x3000), demo_DEFAULT_scale, 3, workspace, bytes);
    if (result != CUDA_SUCCESS)
        printf("refused %d: %s\n", (int)result, program.message);
}

int main(void)
{
    char *workspace = workspace_memory + (256 - (uintptr_t)workspace_memory % 256) % 256;
    size_t small = 0, large = 0;
    CUresult result;
    driver_version = 11000;
    result = demo_load(&program);
    printf("old driver: %d, %s\n", (int)result, program.message);
    driver_version = 13000;
    if (demo_load(&program) != CUDA_SUCCESS)
        return 1;
    demo_workspace_bytes(&program, 100, 1, 3, &small);
    demo_workspace_bytes(&program, 5000, 1, 3, &large);
    printf("workspace %zu %zu\n", small, large);
    launch(100, 0x1000, workspace, large);
    launch(100, 0x1000, workspace, large);
    launch(5000, 0x1000, workspace, large);
    launch(5000, 0x1000, workspace, large);
    launch(100, 0x1000, workspace, small);
    launch(1, 0x1000, workspace, large);
    launch(-1, 0x1000, workspace, large);
    launch(100, 0x1001, workspace, large);
    launch(5000, 0x1000, workspace, 256);
    launch(100, 0, workspace, large);
    demo_unload(&program);
    return 0;
}
