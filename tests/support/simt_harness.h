/* SPDX-License-Identifier: Apache-2.0 */
/* simt_harness.h - kernels written in C against simt_rt.h, as programs for the host executor.
 *
 * The kernels are what generated code would be; each takes a number that says which fault it has (0: none).
 */
#ifndef PTXGEN_TESTS_SIMT_HARNESS_H
#define PTXGEN_TESTS_SIMT_HARNESS_H

#include <stdlib.h>
#include <string.h>

#include "simt/simt_impl.h"

#define ALIGN_OF(T) ((uint32_t)__builtin_ctz(sizeof(T)) << SIMT_ALIGN_SHIFT)
#define ORDERED(o)  ((uint32_t)(o) << SIMT_ORDER_SHIFT)
/* An access of type T; how: space and order. */
#define LD(T, p, how, name) (*(T *)simt_load((void *)(p), sizeof(T), (how) | ALIGN_OF(T), (name)))
#define ST(T, p, how, name, x)                                                                                         \
    do {                                                                                                               \
        const T value_ = (x); /* before the address: nothing may come in between */                                    \
        *(T *)simt_store((void *)(p), sizeof(T), (how) | ALIGN_OF(T), (name)) = value_;                                \
    } while (0)
#define ARG(T, i) (*(T *)args[i])

static inline int32_t rmw_add(int32_t *p, int32_t x, uint32_t how, const char *name)
{
    int32_t *at = simt_rmw(p, sizeof *p, how | ALIGN_OF(int32_t), name);
    const int32_t old = *at;
    *at = old + x;
    return old;
}

static inline int32_t rmw_inc_wrap(int32_t *p, int32_t last, const char *name)
{
    int32_t *at = simt_rmw(p, sizeof *p, ALIGN_OF(int32_t), name);
    const int32_t old = *at;
    *at = old >= last ? 0 : old + 1;
    return old;
}

/* ---- a program of one case: x[n] -> out[m], kernels with the same arguments ------------------ */
enum { ARG_X, ARG_OUT, ARG_TEMP, ARG_CONTROL, ARG_N, ARG_FAULT, NARGS };

struct machine {
    const char *name;
    int nkernels;
    host_kernel kernel[2];
    int threads, blocks, shared, cluster;
    int temp, control; /* i32 elements */
    bool dependent;    /* the second kernel */
};

struct built {
    struct program program;
    struct prog_case program_case;
    struct prog_kernel kernel[2];
    struct prog_buffer buffer[2];
    struct prog_step step[2];
    struct prog_arg arg[NARGS];
    struct prog_array input, output;
    struct prog_field field;
    const char *size[3];
    const struct machine *machine;
};

static host_kernel built_entry(void *user, int case_index, int kernel)
{
    (void)case_index;
    return ((struct built *)user)->machine->kernel[kernel];
}

/* Sizes: 0 elements of x, 1 elements of out, 2 the fault. */
static void build(struct built *b, const struct machine *m)
{
    *b = (struct built){ .machine = m, .size = { "n", "m", "fault" }, .field = { "", TY_I32, 0 } };
    b->input = (struct prog_array){ "x", 1, &b->field, 4, 1, { { 0, 0 } }, false };
    b->output = (struct prog_array){ "out", 1, &b->field, 4, 1, { { 1, 0 } }, false };
    b->arg[ARG_X] = (struct prog_arg){ .kind = ARG_INPUT, .name = "x" };
    b->arg[ARG_OUT] = (struct prog_arg){ .kind = ARG_OUTPUT, .name = "out" };
    b->arg[ARG_TEMP] = (struct prog_arg){ .kind = ARG_BUFFER, .index = 0, .name = "temp" };
    b->arg[ARG_CONTROL] = (struct prog_arg){ .kind = ARG_BUFFER, .index = 1, .name = "control" };
    b->arg[ARG_N] = (struct prog_arg){ .kind = ARG_VALUE, .type = TY_I32, .value = f_size(0), .name = "n" };
    b->arg[ARG_FAULT] = (struct prog_arg){ .kind = ARG_VALUE, .type = TY_I32, .value = f_size(2), .name = "fault" };
    b->buffer[0] = (struct prog_buffer){ "temp", REGION_SCRATCH, f_const(4 * m->temp) };
    b->buffer[1] = (struct prog_buffer){ "control", REGION_CONTROL, f_const(4 * m->control) };
    for (int k = 0; k < m->nkernels; k++) {
        b->kernel[k] = (struct prog_kernel){ .name = m->name,
                                             .threads = m->threads,
                                             .shared_static = m->shared,
                                             .cluster = m->cluster,
                                             .nargs = NARGS,
                                             .arg = b->arg };
        b->step[b->program_case.nsteps++] =
            (struct prog_step){ .kernel = k, .grid = f_const(m->blocks), .dependent = m->dependent && k > 0 };
    }
    b->program_case.name = "all";
    b->program_case.nkernels = m->nkernels;
    b->program_case.nbuffers = 2;
    b->program_case.kernel = b->kernel;
    b->program_case.buffer = b->buffer;
    b->program_case.step = b->step;
    b->program = (struct program){ .name = m->name,
                                   .nsizes = 3,
                                   .size = b->size,
                                   .ninputs = 1,
                                   .noutputs = 1,
                                   .ncases = 1,
                                   .input = &b->input,
                                   .output = &b->output,
                                   .cases = &b->program_case };
}

static int run_machine(const struct machine *m, int fault, const int32_t *x, int n, int32_t *out, int nout,
                       struct simt_control *control, const struct simt_options *o, struct simt_report *r)
{
    struct built b;
    build(&b, m);
    const int64_t size[] = { n, nout, fault };
    const void *const input[] = { x };
    void *const output[] = { out };
    const struct run_args args = { size, input, output, NULL };
    const struct simt_code code = { &b.program, built_entry, &b };
    return o->guard ? simt_run_guarded(&code, &args, control, o, r) : simt_run_code(&code, &args, control, o, r);
}

static struct simt_options modes(const char *text, uint64_t seed)
{
    struct simt_options o;
    simt_options_default(&o);
    o.seed = seed;
    const char *wrong = simt_options_parse(text, &o);
    if (wrong)
        o.sms = 0; /* no test passes with this */
    return o;
}

#endif
