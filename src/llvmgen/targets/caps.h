/* SPDX-License-Identifier: Apache-2.0 */
/* caps.h - which optional features an architecture and a PTX version have.
 *
 * LLVM treats a missing feature as a fatal error, so everything optional is looked up here before it is emitted.
 */
#ifndef PTXGEN_CAPS_H
#define PTXGEN_CAPS_H

#include <stdbool.h>

/*    id                 sm   ptx  what */
#define CAPS(X)                                                                                                        \
    X(BACKOFF, 70, 63, "nanosleep")                                                                                    \
    X(CACHE_HINT, 70, 74, "L1::no_allocate on loads")                                                                  \
    X(NARROW_MIN, 80, 70, "min and max of f16 and bf16")                                                               \
    X(NAN_MAX, 80, 70, "max.NaN")                                                                                      \
    X(FMA_BF16, 80, 70, "fma.rn.bf16")                                                                                 \
    X(REDUX, 80, 70, "redux.sync of 32-bit integers")                                                                  \
    X(COPY_ASYNC, 80, 70, "cp.async of 16 bytes")                                                                      \
    X(CLUSTER, 90, 78, "thread block clusters")                                                                        \
    X(DEPENDENT_LAUNCH, 90, 78, "griddepcontrol")                                                                      \
    X(BULK_COPY, 90, 80, "cp.async.bulk, mbarriers with transaction counts")                                           \
    X(LOAD_256, 100, 88, "32-byte loads and stores")

enum cap {
#define X(id, sm, ptx, what) CAP_##id,
    CAPS(X)
#undef X
        CAP_COUNT
};

bool cap_has(enum cap c, int sm, int ptx);
const char *cap_text(enum cap c);

#endif
