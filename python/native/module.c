/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module ptxgen._native; types of arrays; errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* ---- libraries --------------------------------------------------------------------------------------------------- */
PyObject *find_imported(const char *module, const char *path)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *at = modules ? PyDict_GetItemString(modules, module) : NULL;
    char part[64];

    Py_XINCREF(at);
    while (at && *path) {
        const size_t n = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        PyObject *next = PyObject_GetAttrString(at, part);
        Py_DECREF(at);
        at = next;
        path += n + (path[n] == '.');
    }
    if (at == NULL)
        PyErr_Clear();
    return at;
}

PyObject *attribute(PyObject *object, const char *text, PyObject **name)
{
    if (*name == NULL)
        *name = PyUnicode_InternFromString(text);
    return object && *name ? PyObject_GetAttr(object, *name) : NULL;
}

/* The table of a type that speaks a version that is known here; NULL without an exception when there is none. */
static const struct dl_exchange *exchange_of(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const struct dl_exchange *x = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;

    PyErr_Clear();
    Py_XDECREF(capsule);
    while (x && x->version.major != 1)
        x = x->older;
    return x;
}

static const struct {
    const char *module, *name;
    enum family family;
} libraries[] = {
    { "numpy", "ndarray", FAMILY_NUMPY },
    { "torch", "Tensor", FAMILY_TORCH },
    { "cupy", "ndarray", FAMILY_CUPY },
    { "jax", "Array", FAMILY_JAX },
};

static int family_of(PyObject *type, enum family *out)
{
    *out = FAMILY_OTHER;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        PyObject *base = find_imported(libraries[i].module, libraries[i].name);
        int is = base ? PyObject_IsSubclass(type, base) : 0;
        Py_XDECREF(base);
        if (is < 0)
            return -1;
        if (is)
            *out = libraries[i].family;
    }
    return 0;
}

/* object.__array_namespace__().from_dlpack; NULL without an exception where there is none. */
static PyObject *converter_of(PyObject *object)
{
    PyObject *space = PyObject_HasAttrString(object, "__array_namespace__")
                          ? PyObject_CallMethod(object, "__array_namespace__", NULL)
                          : NULL;
    PyObject *convert = space ? PyObject_GetAttrString(space, "from_dlpack") : NULL;

    PyErr_Clear();
    Py_XDECREF(space);
    return convert;
}

/* The types that were seen last; the table is short, and the first entry is nearly always the one. */
const struct kind *kind_of(PyObject *object)
{
    enum { KINDS = 8 };
    static struct kind known[KINDS];
    static int next;
    PyTypeObject *type = Py_TYPE(object);

    for (int i = 0; i < KINDS; i++)
        if (known[i].type == type)
            return &known[i];
    struct kind fresh = { .type = type };
    if (family_of((PyObject *)type, &fresh.family) < 0)
        return NULL;
    PyObject *masked = find_imported("numpy.ma", "MaskedArray"); /* numpy.ma would import it: 40 ms */
    fresh.masked = masked && PyObject_IsSubclass((PyObject *)type, masked) == 1;
    Py_XDECREF(masked);
    fresh.exchange = exchange_of((PyObject *)type);
    if (fresh.exchange == NULL && (fresh.family == FAMILY_OTHER || fresh.family == FAMILY_JAX))
        fresh.from_dlpack = converter_of(object);
    struct kind *to = &known[next], old = *to;
    Py_INCREF((PyObject *)type);
    *to = fresh;
    next = (next + 1) % KINDS;
    kind_drop(&old); /* may run Python's code */
    return to;
}

struct kind kind_keep(const struct kind *kind)
{
    Py_INCREF((PyObject *)kind->type);
    Py_XINCREF(kind->from_dlpack);
    return *kind;
}

void kind_drop(struct kind *kind)
{
    Py_CLEAR(kind->from_dlpack);
    Py_XDECREF((PyObject *)kind->type);
    kind->type = NULL;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */
static PyObject *errors; /* the module ptxgen._errors */

PyObject *diagnostics_of(ptxgen_session *s)
{
    const int n = ptxgen_diagnostic_count(s);
    PyObject *make = PyObject_GetAttrString(errors, "Diagnostic"), *all = make ? PyTuple_New(n) : NULL;
    ptxgen_diagnostic d;

    for (int i = 0; all && i < n; i++) {
        ptxgen_diagnostic_get(s, i, &d);
        PyObject *one = PyObject_CallFunction(make, "iiziiiizz", (int)d.severity, d.code, d.file, d.line, d.column,
                                              d.end_line, d.end_column, d.message, d.hint);
        if (one == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SetItem(all, i, one);
    }
    Py_XDECREF(make);
    return all;
}

PyObject *raise_status(ptxgen_status status, ptxgen_session *s)
{
    if (status == PTXGEN_NO_MEMORY)
        return PyErr_NoMemory();
    PyObject *all = diagnostics_of(s);
    char *text = ptxgen_diagnostics_text(s, 0);
    PyObject *error = all ? PyObject_CallMethod(errors, "make", "issO", (int)status, ptxgen_status_text(status),
                                                text ? text : "", all)
                          : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    ptxgen_free(text);
    Py_XDECREF(all);
    Py_XDECREF(error);
    return NULL;
}

bool refuse(const char *format, ...)
{
    char text[600];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    PyObject *type = PyObject_GetAttrString(errors, "UsageError");
    if (type)
        PyErr_SetString(type, text);
    Py_XDECREF(type);
    return false;
}

PyObject *take_text(char *text, ptxgen_session *s)
{
    if (text == NULL && s && ptxgen_diagnostic_count(s) > 0)
        return raise_status(PTXGEN_USAGE, s);
    if (text == NULL)
        return PyErr_NoMemory();
    PyObject *result = PyUnicode_FromString(text);
    ptxgen_free(text);
    return result;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */
static PyObject *schema(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    return take_text(ptxgen_schema(), NULL);
}

static PyObject *tuning_path(PyObject *self, PyObject *nothing)
{
    char *path = ptxgen_tuning_path();

    (void)self, (void)nothing;
    return path ? take_text(path, NULL) : Py_NewRef(Py_None);
}

/* 2010 or "PTXG-2010"; -1 with an exception set.  Codes have at most nine digits. */
static int code_number(PyObject *code)
{
    static const char mark[] = "PTXG-";
    const char *text = PyUnicode_Check(code) ? PyUnicode_AsUTF8AndSize(code, NULL) : NULL;
    int overflow = 0;

    if (PyUnicode_Check(code)) {
        const char *digits = text && strncmp(text, mark, sizeof mark - 1) == 0 ? text + sizeof mark - 1 : "";
        const size_t n = strspn(digits, "0123456789");
        if (n >= 1 && n <= 9 && !digits[n])
            return atoi(digits);
        if (text)
            refuse("a message has a code such as 'PTXG-2010', and not '%s'", text);
        return -1;
    }
    const long long number = PyLong_AsLongLongAndOverflow(code, &overflow);
    if (!PyErr_Occurred() && number >= 0 && number <= INT32_MAX)
        return (int)number;
    if (!PyErr_Occurred())
        refuse("a message has a code such as 'PTXG-2010', and not this number");
    return -1;
}

static PyObject *explain_code(PyObject *self, PyObject *code)
{
    const char *title, *text;
    const int number = code_number(code);

    (void)self;
    if (number < 0)
        return NULL;
    if (!ptxgen_explain_code(number, &title, &text)) {
        refuse("there is no message PTXG-%04d", number);
        return NULL;
    }
    return PyUnicode_FromFormat("%s\n\n%s", title, text);
}

static PyMethodDef module_methods[] = {
    { "schema", schema, METH_NOARGS, "schema()\n--\n\nThe JSON Schema of the spec language." },
    { "_tuning_path", tuning_path, METH_NOARGS, NULL },
    { "explain_code", explain_code, METH_O, "explain_code(code)\n--\n\nTitle and explanation of a message." },
    { "_results", results_type_for, METH_O, NULL },
    { "_jax_handlers", jax_handlers, METH_NOARGS, NULL },
    { "_jax_record", jax_record, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static int module_exec(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "ptxgen works in the main interpreter only: it keeps one state per process");
        return -1;
    }
    errors = PyImport_ImportModule("ptxgen._errors");
    if (errors == NULL || !array_ready(module) || !function_ready(module))
        return -1;
    return PyModule_AddStringConstant(module, "version", ptxgen_version());
}

static PyModuleDef_Slot module_slots[] = { { Py_mod_exec, module_exec }, { 0, NULL } };
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ptxgen._native", NULL, 0, module_methods, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&module); }
