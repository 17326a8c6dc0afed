/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - how long a call takes on a GPU, and entries of a tuning file. */
#include <string.h>

#include "native.h"
#include "ptxgen/stages.h"

/* `count` launches between two events; negative after an exception. */
static double seconds_of(struct call *c, long count)
{
    ptxgen_gpu *gpu = gpu_at(c->device.id);
    ptxgen_session *s = NULL;
    ptxgen_event begin = NULL, end = NULL;
    double seconds = -1;

    if (gpu == NULL)
        return -1;
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        PyErr_NoMemory();
        return -1;
    }
    ptxgen_status status = ptxgen_event_create(s, gpu, &begin);
    if (status == PTXGEN_OK)
        status = ptxgen_event_create(s, gpu, &end);
    if (status == PTXGEN_OK)
        status = ptxgen_event_record(s, gpu, begin, c->stream);
    for (long i = 0; i < count && status == PTXGEN_OK && !PyErr_Occurred(); i++)
        call_run(c, CALL, NULL, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_event_record(s, gpu, end, c->stream);
    Py_BEGIN_ALLOW_THREADS if (status == PTXGEN_OK) status = ptxgen_event_seconds(s, gpu, begin, end, &seconds);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK && !PyErr_Occurred()) raise_status(status, s);
    ptxgen_event_destroy(gpu, begin);
    ptxgen_event_destroy(gpu, end);
    ptxgen_session_destroy(s);
    return PyErr_Occurred() ? -1 : seconds / (double)count;
}

/* What tuning counts for: the names of stages, or [""] for a spec without any. */
static PyObject *counting(const ptxgen_problem *whole)
{
    const int stages = ptxgen_stage_count(whole);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < (stages ? stages : 1); i++) {
        const ptxgen_problem *p = stages ? ptxgen_stage_problem(whole, i) : whole;
        ptxgen_array_info first;
        if (!ptxgen_problem_tunable(p) ||
            (ptxgen_problem_output(p, 0, &first) == PTXGEN_OK && !strcmp(first.name, "ptxgen_until")))
            continue; /* the condition of a loop is no stage of the user's */
        PyObject *name = PyUnicode_FromString(stages ? ptxgen_stage_name(whole, i) : "");
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* _seconds(launches, arguments of a call …) -> (seconds of one, device, its architecture, sizes, what tuning counts for) */
PyObject *function_seconds(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct call c;
    Function *f = (Function *)self;
    PyObject *result = NULL, *sizes = NULL;
    const long count = nargs > 0 ? PyLong_AsLong(args[0]) : 0;

    if (count < 1) {
        refuse("launches are counted from 1");
        return NULL;
    }
    bool ok = call_begin(&c, f, args + 1, nargs - 1, names, CALL);
    if (ok && !on_gpu(c.device))
        ok = refuse("times are taken on a GPU, and the arrays are on the host");
    const double seconds = ok && call_run(&c, CALL, NULL, NULL) ? seconds_of(&c, count) : -1;
    if (!PyErr_Occurred() && (sizes = PyTuple_New(f->sizes)) != NULL) {
        for (int i = 0; i < f->sizes; i++)
            PyTuple_SetItem(sizes, i, PyLong_FromLongLong(c.size[i]));
        result = Py_BuildValue("(dizNN)", seconds, c.device.id,
                               ptxgen_gpu_arch(ptxgen_gpu_describe(gpu_at(c.device.id))), sizes, counting(f->problem));
    }
    call_end(&c);
    return result;
}

/* Of a program: the stage that STAGE:ID is of, with its ID and its sizes; false after an exception. */
static bool stage_of(const ptxgen_problem **problem, const char **variant, int64_t *size)
{
    const ptxgen_problem *whole = *problem;
    int64_t own[NAMES_MAX];
    int i = ptxgen_stage_count(whole) - 1;
    for (size_t n; i >= 0; i--) {
        n = strlen(ptxgen_stage_name(whole, i));
        if (!strncmp(*variant, ptxgen_stage_name(whole, i), n) && (*variant)[n] == ':')
            break;
    }
    if (i < 0)
        return !ptxgen_stage_count(whole) || refuse("a variant of a program is STAGE:ID");
    *problem = ptxgen_stage_problem(whole, i);
    *variant += strlen(ptxgen_stage_name(whole, i)) + 1;
    for (int k = 0; k < ptxgen_problem_size_count(*problem) && k < NAMES_MAX; k++)
        for (int of = 0; of < ptxgen_problem_size_count(whole) && of < NAMES_MAX; of++)
            if (!strcmp(ptxgen_problem_size_name(*problem, k), ptxgen_problem_size_name(whole, of)))
                own[k] = size[of];
    memcpy(size, own, sizeof own[0] * (size_t)ptxgen_problem_size_count(*problem));
    return true;
}

/* _entry(text or None, device, sizes, variant, seconds, default seconds, variants) -> the text of a tuning file */
PyObject *function_entry(PyObject *self, PyObject *args)
{
    PyObject *sizes, *result = NULL;
    int device, variants;
    const char *text, *variant;
    double seconds, usual;
    struct work w;

    if (!PyArg_ParseTuple(args, "ziO!sddi", &text, &device, &PyTuple_Type, &sizes, &variant, &seconds, &usual,
                          &variants))
        return NULL;
    ptxgen_gpu *gpu = gpu_at(device);
    if (gpu == NULL || !work_begin(&w, (Function *)self, NULL))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(sizes) && i < NAMES_MAX; i++)
        w.size[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, i));
    const ptxgen_problem *of = w.problem;
    if (stage_of(&of, &variant, w.size)) {
        const ptxgen_gpu_info *info = ptxgen_gpu_describe(gpu);
        const ptxgen_tuning_entry entry = {
            info->name, ptxgen_gpu_arch(info), variant, w.size, seconds, usual, variants
        };
        result = take_text(ptxgen_tuning_merge(w.session, of, text, &entry), w.session);
    }
    work_end(&w);
    return result;
}
