/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_abi.c - the launcher's own declarations of the driver's interface against <cuda.h>, where there is one. */
#include <criterion/criterion.h>

#include "launch/cuda_abi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

Test(cuda_abi, layouts_and_numbers_are_those_of_the_toolkit)
{
    cr_expect_eq(sizeof(struct cu_attribute), sizeof(CUlaunchAttribute));
    cr_expect_eq(offsetof(struct cu_attribute, value), offsetof(CUlaunchAttribute, value));
    cr_expect_eq(sizeof(struct cu_launch_config), sizeof(CUlaunchConfig));
    cr_expect_eq(offsetof(struct cu_launch_config, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
    cr_expect_eq(offsetof(struct cu_launch_config, stream), offsetof(CUlaunchConfig, hStream));
    cr_expect_eq(offsetof(struct cu_launch_config, attribute), offsetof(CUlaunchConfig, attrs));
    cr_expect_eq(offsetof(struct cu_launch_config, attribute_count), offsetof(CUlaunchConfig, numAttrs));
    cr_expect_eq(sizeof(struct cu_condition_node), sizeof(CUgraphNodeParams));
    cr_expect_eq(offsetof(struct cu_condition_node, condition), offsetof(CUgraphNodeParams, conditional.handle));
    cr_expect_eq(offsetof(struct cu_condition_node, kind), offsetof(CUgraphNodeParams, conditional.type));
    cr_expect_eq(offsetof(struct cu_condition_node, body), offsetof(CUgraphNodeParams, conditional.phGraph_out));
    cr_expect_eq(offsetof(struct cu_condition_node, context), offsetof(CUgraphNodeParams, conditional.ctx));
    cr_expect_eq((int)CU_CAPTURE_SET, (int)CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    cr_expect_eq((int)CU_NODE_CONDITIONAL, (int)CU_GRAPH_NODE_TYPE_CONDITIONAL);
    cr_expect_eq((int)CU_CONDITION_WHILE, (int)CU_GRAPH_COND_TYPE_WHILE);
    cr_expect_eq(sizeof(cu_pointer), sizeof(CUdeviceptr));
    cr_expect_eq((int)CU_ATTR_CLUSTER, (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    cr_expect_eq((int)CU_ATTR_PROGRAMMATIC, (int)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    cr_expect_eq((int)CU_FN_MAX_DYNAMIC_SHARED, (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    cr_expect_eq((int)CU_FN_NONPORTABLE_CLUSTER, (int)CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    cr_expect_eq((int)CU_DEV_SHARED_OPTIN, (int)CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    cr_expect_eq((int)CU_DEV_MEMORY_POOLS, (int)CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    cr_expect_eq((int)CU_JITOPT_ERROR_LOG, (int)CU_JIT_ERROR_LOG_BUFFER);
    cr_expect_eq((int)CU_UNSUPPORTED_PTX, (int)CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    cr_expect_eq((int)CU_MISALIGNED_ADDRESS, (int)CUDA_ERROR_MISALIGNED_ADDRESS);
}
#else
Test(cuda_abi, needs_the_toolkit) { cr_skip_test("there is no <cuda.h> to compare with"); }
#endif
