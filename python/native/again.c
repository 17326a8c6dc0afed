/* SPDX-License-Identifier: Apache-2.0 */
/* again.c - a call like the one before.
 *
 * Types, shapes and devices of a call's arrays are nearly always those of a call before, which found that they fit.  Of
 * arrays that come by DLPack's table, a function remembers these facts, of a few calls; a call with the same facts needs no
 * other check than where its arrays lie.  All other calls, and all that would be refused, take the usual way.
 */
#include <string.h>

#include "native.h"

enum { ARRAYS_MAX = 8 };

/* Of one array. */
struct fact {
    int ndim;
    struct dl_type type;
    int64_t shape[RANK_MAX], stride[RANK_MAX]; /* strides in row-major order, in elements */
    uintptr_t bytes;
};

struct again {
    PyTypeObject *type; /* of all arrays, owned; NULL: of no call */
    struct dl_device device;
    bool out; /* the outputs were given */
    int64_t size[NAMES_MAX];
    struct fact fact[]; /* inputs, then outputs */
};

void again_free(Function *f)
{
    for (int i = 0; i < AGAIN; i++) {
        if (f->again[i])
            Py_XDECREF((PyObject *)f->again[i]->type);
        PyMem_Free(f->again[i]);
    }
}

/* ---- to remember --------------------------------------------------------------------------------------------------- */
static bool learn(struct fact *to, const struct taken *t)
{
    int64_t unit = 1;

    to->ndim = t->ndim;
    to->type = t->type;
    for (int d = t->ndim - 1; d >= 0; d--) {
        to->shape[d] = t->shape[d];
        to->stride[d] = unit;
        unit *= t->shape[d];
    }
    to->bytes = (uintptr_t)unit * ((t->type.bits + 7u) / 8);
    return unit > 0 && t->type.code != DL_COMPLEX; /* a mark of the tensor may say that they are conjugated */
}

/* The arrays of the call that the caller gave. */
static int given(const Function *f, bool out) { return f->inputs + (out ? f->outputs : 0); }

/* At an address of its type, and where no array before it is, if it is written. */
static bool lies_well(const struct call *c, const struct again *a, int i)
{
    const uintptr_t at = (uintptr_t)c->pointer[i];

    if (at == 0 || (at & (c->f->slot[i].alignment - 1)) != 0)
        return false;
    for (int k = 0; k < i && i >= c->f->inputs; k++) {
        const uintptr_t other = (uintptr_t)c->pointer[k];
        if (other < at + a->fact[i].bytes && at < other + a->fact[k].bytes)
            return false;
    }
    return true;
}

void again_learn(const struct call *c)
{
    Function *f = c->f;
    const int arrays = given(f, c->out != NULL);
    bool fits = c->leader.exchange && c->leader.exchange->view && c->device.type == DL_CUDA && !c->words &&
                f->inputs + f->outputs <= ARRAYS_MAX;

    for (int i = 0; i < arrays && fits; i++)
        fits = Py_TYPE(c->object[i]) == c->leader.type && c->array[i].holds == HOLDS_NOTHING;
    if (!fits)
        return;
    struct again **at = &f->again[f->next_again], *a = *at;
    if (a == NULL)
        a = *at = PyMem_Calloc(1, sizeof *a + sizeof *a->fact * (size_t)(f->inputs + f->outputs));
    if (a == NULL)
        return;
    PyTypeObject *before = a->type;
    a->type = NULL;
    for (int i = 0; i < arrays && fits; i++)
        fits = learn(&a->fact[i], &c->array[i]) &&
               lies_well(c, a, i); /* not where an input is: such calls are asked each time */
    if (fits) {
        f->next_again = (f->next_again + 1) % AGAIN;
        a->type = (PyTypeObject *)Py_NewRef((PyObject *)c->leader.type);
        a->device = c->device;
        a->out = c->out != NULL;
        memcpy(a->size, c->size, sizeof *c->size * (size_t)f->sizes);
    }
    Py_XDECREF((PyObject *)before);
}

/* ---- to compare ---------------------------------------------------------------------------------------------------- */
/* Positions, and out= alone: an array, or a tuple of them.  False: something else is given. */
static bool arguments(struct call *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static PyObject *out;
    const Function *f = c->f;

    if (nargs != f->inputs || nargs == 0 || (names && PyTuple_Size(names) != 1))
        return false;
    for (int i = 0; i < f->inputs; i++)
        c->object[i] = args[i];
    if (names == NULL)
        return true;
    if (out == NULL)
        out = PyUnicode_InternFromString("out");
    PyObject *value = args[nargs];
    if (PyTuple_GetItem(names, 0) != out || value == Py_None)
        return false;
    c->out = value;
    if (f->outputs == 1)
        c->object[f->inputs] = value;
    else if (!PyTuple_Check(value) || PyTuple_Size(value) != f->outputs)
        return false;
    for (int o = 0; o < f->outputs && f->outputs > 1; o++)
        c->object[f->inputs + o] = PyTuple_GetItem(value, o);
    return true;
}

static bool same(const struct fact *fact, const struct dl_tensor *t, struct dl_device device)
{
    if (t->device.type != DL_CUDA || t->device.id != device.id || t->ndim != fact->ndim ||
        memcmp(&t->type, &fact->type, sizeof t->type) != 0)
        return false;
    for (int d = 0; d < fact->ndim; d++)
        if (t->shape[d] != fact->shape[d] || (t->strides && t->strides[d] != fact->stride[d] && fact->shape[d] != 1))
            return false;
    return true;
}

static bool compare(struct call *c, const struct again *a, const struct dl_tensor *tensor, int arrays)
{
    if (a->type != c->leader.type || a->out != (c->out != NULL))
        return false;
    for (int i = 0; i < arrays; i++)
        if (!same(&a->fact[i], &tensor[i], a->device))
            return false;
    for (int i = 0; i < arrays; i++)
        if (!lies_well(c, a, i))
            return false;
    memcpy(c->size, a->size, sizeof *c->size * (size_t)c->f->sizes);
    return true;
}

/* Views of the arrays, and the stream.  All is compared after that, as what runs Python's code may change the facts. */
static bool look(struct call *c, int arrays)
{
    const struct dl_exchange *x = c->leader.exchange;
    struct dl_tensor tensor[ARRAYS_MAX];
    void *stream = NULL;
    bool found = false;

    for (int i = 0; i < arrays; i++) {
        if (Py_TYPE(c->object[i]) != c->leader.type || x->view(c->object[i], &tensor[i]) != 0)
            return false;
        c->pointer[i] = (char *)tensor[i].data + tensor[i].byte_offset;
    }
    c->device = (struct dl_device){ DL_CUDA, tensor[0].device.id };
    if (tensor[0].device.type != DL_CUDA || x->current_stream(DL_CUDA, c->device.id, &stream) != 0)
        return false;
    c->stream = stream == (void *)1 ? NULL : stream;
    for (int i = 0; i < AGAIN && c->f->again[i] && !found; i++)
        found = compare(c, c->f->again[i], tensor, arrays);
    return found;
}

bool again(struct call *c, Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (f->again[0] == NULL)
        return false;
    call_clear(c, f);
    if (!arguments(c, args, nargs, names))
        return false;
    const int arrays = given(f, c->out != NULL);
    const struct kind *kind = kind_of(c->object[0]);
    if (kind == NULL || kind->exchange == NULL || kind->exchange->view == NULL) {
        PyErr_Clear();
        return false;
    }
    c->leader = kind_keep(kind); /* another look-up may forget it */
    if (!look(c, arrays)) {
        PyErr_Clear();
        kind_drop(&c->leader);
        return false;
    }
    for (int i = f->inputs; i < arrays; i++)
        Py_INCREF(c->object[i]);
    for (int i = 0; i < f->params; i++)
        c->param[i] = f->param[i].default_value;
    return true;
}
