/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what is no call: explanations, variants, laws, code.
 *
 * Each has a session of its own and reads the spec again, in a fraction of a millisecond: nothing grows, and threads need
 * no lock.  The methods here are the plain ones; ptxgen/_methods.py gives them their form. */
#include <string.h>

#include "native.h"

/* ---- plan options from a dict ------------------------------------------------------------------------------------ */
static const char *text_of(PyObject *dict, const char *key)
{
    PyObject *value = dict ? PyDict_GetItemString(dict, key) : NULL;

    if (value == NULL || value == Py_None)
        return NULL;
    return PyUnicode_AsUTF8AndSize(value, NULL);
}

static bool read_sizes(struct work *w, PyObject *sizes)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    for (int i = 0; i < ptxgen_problem_size_count(w->problem); i++)
        w->size[i] = -1;
    w->options.size = w->size;
    while (PyDict_Next(sizes, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        int i = 0;
        while (name && i < ptxgen_problem_size_count(w->problem) &&
               strcmp(ptxgen_problem_size_name(w->problem, i), name))
            i++;
        if (name == NULL)
            return false;
        if (i == ptxgen_problem_size_count(w->problem))
            return refuse("there is no size '%s'", name);
        w->size[i] = PyLong_AsLongLong(value);
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            return refuse("size '%s' does not fit 64 bits", name);
        }
        if (PyErr_Occurred())
            return false;
        if (w->size[i] < 0)
            return refuse("size '%s' is negative", name);
    }
    return true;
}

static bool read_settings(struct work *w, PyObject *settings)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    w->options.setting = w->setting;
    while (PyDict_Next(settings, &at, &key, &value)) {
        if (w->options.setting_count == NAMES_MAX)
            return refuse("there are more than %d settings", NAMES_MAX);
        ptxgen_setting *to = &w->setting[w->options.setting_count++];
        if ((to->name = PyUnicode_AsUTF8AndSize(key, NULL)) == NULL ||
            (to->value = PyUnicode_AsUTF8AndSize(value, NULL)) == NULL)
            return false;
    }
    return true;
}

static bool read_choice(struct work *w, PyObject *choice)
{
    PyObject *settings = PyDict_GetItemString(choice, "settings"), *sizes = PyDict_GetItemString(choice, "sizes");

    w->options.arch = text_of(choice, "arch");
    w->options.variant = text_of(choice, "variant");
    w->options.tuning = text_of(choice, "tuning");
    w->options.gpu = text_of(choice, "gpu");
    w->cache = PyDict_GetItemString(choice, "cache");
    return !PyErr_Occurred() && (!settings || read_settings(w, settings)) && (!sizes || read_sizes(w, sizes));
}

const char *work_cache(const struct work *w)
{
    return w->cache && w->cache != Py_None ? PyUnicode_AsUTF8AndSize(w->cache, NULL) : NULL;
}

bool work_begin(struct work *w, Function *f, PyObject *choice)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(f->text, &length), *name = PyUnicode_AsUTF8AndSize(f->name, NULL);

    memset(w, 0, sizeof *w);
    w->options = (ptxgen_plan_options)PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_status status = text && name ? ptxgen_session_create(&w->session) : PTXGEN_NO_MEMORY;
    if (status == PTXGEN_OK)
        status = ptxgen_problem_from_string(w->session, text, (size_t)length, name, &w->problem);
    if (status == PTXGEN_OK && read_choice(w, choice ? choice : f->choice))
        return true;
    if (!PyErr_Occurred())
        raise_status(status, w->session);
    work_end(w);
    return false;
}

/* Plans and explanations alone say so; those of a copy are made at once. */
bool work_target(const struct work *w)
{
    static const char copy[] = "kind: map\ninputs: {x: 'u8[n]'}\noutputs: {y: {type: 'u8[n]', value: x}}\n";
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_explain_options e = PTXGEN_EXPLAIN_OPTIONS_INIT;
    ptxgen_problem *problem = NULL;
    ptxgen_plan *plan = NULL;

    if (w->options.arch == NULL && w->options.gpu == NULL)
        return true;
    o.arch = w->options.arch;
    o.gpu = e.gpu = w->options.gpu;
    ptxgen_status status = ptxgen_problem_from_string(w->session, copy, sizeof copy - 1, "copy", &problem);
    if (status == PTXGEN_OK)
        status = ptxgen_plan_create(w->session, problem, &o, &plan);
    if (status != PTXGEN_OK)
        return raise_status(status, w->session) != NULL;
    PyObject *text = o.gpu ? take_text(ptxgen_explain(w->session, plan, &e), w->session) : Py_NewRef(Py_None);
    Py_XDECREF(text);
    return text != NULL;
}

void work_end(struct work *w) { ptxgen_session_destroy(w->session); }

static ptxgen_plan *plan_of(struct work *w)
{
    ptxgen_plan *plan = NULL;
    const ptxgen_status status = ptxgen_plan_create(w->session, w->problem, &w->options, &plan);

    if (status != PTXGEN_OK)
        raise_status(status, w->session);
    return plan;
}

/* ---- explaining -------------------------------------------------------------------------------------------------- */
static PyObject *explain(PyObject *self, PyObject *args)
{
    PyObject *choice, *result = NULL;
    int form, all;
    struct work w;

    if (!PyArg_ParseTuple(args, "O!ii", &PyDict_Type, &choice, &form, &all) ||
        !work_begin(&w, (Function *)self, choice))
        return NULL;
    ptxgen_explain_options o = PTXGEN_EXPLAIN_OPTIONS_INIT;
    o.size = w.options.size;
    o.gpu = w.options.gpu;
    o.form = (ptxgen_form)form;
    o.all = all;
    ptxgen_plan *plan = plan_of(&w);
    if (plan)
        result = take_text(ptxgen_explain(w.session, plan, &o), w.session);
    work_end(&w);
    return result;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */
enum what { PTX, MANIFEST };

static PyObject *program_text(struct work *w, ptxgen_plan *plan, enum what what)
{
    ptxgen_program *program = NULL;
    ptxgen_status status;
    PyObject *result = NULL;

    Py_BEGIN_ALLOW_THREADS status = ptxgen_compile(w->session, plan, NULL, &program);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK) return raise_status(status, w->session);
    result = take_text(what == PTX ? ptxgen_program_ptx(program) : ptxgen_program_manifest(program), NULL);
    ptxgen_program_destroy(program);
    return result;
}

static PyObject *code(PyObject *self, PyObject *args)
{
    PyObject *choice, *result = NULL;
    struct work w;
    int what;

    if (!PyArg_ParseTuple(args, "O!i", &PyDict_Type, &choice, &what) || !work_begin(&w, (Function *)self, choice))
        return NULL;
    ptxgen_plan *plan = plan_of(&w);
    if (plan)
        result = program_text(&w, plan, (enum what)what);
    work_end(&w);
    return result;
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */
static int visit_variant(const ptxgen_variant *v, void *list)
{
    PyObject *row = Py_BuildValue("(sszd)", v->id, v->strategy, v->why_not, v->predicted_seconds);
    const int stop = row == NULL || PyList_Append(list, row) < 0 || PyErr_CheckSignals() < 0;

    Py_XDECREF(row);
    return stop;
}

static PyObject *variants(PyObject *self, PyObject *args)
{
    PyObject *choice, *list = PyList_New(0);
    long long draw, seed;
    ptxgen_status status;
    struct work w;

    if (!list || !PyArg_ParseTuple(args, "O!LL", &PyDict_Type, &choice, &draw, &seed) ||
        !work_begin(&w, (Function *)self, choice)) {
        Py_XDECREF(list);
        return NULL;
    }
    ptxgen_variant_options o = PTXGEN_VARIANT_OPTIONS_INIT;
    o.plan = &w.options;
    o.gpu = w.options.gpu;
    o.draw = draw;
    o.seed = (uint64_t)seed;
    status = ptxgen_variants(w.session, w.problem, &o, visit_variant, list);
    if (status != PTXGEN_OK && !PyErr_Occurred())
        raise_status(status, w.session);
    work_end(&w);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

/* ---- laws -------------------------------------------------------------------------------------------------------- */
static PyObject *law_rows(const ptxgen_laws *laws)
{
    const int n = ptxgen_laws_count(laws);
    PyObject *list = PyList_New(0);
    ptxgen_law_info l;

    for (int i = 0; list && i < n; i++) {
        ptxgen_laws_get(laws, i, &l);
        PyObject *row = Py_BuildValue("(ssssizzzz)", l.reduction, l.operator_name, l.law_name, l.verdict_text,
                                      l.expected, l.example, l.cause, l.method, l.identity);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *check(PyObject *self, PyObject *args)
{
    PyObject *result = NULL;
    ptxgen_laws *laws = NULL;
    ptxgen_status status;
    struct work w;
    ptxgen_laws_options o = PTXGEN_LAWS_OPTIONS_INIT;

    if (!PyArg_ParseTuple(args, "zi", &o.prover, &o.time_limit_ms) || !work_begin(&w, (Function *)self, NULL))
        return NULL;
    o.cache = work_cache(&w);
    Py_BEGIN_ALLOW_THREADS status = ptxgen_laws_check(w.session, w.problem, &o, &laws);
    Py_END_ALLOW_THREADS result = status == PTXGEN_OK ? law_rows(laws) : raise_status(status, w.session);
    work_end(&w);
    return result;
}

PyMethodDef work_methods[] = {
    { "_explain", explain, METH_VARARGS, NULL },
    { "_code", code, METH_VARARGS, NULL },
    { "_variants", variants, METH_VARARGS, NULL },
    { "_check", check, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};
