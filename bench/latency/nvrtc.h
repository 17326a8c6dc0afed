/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.h - NVIDIA's run-time compiler, opened at run time; the peer that the latency benchmark compares with. */
#ifndef PTXGEN_BENCH_NVRTC_H
#define PTXGEN_BENCH_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

/* False when there is no NVRTC on this machine. */
bool nvrtc_open(void);
/* "13.0" */
const char *nvrtc_version_text(void);
/* CUDA C++ to PTX or machine code for `arch` ("sm_90"); malloc; NULL after printing the compiler's log. */
char *nvrtc_compile(const char *source, const char *arch, bool toolkit_headers, bool cubin, size_t *size);

#endif
