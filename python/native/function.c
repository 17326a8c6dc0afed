/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - ptxgen.Function: made from a spec, callable; its programs on devices and on the host.
 *
 * vectorcall is in the limited API from Python 3.12 on, and in every Python since 3.8 under the same flag and member. */
#include <stddef.h>
#include <string.h>

#include "native.h"

#include <structmember.h>

enum { HAVE_VECTORCALL = 1 << 11 };
PyTypeObject *Function_type;

/* ---- programs ---------------------------------------------------------------------------------------------------- */
ptxgen_gpu *gpu_at(int device)
{
    static ptxgen_gpu *gpus[DEVICES_MAX]; /* open until the process ends: arrays may outlive every function */
    ptxgen_session *s = NULL;

    if (device < 0 || device >= DEVICES_MAX) {
        refuse("GPU %d is out of range", device);
        return NULL;
    }
    if (gpus[device])
        return gpus[device];
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        PyErr_NoMemory();
        return NULL;
    }
    const ptxgen_status status = ptxgen_gpu_open(s, device, &gpus[device]);
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return gpus[device];
}

void function_lock(Function *f)
{
    if (PyThread_acquire_lock(f->lock, NOWAIT_LOCK))
        return;
    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(f->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

void function_unlock(Function *f) { PyThread_release_lock(f->lock); }

static ptxgen_loaded *make_loaded(Function *f, ptxgen_gpu *gpu)
{
    struct work w;
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status;

    if (!work_begin(&w, f, NULL))
        return NULL;
    ptxgen_jit_options o = PTXGEN_JIT_OPTIONS_INIT;
    o.plan = &w.options;
    o.cache = work_cache(&w);
    Py_BEGIN_ALLOW_THREADS status = ptxgen_jit(w.session, gpu, w.problem, &o, &loaded);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK) raise_status(status, w.session);
    work_end(&w);
    return loaded;
}

struct loaded *function_on(Function *f, int device)
{
    ptxgen_gpu *gpu;

    if (device >= 0 && device < DEVICES_MAX && f->on[device].program)
        return &f->on[device];
    if ((gpu = gpu_at(device)) == NULL)
        return NULL;
    function_lock(f);
    if (f->on[device].program == NULL)
        f->on[device].program = make_loaded(f, gpu);
    function_unlock(f);
    return f->on[device].program ? &f->on[device] : NULL;
}

/* With the lock. */
ptxgen_host *function_host(Function *f)
{
    struct work w;
    ptxgen_plan *plan = NULL;
    ptxgen_status status;

    if (f->host || !work_begin(&w, f, NULL))
        return f->host;
    Py_BEGIN_ALLOW_THREADS status = ptxgen_plan_create(w.session, w.problem, &w.options, &plan);
    if (status == PTXGEN_OK)
        status = ptxgen_host_create(w.session, plan, NULL, &f->host);
    Py_END_ALLOW_THREADS if (status != PTXGEN_OK) raise_status(status, w.session);
    work_end(&w);
    return f->host;
}

/* A program that another thread may be launching stays until the function ends. */
static bool forget(Function *f, struct loaded *on)
{
    if (on->users > 0) {
        ptxgen_loaded **more = PyMem_Realloc(f->old, sizeof *more * (size_t)(f->olds + 1));
        if (more == NULL)
            return PyErr_NoMemory() != NULL;
        f->old = more;
        f->old[f->olds++] = on->program;
    } else
        ptxgen_loaded_destroy(on->program);
    *on = (struct loaded){ .program = NULL };
    return true;
}

/* What was made is made again at the next call: after tuning. */
static PyObject *function_forget(PyObject *self, PyObject *nothing)
{
    Function *f = (Function *)self;

    (void)nothing;
    function_lock(f);
    bool ok = true;
    for (int i = 0; i < DEVICES_MAX && ok; i++)
        ok = forget(f, &f->on[i]);
    function_unlock(f);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* ---- making and ending ------------------------------------------------------------------------------------------- */
static bool same_fields(const ptxgen_array_info *a)
{
    bool same = a->element_size == a->field_offset[a->field_count - 1] + ptxgen_type_size(a->field_type[0]);

    for (int i = 0; i < a->field_count; i++)
        same = same && a->field_type[i] == a->field_type[0] &&
               a->field_offset[i] == (size_t)i * ptxgen_type_size(a->field_type[0]);
    return same;
}

static bool read_arrays(Function *f)
{
    const ptxgen_problem *p = f->problem;

    for (int i = 0; i < f->inputs + f->outputs; i++) {
        struct slot *slot = &f->slot[i];
        if (i < f->inputs)
            ptxgen_problem_input(p, i, &slot->info);
        else
            ptxgen_problem_output(p, i - f->inputs, &slot->info);
        slot->alignment = alignment_of(&slot->info);
        slot->type = type_of(slot->info.field_type[0]);
        slot->packed = slot->info.field_count > 1 && same_fields(&slot->info);
        if ((slot->name = PyUnicode_InternFromString(slot->info.name)) == NULL)
            return false;
    }
    return true;
}

static bool read_names(Function *f)
{
    for (int i = 0; i < f->sizes; i++)
        if ((f->size_name[i] = PyUnicode_InternFromString(ptxgen_problem_size_name(f->problem, i))) == NULL)
            return false;
    for (int i = 0; i < f->params; i++) {
        ptxgen_problem_param(f->problem, i, &f->param[i]);
        if ((f->param_name[i] = PyUnicode_InternFromString(f->param[i].name)) == NULL)
            return false;
    }
    return true;
}

/* The type of several results: a tuple with names. */
static bool make_result_type(Function *f)
{
    PyObject *names = f->outputs > 1 ? PyTuple_New(f->outputs) : NULL;

    for (int o = 0; names && o < f->outputs; o++)
        PyTuple_SetItem(names, o, Py_NewRef(f->slot[f->inputs + o].name));
    f->result_type = names ? (PyTypeObject *)results_type(names) : NULL;
    Py_XDECREF(names);
    return f->outputs <= 1 || f->result_type;
}

static bool allocate(Function *f)
{
    const ptxgen_problem *p = f->problem;

    f->sizes = ptxgen_problem_size_count(p);
    f->inputs = ptxgen_problem_input_count(p);
    f->outputs = ptxgen_problem_output_count(p);
    f->params = ptxgen_problem_param_count(p);
    if (f->inputs + f->outputs > NAMES_MAX || f->sizes > NAMES_MAX || f->params > NAMES_MAX)
        return false;
    f->slot = PyMem_Calloc((size_t)(f->inputs + f->outputs), sizeof *f->slot);
    f->size_name = PyMem_Calloc((size_t)f->sizes + 1, sizeof *f->size_name);
    f->size_given = PyMem_Calloc((size_t)f->sizes + 1, sizeof *f->size_given);
    f->param_name = PyMem_Calloc((size_t)f->params + 1, sizeof *f->param_name);
    f->param = PyMem_Calloc((size_t)f->params + 1, sizeof *f->param);
    f->in_place = PyMem_Calloc((size_t)(f->inputs * f->outputs) + 1, 1);
    f->lock = PyThread_allocate_lock();
    return f->in_place && f->slot && f->size_name && f->size_given && f->param_name && f->param && f->lock;
}

static bool read_spec(Function *f)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(f->text, &length), *name = PyUnicode_AsUTF8AndSize(f->name, NULL);
    ptxgen_status status = text && name ? ptxgen_session_create(&f->session) : PTXGEN_NO_MEMORY;

    if (status == PTXGEN_OK)
        status = ptxgen_problem_from_string(f->session, text, (size_t)length, name, &f->problem);
    if (status != PTXGEN_OK) {
        if (!PyErr_Occurred())
            raise_status(status, f->session);
        return false;
    }
    if (!allocate(f)) {
        PyErr_NoMemory();
        return false;
    }
    f->diagnostics = diagnostics_of(f->session);
    ptxgen_diagnostics_clear(f->session);
    return f->diagnostics && read_arrays(f) && read_names(f) && make_result_type(f);
}

/* What it is made with is looked at now, not at the first call. */
static bool read_choice_of(Function *f)
{
    struct work w;

    if (!work_begin(&w, f, NULL))
        return false;
    for (int i = 0; i < f->sizes; i++)
        f->size_given[i] = w.options.size ? w.size[i] : -1;
    const bool ok = work_target(&w);
    work_end(&w);
    return ok;
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = { "text", "name", "choice", NULL };
    PyObject *text, *name, *choice;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UUO!", words, &text, &name, &PyDict_Type, &choice))
        return NULL;
    Function *f = (Function *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (f == NULL)
        return NULL;
    f->call = function_call;
    f->text = Py_NewRef(text);
    f->name = Py_NewRef(name);
    f->choice = PyDict_Copy(choice);
    if (f->choice == NULL || !read_spec(f) || !read_choice_of(f)) {
        Py_DECREF(f);
        return NULL;
    }
    return (PyObject *)f;
}

static void free_arrays(Function *f)
{
    for (int i = 0; f->slot && i < f->inputs + f->outputs; i++) {
        Py_XDECREF(f->slot[i].name);
        Py_XDECREF(f->slot[i].dtype);
        Py_XDECREF(f->slot[i].args);
        Py_XDECREF(f->slot[i].kwargs);
    }
    for (int i = 0; f->size_name && i < f->sizes; i++)
        Py_XDECREF(f->size_name[i]);
    for (int i = 0; f->param_name && i < f->params; i++)
        Py_XDECREF(f->param_name[i]);
    again_free(f);
    PyMem_Free(f->slot);
    PyMem_Free(f->in_place);
    PyMem_Free(f->size_name);
    PyMem_Free(f->size_given);
    PyMem_Free(f->param_name);
    PyMem_Free(f->param);
}

static void function_dealloc(PyObject *self)
{
    Function *f = (Function *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (f->weak)
        PyObject_ClearWeakRefs(self);
    free_arrays(f);
    for (int i = 0; i < DEVICES_MAX; i++)
        ptxgen_loaded_destroy(f->on[i].program);
    for (int i = 0; i < f->olds; i++)
        ptxgen_loaded_destroy(f->old[i]);
    PyMem_Free(f->old);
    ptxgen_host_destroy(f->host);
    ptxgen_session_destroy(f->session);
    if (f->lock)
        PyThread_free_lock(f->lock);
    Py_XDECREF(f->text);
    Py_XDECREF(f->name);
    Py_XDECREF(f->choice);
    Py_XDECREF(f->diagnostics);
    Py_XDECREF((PyObject *)f->result_type);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- what Python sees -------------------------------------------------------------------------------------------- */
static PyObject *function_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(ptxgen_problem_name(((Function *)self)->problem));
}

/* The canonical text, in which all is resolved. */
static PyObject *function_problem(PyObject *self, void *unused)
{
    char *text = ptxgen_problem_text(((Function *)self)->problem);
    PyObject *made = text ? PyUnicode_FromString(text) : PyErr_NoMemory();

    (void)unused;
    ptxgen_free(text);
    return made;
}

static PyObject *names_of(PyObject *const *names, int count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(names[i]));
    return tuple;
}

/* "f32[n, m]", or with fields "{f32 re, f32 im}[n]" */
static PyObject *declaration(const Function *f, const ptxgen_array_info *a)
{
    PyObject *text = PyUnicode_FromString(a->field_count > 1 ? "{" : ptxgen_type_name(a->field_type[0]));

    for (int i = 0; i < a->field_count && a->field_count > 1; i++)
        PyUnicode_AppendAndDel(&text,
                               PyUnicode_FromFormat("%s%s %s%s", i ? ", " : "", ptxgen_type_name(a->field_type[i]),
                                                    a->field_name[i], i + 1 == a->field_count ? "}" : ""));
    for (int d = 0; d < a->rank; d++) {
        const char *before = d ? ", " : "[", *after = d + 1 == a->rank ? "]" : "";
        const char *name = a->size_index[d] < 0 ? NULL : ptxgen_problem_size_name(f->problem, a->size_index[d]);
        const long long add = a->size_add[d];
        PyUnicode_AppendAndDel(&text, name == NULL ? PyUnicode_FromFormat("%s%lld%s", before, add, after)
                                      : add == 0   ? PyUnicode_FromFormat("%s%s%s", before, name, after)
                                      : add < 0    ? PyUnicode_FromFormat("%s%s - %lld%s", before, name, -add, after)
                                                   : PyUnicode_FromFormat("%s%s + %lld%s", before, name, add, after));
    }
    return text;
}

/* A dict from names to declarations. */
static PyObject *arrays_of(const Function *f, int from, int count)
{
    PyObject *dict = PyDict_New();

    for (int i = from; dict && i < from + count; i++) {
        PyObject *text = declaration(f, &f->slot[i].info);
        if (text == NULL || PyDict_SetItem(dict, f->slot[i].name, text) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *function_inputs(PyObject *self, void *unused)
{
    (void)unused;
    return arrays_of((Function *)self, 0, ((Function *)self)->inputs);
}

static PyObject *function_outputs(PyObject *self, void *unused)
{
    (void)unused;
    return arrays_of((Function *)self, ((Function *)self)->inputs, ((Function *)self)->outputs);
}

static PyObject *function_sizes(PyObject *self, void *unused)
{
    (void)unused;
    return names_of(((Function *)self)->size_name, ((Function *)self)->sizes);
}

/* A dict from names to types. */
static PyObject *function_params(PyObject *self, void *unused)
{
    Function *f = (Function *)self;
    PyObject *dict = PyDict_New();

    (void)unused;
    for (int i = 0; dict && i < f->params; i++) {
        PyObject *text = PyUnicode_FromString(ptxgen_type_name(f->param[i].type));
        if (text == NULL || PyDict_SetItem(dict, f->param_name[i], text) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *value_of(const ptxgen_param_info *p)
{
    return p->type >= PTXGEN_F16    ? PyFloat_FromDouble(p->default_value.f)
           : p->type == PTXGEN_BOOL ? PyBool_FromLong(p->default_value.u != 0)
           : p->type >= PTXGEN_U8   ? PyLong_FromUnsignedLongLong(p->default_value.u)
                                    : PyLong_FromLongLong(p->default_value.i);
}

/* A dict from names of params to the values that the spec gives. */
static PyObject *function_defaults(PyObject *self, void *unused)
{
    Function *f = (Function *)self;
    PyObject *dict = PyDict_New();

    (void)unused;
    for (int i = 0; dict && i < f->params; i++) {
        PyObject *value = f->param[i].has_default ? value_of(&f->param[i]) : NULL;
        if (PyErr_Occurred() || (value && PyDict_SetItem(dict, f->param_name[i], value) < 0))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* For those who call with a tuple and a dict. */
static PyObject *function_tp_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    enum { WORDS_MAX = 3 * NAMES_MAX };
    const Py_ssize_t nargs = PyTuple_Size(args), words = kwargs ? PyDict_Size(kwargs) : 0;
    PyObject *list[WORDS_MAX], *key, *names, *result = NULL;
    Py_ssize_t at = 0, n = 0;

    if (nargs + words > WORDS_MAX) {
        PyErr_Format(PyExc_TypeError, "%U() takes fewer than %zd arguments", ((Function *)self)->name, nargs + words);
        return NULL;
    }
    for (; n < nargs; n++)
        list[n] = PyTuple_GetItem(args, n);
    if ((names = PyTuple_New(words)) == NULL)
        return NULL;
    for (; kwargs && PyDict_Next(kwargs, &at, &key, &list[n]); n++)
        PyTuple_SetItem(names, n - nargs, Py_NewRef(key));
    result = function_call(self, list, (size_t)nargs, names);
    Py_DECREF(names);
    return result;
}

bool function_ready(PyObject *module)
{
    static PyMethodDef own_methods[] = {
        { "prepare", (PyCFunction)(void (*)(void))function_prepare, METH_FASTCALL | METH_KEYWORDS,
          "prepare($self, /, *inputs, out=None, stream=None, **words)\n--\n\n"
          "Plan, compile and load for calls like this one, and run nothing; arrays may be left out where sizes are "
          "given." },
        { "_verify", (PyCFunction)(void (*)(void))function_verify, METH_FASTCALL | METH_KEYWORDS, NULL },
        { "_seconds", (PyCFunction)(void (*)(void))function_seconds, METH_FASTCALL | METH_KEYWORDS, NULL },
        { "_entry", function_entry, METH_VARARGS, NULL },
        { "_forget", function_forget, METH_NOARGS, NULL },
        { NULL, NULL, 0, NULL },
    };
    static PyMemberDef members[] = {
        { "__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, NULL },
        { "__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak), READONLY, NULL },
        { "yaml", T_OBJECT, offsetof(Function, text), READONLY, "The spec." },
        { "diagnostics", T_OBJECT, offsetof(Function, diagnostics), READONLY, "Warnings about the spec." },
        { "_choice", T_OBJECT, offsetof(Function, choice), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    static PyGetSetDef attributes[] = {
        { "name", function_name, NULL, "The problem's name.", NULL },
        { "_problem", function_problem, NULL, NULL, NULL },
        { "_defaults", function_defaults, NULL, NULL, NULL },
        { "inputs", function_inputs, NULL, "Name and declaration of each input.", NULL },
        { "outputs", function_outputs, NULL, "Name and declaration of each output.", NULL },
        { "sizes", function_sizes, NULL, "The names of the sizes.", NULL },
        { "params", function_params, NULL, "Name and type of each param.", NULL },
        { NULL, NULL, NULL, NULL, NULL },
    };
    static PyMethodDef methods[16];
    static PyType_Slot slots[] = {
        { Py_tp_new, function_new },
        { Py_tp_dealloc, function_dealloc },
        { Py_tp_call, function_tp_call },
        { Py_tp_methods, methods },
        { Py_tp_members, members },
        { Py_tp_getset, attributes },
        { Py_tp_doc,
          "A compiled spec. Call it with arrays: f(x, y, param=1, out=z); inspect.signature(f) says with which." },
        { 0, NULL },
    };
    static PyType_Spec spec = { "ptxgen.Function", sizeof(Function), 0, Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL, slots };
    int n = 0;

    for (const PyMethodDef *m = own_methods; m->ml_name; m++)
        methods[n++] = *m;
    for (const PyMethodDef *m = work_methods; m->ml_name; m++)
        methods[n++] = *m;
    Function_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return Function_type && PyModule_AddObjectRef(module, "Function", (PyObject *)Function_type) == 0;
}
