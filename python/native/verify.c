/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - a call, and every element of its results beside the sequential reference within the bound that comes with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "native.h"
#include "ptxgen/stages.h"

/* The arrays of one problem in host memory, inputs first, and what the reference says. */
struct part {
    const ptxgen_problem *problem;
    ptxgen_arguments args; /* as they were launched */
    const char *stage;     /* of a program, or NULL */
    int64_t step;
    int inputs, outputs;
    const void *pointer[NAMES_MAX];
    void *copy[NAMES_MAX], *expected[NAMES_MAX];
    double *bound[NAMES_MAX];
};

struct check {
    struct call *call;
    ptxgen_session *session;
    ptxgen_gpu *gpu; /* NULL: all is on the host */
    int64_t compared, unknown, different;
    char first[400];
};

static struct part part_of(const ptxgen_problem *p, ptxgen_arguments args)
{
    return (struct part){
        .problem = p, .args = args, .inputs = ptxgen_problem_input_count(p), .outputs = ptxgen_problem_output_count(p)
    };
}

static void part_end(struct part *t)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        PyMem_Free(t->copy[i]);
        PyMem_Free(t->expected[i]);
        PyMem_Free(t->bound[i]);
    }
}

static ptxgen_array_info info_of(const struct part *t, int i)
{
    ptxgen_array_info info;

    if (i < t->inputs)
        ptxgen_problem_input(t->problem, i, &info);
    else
        ptxgen_problem_output(t->problem, i - t->inputs, &info);
    return info;
}

static int64_t elements_of(const struct part *t, int i)
{
    const ptxgen_array_info info = info_of(t, i);
    return ptxgen_array_elements(&info, t->args.size);
}

static const void *launched(const struct part *t, int i)
{
    return i < t->inputs ? t->args.input[i] : t->args.output[i - t->inputs];
}

/* What the array holds now. */
static bool read_array(struct check *k, const struct part *t, int i, void **to)
{
    const size_t bytes = (size_t)elements_of(t, i) * info_of(t, i).element_size;

    *to = PyMem_Calloc(bytes + 1, 1);
    if (*to == NULL)
        return PyErr_NoMemory() != NULL;
    if (k->gpu == NULL && bytes)
        memcpy(*to, launched(t, i), bytes);
    else if (bytes && ptxgen_gpu_read(k->session, k->gpu, *to, launched(t, i), bytes) != PTXGEN_OK)
        return raise_status(PTXGEN_NO_DEVICE, k->session) != NULL;
    return true;
}

static bool copy_arrays(struct check *k, struct part *t, int from, int to)
{
    for (int i = from; i < to; i++) {
        t->pointer[i] = launched(t, i);
        if (k->gpu == NULL && i >= t->inputs)
            continue;
        if (!read_array(k, t, i, &t->copy[i])) /* inputs, too: outputs may be made in place */
            return false;
        t->pointer[i] = t->copy[i];
    }
    return true;
}

/* What outputs hold: some of it may stay. */
static bool begin_expected(struct check *k, struct part *t)
{
    for (int o = 0; o < t->outputs; o++)
        if (!read_array(k, t, t->inputs + o, &t->expected[o]))
            return false;
    return true;
}

static bool evaluate(struct check *k, struct part *t)
{
    ptxgen_status status;

    for (int o = 0; o < t->outputs; o++) {
        const size_t n = (size_t)elements_of(t, t->inputs + o);
        t->bound[o] = PyMem_Calloc(n + 1, sizeof(double) * (size_t)info_of(t, t->inputs + o).field_count);
        if (!t->bound[o])
            return PyErr_NoMemory() != NULL;
    }
    const ptxgen_arguments args = { t->args.size, t->pointer, t->expected, t->args.param };
    Py_BEGIN_ALLOW_THREADS status = ptxgen_error_bound(k->session, t->problem, &args, t->bound);
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

static void note(struct check *k, const struct part *t, const ptxgen_array_info *a, int64_t i, int f, ptxgen_value got,
                 ptxgen_value expected)
{
    const ptxgen_type type = a->field_type[f];
    const char *dot = a->field_count > 1 ? "." : "";
    int n = 0;

    if (k->different++ > 0)
        return;
    if (t->stage)
        n = snprintf(k->first, sizeof k->first, "stage %.100s, step %lld: ", t->stage, (long long)t->step);
    char *to = k->first + n;
    const size_t room = sizeof k->first - (size_t)n;
    if (type >= PTXGEN_F16)
        snprintf(to, room, "%s[%lld]%s%s is %.9g; the reference says %.9g", a->name, (long long)i, dot,
                 a->field_name[f], got.f, expected.f);
    else
        snprintf(to, room, "%s[%lld]%s%s is %lld; the reference says %lld", a->name, (long long)i, dot,
                 a->field_name[f], (long long)got.i, (long long)expected.i);
}

static void compare(struct check *k, const struct part *t, int o)
{
    const ptxgen_array_info info = info_of(t, t->inputs + o), *a = &info;
    const int64_t n = elements_of(t, t->inputs + o);
    const char *got = t->pointer[t->inputs + o], *expected = t->expected[o];

    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < a->field_count; f++) {
            const size_t at = (size_t)i * a->element_size + a->field_offset[f];
            const ptxgen_value x = ptxgen_value_load(a->field_type[f], got + at);
            const ptxgen_value y = ptxgen_value_load(a->field_type[f], expected + at);
            const double bound = t->bound[o][i * a->field_count + f];
            if (isinf(bound)) {
                k->unknown++;
                continue;
            }
            k->compared++;
            if (!agrees(a->field_type[f], x, y, bound))
                note(k, t, a, i, f, x, y);
        }
}

static bool compare_all(struct check *k, struct part *t)
{
    if (!copy_arrays(k, t, t->inputs, t->inputs + t->outputs) || !evaluate(k, t))
        return false;
    for (int o = 0; o < t->outputs; o++)
        compare(k, t, o);
    return true;
}

/* Copies of the inputs first, for calls in place; and of the outputs, which may stay as they are in part. */
static bool run_beside(struct check *k, struct part *t)
{
    if (!copy_arrays(k, t, 0, t->inputs) || !begin_expected(k, t) || !call_run(k->call, CALL, NULL, NULL))
        return false;
    if (k->gpu && ptxgen_stream_wait(k->session, k->gpu, k->call->stream) != PTXGEN_OK)
        return raise_status(PTXGEN_NO_DEVICE, k->session) != NULL;
    return compare_all(k, t);
}

/* Each stage on its own inputs: an error does not grow from stage to stage, and a difference is told where it begins. */
static int visit_stage(int stage, int64_t step, const ptxgen_arguments *args, void *check)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    struct check *k = check;
    const ptxgen_problem *whole = k->call->f->problem;
    struct part *t = PyMem_Calloc(1, sizeof *t);
    bool ok = t || PyErr_NoMemory() != NULL;

    if (ok) {
        *t = part_of(ptxgen_stage_problem(whole, stage), *args);
        t->stage = ptxgen_stage_name(whole, stage);
        t->step = step;
        ok = copy_arrays(k, t, 0, t->inputs) && begin_expected(k, t) && compare_all(k, t);
        part_end(t);
    }
    PyMem_Free(t);
    ok = ok && PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return !ok || k->different;
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

static bool check_call(struct check *k, struct call *c)
{
    struct part *t;
    bool ok;

    if (ptxgen_stage_count(c->f->problem) > 0)
        return call_run(c, CALL, visit_stage, k);
    if ((t = PyMem_Calloc(1, sizeof *t)) == NULL)
        return PyErr_NoMemory() != NULL;
    *t = part_of(c->f->problem, call_arguments(c));
    ok = run_beside(k, t);
    part_end(t);
    PyMem_Free(t);
    return ok;
}

/* (compared, unknown, different, the first difference or "") */
PyObject *function_verify(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct call c;
    struct check k = { .session = NULL };
    PyObject *result = NULL;

    if (call_begin(&c, (Function *)self, args, nargs, names, CALL) && begin(&k, &c) && check_call(&k, &c))
        result = Py_BuildValue("(LLLs)", (long long)k.compared, (long long)k.unknown, (long long)k.different, k.first);
    ptxgen_session_destroy(k.session);
    call_end(&c);
    return result;
}
