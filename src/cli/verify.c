/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - results against the sequential reference, within the bound that comes with it.
 *
 * An infinite bound means that nothing is known about the element (a comparison of nearly equal numbers may go either
 * way, or a narrow type may overflow in another order): it is counted, not compared.
 */
#include <math.h>
#include <stdlib.h>

#include "cli.h"

int verify_evaluate(struct job *j)
{
    void **output = calloc((size_t)j->noutputs + 1, sizeof *output);
    double **bound = calloc((size_t)j->noutputs + 1, sizeof *bound);
    bool fine = output && bound;
    for (int i = 0; i < j->noutputs && fine; i++) {
        struct array *a = &j->output[i];
        a->expected = calloc(1, a->bytes + 1);
        a->bound = calloc((size_t)a->elements * (size_t)a->info.field_count + 1, sizeof *a->bound);
        output[i] = a->expected;
        bound[i] = a->bound;
        fine = a->expected && a->bound;
    }
    int status = fine ? EXIT_OK : fail(EXIT_DEVICE, "not enough memory for the reference");
    if (fine) {
        ptxgen_arguments args = j->args;
        args.output = output;
        ptxgen_status done = ptxgen_error_bound(j->session, j->problem, &args, bound);
        status = done == PTXGEN_OK ? EXIT_OK : fail_call(j->session, done, "evaluating the reference");
    }
    free(output);
    free(bound);
    return status;
}

bool value_agrees(ptxgen_type t, ptxgen_value got, ptxgen_value expected, double bound)
{
    if (!type_is_float(t)) {
        double difference =
            type_is_signed(t) ? fabs((double)got.i - (double)expected.i) : fabs((double)got.u - (double)expected.u);
        return got.u == expected.u || (bound > 0 && difference <= bound);
    }
    if (isnan(expected.f) || isnan(got.f)) {
        return isnan(expected.f) && isnan(got.f);
    }
    return got.f == expected.f || fabs(got.f - expected.f) <= bound;
}

/* How much of the bound the difference takes: 0 for equal values. */
static double share(ptxgen_type t, ptxgen_value got, ptxgen_value expected, double bound)
{
    double difference = type_is_float(t) ? got.f - expected.f : (double)got.i - (double)expected.i;
    return bound > 0 && isfinite(difference) ? fabs(difference) / bound : 0;
}

void verify_output(const struct array *a, struct verdict *out)
{
    int fields = a->info.field_count;
    *out = (struct verdict){ .first = -1 };
    for (int64_t i = 0; i < a->elements; i++) {
        for (int f = 0; f < fields; f++) {
            size_t at = (size_t)i * a->info.element_size + a->info.field_offset[f];
            ptxgen_type t = a->info.field_type[f];
            ptxgen_value got = ptxgen_value_load(t, a->data + at), expected = ptxgen_value_load(t, a->expected + at);
            double bound = a->bound[i * fields + f];
            if (isinf(bound)) {
                out->unknown++;
                continue;
            }
            out->compared++;
            out->worst = fmax(out->worst, share(t, got, expected, bound));
            if (value_agrees(t, got, expected, bound)) {
                continue;
            }
            if (out->different++ == 0) {
                out->first = i;
                out->field = f;
                out->got = got;
                out->expected = expected;
                out->bound = bound;
            }
        }
    }
}

int verify_job(struct job *j, struct verdict *verdict)
{
    struct verdict one;
    int status = verify_evaluate(j);
    for (int i = 0; i < j->noutputs && status != EXIT_DEVICE && status != EXIT_WRONG; i++) {
        struct verdict *v = verdict ? &verdict[i] : &one;
        verify_output(&j->output[i], v);
        if (v->different) {
            report_difference(j, &j->output[i], v);
            status = EXIT_DIFFERENT;
        }
    }
    return status;
}
