/* SPDX-License-Identifier: Apache-2.0 */
/* give.c - results in arrays of the caller's kind.
 *
 * A library without the table of DLPack is called as its user would: numpy.empty(shape, dtype).  The arguments of the last
 * call are kept in the slot, so a call with the same sizes builds nothing.  With the table, torch makes two tensors for a
 * result, one around the memory of the other: memory on the current device comes from the function that programs of
 * torch.compile call instead, where this torch has it.
 */
#include <string.h>

#include "native.h"

int shape_of(const struct slot *slot, const int64_t *size, int64_t *shape)
{
    const ptxgen_array_info *a = &slot->info;

    for (int d = 0; d < a->rank; d++)
        shape[d] = a->size_add[d] + (a->size_index[d] < 0 ? 0 : size[a->size_index[d]]);
    return a->rank;
}

/* ---- DLPack's table ---------------------------------------------------------------------------------------------- */
static void set_error(void *context, const char *kind, const char *message)
{
    (void)context;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

static PyObject *give_exchange(const struct dl_exchange *x, struct dl_type type, int64_t *shape, int ndim,
                               struct dl_device device, void **data)
{
    struct dl_tensor like = { NULL, device, ndim, type, shape, NULL, 0 };
    struct dl_versioned *made = NULL;
    void *object = NULL;

    if (x->allocate(&like, &made, NULL, set_error) != 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "the library of the inputs gives no memory for a result");
        return NULL;
    }
    *data = (char *)made->tensor.data + made->tensor.byte_offset;
    if ((x->give(made, &object) != 0 || object == NULL) && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the library of the inputs gives no array for a result");
    return PyErr_Occurred() ? NULL : object;
}

/* ---- types of NumPy, CuPy and torch ------------------------------------------------------------------------------ */
static PyObject *structure_of(const ptxgen_array_info *info, const char *const *names)
{
    PyObject *fields = PyList_New(0), *formats = PyList_New(0), *offsets = PyList_New(0), *result = NULL;

    for (int i = 0; fields && formats && offsets && i < info->field_count; i++) {
        PyObject *name = PyUnicode_FromString(info->field_name[i]);
        PyObject *format = PyUnicode_FromString(names[info->field_type[i]]);
        PyObject *offset = PyLong_FromSize_t(info->field_offset[i]);
        if (name && format && offset && PyList_Append(fields, name) == 0 && PyList_Append(formats, format) == 0)
            PyList_Append(offsets, offset);
        Py_XDECREF(name);
        Py_XDECREF(format);
        Py_XDECREF(offset);
    }
    if (!PyErr_Occurred())
        result = Py_BuildValue("{s:O,s:O,s:O,s:n}", "names", fields, "formats", formats, "offsets", offsets, "itemsize",
                               (Py_ssize_t)info->element_size);
    Py_XDECREF(fields);
    Py_XDECREF(formats);
    Py_XDECREF(offsets);
    return result;
}

/* NumPy's, which CuPy takes, too. */
static PyObject *numpy_type(const ptxgen_array_info *info, bool structured)
{
    static const char *const names[] = {
        "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "u2", "f4", "f8"
    }; /* bf16: its bits */
    PyObject *make = find_imported("numpy", "dtype"), *result = NULL;
    PyObject *what = structured ? structure_of(info, names) : PyUnicode_FromString(names[info->field_type[0]]);

    if (make && what)
        result = PyObject_CallFunctionObjArgs(make, what, NULL);
    Py_XDECREF(make);
    Py_XDECREF(what);
    return result;
}

static PyObject *torch_type(ptxgen_type t)
{
    static const char *const names[] = { "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
                                         "uint32", "uint64", "float16", "bfloat16", "float32", "float64" };
    return find_imported("torch", names[t]);
}

/* ---- other libraries --------------------------------------------------------------------------------------------- */
static PyObject *shape_tuple(const int64_t *shape, int ndim)
{
    PyObject *tuple = PyTuple_New(ndim);

    for (int d = 0; tuple && d < ndim; d++)
        PyTuple_SetItem(tuple, d, PyLong_FromLongLong(shape[d]));
    return tuple;
}

static PyObject *torch_words(const struct slot *slot, PyObject *like)
{
    PyObject *type = torch_type(slot->info.field_type[0]), *device = PyObject_GetAttrString(like, "device");
    PyObject *words = type && device ? Py_BuildValue("{s:O,s:O}", "dtype", type, "device", device) : NULL;

    if (type == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "this torch lacks the type of the result");
    Py_XDECREF(type);
    Py_XDECREF(device);
    return words;
}

/* Are the arguments that are kept those of such an array? */
static bool remembered(const struct slot *slot, enum family family, const int64_t *shape, int ndim, int device)
{
    return slot->args && slot->family == family && slot->device == device &&
           memcmp(slot->shape, shape, sizeof *shape * (size_t)ndim) == 0;
}

/* The arguments of the call that makes such an array; false: an exception is set. */
static bool remember(struct slot *slot, enum family family, bool structured, const int64_t *shape, int ndim,
                     PyObject *like, int device)
{
    Py_CLEAR(slot->args);
    Py_CLEAR(slot->kwargs);
    PyObject *tuple = shape_tuple(shape, ndim);
    if (tuple && family == FAMILY_TORCH) {
        slot->args = Py_BuildValue("(O)", tuple);
        slot->kwargs = torch_words(slot, like);
    } else if (tuple) {
        PyObject *type = numpy_type(&slot->info, structured);
        slot->args = type ? Py_BuildValue("(ON)", tuple, type) : NULL;
    }
    Py_XDECREF(tuple);
    if (slot->args == NULL || (family == FAMILY_TORCH && slot->kwargs == NULL)) {
        Py_CLEAR(slot->args);
        return false;
    }
    slot->family = family;
    slot->device = device;
    memcpy(slot->shape, shape, sizeof *shape * (size_t)ndim);
    return true;
}

static PyObject *maker_of(enum family family)
{
    static PyObject *known[FAMILY_JAX + 1];

    if (known[family] == NULL)
        known[family] = family == FAMILY_NUMPY   ? find_imported("numpy", "empty")
                        : family == FAMILY_CUPY  ? find_imported("cupy", "ndarray")
                        : family == FAMILY_TORCH ? find_imported("torch", "empty")
                                                 : NULL;
    return known[family];
}

static bool pointer_from(PyObject *number, void **data)
{
    *data = number ? (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number) : NULL;
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

/* cupy.ndarray.data.ptr */
static bool cupy_pointer(PyObject *made, void **data)
{
    static PyObject *data_name, *ptr_name;
    PyObject *memory = attribute(made, "data", &data_name), *number = attribute(memory, "ptr", &ptr_name);

    Py_XDECREF(memory);
    return pointer_from(number, data);
}

static bool torch_pointer(PyObject *made, void **data)
{
    static PyObject *name;
    PyObject *method = attribute(made, "data_ptr", &name);
    const bool ok = pointer_from(method ? PyObject_CallNoArgs(method) : NULL, data);

    Py_XDECREF(method);
    return ok;
}

static bool buffer_pointer(PyObject *made, void **data)
{
    Py_buffer b;

    if (PyObject_GetBuffer(made, &b, PyBUF_WRITABLE) != 0)
        return false;
    *data = b.buf; /* stays where it is as long as the array lives */
    PyBuffer_Release(&b);
    return true;
}

static PyObject *give_called(struct slot *slot, enum family family, bool structured, const int64_t *shape, int ndim,
                             PyObject *like, int device, void **data)
{
    if (!remembered(slot, family, shape, ndim, device) &&
        !remember(slot, family, structured, shape, ndim, like, device))
        return NULL;
    PyObject *args = Py_NewRef(slot->args), *kwargs = Py_XNewRef(slot->kwargs); /* other threads may set others */
    PyObject *made = PyObject_Call(maker_of(family), args, kwargs);
    Py_DECREF(args);
    Py_XDECREF(kwargs);
    const bool ok = made == NULL             ? false
                    : family == FAMILY_NUMPY ? buffer_pointer(made, data)
                    : family == FAMILY_CUPY  ? cupy_pointer(made, data)
                                             : torch_pointer(made, data);
    if (!ok)
        Py_CLEAR(made);
    return made;
}

/* ---- torch's memory of the current device ------------------------------------------------------------------------ */
/* torch's function of a shape, strides and a type; NULL where this torch lacks it, or another device is current, on which
 * it would begin to work. */
static PyObject *strided_maker(int device)
{
    static PyObject *make, *current;
    static bool asked;

    if (!asked) {
        make = find_imported("torch", "_C._dynamo.guards._empty_strided_cuda");
        current = find_imported("torch", "_C._cuda_getDevice");
        asked = true;
    }
    PyObject *number = make && current ? PyObject_CallNoArgs(current) : NULL;
    const bool fits = number && PyLong_AsLong(number) == device && !PyErr_Occurred();
    Py_XDECREF(number);
    return fits ? make : NULL;
}

static bool remember_strided(struct slot *slot, const int64_t *shape, int ndim, int device)
{
    int64_t stride[RANK_MAX], unit = 1;

    Py_CLEAR(slot->args);
    Py_CLEAR(slot->kwargs);
    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = unit;
        if (shape[d] > 1 && __builtin_mul_overflow(unit, shape[d], &unit))
            return false;
    }
    PyObject *extents = shape_tuple(shape, ndim), *strides = shape_tuple(stride, ndim);
    if (slot->dtype == NULL)
        slot->dtype = torch_type(slot->info.field_type[0]);
    slot->args = extents && strides && slot->dtype ? PyTuple_Pack(3, extents, strides, slot->dtype) : NULL;
    Py_XDECREF(extents);
    Py_XDECREF(strides);
    slot->family = FAMILY_TORCH;
    slot->device = device;
    memcpy(slot->shape, shape, sizeof *shape * (size_t)ndim);
    return slot->args != NULL;
}

/* NULL without an exception: DLPack's table has to make it, and says what is wrong. */
static PyObject *give_strided(struct slot *slot, const struct dl_exchange *x, const int64_t *shape, int ndim,
                              struct dl_device device, void **data)
{
    const struct dl_type type = slot->type;
    struct dl_tensor view;
    PyObject *maker = x->view && device.type == DL_CUDA ? strided_maker(device.id) : NULL, *made = NULL;

    if (maker &&
        (remembered(slot, FAMILY_TORCH, shape, ndim, device.id) || remember_strided(slot, shape, ndim, device.id))) {
        PyObject *args = Py_NewRef(slot->args); /* other threads may set others */
        made = PyObject_Call(maker, args, NULL);
        Py_DECREF(args);
    }
    if (made && (x->view(made, &view) != 0 || view.device.type != DL_CUDA || view.device.id != device.id ||
                 view.type.code != type.code || view.type.bits != type.bits))
        Py_CLEAR(made);
    PyErr_Clear();
    if (made)
        *data = (char *)view.data + view.byte_offset;
    return made;
}

PyObject *give(struct slot *slot, const int64_t *size, PyObject *like, const struct kind *kind, struct dl_device device,
               ptxgen_stream stream, void **data)
{
    const ptxgen_array_info *info = &slot->info;
    int64_t shape[RANK_MAX];
    int ndim = shape_of(slot, size, shape);
    const bool structure = info->field_count > 1, structured = structure && kind->family == FAMILY_NUMPY;
    const bool called = !kind->exchange && kind->family != FAMILY_OTHER && maker_of(kind->family);

    if (structure && !structured && (kind->exchange || kind->from_dlpack || called)) {
        if (!slot->packed) {
            PyErr_Format(PyExc_TypeError, "output %R is a structure of several types; give out= memory for it",
                         slot->name);
            return NULL;
        }
        shape[ndim++] = info->field_count;
    }
    if (kind->exchange && kind->family == FAMILY_TORCH) {
        PyObject *made = give_strided(slot, kind->exchange, shape, ndim, device, data);
        if (made)
            return made;
    }
    if (kind->exchange)
        return give_exchange(kind->exchange, slot->type, shape, ndim, device, data);
    if (called)
        return give_called(slot, kind->family, structured, shape, ndim, like, device.id, data);
    return array_new(slot, shape, ndim, device, stream, data);
}

PyObject *give_converted(PyObject *own, const struct slot *slot, const struct call *c)
{
    PyObject *convert = c->leader.from_dlpack, *result = NULL;

    if (convert == NULL || own == NULL || Py_TYPE(own) != Array_type)
        return own;
    if (c->leader.family == FAMILY_JAX)
        array_elsewhere(own);
    if (c->jax_device)
        result = jax_array(own, ptxgen_type_size(slot->info.field_type[0]), c->jax_device, c->stream);
    if (result == NULL && !PyErr_Occurred())
        result = PyObject_CallFunctionObjArgs(convert, own, NULL);
    Py_DECREF(own);
    return result;
}
