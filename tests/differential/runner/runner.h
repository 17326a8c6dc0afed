/* SPDX-License-Identifier: Apache-2.0 */
/* runner.h - what the files of the differential tester's runner share.
 *
 *     runner.c    options, child processes that take cases, what died or hung, the summary
 *     casefile.c  cases as casefile.py writes them
 *     execute.c   one case: plan, compile, run on the host executor or a GPU
 *     bed.c       the arrays of one run in memory, with guards; comparison with what is expected
 *
 * Only the public API is used.
 */
#ifndef PTXGEN_DIFFERENTIAL_RUNNER_H
#define PTXGEN_DIFFERENTIAL_RUNNER_H

#include <stdbool.h>
#include <stddef.h>

#include "ptxgen/launch.h"

enum { NAMES_MAX = 64, RUNS_MAX = 16, WHY = 2000 };

struct text {
    const char *at; /* not terminated */
    size_t length;
};

struct setting {
    char name[64], value[256];
};

/* How the component of an output must agree. */
enum agreement {
    AGREE_BITS,  /* all NaN are one */
    AGREE_KEEP,  /* memory as it was */
    AGREE_ANY,   /* nothing is known */
    AGREE_RANGE, /* between two doubles */
    AGREE_ZERO   /* as bits, but the zeros are one */
};

struct array {
    char name[64];
    unsigned shift; /* bytes past an aligned address */
    struct text data, mask, range;
};

/* One launch: sizes, data, what must come. */
struct run {
    char modes[128], again[128];
    unsigned refused, same_bits;
    int nsizes, nparams, ninputs, noutputs;
    struct setting size[NAMES_MAX];
    struct setting param[NAMES_MAX];
    struct array input[NAMES_MAX], output[NAMES_MAX];
};

struct cases {
    const char *base;
    size_t length;
    int count;
    const char **at; /* each case */
};

struct one_case {
    char id[128];
    struct text spec;
    int nsettings, nruns;
    struct setting setting[NAMES_MAX];
    struct run run[RUNS_MAX];
};

/* ---- casefile.c ------------------------------------------------------------------------------ */
bool cases_open(const char *path, struct cases *out);
bool case_read(const struct cases *all, int i, struct one_case *out);
const char *case_setting(const struct one_case *c, const char *name);

/* ---- bed.c ----------------------------------------------------------------------------------- */
struct device {
    ptxgen_session *s;
    ptxgen_gpu *gpu; /* NULL: the host executor */
};
struct bed;
/* Lay out all arrays, filled as they must be before a launch. NULL: `why` says what does not fit the problem. */
struct bed *bed_create(struct device *d, const ptxgen_problem *p, const struct run *run, const int64_t *size,
                       unsigned more_shift, char *why);
void bed_destroy(struct bed *b);
const void *const *bed_inputs(const struct bed *b);
void *const *bed_outputs(const struct bed *b);
/* Before another launch: everything as it was. */
bool bed_reset(struct bed *b);
/* Read back, and compare with what is expected; guards and inputs too. */
bool bed_check(struct bed *b, char *why);
/* The bits of the outputs' components of two beds, which were both checked. */
bool bed_same(const struct bed *a, const struct bed *b, char *why);

/* ---- execute.c ------------------------------------------------------------------------------- */
enum verdict { PASSED, FAILED, OUT_OF_RANGE };
enum verdict execute(struct device *d, const struct one_case *c, char *why, bool *lost);

#endif
