/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - ptxgen.Array: results for callers without a library of arrays.
 *
 * On the host its memory is a buffer; on a GPU it is shown through DLPack and the CUDA array interface.  Memory of a GPU
 * goes back to a list and from there to the next array of that size on the same stream, whose work comes after.  What
 * other streams may still use is freed instead, which waits for the device; small memory of this kind is kept until there is
 * enough of it to wait for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

typedef struct {
    PyObject_HEAD void *data;
    size_t bytes, item;
    int ndim;
    Py_ssize_t shape[RANK_MAX], strides[RANK_MAX];
    int64_t extent[RANK_MAX]; /* shape, for DLPack */
    struct dl_device device;
    struct dl_type type;
    bool plain;     /* of one type */
    bool elsewhere; /* work on other streams may use it */
    ptxgen_stream stream;
    PyObject *format; /* bytes */
} Array;

PyTypeObject *Array_type;

/* ---- memory of GPUs ---------------------------------------------------------------------------------------------- */
enum { POOL = 64, LATE = 32, LATE_BYTES = 1 << 16 };
struct block {
    void *data;
    size_t bytes;
    int device;
    ptxgen_stream stream;
    bool idle; /* no stream uses it */
};
static struct block pool[POOL];
static struct block late[LATE]; /* small ones that work of now may still use, on one device */
static int lates;

static void *gpu_memory(int device, size_t bytes, ptxgen_stream stream)
{
    ptxgen_gpu *gpu = gpu_at(device);
    void *data = NULL;

    for (int i = 0; gpu && i < POOL; i++)
        if (pool[i].data && pool[i].bytes == bytes && pool[i].device == device &&
            (pool[i].idle || pool[i].stream == stream)) {
            data = pool[i].data;
            pool[i].data = NULL;
            return data;
        }
    ptxgen_session *s = NULL;
    if (!gpu || ptxgen_session_create(&s) != PTXGEN_OK)
        return NULL;
    const ptxgen_status status = ptxgen_gpu_alloc(s, gpu, bytes, &data);
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return data;
}

static bool into_pool(const struct block *b)
{
    for (int i = 0; i < POOL; i++)
        if (pool[i].data == NULL) {
            pool[i] = *b;
            return true;
        }
    return false;
}

/* Freeing waits for the device, so one that is freed tells that the others are idle. */
static void settle(void)
{
    ptxgen_gpu_free(gpu_at(late[0].device), late[0].data);
    for (int i = 1; i < lates; i++) {
        late[i].idle = true;
        if (!into_pool(&late[i]))
            ptxgen_gpu_free(gpu_at(late[i].device), late[i].data);
    }
    lates = 0;
}

static void gpu_give_back(const Array *a)
{
    const struct block b = { a->data, a->bytes, a->device.id, a->stream, false };

    if (!a->elsewhere && into_pool(&b))
        return;
    if (lates == LATE || (lates > 0 && late[0].device != b.device))
        settle();
    if (a->elsewhere && b.bytes <= LATE_BYTES)
        late[lates++] = b;
    else
        ptxgen_gpu_free(gpu_at(b.device), b.data);
}

/* ---- making and showing ------------------------------------------------------------------------------------------ */
PyObject *format_of(const ptxgen_array_info *info)
{
    static const char letter[][2] = { "?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "H", "f", "d" };
    char text[1200];
    size_t at = 0, n;

    if (info->field_count == 1)
        return PyBytes_FromString(letter[info->field_type[0]]);
    n = (size_t)snprintf(text, sizeof text, "T{");
    for (int i = 0; i < info->field_count; i++) {
        for (; at < info->field_offset[i]; at++)
            n += (size_t)snprintf(text + n, sizeof text - n, "x");
        n += (size_t)snprintf(text + n, sizeof text - n, "%s:%.60s:", letter[info->field_type[i]], info->field_name[i]);
        at += ptxgen_type_size(info->field_type[i]);
    }
    for (; at < info->element_size; at++)
        n += (size_t)snprintf(text + n, sizeof text - n, "x");
    snprintf(text + n, sizeof text - n, "}");
    return PyBytes_FromString(text);
}

PyObject *array_new(const struct slot *slot, const int64_t *shape, int ndim, struct dl_device device,
                    ptxgen_stream stream, void **data)
{
    allocfunc make = (allocfunc)PyType_GetSlot(Array_type, Py_tp_alloc);
    Array *a = (Array *)make(Array_type, 0);
    ptxgen_array_info info = slot->info;

    if (a == NULL)
        return NULL;
    if (ndim > info.rank) { /* fields are a dimension */
        info.element_size = ptxgen_type_size(info.field_type[0]);
        info.field_count = 1;
    }
    a->item = info.element_size;
    a->bytes = a->item;
    bool fits = true;
    a->ndim = ndim;
    for (int d = ndim - 1; d >= 0; d--) {
        a->shape[d] = a->extent[d] = shape[d];
        a->strides[d] = (Py_ssize_t)a->bytes;
        fits = fits && !__builtin_mul_overflow(a->bytes, (size_t)shape[d], &a->bytes) && a->bytes < SIZE_MAX / 2;
    }
    a->device = device;
    a->stream = stream;
    a->plain = info.field_count == 1;
    a->type = type_of(info.field_type[0]);
    a->format = format_of(&info);
    a->data = !fits ? NULL : on_gpu(device) ? gpu_memory(device.id, a->bytes, stream) : calloc(1, a->bytes + 1);
    if (a->data == NULL || a->format == NULL) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_DECREF(a);
        return NULL;
    }
    *data = a->data;
    return (PyObject *)a;
}

static void array_dealloc(PyObject *self)
{
    Array *a = (Array *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (a->data && on_gpu(a->device))
        gpu_give_back(a);
    else
        free(a->data);
    Py_XDECREF(a->format);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Array *a = (Array *)self;

    view->obj = NULL;
    if (on_gpu(a->device)) {
        PyErr_SetString(PyExc_BufferError, "the array is on a GPU; DLPack and the CUDA array interface show it");
        return -1;
    }
    *view = (Py_buffer){ .buf = a->data,
                         .obj = self,
                         .len = (Py_ssize_t)a->bytes,
                         .itemsize = (Py_ssize_t)a->item,
                         .ndim = a->ndim,
                         .format = flags & PyBUF_FORMAT ? PyBytes_AsString(a->format) : NULL,
                         .shape = flags & PyBUF_ND ? a->shape : NULL,
                         .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? a->strides : NULL };
    Py_INCREF(self);
    return 0;
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */
static void managed_deleter(struct dl_managed *m)
{
    PyGILState_STATE state = PyGILState_Ensure();

    Py_DECREF((PyObject *)m->context);
    PyGILState_Release(state);
    free(m);
}

static void capsule_destructor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) /* nobody took it */
        managed_deleter(PyCapsule_GetPointer(capsule, "dltensor"));
}

/* A consumer on another stream has to see the finished work; there is no way to order streams without waiting here. */
static bool wait_for(Array *a, PyObject *stream)
{
    ptxgen_session *s = NULL;
    long long handle = stream && stream != Py_None ? PyLong_AsLongLong(stream) : 0;

    if (PyErr_Occurred())
        return false;
    if (!on_gpu(a->device) || (ptxgen_stream)(intptr_t)(handle == 1 ? 0 : handle) == a->stream)
        return true;
    a->elsewhere = true;
    if (handle == -1) /* the consumer orders its work */
        return true;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    const ptxgen_status status = ptxgen_stream_wait(s, gpu_at(a->device.id), a->stream);
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return status == PTXGEN_OK;
}

PyObject *array_capsule(PyObject *array)
{
    Array *a = (Array *)array;
    struct dl_managed *m = a->plain ? calloc(1, sizeof *m) : NULL;

    if (m == NULL) {
        PyErr_SetString(PyExc_BufferError, a->plain ? "out of memory" : "DLPack has no structures");
        return NULL;
    }
    m->tensor = (struct dl_tensor){ a->data, a->device, a->ndim, a->type, a->extent, NULL, 0 };
    m->context = Py_NewRef(array);
    m->deleter = managed_deleter;
    PyObject *capsule = PyCapsule_New(m, "dltensor", capsule_destructor);
    if (capsule == NULL)
        managed_deleter(m);
    return capsule;
}

void array_elsewhere(PyObject *array) { ((Array *)array)->elsewhere = true; }

/* A consumer that asks for a copy, or for memory elsewhere, would take the array's own for that. */
static bool given_as_it_is(const Array *a, PyObject *device, PyObject *copy)
{
    int type = a->device.type, id = a->device.id;

    if (device && device != Py_None && (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id))) {
        PyErr_SetString(PyExc_TypeError, "dl_device is a pair of numbers, as __dlpack_device__() gives");
        return false;
    }
    const bool copies = copy && copy != Py_None && PyObject_IsTrue(copy) != 0;
    if (!PyErr_Occurred() && (copies || type != a->device.type || id != a->device.id))
        PyErr_SetString(PyExc_BufferError, "the array is given where it lies, and is not copied");
    return !PyErr_Occurred();
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = NULL, *version, *device = NULL, *copy = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", words, &stream, &version, &device, &copy) ||
        !given_as_it_is((Array *)self, device, copy) || !wait_for((Array *)self, stream))
        return NULL;
    return array_capsule(self);
}

static PyObject *array_device(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return Py_BuildValue("(ii)", ((Array *)self)->device.type, ((Array *)self)->device.id);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */
static PyObject *array_shape(PyObject *self, void *unused)
{
    Array *a = (Array *)self;
    PyObject *shape = PyTuple_New(a->ndim);

    (void)unused;
    for (int d = 0; shape && d < a->ndim; d++)
        PyTuple_SetItem(shape, d, PyLong_FromSsize_t(a->shape[d]));
    return shape;
}

static PyObject *array_interface(PyObject *self, void *unused)
{
    Array *a = (Array *)self;
    static const char letter[] = {
        [DL_INT] = 'i', [DL_UINT] = 'u', [DL_FLOAT] = 'f', [DL_BFLOAT] = 'V', [DL_BOOL] = 'b'
    };
    char type[16];

    if (!on_gpu(a->device)) {
        PyErr_SetString(PyExc_AttributeError, "the array is on the host: memoryview() shows it");
        return NULL;
    }
    a->elsewhere = true;
    snprintf(type, sizeof type, "%c%c%d", a->item == 1 ? '|' : '<', a->plain ? letter[a->type.code] : 'V',
             (int)a->item);
    return Py_BuildValue("{s:N,s:s,s:(KO),s:i,s:K,s:O}", "shape", array_shape(self, unused), "typestr", type, "data",
                         (unsigned long long)(uintptr_t)a->data, Py_False, "version", 3, "stream",
                         (unsigned long long)(a->stream ? (uintptr_t)a->stream : 1), "strides", Py_None);
}

static PyObject *array_format(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(PyBytes_AsString(((Array *)self)->format));
}

static PyObject *array_tolist(PyObject *self, PyObject *nothing)
{
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;

    (void)nothing;
    Py_XDECREF(view);
    return list;
}

/* A single value as a number: without these, float() and int() would read the buffer as text. */
static PyObject *array_value(PyObject *self)
{
    const Array *a = (Array *)self;

    if (a->ndim == 0 && !on_gpu(a->device) && a->type.code != DL_BFLOAT)
        return array_tolist(self, NULL);
    PyErr_Format(PyExc_TypeError,
                 on_gpu(a->device) ? "%R shows its elements through DLPack and the CUDA array interface"
                 : a->ndim > 0     ? "%R is no single value; tolist() gives its elements"
                                   : "%R has the bits of a bf16, for which Python has no number",
                 self);
    return NULL;
}

static PyObject *value_as(PyObject *self, PyObject *(*convert)(PyObject *))
{
    PyObject *value = array_value(self), *made = value ? convert(value) : NULL;

    Py_XDECREF(value);
    return made;
}

static PyObject *array_float(PyObject *self) { return value_as(self, PyNumber_Float); }

static PyObject *array_int(PyObject *self) { return value_as(self, PyNumber_Long); }

static PyObject *array_index(PyObject *self) { return value_as(self, PyNumber_Index); }

static int array_truth(PyObject *self)
{
    PyObject *value = array_value(self);
    const int truth = value ? PyObject_IsTrue(value) : -1;

    Py_XDECREF(value);
    return truth;
}

/* With the elements where they are few and have a form in Python. */
static PyObject *array_repr(PyObject *self)
{
    enum { SHOWN = 16 };
    Array *a = (Array *)self;
    PyObject *shape = array_shape(self, NULL), *text = NULL;
    const bool hidden = on_gpu(a->device) || a->bytes > SHOWN * a->item || a->type.code == DL_BFLOAT;
    PyObject *list = hidden ? NULL : array_tolist(self, NULL);

    PyErr_Clear();
    if (shape && list)
        text = PyUnicode_FromFormat("<ptxgen.Array %s %S on the host: %R>", PyBytes_AsString(a->format), shape, list);
    else if (shape)
        text = PyUnicode_FromFormat("<ptxgen.Array %s %S on %s>", PyBytes_AsString(a->format), shape,
                                    on_gpu(a->device) ? "a GPU" : "the host");
    Py_XDECREF(list);
    Py_XDECREF(shape);
    return text;
}

bool array_ready(PyObject *module)
{
    static PyMethodDef methods[] = {
        { "__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, NULL },
        { "__dlpack_device__", array_device, METH_NOARGS, NULL },
        { "tolist", array_tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe elements of an array on the host." },
        { NULL, NULL, 0, NULL },
    };
    static PyGetSetDef attributes[] = {
        { "shape", array_shape, NULL, "Elements per dimension.", NULL },
        { "format", array_format, NULL, "The type of the elements, as memoryview has it.", NULL },
        { "__cuda_array_interface__", array_interface, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL },
    };
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, array_dealloc },
        { Py_tp_repr, array_repr },
        { Py_tp_methods, methods },
        { Py_tp_getset, attributes },
        { Py_bf_getbuffer, array_buffer },
        { Py_nb_float, array_float },
        { Py_nb_int, array_int },
        { Py_nb_index, array_index },
        { Py_nb_bool, array_truth },
        { Py_tp_doc, "A result for callers without a library of arrays: a buffer on the host, DLPack on a GPU." },
        { 0, NULL },
    };
    static PyType_Spec spec = { "ptxgen.Array", sizeof(Array), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };

    Array_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return Array_type && PyModule_AddObjectRef(module, "Array", (PyObject *)Array_type) == 0;
}
