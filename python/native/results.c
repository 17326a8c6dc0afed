/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - the types of several results: tuples with names, one type for all functions whose outputs have these names.
 *
 * Python keeps the addresses of the names, not the names.  Therefore types and names stay until the process ends.
 */
#include "native.h"

static PyObject *types; /* by tuples of names */

/* Pickled as names and values. */
static bool add_reduce(PyObject *type)
{
    PyObject *module = PyImport_ImportModule("ptxgen._methods");
    PyObject *reduce = module ? PyObject_GetAttrString(module, "reduce_results") : NULL;
    const bool ok = reduce && PyObject_SetAttrString(type, "__reduce__", reduce) == 0;

    Py_XDECREF(module);
    Py_XDECREF(reduce);
    return ok;
}

static PyObject *make(PyObject *names)
{
    PyStructSequence_Field field[NAMES_MAX + 1] = { { NULL, NULL } };
    const Py_ssize_t count = PyTuple_Size(names);

    for (Py_ssize_t i = 0; i < count; i++)
        if ((field[i].name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL)) == NULL)
            return NULL;
    PyStructSequence_Desc desc = { "ptxgen.Results", "The outputs of a spec, in its order.", field, (int)count };
    PyObject *type = (PyObject *)PyStructSequence_NewType(&desc);
    if (type && (!add_reduce(type) || PyDict_SetItem(types, names, type) < 0))
        Py_CLEAR(type);
    return type;
}

PyObject *results_type(PyObject *names)
{
    if (types == NULL && (types = PyDict_New()) == NULL)
        return NULL;
    if (PyTuple_Size(names) > NAMES_MAX) {
        PyErr_SetString(PyExc_ValueError, "there are too many results");
        return NULL;
    }
    PyObject *known = PyDict_GetItemWithError(types, names);
    return known ? Py_NewRef(known) : PyErr_Occurred() ? NULL : make(names);
}

PyObject *results_type_for(PyObject *self, PyObject *names)
{
    (void)self;
    if (PyTuple_Check(names))
        return results_type(names);
    PyErr_SetString(PyExc_TypeError, "the names of results are a tuple");
    return NULL;
}
