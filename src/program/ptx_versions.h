/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_versions.h - which CUDA release first accepts a PTX version. */
#ifndef PTXGEN_PTX_VERSIONS_H
#define PTXGEN_PTX_VERSIONS_H

/* The oldest CUDA version whose driver loads PTX `ptx` (80 for 8.0), as cuDriverGetVersion() counts: 12000 for 12.0;
 * 0 when it is newer than all that are known. */
int ptx_oldest_cuda(int ptx);

#endif
