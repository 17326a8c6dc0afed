/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - a call, and every element of its results beside the sequential reference within the bound that comes with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "native.h"

/* Arrays of a call in host memory, and what the reference says. */
struct check {
    struct call *call;
    ptxgen_session *session;
    ptxgen_gpu *gpu; /* NULL: all is on the host */
    const void *pointer[NAMES_MAX];
    void *copy[NAMES_MAX], *expected[NAMES_MAX];
    double *bound[NAMES_MAX];
    int64_t compared, unknown, different;
    char first[400];
};

static int64_t elements_of(const struct check *k, int i)
{
    return ptxgen_array_elements(&k->call->f->slot[i].info, k->call->size);
}

/* What the array holds now. */
static bool read_array(struct check *k, int i, void **to)
{
    const size_t bytes = (size_t)elements_of(k, i) * k->call->f->slot[i].info.element_size;

    *to = PyMem_Calloc(bytes + 1, 1);
    if (*to == NULL)
        return PyErr_NoMemory() != NULL;
    if (k->gpu == NULL)
        memcpy(*to, k->call->pointer[i], bytes);
    else if (bytes && ptxgen_gpu_read(k->session, k->gpu, *to, k->call->pointer[i], bytes) != PTXGEN_OK)
        return raise_status(PTXGEN_NO_DEVICE, k->session) != NULL;
    return true;
}

static bool copy_array(struct check *k, int i)
{
    k->pointer[i] = k->call->pointer[i];
    if (k->gpu == NULL && i >= k->call->f->inputs)
        return true;
    if (!read_array(k, i, &k->copy[i])) /* inputs, too: outputs may be made in place */
        return false;
    k->pointer[i] = k->copy[i];
    return true;
}

static bool copy_arrays(struct check *k, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!copy_array(k, i))
            return false;
    return true;
}

static bool evaluate(struct check *k)
{
    const Function *f = k->call->f;
    ptxgen_status status;

    for (int o = 0; o < f->outputs; o++) {
        const size_t n = (size_t)elements_of(k, f->inputs + o);
        k->bound[o] = PyMem_Calloc(n + 1, sizeof(double) * (size_t)f->slot[f->inputs + o].info.field_count);
        if (!k->bound[o])
            return PyErr_NoMemory() != NULL;
    }
    const ptxgen_arguments args = { k->call->size, k->pointer, k->expected, k->call->param };
    Py_BEGIN_ALLOW_THREADS status = ptxgen_error_bound(k->session, f->problem, &args, k->bound);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK) raise_status(status, k->session);
    return status == PTXGEN_OK;
}

static bool agrees(ptxgen_type t, ptxgen_value got, ptxgen_value expected, double bound)
{
    if (t < PTXGEN_F16) {
        const double difference = t >= PTXGEN_U8 || t == PTXGEN_BOOL ? fabs((double)got.u - (double)expected.u)
                                                                     : fabs((double)got.i - (double)expected.i);
        return got.u == expected.u || (bound > 0 && difference <= bound);
    }
    if (isnan(expected.f) || isnan(got.f))
        return isnan(expected.f) && isnan(got.f);
    return got.f == expected.f || fabs(got.f - expected.f) <= bound;
}

static void note(struct check *k, const ptxgen_array_info *a, int64_t i, int f, ptxgen_value got, ptxgen_value expected)
{
    const ptxgen_type t = a->field_type[f];
    const char *dot = a->field_count > 1 ? "." : "";

    if (k->different++ > 0)
        return;
    if (t >= PTXGEN_F16)
        snprintf(k->first, sizeof k->first, "%s[%lld]%s%s is %.9g; the reference says %.9g", a->name, (long long)i, dot,
                 a->field_name[f], got.f, expected.f);
    else
        snprintf(k->first, sizeof k->first, "%s[%lld]%s%s is %lld; the reference says %lld", a->name, (long long)i, dot,
                 a->field_name[f], (long long)got.i, (long long)expected.i);
}

static void compare(struct check *k, int o)
{
    const ptxgen_array_info *a = &k->call->f->slot[k->call->f->inputs + o].info;
    const int64_t n = elements_of(k, k->call->f->inputs + o);
    const char *got = k->pointer[k->call->f->inputs + o], *expected = k->expected[o];

    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < a->field_count; f++) {
            const size_t at = (size_t)i * a->element_size + a->field_offset[f];
            const ptxgen_value x = ptxgen_value_load(a->field_type[f], got + at);
            const ptxgen_value y = ptxgen_value_load(a->field_type[f], expected + at);
            const double bound = k->bound[o][i * a->field_count + f];
            if (isinf(bound)) {
                k->unknown++;
                continue;
            }
            k->compared++;
            if (!agrees(a->field_type[f], x, y, bound))
                note(k, a, i, f, x, y);
        }
}

/* Copies of the inputs first, for calls in place; and of the outputs, which may stay as they are in part. */
static bool run_beside(struct check *k)
{
    const Function *f = k->call->f;
    const int arrays = f->inputs + f->outputs;

    if (!copy_arrays(k, 0, f->inputs))
        return false;
    for (int o = 0; o < f->outputs; o++)
        if (!read_array(k, f->inputs + o, &k->expected[o]))
            return false;
    if (!call_run(k->call, CALL))
        return false;
    if (k->gpu && ptxgen_stream_wait(k->session, k->gpu, k->call->stream) != PTXGEN_OK)
        return raise_status(PTXGEN_NO_DEVICE, k->session) != NULL;
    if (!copy_arrays(k, f->inputs, arrays) || !evaluate(k))
        return false;
    for (int o = 0; o < f->outputs; o++)
        compare(k, o);
    return true;
}

static bool begin(struct check *k, struct call *c)
{
    memset(k, 0, sizeof *k);
    k->call = c;
    if (ptxgen_session_create(&k->session) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    k->gpu = on_gpu(c->device) ? gpu_at(c->device.id) : NULL;
    if (k->gpu && ptxgen_stream_wait(k->session, k->gpu, c->stream) != PTXGEN_OK)
        return raise_status(PTXGEN_NO_DEVICE, k->session) != NULL;
    return !PyErr_Occurred();
}

static void end(struct check *k)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        PyMem_Free(k->copy[i]);
        PyMem_Free(k->expected[i]);
        PyMem_Free(k->bound[i]);
    }
    ptxgen_session_destroy(k->session);
}

/* (compared, unknown, different, the first difference or "") */
PyObject *function_verify(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct call c;
    struct check *k = PyMem_Calloc(1, sizeof *k);
    PyObject *result = NULL;

    if (k == NULL)
        return PyErr_NoMemory();
    if (call_begin(&c, (Function *)self, args, nargs, names, CALL) && begin(k, &c) && run_beside(k))
        result =
            Py_BuildValue("(LLLs)", (long long)k->compared, (long long)k->unknown, (long long)k->different, k->first);
    end(k);
    call_end(&c);
    PyMem_Free(k);
    return result;
}
