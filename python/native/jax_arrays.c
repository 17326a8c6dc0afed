/* SPDX-License-Identifier: Apache-2.0 */
/* jax_arrays.c - calls with JAX's arrays outside of jax.jit.
 *
 * JAX names no stream that it works on now, but one on which it looks for foreign work: work is put there.  An input's
 * __dlpack__(stream) has that stream wait for what computes the input.  The call ends when the work is done: JAX does not
 * know that it reads the inputs, and may give their memory to other programs at once.  The result is made meanwhile: its
 * event is recorded behind the work.  __dlpack__() and jax.numpy.from_dlpack() take several times as long as the functions
 * of jaxlib inside of them, which are called instead where there are any.
 */
#include "native.h"

/* What is asked once for a device. */
static struct {
    PyObject *device; /* owned */
    ptxgen_stream stream;
    bool has;
} known[DEVICES_MAX];

static PyObject *only_one(PyObject *set)
{
    PyObject *at = set && PyObject_Size(set) == 1 ? PyObject_GetIter(set) : NULL, *one = at ? PyIter_Next(at) : NULL;

    Py_XDECREF(at);
    Py_XDECREF(set);
    return one;
}

/* Takes the device. */
static int learn(PyObject *device)
{
    int i = 0;

    while (i < DEVICES_MAX && known[i].device)
        i++;
    PyObject *number =
        i < DEVICES_MAX ? PyObject_CallMethod(device, "get_stream_for_external_ready_events", NULL) : NULL;
    if (i == DEVICES_MAX) {
        Py_DECREF(device);
        return -1;
    }
    known[i].device = device;
    known[i].stream = number ? PyLong_AsVoidPtr(number) : NULL;
    known[i].has = number && !PyErr_Occurred() && known[i].stream != NULL;
    Py_XDECREF(number);
    PyErr_Clear(); /* a device of the host has none */
    return i;
}

/* Its number in `known`, or -1. */
static int device_of(PyObject *array)
{
    static PyObject *name;
    PyObject *method = attribute(array, "devices", &name);
    PyObject *device = method ? only_one(PyObject_CallNoArgs(method)) : NULL;
    int i = 0;

    Py_XDECREF(method);
    PyErr_Clear();
    while (device && i < DEVICES_MAX && known[i].device != device)
        i++;
    if (device == NULL || i == DEVICES_MAX)
        return device ? learn(device) : -1;
    Py_DECREF(device);
    return i;
}

PyObject *jax_device(PyObject *array, ptxgen_stream *stream)
{
    static PyObject *name, *sharding; /* of the array before, which nearly always is this one's */
    static int at;
    PyObject *now = attribute(array, "_sharding", &name);
    int i = at;

    PyErr_Clear(); /* another JAX */
    if (now == NULL || now != sharding) {
        i = device_of(array);
        PyObject *before = sharding;
        at = i;
        sharding = Py_XNewRef(now);
        Py_XDECREF(before); /* may run Python's code */
    }
    Py_XDECREF(now);
    if (i < 0 || !known[i].has)
        return NULL;
    *stream = known[i].stream;
    return known[i].device;
}

PyObject *jax_capsule(PyObject *array, ptxgen_stream stream)
{
    static PyObject *convert;
    PyObject *capsule = NULL;

    if (convert == NULL)
        convert = find_imported("jaxlib._jax", "buffer_to_dlpack_managed_tensor");
    PyObject *number = convert ? PyLong_FromVoidPtr(stream) : NULL;
    if (number)
        capsule = PyObject_CallFunctionObjArgs(convert, array, number, NULL);
    Py_XDECREF(number);
    PyErr_Clear(); /* another jaxlib, or an array on several devices: __dlpack__() says what is wrong */
    return capsule;
}

PyObject *jax_array(PyObject *own, size_t element, PyObject *device, ptxgen_stream stream)
{
    static PyObject *convert;
    PyObject *result = NULL;

    if (convert == NULL)
        convert = find_imported("jaxlib._jax", "dlpack_managed_tensor_to_buffer");
    if (convert == NULL || element > 4) /* without jax_enable_x64, JAX makes numbers of 8 bytes shorter */
        return NULL;
    PyObject *capsule = array_capsule(own), *number = PyLong_FromVoidPtr(stream);
    if (capsule && number)
        result = PyObject_CallFunctionObjArgs(convert, capsule, device, number, NULL);
    Py_XDECREF(capsule);
    Py_XDECREF(number);
    PyErr_Clear(); /* another jaxlib */
    return result;
}

bool jax_wait(struct call *c)
{
    ptxgen_session *s = NULL;
    ptxgen_gpu *gpu = gpu_at(c->device.id);
    ptxgen_status status;
    const bool failed = PyErr_Occurred() != NULL; /* the work is there all the same */

    if (gpu == NULL || ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_Occurred() ? false : PyErr_NoMemory() != NULL;
    Py_BEGIN_ALLOW_THREADS status = ptxgen_stream_wait(s, gpu, c->stream);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK && !failed) raise_status(status, s);
    ptxgen_session_destroy(s);
    return status == PTXGEN_OK && !failed;
}
