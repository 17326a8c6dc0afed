/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - random inputs, and the comparison of outputs with the reference. */
#include "gpu_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static bool is_float(ptxgen_type t) { return t >= PTXGEN_F16; }

/* ---- scalars --------------------------------------------------------------------------------- */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double magnitude = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                       : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                      : ldexp(mantissa, -24);

    return h >> 15 ? -magnitude : magnitude;
}

static double float_value(ptxgen_type t, const void *p)
{
    uint16_t h = 0;
    uint32_t bits;
    float f;
    double d;

    switch (t) {
    case PTXGEN_F16: memcpy(&h, p, 2); return half_value(h);
    case PTXGEN_BF16:
        memcpy(&h, p, 2);
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, 4);
        return f;
    case PTXGEN_F32: memcpy(&f, p, 4); return f;
    default: memcpy(&d, p, 8); return d;
    }
}

static void store_random(ptxgen_type t, void *p, uint64_t r)
{
    int64_t i = (int64_t)(r >> 32) % 201 - 100;
    float f = (float)(int32_t)(r >> 40) * 0x1p-23f - 1;
    double d = (double)(int64_t)(r >> 11) * 0x1p-52 - 1;
    uint16_t h = 0;

    switch (t) {
    case PTXGEN_BOOL: *(uint8_t *)p = r & 1; return;
    case PTXGEN_U8:
    case PTXGEN_U16:
    case PTXGEN_U32:
    case PTXGEN_U64: i += 100; break;
    case PTXGEN_F16: h = (uint16_t)((r & 0x8000) | 14 << 10 | (r >> 20 & 1023)); break;
    case PTXGEN_BF16: h = (uint16_t)((r & 0x8000) | 126 << 7 | (r >> 20 & 127)); break;
    case PTXGEN_F32: memcpy(p, &f, 4); return;
    case PTXGEN_F64: memcpy(p, &d, 8); return;
    default: break;
    }
    if (is_float(t))
        memcpy(p, &h, 2);
    else
        memcpy(p, &i, ptxgen_type_size(t)); /* little-endian: the low bytes */
}

static void store_integer(ptxgen_type t, void *p, int64_t i) { memcpy(p, &i, ptxgen_type_size(t)); }

/* ---- inputs ---------------------------------------------------------------------------------- */
size_t array_bytes(const ptxgen_array_info *a, const int64_t *size)
{
    int64_t elements = ptxgen_array_elements(a, size);

    return elements < 0 ? 0 : (size_t)elements * a->element_size;
}

/* Element i of an input with a role: segment offsets that ascend to `last`, sparse flags, small gather offsets. */
static void store_role(const ptxgen_array_info *a, void *p, int64_t i, int64_t elements, int64_t last, uint64_t r)
{
    switch (a->role) {
    case 1: store_integer(a->field_type[0], p, elements > 1 ? last * i / (elements - 1) : 0); break;
    case 2: store_integer(a->field_type[0], p, r % 23 == 0); break;
    default: store_integer(a->field_type[0], p, (int64_t)(r % 5) - 2); break;
    }
}

static void fill_input(const ptxgen_array_info *a, void *to, const int64_t *size, int64_t last, uint64_t seed)
{
    int64_t elements = ptxgen_array_elements(a, size);

    for (int64_t i = 0; i < elements; i++) {
        char *element = (char *)to + (size_t)i * a->element_size;

        for (int f = 0; f < a->field_count && a->role == 0; f++)
            store_random(a->field_type[f], element + a->field_offset[f], mix(seed + (uint64_t)(i * 16 + f)));
        if (a->role)
            store_role(a, element, i, elements, last, mix(seed + (uint64_t)i));
    }
}

static void choose_params(struct sample *x)
{
    for (int i = 0; i < x->nparams; i++) {
        ptxgen_param_info info;

        x->param[i].i = 0;
        if (ptxgen_problem_param(x->problem, i, &info) != PTXGEN_OK)
            continue;
        if (is_float(info.type))
            x->param[i].f = 0.5;
        else
            x->param[i].i = info.type == PTXGEN_BOOL ? 1 : 3;
    }
}

static bool describe(struct sample *x)
{
    x->ninputs = ptxgen_problem_input_count(x->problem);
    x->noutputs = ptxgen_problem_output_count(x->problem);
    x->nparams = ptxgen_problem_param_count(x->problem);
    x->nsizes = ptxgen_problem_size_count(x->problem);
    if (x->ninputs > ARRAYS_MAX || x->noutputs > ARRAYS_MAX || x->nparams > PARAMS_MAX || x->nsizes > SIZES_MAX)
        return false;
    for (int i = 0; i < x->ninputs; i++)
        if (ptxgen_problem_input(x->problem, i, &x->input[i]) != PTXGEN_OK)
            return false;
    for (int o = 0; o < x->noutputs; o++)
        if (ptxgen_problem_output(x->problem, o, &x->output[o]) != PTXGEN_OK)
            return false;
    return true;
}

static bool allocate(struct sample *x)
{
    for (int i = 0; i < x->ninputs; i++)
        if ((x->in[i] = malloc(array_bytes(&x->input[i], x->size) + 1)) == NULL)
            return false;
    for (int o = 0; o < x->noutputs; o++) {
        size_t elements = array_bytes(&x->output[o], x->size) / x->output[o].element_size;

        x->expected[o] = malloc(array_bytes(&x->output[o], x->size) + 1);
        x->bound[o] = calloc(elements * (size_t)x->output[o].field_count + 1, sizeof(double));
        if (x->expected[o] == NULL || x->bound[o] == NULL)
            return false;
        memset(x->expected[o], POISON, array_bytes(&x->output[o], x->size));
    }
    return true;
}

/* How many values there are, and how many of them have outgrown their type. */
static void count_values(struct sample *x)
{
    for (int o = 0; o < x->noutputs; o++) {
        const int64_t values = ptxgen_array_elements(&x->output[o], x->size) * x->output[o].field_count;

        x->values += values;
        for (int64_t i = 0; i < values; i++)
            x->undecided += isinf(x->bound[o][i]) != 0;
    }
    note_values(x->values, x->undecided);
}

bool sample_create(struct suite *t, const ptxgen_problem *problem, const int64_t *size, struct sample *x)
{
    ptxgen_arguments args = { x->size, (const void *const *)x->in, x->expected, x->param };
    int64_t last = 0;

    memset(x, 0, sizeof *x);
    x->problem = problem;
    if (!describe(x))
        return false;
    memcpy(x->size, size, (size_t)x->nsizes * sizeof *size);
    if (!allocate(x))
        return false;
    choose_params(x);
    for (int i = 0; i < x->ninputs; i++)
        if (x->input[i].role == PTXGEN_ROLE_ELEMENTS && ptxgen_array_elements(&x->input[i], x->size) > last)
            last = ptxgen_array_elements(&x->input[i], x->size);
    for (int i = 0; i < x->ninputs; i++)
        fill_input(&x->input[i], x->in[i], x->size, last, 1000003u * (unsigned)(i + 1));
    if (ptxgen_error_bound(t->s, problem, &args, x->bound) == PTXGEN_OK) {
        count_values(x);
        return true;
    }
    /* Sizes that have no result, or a fault of the reference? */
    x->refused = ptxgen_evaluate(t->s, problem, &args) != PTXGEN_OK;
    if (x->refused)
        ptxgen_diagnostics_clear(t->s);
    return x->refused;
}

void sample_finish(struct sample *x)
{
    for (int i = 0; i < ARRAYS_MAX; i++) {
        free(x->in[i]);
        free(x->expected[i]);
        free(x->bound[i]);
        free(x->right[i]);
    }
}

/* ---- comparison ------------------------------------------------------------------------------ */
static bool same_value(ptxgen_type t, const void *got, const void *expected, double bound)
{
    double g, e;

    if (isinf(bound)) /* nothing is known of this one: it has outgrown its type; counted by count_values() */
        return true;
    if (!is_float(t))
        return memcmp(got, expected, ptxgen_type_size(t)) == 0;
    g = float_value(t, got);
    e = float_value(t, expected);
    return (isnan(g) && isnan(e)) || g == e || fabs(g - e) <= bound;
}

static void print_value(ptxgen_type t, const void *p, char *text, size_t length)
{
    int64_t i = 0;

    if (is_float(t)) {
        snprintf(text, length, "%.9g", float_value(t, p));
        return;
    }
    memcpy(&i, p, ptxgen_type_size(t));
    snprintf(text, length, "0x%llx", (unsigned long long)i);
}

/* Of plain f32, most of what there is to compare: how many elements from the first on are within finite bounds. */
static int64_t within_f32(const struct sample *x, int output, const float *got)
{
    const int64_t elements = ptxgen_array_elements(&x->output[output], x->size);
    const float *expected = x->expected[output];
    const double *bound = x->bound[output];
    int64_t i = 0;

    while (i < elements && fabs((double)got[i] - (double)expected[i]) <= bound[i])
        i++;
    return i;
}

static bool compare(const struct sample *x, int output, const void *got, char *why, size_t length)
{
    const ptxgen_array_info *a = &x->output[output];
    const bool plain = a->field_count == 1 && a->field_type[0] == PTXGEN_F32 && a->element_size == sizeof(float);
    int64_t elements = ptxgen_array_elements(a, x->size);

    for (int64_t i = plain ? within_f32(x, output, got) : 0; i < elements; i++)
        for (int f = 0; f < a->field_count; f++) {
            size_t at = (size_t)i * a->element_size + a->field_offset[f];
            double bound = x->bound[output][i * a->field_count + f];
            char g[40], e[40];

            if (same_value(a->field_type[f], (const char *)got + at, (const char *)x->expected[output] + at, bound))
                continue;
            print_value(a->field_type[f], (const char *)got + at, g, sizeof g);
            print_value(a->field_type[f], (const char *)x->expected[output] + at, e, sizeof e);
            snprintf(why, length, "%s[%lld]%s%s is %s, expected %s within %.3g", a->name, (long long)i,
                     *a->field_name[f] ? "." : "", a->field_name[f], g, e, bound);
            return false;
        }
    return true;
}

bool sample_check(struct sample *x, int output, const void *got, char *why, size_t length)
{
    const size_t bytes = array_bytes(&x->output[output], x->size);

    if (x->right[output] && memcmp(x->right[output], got, bytes) == 0)
        return true;
    if (!compare(x, output, got, why, length))
        return false;
    if (x->right[output] == NULL)
        x->right[output] = malloc(bytes + 1);
    if (x->right[output])
        memcpy(x->right[output], got, bytes);
    return true;
}

enum outcome sample_outcome(const struct sample *x)
{
    return x->undecided == 0 || x->undecided < x->values ? OUTCOME_PASSED : OUTCOME_UNDECIDED;
}

bool only_integers(const struct sample *x)
{
    for (int o = 0; o < x->noutputs; o++)
        for (int f = 0; f < x->output[o].field_count; f++)
            if (is_float(x->output[o].field_type[f]))
                return false;
    return true;
}
