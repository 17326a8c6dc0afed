/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - the arguments of a call by position and by keyword: inputs, params, sizes, out and stream. */
#include "native.h"

static const char *utf8(PyObject *name) { return PyUnicode_AsUTF8AndSize(name, NULL); }

/* ---- names ------------------------------------------------------------------------------------------------------- */
/* Keywords are nearly always interned, so all names are first looked for by address. */
static bool is(PyObject *a, PyObject *b, bool by_address)
{
    return a == b || (!by_address && PyUnicode_Compare(a, b) == 0);
}

static int find(PyObject *key, PyObject *const *names, int count, bool by_address)
{
    for (int i = 0; i < count; i++)
        if (is(names[i], key, by_address))
            return i;
    return -1;
}

static int find_input(const Function *f, PyObject *key, bool by_address)
{
    for (int i = 0; i < f->inputs; i++)
        if (is(f->slot[i].name, key, by_address))
            return i;
    return -1;
}

/* A TypeError or OverflowError that has the name; others stay. */
static bool no_number(const char *what, const char *name, const char *type, PyObject *value)
{
    PyObject *error = PyErr_ExceptionMatches(PyExc_TypeError)       ? PyExc_TypeError
                      : PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_OverflowError
                                                                    : NULL;
    if (error) {
        PyErr_Clear();
        PyErr_Format(error, "%s '%s' is %s, which %.100R is not", what, name, type, value);
    }
    return false;
}

/* The truth of what is no number, say of the text "no", is rarely meant. */
static int truth_of(PyObject *value)
{
    const bool number = value != Py_None && PyObject_Size(value) < 0;

    PyErr_Clear();
    if (!number)
        PyErr_SetNone(PyExc_TypeError);
    return number ? PyObject_IsTrue(value) : 0;
}

/* Whole numbers in the range of the type; floats rounded to it. */
static bool take_param(const ptxgen_param_info *info, PyObject *value, ptxgen_value *out)
{
    unsigned char image[8];

    if (info->type >= PTXGEN_F16)
        out->f = PyFloat_AsDouble(value);
    else if (info->type == PTXGEN_U64) {
        PyObject *index = PyNumber_Index(value);
        out->u = index ? PyLong_AsUnsignedLongLong(index) : 0;
        Py_XDECREF(index);
    } else if (info->type == PTXGEN_BOOL) {
        out->i = truth_of(value);
    } else {
        PyObject *index = PyNumber_Index(value);
        out->i = index ? PyLong_AsLongLong(index) : 0;
        Py_XDECREF(index);
    }
    if (PyErr_Occurred())
        return no_number("param", info->name, ptxgen_type_name(info->type), value);
    const ptxgen_value asked = *out;
    ptxgen_value_store(info->type, image, *out);
    *out = ptxgen_value_load(info->type, image);
    if (info->type < PTXGEN_F16 && out->u != asked.u)
        return refuse("param '%s' is %s, which %lld is not", info->name, ptxgen_type_name(info->type),
                      (long long)asked.i);
    return true;
}

static bool take_size(struct call *c, int i, PyObject *value)
{
    const char *name = ptxgen_problem_size_name(c->f->problem, i);
    const int64_t given = c->f->size_given[i];

    if (value == Py_None) /* as inspect.signature() says: not given */
        return true;
    PyObject *index = PyNumber_Index(value);
    c->size[i] = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    c->size_from[i] = "the keyword";
    if (PyErr_Occurred())
        return no_number("size", name, "a whole number below 2^63", value);
    if (given >= 0 && c->size[i] != given)
        return refuse("size '%s' is %lld; sizes= asks for %lld", name, (long long)c->size[i], (long long)given);
    return c->size[i] >= 0 || refuse("size '%s' is negative", name);
}

static bool unknown_word(const Function *f, PyObject *key)
{
    char known[400] = "";
    size_t at = 0;

    for (int i = 0; i < f->inputs + f->params + f->sizes && at < sizeof known - 80; i++) {
        PyObject *name = i < f->inputs               ? f->slot[i].name
                         : i < f->inputs + f->params ? f->param_name[i - f->inputs]
                                                     : f->size_name[i - f->inputs - f->params];
        at += (size_t)PyOS_snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", utf8(name));
    }
    PyErr_Format(PyExc_TypeError, "%U() has no argument %R; it takes %s, out and stream", f->name, key, known);
    return false;
}

enum found { FOUND, UNKNOWN, REFUSED };

static enum found take_named(struct call *c, PyObject *key, PyObject *value, bool by_address)
{
    static PyObject *out, *stream;
    const Function *f = c->f;
    int i = find_input(f, key, by_address);

    if (i >= 0 && c->object[i]) {
        PyErr_Format(PyExc_TypeError, "%U() got input %R twice", f->name, key);
        return REFUSED;
    }
    if (i >= 0) {
        c->object[i] = value;
        return FOUND;
    }
    if ((i = find(key, f->param_name, f->params, by_address)) >= 0) {
        c->has_param[i] = true;
        return take_param(&f->param[i], value, &c->param[i]) ? FOUND : REFUSED;
    }
    if ((i = find(key, f->size_name, f->sizes, by_address)) >= 0)
        return take_size(c, i, value) ? FOUND : REFUSED;
    if (out == NULL)
        out = PyUnicode_InternFromString("out"), stream = PyUnicode_InternFromString("stream");
    if (is(key, out, by_address))
        c->out = value == Py_None ? NULL : value;
    else if (is(key, stream, by_address))
        c->stream_object = value == Py_None ? NULL : value;
    else
        return UNKNOWN;
    return FOUND;
}

static bool take_word(struct call *c, PyObject *key, PyObject *value)
{
    enum found found = take_named(c, key, value, true);

    if (found == UNKNOWN)
        found = take_named(c, key, value, false);
    return found == UNKNOWN ? unknown_word(c->f, key) : found == FOUND;
}

bool call_words(struct call *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names, enum purpose why)
{
    const Function *f = c->f;
    const Py_ssize_t words = names ? PyTuple_Size(names) : 0;

    if (nargs > f->inputs) {
        PyErr_Format(PyExc_TypeError, "%U() takes %d input%s, and was given %zd; params are keywords", f->name,
                     f->inputs, f->inputs == 1 ? "" : "s", nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        c->object[i] = args[i];
    for (Py_ssize_t i = 0; i < words; i++)
        if (!take_word(c, PyTuple_GetItem(names, i), args[nargs + i]))
            return false;
    c->words = words > (c->out != NULL);
    for (int i = 0; i < f->inputs && why == CALL; i++)
        if (c->object[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%U() misses input %R", f->name, f->slot[i].name);
            return false;
        }
    for (int i = 0; i < f->params; i++) {
        if (!c->has_param[i] && !f->param[i].has_default && why == CALL) {
            PyErr_Format(PyExc_TypeError, "%U() misses param %R, which has no default", f->name, f->param_name[i]);
            return false;
        }
        if (!c->has_param[i])
            c->param[i] = f->param[i].default_value;
    }
    return true;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */
static bool stream_number(PyObject *number, ptxgen_stream *out)
{
    const unsigned long long handle = number ? PyLong_AsUnsignedLongLong(number) : 0;

    Py_XDECREF(number);
    *out = (ptxgen_stream)(uintptr_t)(handle == 1 ? 0 : handle); /* 1: the default stream, by another name */
    return !PyErr_Occurred();
}

/* A number, or a stream of torch, CuPy, or of the protocol __cuda_stream__. */
bool stream_given(PyObject *stream, ptxgen_stream *out)
{
    static const char *const names[] = { "cuda_stream", "ptr", "handle" };

    if (PyLong_Check(stream) && !PyBool_Check(stream)) /* True would be the default stream */
        return stream_number(Py_NewRef(stream), out);
    PyObject *pair =
        PyObject_HasAttrString(stream, "__cuda_stream__") ? PyObject_CallMethod(stream, "__cuda_stream__", NULL) : NULL;
    if (pair) {
        PyObject *number = PySequence_GetItem(pair, 1);
        Py_DECREF(pair);
        return stream_number(number, out);
    }
    for (int i = 0; i < 3 && !PyErr_Occurred(); i++)
        if (PyObject_HasAttrString(stream, names[i]))
            return stream_number(PyObject_GetAttrString(stream, names[i]), out);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "stream is %R, and no stream", stream);
    return false;
}

static bool torch_stream(int device, ptxgen_stream *out)
{
    static PyObject *raw, *current;

    if (raw == NULL && current == NULL) {
        raw = find_imported("torch", "_C._cuda_getCurrentRawStream");
        current = raw ? NULL : find_imported("torch", "cuda.current_stream");
    }
    PyObject *number = raw || current ? PyObject_CallFunction(raw ? raw : current, "i", device) : NULL;
    if (raw || number == NULL)
        return stream_number(number, out);
    const bool ok = stream_given(number, out);
    Py_DECREF(number);
    return ok;
}

static bool cupy_stream(ptxgen_stream *out)
{
    static PyObject *handle, *current, *ptr_name;

    if (handle == NULL && current == NULL) {
        handle = find_imported("cupy_backends.cuda.stream", "get_current_stream_ptr");
        current = handle ? NULL : find_imported("cupy", "cuda.get_current_stream");
    }
    if (handle)
        return stream_number(PyObject_CallNoArgs(handle), out);
    PyObject *stream = current ? PyObject_CallNoArgs(current) : NULL;
    PyObject *number = attribute(stream, "ptr", &ptr_name);
    Py_XDECREF(stream);
    return stream_number(number, out);
}

/* The stream that the producer works on now. */
bool producer_stream(const struct kind *kind, const struct taken *t, int device, ptxgen_stream *out)
{
    void *stream = NULL;

    *out = t->has_stream ? t->stream : NULL;
    if (kind->exchange) {
        if (kind->exchange->current_stream(DL_CUDA, device, &stream) != 0)
            return PyErr_Occurred() ? false : refuse("the arrays' library does not say which stream is current");
        *out = stream == (void *)1 ? NULL : stream;
        return true;
    }
    return kind->family == FAMILY_TORCH ? torch_stream(device, out) : kind->family != FAMILY_CUPY || cupy_stream(out);
}
