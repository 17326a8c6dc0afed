/* SPDX-License-Identifier: Apache-2.0 */
/* coder.h - from a plan to the code of its cases: out of the disk cache, or generated and then kept there. */
#ifndef PTXGEN_CODER_H
#define PTXGEN_CODER_H

#include "api_impl.h"
#include "cache/cache.h"
#include "llvmgen/llvmgen.h"

struct coder {
    const struct plan *plan;
    struct llvmgen_options options;
    struct cache cache;         /* not enabled: every case is generated */
    struct cache_keying common; /* what the code of all cases depends on */
    int sm;                     /* 90: looks for machine code of this architecture; 0: for none */
};

/* problem: for the cache, which `place` names; NULL: no cache.  False after a diagnostic: wrong options. */
bool coder_begin(struct coder *k, ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                 const ptxgen_compile_options *o, const char *place);
/* Code for case `only` of the plan's program, or with a negative number for every case that has none.  False after a
 * diagnostic in s.  log: who is told; may be NULL.  Different cases may be filled by different threads at once. */
bool coder_fill(const struct coder *k, ptxgen_session *log, ptxgen_session *s, struct program *program, int only);
/* The machine code of all cases into the cache; PTXGEN_IO: not all of it is there. */
ptxgen_status coder_keep_code(const struct program *p, const struct cache *cache);

#endif
