/* SPDX-License-Identifier: Apache-2.0 */
/* subject_run.h - the programs of mutant_subjects.h on the host executor, launch after launch with other data. */
#ifndef PTXGEN_TESTS_SUBJECT_RUN_H
#define PTXGEN_TESTS_SUBJECT_RUN_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mutant_subjects.h"
#include "simt/simt.h"

enum { LAUNCHES = 3 };

enum { ARRAYS = 4 };

struct subject_run {
    struct ptxgen_session s;
    const struct problem *problem;
    const struct plan *plan;
    const int64_t *size;
    void *input[ARRAYS], *output[ARRAYS];
    uint64_t result[LAUNCHES]; /* hash of all outputs, per launch */
};

static inline int64_t bytes_of(const struct subject_run *r, const struct prog_array *a)
{
    return prog_array_elements(a, r->size) * a->stride;
}

/* Sizes of segments grow by such a power of their number: only the last few have more than the mean, or some hundreds
 * of times as much. */
static const int growth[LAUNCHES] = { 5, 200, 150 };
/* Sixths of the elements that lie before the first segment. */
static const int before[LAUNCHES] = { 0, 0, 3 };

/* Bytes are rarely 1, as flags of segments should be; offsets ascend and leave elements after the last; other words
 * are anything.  Every launch has data of its own, so that what an earlier one left behind is seen. */
static inline void fill(struct subject_run *r, int input, int launch)
{
    const struct prog_array *a = problem_array(r->problem, input);
    const int64_t count = bytes_of(r, a) / a->stride;
    void *p = r->input[input];
    for (int64_t i = 0; i < count; i++) {
        const uint32_t x = (uint32_t)(i + 977 * launch) * 2654435761u >> 8;
        if (r->problem->input[input].role == ROLE_OFFSETS) {
            const double first = (double)(r->size[0] * before[launch] / 6), last = (double)(r->size[0] * 5 / 6);
            const double place = pow((double)i / (double)(count - 1), growth[launch]);
            ((uint32_t *)p)[i] = (uint32_t)(first + (last - first) * place);
            continue;
        }
        if (a->stride == 1)
            ((uint8_t *)p)[i] = x % 300 == 0;
        else
            ((uint32_t *)p)[i] = x;
    }
}

static inline uint64_t hash_outputs(const struct subject_run *r)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int o = 0; o < r->problem->noutputs; o++)
        for (int64_t i = 0; i < bytes_of(r, problem_array(r->problem, r->problem->ninputs + o)); i++)
            h = (h ^ ((uint8_t *)r->output[o])[i]) * 0x100000001B3u;
    return h;
}

static inline int run_once(struct subject_run *r, struct host_code *h, int launch, struct simt_control *control,
                           const struct simt_options *o, struct simt_report *report)
{
    for (int i = 0; i < r->problem->ninputs; i++)
        fill(r, i, launch);
    for (int i = 0; i < r->problem->noutputs; i++)
        memset(r->output[i], 0xA5, (size_t)bytes_of(r, problem_array(r->problem, r->problem->ninputs + i)));
    const struct run_args args = { .size = r->size, .input = (const void *const *)r->input, .output = r->output };
    simt_run(h, &args, control, o, report);
    return (int)report->what;
}

enum { PINS_MAX = 8 };

/* "STRATEGY@NAME=VALUE,..." as settings, in a copy of the text. */
static inline int pins_of(struct arena *a, const char *pins, struct tunable *set)
{
    char *save = NULL, *text = arena_printf(a, "%s", pins), *tail = strchr(text, '@');
    int n = 1;
    if (tail)
        *tail++ = '\0';
    set[0] = (struct tunable){ "strategy", text, { 0, 0 } };
    for (char *name = strtok_r(tail, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        char *value = strchr(name, '=');
        cr_assert(value && n < PINS_MAX, "%s", pins);
        *value++ = '\0';
        set[n++] = (struct tunable){ name, value, { 0, 0 } };
    }
    return n;
}

static inline void open_subject(struct subject_run *r, const struct subject *sub, enum subject_cases cases)
{
    static jmp_buf oom;
    memset(r, 0, sizeof *r);
    arena_init(&r->s.arena);
    diags_init(&r->s.diags, &r->s.arena);
    r->s.arena.oom = &oom;
    if (setjmp(oom))
        cr_assert_fail("memory");
    struct device d;
    cr_assert(device_by_name(sub->arch, 0, &d));
    const struct problem *p = problem_build(&r->s, sub->name, sub->spec, strlen(sub->spec), sub->name);
    struct tunable set[PINS_MAX];
    const int nset = pins_of(&r->s.arena, sub->pins, set);
    const struct plan_options o = { .nset = nset, .set = set, .size = sub->size }; /* fewer cases */
    r->plan = p ? plan_create(&r->s, p, &d, &o) : NULL;
    struct str text = { 0 };
    if (!r->plan)
        diags_render_text(&r->s.diags, &text, false);
    cr_assert(r->plan, "%s: %s", sub->name, text.text);
    if (cases == FIRST) {
        struct plan *one = arena_new(&r->s.arena, struct plan, 1);
        *one = *r->plan;
        one->ncases = 1;
        r->plan = one;
    }
    r->problem = p;
    r->size = sub->size;
    for (int i = 0; i < p->ninputs; i++)
        r->input[i] = malloc((size_t)bytes_of(r, problem_array(p, i)));
    for (int i = 0; i < p->noutputs; i++)
        r->output[i] = malloc((size_t)bytes_of(r, problem_array(p, p->ninputs + i)));
}

static inline struct host_code *build(struct subject_run *r, int omit)
{
    int nsymbols;
    const struct host_symbol *symbols = simt_symbols(&nsymbols);
    const struct llvmgen_options o = { .omit_point = omit };
    return llvmgen_host(&r->s, r->plan, &o, symbols, nsymbols);
}

static inline void close_subject(struct subject_run *r)
{
    for (int i = 0; i < ARRAYS; i++) {
        free(r->input[i]);
        free(r->output[i]);
    }
    arena_finish(&r->s.arena);
}

#endif
