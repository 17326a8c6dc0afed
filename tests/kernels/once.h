/* SPDX-License-Identifier: Apache-2.0 */
/* once.h - the shortest test of kernels: a spec, pinned tunables, sizes, and one launch. */
#ifndef PTXGEN_ONCE_H
#define PTXGEN_ONCE_H

#include <criterion/criterion.h>

#include "support/harness.h"

/* Kernels for sm_90, on arrays that begin `skew` elements after a boundary, in these modes, against the oracle.  `taken` is the
 * name of the case that takes the launch, or NULL. */
static inline void run_once(const char *spec, const char *const *set, const int64_t *size, int skew, const char *modes,
                            const char *taken)
{
    struct harness h;
    cr_assert(harness_open(&h, "once", spec, "sm_90", set), "%s\n%s", h.text, spec);
    harness_data_at(&h, size, 3, skew, 0);
    const bool right = harness_check(&h, modes);
    cr_expect(right, "sizes %lld, %lld, %lld, --simt=%s: %s\n%s", (long long)h.size[0], (long long)h.size[1],
              (long long)h.size[2], modes, h.text, spec);
    if (right && taken)
        cr_expect_str_eq(ptxgen_host_case(h.host), taken, "sizes %lld, %lld, %lld\n%s", (long long)h.size[0],
                         (long long)h.size[1], (long long)h.size[2], spec);
    harness_close(&h);
}

#endif
