/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - results against the sequential reference, within the bound that comes with it.
 *
 * An infinite bound means that nothing is known about the element (a comparison of nearly equal numbers may go either
 * way, or a narrow type may overflow in another order): it is counted, not compared.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages.h"
#include "parallel.h"
#include "progress.h"

double expect_seconds(struct job *j, ptxgen_status (*call)(struct job *j, const int64_t *size, void *user), void *user)
{
    enum { PART = 64, WORTH = 1 << 20 };
    int64_t size[256], elements = 0;
    int largest = 0;
    for (int i = 0; i < j->ninputs; i++) {
        elements = j->input[i].elements > elements ? j->input[i].elements : elements;
    }
    if (!progress_shown() || elements < WORTH || j->nsizes == 0 || j->nsizes > 256) {
        return 0;
    }
    memcpy(size, j->size, sizeof *size * (size_t)j->nsizes);
    for (int i = 1; i < j->nsizes; i++) {
        largest = size[i] > size[largest] ? i : largest;
    }
    size[largest] /= PART;
    double begin = progress_now();
    ptxgen_status status = call(j, size, user);
    ptxgen_diagnostics_clear(j->session);
    return status == PTXGEN_OK ? (progress_now() - begin) * PART : 0;
}

struct reference {
    void **output;
    double **bound;
};

static ptxgen_status evaluate(struct job *j, const int64_t *size, void *user)
{
    const struct reference *r = user;
    const ptxgen_arguments args = { size, j->args.input, r->output, j->args.param };
    return ptxgen_error_bound(j->session, j->problem, &args, r->bound);
}

static ptxgen_status evaluate_all(struct job *j, struct reference *r)
{
    double seconds = expect_seconds(j, evaluate, r);
    for (int i = 0; i < j->noutputs && seconds > 0; i++) {
        memset(r->output[i], 0, j->output[i].bytes);
        memset(r->bound[i], 0, sizeof(double) * (size_t)j->output[i].elements * (size_t)j->output[i].info.field_count);
    }
    progress_begin("evaluating the sequential reference", seconds);
    ptxgen_status done = evaluate(j, j->size, r);
    progress_end();
    return done;
}

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
        ptxgen_status done = evaluate_all(j, &(struct reference){ output, bound });
        status = done == PTXGEN_OK ? EXIT_OK : fail_call(j->session, done, "evaluating the reference");
    }
    free(output);
    free(bound);
    return status;
}

/* Is `got` within `bound` of `expected`? */
static bool value_agrees(ptxgen_type t, ptxgen_value got, ptxgen_value expected, double bound)
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

/* The first elements of plain f32 that are within finite bounds: how many; most of the time of a large comparison goes
 * here. */
static int64_t within_f32(const struct array *a, int64_t from, int64_t to, double *worst)
{
    const float *got = (const float *)(const void *)a->data, *expected = (const float *)(const void *)a->expected;
    double largest = *worst;
    int64_t i = from;
    for (; i < to; i++) {
        double difference = fabs((double)got[i] - (double)expected[i]), bound = a->bound[i];
        if (!(difference <= bound) || isinf(bound)) {
            break;
        }
        largest = difference > largest * bound ? difference / bound : largest;
    }
    *worst = largest;
    return i - from;
}

static void verify_range(const struct array *a, int64_t from, int64_t to, struct verdict *out)
{
    int fields = a->info.field_count;
    bool plain = fields == 1 && a->info.field_type[0] == PTXGEN_F32 && a->info.element_size == sizeof(float);
    *out = (struct verdict){ .first = -1 };
    for (int64_t i = from; i < to; i++) {
        int64_t fine = plain ? within_f32(a, i, to, &out->worst) : 0;
        out->compared += fine;
        i += fine;
        if (i == to) {
            break;
        }
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

/* Large arrays are compared in parts, on all cores. */
enum { PART = 1 << 16, PARTS_MAX = 1024 };
struct parts {
    const struct array *array;
    int64_t part;
    struct verdict verdict[PARTS_MAX];
};

static void verify_part(int i, void *user)
{
    struct parts *p = user;
    int64_t from = i * p->part, to = from + p->part < p->array->elements ? from + p->part : p->array->elements;
    verify_range(p->array, from, to, &p->verdict[i]);
}

void verdict_add(struct verdict *out, const struct verdict *v)
{
    struct verdict sum = out->different ? *out : *v;
    sum.compared = out->compared + v->compared;
    sum.different = out->different + v->different;
    sum.unknown = out->unknown + v->unknown;
    sum.worst = fmax(out->worst, v->worst);
    *out = sum;
}

void verify_output(const struct array *a, struct verdict *out)
{
    struct parts *p = a->elements > 2 * PART ? malloc(sizeof *p) : NULL;
    if (!p) {
        verify_range(a, 0, a->elements, out);
        return;
    }
    p->array = a;
    p->part = a->elements / PARTS_MAX + 1 > PART ? a->elements / PARTS_MAX + 1 : PART;
    int n = (int)((a->elements + p->part - 1) / p->part);
    progress_begin("comparing with the reference", 0);
    parallel_for(n, 0, verify_part, p);
    progress_end();
    *out = p->verdict[0];
    for (int i = 1; i < n; i++) {
        verdict_add(out, &p->verdict[i]);
    }
    free(p);
}

int verify_job(struct job *j, struct verdict *verdict)
{
    struct verdict one;
    if (ptxgen_stage_count(j->problem)) {
        return stages_verdict(j, verdict);
    }
    int status = verify_evaluate(j);
    for (int i = 0; i < j->noutputs && status != EXIT_DEVICE && status != EXIT_WRONG; i++) {
        struct verdict *v = verdict ? &verdict[i] : &one;
        verify_output(&j->output[i], v);
        if (v->different) {
            report_difference(j, &j->output[i], v);
            status = EXIT_DIFFERENT;
        }
        if (verdict) {
            verdict_add(&verdict[j->noutputs], v);
        }
    }
    return status;
}
