/* SPDX-License-Identifier: Apache-2.0 */
/* take.c - arrays of callers: DLPack's table of functions, DLPack, the CUDA array interface, the buffer protocol. */
#include <stdio.h>
#include <string.h>

#include "native.h"

bool on_gpu(struct dl_device device) { return device.type == DL_CUDA || device.type == DL_CUDA_MANAGED; }

static const char *utf8(PyObject *name) { return PyUnicode_AsUTF8AndSize(name, NULL); }

static bool too_many(PyObject *name) { return refuse("array '%s' has more than %d dimensions", utf8(name), RANK_MAX); }

static bool masked(PyObject *name)
{
    return refuse("array '%s' has a mask, which would not be looked at; give what it holds, or a filled copy",
                  utf8(name));
}

/* Shape, and whether elements lie in row-major order without gaps; strides in units of `unit` bytes, or NULL. */
static bool take_shape(int ndim, const int64_t *shape, const int64_t *strides, int64_t unit, PyObject *name,
                       struct taken *to)
{
    int64_t expected = unit;
    bool empty = false;

    if (ndim > RANK_MAX)
        return too_many(name);
    to->ndim = ndim;
    to->contiguous = true;
    for (int d = ndim - 1; d >= 0; d--) {
        to->shape[d] = shape[d];
        empty |= shape[d] == 0;
        to->contiguous &= strides == NULL || shape[d] == 1 || strides[d] == expected;
        expected *= shape[d];
    }
    to->contiguous |= empty;
    return true;
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */
static bool take_tensor(const struct dl_tensor *t, PyObject *name, struct taken *to)
{
    to->data = (char *)t->data + t->byte_offset;
    to->type = t->type;
    to->device = t->device;
    return take_shape(t->ndim, t->shape, t->strides, 1, name, to);
}

static bool take_managed(struct dl_versioned *m, PyObject *name, struct taken *to)
{
    to->holds = HOLDS_MANAGED;
    to->managed = m;
    to->read_only = m->flags & DL_READ_ONLY;
    return take_tensor(&m->tensor, name, to);
}

/* The capsule is not consumed: its destructor calls the deleter when the call is over. */
static bool take_capsule(PyObject *capsule, PyObject *name, struct taken *to)
{
    struct dl_versioned *v;
    struct dl_managed *m;

    if (capsule == NULL)
        return false;
    to->holds = HOLDS_OBJECT;
    to->object = capsule;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (v->version.major != 1)
            return refuse("array '%s' comes as DLPack %u", utf8(name), (unsigned)v->version.major);
        to->read_only = v->flags & DL_READ_ONLY;
        return take_tensor(&v->tensor, name, to);
    }
    m = PyCapsule_GetPointer(capsule, "dltensor");
    return m && take_tensor(&m->tensor, name, to);
}

/* x.conj() of torch is x's memory and a mark, which DLPack does not know. */
static bool conjugated(PyObject *object, const struct taken *t)
{
    static PyObject *name;
    PyObject *method = t->type.code == DL_COMPLEX ? attribute(object, "is_conj", &name) : NULL;
    PyObject *answer = method ? PyObject_CallNoArgs(method) : NULL;
    const bool yes = answer && PyObject_IsTrue(answer) == 1;

    PyErr_Clear();
    Py_XDECREF(method);
    Py_XDECREF(answer);
    return yes;
}

static bool take_exchange(PyObject *object, const struct dl_exchange *x, PyObject *name, struct taken *to)
{
    struct dl_tensor view;
    struct dl_versioned *managed;

    if (x->view ? x->view(object, &view) != 0 : x->take_managed(object, &managed) != 0)
        return PyErr_Occurred() ? false : refuse("the library of '%s' does not say where the array lies", utf8(name));
    if (!(x->view ? take_tensor(&view, name, to) : take_managed(managed, name, to)))
        return false;
    return !conjugated(object, to) ||
           refuse("array '%s' is to be conjugated when it is read; give a copy, such as x.resolve_conj()", utf8(name));
}

/* object.__dlpack__(stream=value) */
static PyObject *dlpack_in(PyObject *object, PyObject *value)
{
    static PyObject *none, *words, *key, *name; /* (), {"stream": …}, and names */
    PyObject *method, *capsule = NULL;

    if (none == NULL)
        none = PyTuple_New(0);
    if (words == NULL)
        words = PyDict_New();
    if (key == NULL)
        key = PyUnicode_InternFromString("stream");
    method = none && words && key && value ? attribute(object, "__dlpack__", &name) : NULL;
    if (method && PyDict_SetItem(words, key, value) == 0)
        capsule = PyObject_Call(method, none, words);
    Py_XDECREF(method);
    return capsule;
}

/* -1: the work is put where the producer's own work is, so it has nothing to order. */
static PyObject *dlpack_on_gpu(PyObject *object, enum family family, ptxgen_stream stream)
{
    const intptr_t number = family == FAMILY_CUPY || family == FAMILY_TORCH ? -1 : stream ? (intptr_t)stream : 1;
    PyObject *value = PyLong_FromSsize_t(number);
    PyObject *capsule = dlpack_in(object, value);

    Py_XDECREF(value);
    return capsule;
}

/* method: object.__dlpack_device__ */
static bool take_dlpack(PyObject *object, PyObject *method, enum family family, PyObject *name, ptxgen_stream stream,
                        struct taken *to)
{
    PyObject *pair = PyObject_CallNoArgs(method);
    PyObject *type = pair ? PySequence_GetItem(pair, 0) : NULL;
    const long number = type ? PyLong_AsLong(type) : -1;

    Py_XDECREF(pair);
    Py_XDECREF(type);
    if (PyErr_Occurred())
        return false;
    if (on_gpu((struct dl_device){ (int32_t)number, 0 }))
        return take_capsule(dlpack_on_gpu(object, family, stream), name, to);
    return take_capsule(PyObject_CallMethod(object, "__dlpack__", NULL), name, to);
}

/* ---- the CUDA array interface ------------------------------------------------------------------------------------ */
/* "<f4" */
static bool take_typestr(const char *text, struct taken *to)
{
    static const char letters[] = "iufcb";
    static const uint8_t codes[] = { DL_INT, DL_UINT, DL_FLOAT, DL_COMPLEX, DL_BOOL };
    const char *found = text && strlen(text) > 2 && text[0] != '>' ? strchr(letters, text[1]) : NULL;
    int bytes;

    if (found == NULL || sscanf(text + 2, "%d", &bytes) != 1)
        return false;
    to->type = (struct dl_type){ codes[found - letters], (uint8_t)(bytes * 8), 1 };
    return true;
}

/* At most RANK_MAX + 1 numbers of a tuple; their number, or -1. */
static int numbers_of(PyObject *tuple, int64_t *out)
{
    const Py_ssize_t n = tuple ? PyTuple_Size(tuple) : -1;

    for (Py_ssize_t i = 0; i < n && i <= RANK_MAX; i++)
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() || n < 0 ? -1 : n > RANK_MAX ? RANK_MAX + 1 : (int)n;
}

static bool take_stream_key(PyObject *dict, struct taken *to)
{
    PyObject *stream = PyDict_GetItemString(dict, "stream");

    if (stream == NULL || stream == Py_None)
        return true;
    const unsigned long long handle = PyLong_AsUnsignedLongLong(stream);
    to->has_stream = true;
    to->stream = (ptxgen_stream)(uintptr_t)(handle == 1 ? 0 : handle);
    return !PyErr_Occurred();
}

static bool read_interface(PyObject *dict, PyObject *name, struct taken *to)
{
    PyObject *data = PyDict_GetItemString(dict, "data"), *strides = PyDict_GetItemString(dict, "strides");
    PyObject *typestr = PyDict_GetItemString(dict, "typestr"), *mask = PyDict_GetItemString(dict, "mask");
    int64_t shape[RANK_MAX + 1], stride[RANK_MAX + 1];
    const int ndim = numbers_of(PyDict_GetItemString(dict, "shape"), shape);
    PyObject *address = data ? PyTuple_GetItem(data, 0) : NULL, *flag = data ? PyTuple_GetItem(data, 1) : NULL;

    if (ndim < 0 || !address || !flag || !typestr || !take_typestr(utf8(typestr), to))
        return PyErr_Occurred() ? false
                                : refuse("the __cuda_array_interface__ of '%s' is of no known form", utf8(name));
    if (mask && mask != Py_None)
        return masked(name);
    to->data = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    to->read_only = PyObject_IsTrue(flag) == 1;
    to->device = (struct dl_device){ DL_CUDA, -1 };
    if (strides == Py_None)
        strides = NULL;
    if (PyErr_Occurred() || !take_stream_key(dict, to) || (strides && numbers_of(strides, stride) != ndim))
        return PyErr_Occurred() ? false : refuse("the strides of '%s' do not fit the shape", utf8(name));
    return take_shape(ndim, shape, strides ? stride : NULL, strides ? to->type.bits / 8 : 1, name, to);
}

static bool take_interface(PyObject *dict, PyObject *name, struct taken *to)
{
    to->holds = HOLDS_OBJECT;
    to->object = dict;
    return PyDict_Check(dict) ? read_interface(dict, name, to)
                              : refuse("the __cuda_array_interface__ of '%s' is no dict", utf8(name));
}

/* ---- the buffer protocol ----------------------------------------------------------------------------------------- */
static bool take_format(const Py_buffer *b, struct taken *to)
{
    static const char letters[] = "?bhilqnBHILQNefd";
    static const uint8_t codes[] = { DL_BOOL, DL_INT,  DL_INT,  DL_INT,  DL_INT,  DL_INT,   DL_INT,   DL_UINT,
                                     DL_UINT, DL_UINT, DL_UINT, DL_UINT, DL_UINT, DL_FLOAT, DL_FLOAT, DL_FLOAT };
    const char *format = b->format ? b->format : "B";

    to->structure = format[0] == 'T';
    if (to->structure || format[0] == '>' || format[0] == '!')
        return to->structure;
    format += format[0] != 0 && strchr("@=<", format[0]) != NULL;
    const bool complex = format[0] == 'Z';
    const char *found = format[0] ? strchr(letters, format[complex]) : NULL;
    if (found == NULL || *found == 0 || format[1 + complex] != 0)
        return false;
    to->type = (struct dl_type){ complex ? DL_COMPLEX : codes[found - letters], (uint8_t)(b->itemsize * 8), 1 };
    return true;
}

static bool take_buffer(PyObject *object, PyObject *name, struct taken *to)
{
    int64_t shape[RANK_MAX], strides[RANK_MAX];
    Py_buffer *b = &to->buffer;

    if (PyObject_GetBuffer(object, b, PyBUF_RECORDS_RO) != 0)
        return false;
    to->holds = HOLDS_BUFFER;
    if (b->ndim > RANK_MAX)
        return too_many(name);
    if (!take_format(b, to))
        return b->format && (b->format[0] == '>' || b->format[0] == '!')
                   ? refuse("array '%s' has the other byte order ('%s'); give a copy in this machine's", utf8(name),
                            b->format)
                   : refuse("array '%s' has elements of the format '%s', which is no type of specs", utf8(name),
                            b->format ? b->format : "B");
    for (int d = 0; d < b->ndim; d++)
        shape[d] = b->shape[d], strides[d] = b->strides ? b->strides[d] : 0;
    to->data = b->buf;
    to->read_only = b->readonly;
    to->device = (struct dl_device){ DL_CPU, 0 };
    return take_shape(b->ndim, shape, b->strides ? strides : NULL, b->itemsize, name, to); /* ctypes gives none */
}

/* ---- any of them ------------------------------------------------------------------------------------------------- */
static bool take_other(PyObject *object, enum family family, PyObject *name, ptxgen_stream stream, struct taken *to)
{
    static PyObject *device_name, *interface_name;
    PyObject *method = attribute(object, "__dlpack_device__", &device_name);

    if (method) {
        const bool ok = take_dlpack(object, method, family, name, stream, to);
        Py_DECREF(method);
        return ok;
    }
    PyErr_Clear();
    PyObject *interface = attribute(object, "__cuda_array_interface__", &interface_name);
    if (interface)
        return take_interface(interface, name, to);
    PyErr_Clear();
    if (PyObject_CheckBuffer(object))
        return take_buffer(object, name, to);
    PyErr_Format(
        PyExc_TypeError,
        "%R is no array, but an object of %R: it has neither DLPack nor the CUDA array interface nor a buffer; "
        "numpy.asarray(x, dtype) makes an array of numbers",
        name, (PyObject *)Py_TYPE(object));
    return false;
}

/* torch before its table of functions: torch.Tensor.__dlpack__ is slow Python code around this. */
static bool take_torch(PyObject *object, PyObject *name, struct taken *to)
{
    static PyObject *convert;

    if (convert == NULL)
        convert = find_imported("torch", "utils.dlpack.to_dlpack");
    if (convert == NULL)
        return take_other(object, FAMILY_TORCH, name, NULL, to);
    return take_capsule(PyObject_CallFunctionObjArgs(convert, object, NULL), name, to);
}

/* What numpy.dtype.str says; those that were seen last are known by their address. */
static bool take_dtype(PyObject *dtype, struct taken *to)
{
    enum { KNOWN = 16 };
    static struct {
        PyObject *dtype; /* owned */
        struct dl_type type;
    } known[KNOWN];
    static int next;
    static PyObject *name;

    for (int i = 0; i < KNOWN; i++)
        if (known[i].dtype == dtype && dtype) {
            to->type = known[i].type;
            return true;
        }
    PyObject *text = attribute(dtype, "str", &name);
    const bool ok = text && take_typestr(utf8(text), to);
    Py_XDECREF(text);
    if (ok) {
        Py_XDECREF(known[next].dtype);
        known[next].dtype = Py_NewRef(dtype);
        known[next].type = to->type;
        next = (next + 1) % KNOWN;
    }
    return ok;
}

/* By attributes, of which each takes a fraction of what CuPy's __dlpack__ takes. False, without an exception, where it is
 * another CuPy, or an element that has no type here. */
static bool take_cupy(PyObject *object, struct taken *to)
{
    static PyObject *names[6];
    PyObject *data = attribute(object, "data", &names[0]), *pointer = attribute(data, "ptr", &names[1]);
    PyObject *device = attribute(data, "device_id", &names[2]), *shape = attribute(object, "shape", &names[3]);
    PyObject *dtype = attribute(object, "dtype", &names[4]), *flag = attribute(object, "_c_contiguous", &names[5]);
    int64_t extent[RANK_MAX + 1];
    bool ok = pointer && device && dtype && flag && !PyErr_Occurred();
    const int ndim = ok ? numbers_of(shape, extent) : -1;

    ok = ok && ndim >= 0 && ndim <= RANK_MAX && take_dtype(dtype, to);
    if (ok) {
        to->data = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(pointer);
        to->device = (struct dl_device){ DL_CUDA, (int32_t)PyLong_AsLong(device) };
        to->contiguous = PyObject_IsTrue(flag) == 1;
        to->ndim = ndim;
        memcpy(to->shape, extent, sizeof *extent * (size_t)ndim);
        ok = !PyErr_Occurred();
    }
    PyErr_Clear();
    PyObject *const owned[] = { data, pointer, device, shape, dtype, flag };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        Py_XDECREF(owned[i]);
    return ok;
}

bool take(PyObject *object, const struct kind *kind, PyObject *name, ptxgen_stream stream, struct taken *to)
{
    memset(to, 0, offsetof(struct taken, buffer));
    if (kind->masked)
        return masked(name);
    if (kind->exchange)
        return take_exchange(object, kind->exchange, name, to);
    if (kind->family == FAMILY_NUMPY || PyMemoryView_Check(object))
        return take_buffer(object, name, to);
    if (kind->family == FAMILY_TORCH)
        return take_torch(object, name, to);
    if (kind->family == FAMILY_CUPY && take_cupy(object, to))
        return true;
    return take_other(object, kind->family, name, stream, to);
}

bool take_jax(PyObject *object, PyObject *name, ptxgen_stream stream, struct taken *to)
{
    PyObject *capsule = jax_capsule(object, stream);

    memset(to, 0, offsetof(struct taken, buffer));
    return take_capsule(capsule ? capsule : dlpack_on_gpu(object, FAMILY_JAX, stream), name, to);
}

void release(struct taken *t)
{
    switch (t->holds) {
    case HOLDS_BUFFER: PyBuffer_Release(&t->buffer); break;
    case HOLDS_OBJECT: Py_DECREF(t->object); break;
    case HOLDS_MANAGED:
        if (t->managed->deleter)
            t->managed->deleter(t->managed);
        break;
    case HOLDS_NOTHING: break;
    }
    t->holds = HOLDS_NOTHING;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */
struct dl_type type_of(ptxgen_type t)
{
    static const uint8_t code[] = { DL_BOOL, DL_INT,  DL_INT,   DL_INT,    DL_INT,   DL_UINT, DL_UINT,
                                    DL_UINT, DL_UINT, DL_FLOAT, DL_BFLOAT, DL_FLOAT, DL_FLOAT };

    return (struct dl_type){ code[t], (uint8_t)(ptxgen_type_size(t) * 8), 1 };
}

/* bool as bytes, and bf16 as its bits where a library has no such type. */
static bool same_type(struct dl_type a, const struct slot *slot)
{
    const struct dl_type want = slot->type;

    return a.bits == want.bits && a.lanes == 1 &&
           (a.code == want.code || (a.code == DL_UINT && (want.code == DL_BOOL || want.code == DL_BFLOAT)));
}

/* Is the field called as another field of the spec?  Names that the spec does not have say nothing. */
static bool misplaced(const char *name, size_t length, const char *here, const ptxgen_array_info *info)
{
    for (int i = 0; i < info->field_count; i++)
        if (strlen(info->field_name[i]) == length && strncmp(info->field_name[i], name, length) == 0)
            return strncmp(here, name, length) != 0 || here[length] != ':';
    return false;
}

/* "T{f:x:i:y:}" against the fields: same types at the same places. */
static bool same_fields(const Py_buffer *b, const ptxgen_array_info *info)
{
    PyObject *own = format_of(info);
    const char *have = b->format, *want = own ? PyBytes_AsString(own) : "";
    bool same = own != NULL && (size_t)b->itemsize == info->element_size;

    while (same && (*have || *want)) { /* letters and pads; byte order aside */
        while (*have && strchr("@=<^", *have))
            have++;
        if (*have == ':' && *want == ':') {
            same = !misplaced(have + 1, strcspn(have + 1, ":"), want + 1, info);
            have += 1 + strcspn(have + 1, ":");
            want += 1 + strcspn(want + 1, ":");
        }
        if (*have == 'l' && sizeof(long) == 8 && *want == 'q')
            have++, want++;
        else if (*have == 'L' && sizeof(long) == 8 && *want == 'Q')
            have++, want++;
        else if ((same = same && *have == *want))
            have += *have != 0, want += *want != 0;
    }
    Py_XDECREF(own);
    return same;
}

bool take_type(const struct taken *t, const struct slot *slot)
{
    const ptxgen_array_info *info = &slot->info;

    if (t->structure)
        return same_fields(&t->buffer, info);
    if (info->field_count == 1)
        return same_type(t->type, slot);
    if (t->type.code == DL_COMPLEX)
        return slot->packed && info->field_count == 2 && t->type.bits == 16 * ptxgen_type_size(info->field_type[0]) &&
               type_of(info->field_type[0]).code == DL_FLOAT;
    return slot->packed && same_type(t->type, slot);
}
