/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - a call: sizes from shapes, where it runs, and what comes back. Nothing here waits for a GPU. */
#include <string.h>

#include "native.h"

/* ---- arrays and sizes -------------------------------------------------------------------------------------------- */
static bool wrong_type(const struct call *c, int i)
{
    const struct slot *slot = &c->f->slot[i];
    const struct dl_type t = c->array[i].type;
    static const char *const codes[] = { "i", "u", "f", "opaque", "bf", "complex", "bool" };

    if (c->array[i].structure)
        return refuse("array '%s' has elements '%s', whose fields are not those of the spec", slot->info.name,
                      c->array[i].buffer.format);
    char bits[8] = "";
    if (t.code != DL_BOOL)
        PyOS_snprintf(bits, sizeof bits, "%d", t.bits);
    return refuse("array '%s' has elements of type %s%s; the spec says %s%s", slot->info.name,
                  t.code < 7 ? codes[t.code] : "?", bits, ptxgen_type_name(slot->info.field_type[0]),
                  slot->info.field_count > 1 ? " and further fields" : "");
}

static bool wrong_shape(const struct call *c, int i, int d, int64_t expected, const char *why)
{
    return refuse("array '%s' has %lld elements in dimension %d; %s asks for %lld", c->f->slot[i].info.name,
                  (long long)c->array[i].shape[d], d, why, (long long)expected);
}

/* Each dimension tells a size, or agrees with what is known. */
static bool infer(struct call *c, int i)
{
    const struct slot *slot = &c->f->slot[i];
    const ptxgen_array_info *a = &slot->info;
    const struct taken *t = &c->array[i];
    const bool fields = a->field_count > 1 && !t->structure && t->type.code != DL_COMPLEX;

    if (t->ndim != a->rank + fields && !(a->rank == 0 && t->ndim == 1 && t->shape[0] == 1))
        return refuse("array '%s' has %d dimensions; the spec says %d%s", a->name, t->ndim, a->rank,
                      fields ? ", and one for the fields" : "");
    for (int d = 0; d < a->rank; d++) {
        const int s = a->size_index[d];
        if (s < 0 && t->shape[d] != a->size_add[d])
            return wrong_shape(c, i, d, a->size_add[d], "the spec");
        if (s >= 0 && c->size[s] < 0) {
            c->size[s] = t->shape[d] - a->size_add[d];
            c->size_from[s] = a->name;
            if (c->size[s] < 0)
                return wrong_shape(c, i, d, a->size_add[d], "an empty problem");
        } else if (s >= 0 && t->shape[d] != c->size[s] + a->size_add[d])
            return wrong_shape(c, i, d, c->size[s] + a->size_add[d], c->size_from[s]);
    }
    return !fields || t->shape[a->rank] == a->field_count ||
           wrong_shape(c, i, a->rank, a->field_count, "the number of fields");
}

static bool same_place(struct call *c, int i, bool first)
{
    const struct taken *t = &c->array[i];

    if (!on_gpu(t->device) && t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST)
        return refuse("array '%s' is on a device of DLPack's type %d", c->f->slot[i].info.name, t->device.type);
    if (first)
        c->device = (struct dl_device){ on_gpu(t->device) ? DL_CUDA : DL_CPU, t->device.id };
    else if (on_gpu(t->device) != on_gpu(c->device))
        return refuse("array '%s' is on %s, and the arrays before are not", c->f->slot[i].info.name,
                      on_gpu(t->device) ? "a GPU" : "the host");
    else if (on_gpu(c->device) && c->device.id < 0)
        c->device.id = t->device.id;
    else if (on_gpu(c->device) && t->device.id >= 0 && t->device.id != c->device.id)
        return refuse("array '%s' is on GPU %d, and the arrays before are on GPU %d", c->f->slot[i].info.name,
                      t->device.id, c->device.id);
    return true;
}

bool call_accept(struct call *c, int i, bool first)
{
    const struct slot *slot = &c->f->slot[i];
    const struct taken *t = &c->array[i];

    if (!take_type(t, slot))
        return wrong_type(c, i);
    if (!t->contiguous)
        return refuse("array '%s' does not lie in row-major order without gaps; give a copy that does, such as "
                      "numpy.ascontiguousarray(x)",
                      slot->info.name);
    if (!infer(c, i) || !same_place(c, i, first))
        return false;
    c->pointer[i] = t->data;
    return true;
}

/* The interface of a later array names another stream: its work comes first. */
static bool after_its_own(struct call *c, const struct taken *t)
{
    ptxgen_session *s = NULL;
    ptxgen_gpu *gpu = gpu_at(c->device.id < 0 ? 0 : c->device.id);

    if (gpu == NULL)
        return false;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    const ptxgen_status status = ptxgen_stream_wait(s, gpu, t->stream);
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return status == PTXGEN_OK;
}

static bool take_array(struct call *c, int i)
{
    struct slot *slot = &c->f->slot[i];
    struct taken *t = &c->array[i];
    const struct kind *kind = kind_of(c->object[i]);
    const bool first = c->leader.type == NULL;

    if (kind == NULL)
        return false;
    const struct kind own = *kind; /* taking an array may run Python's code, and other types may be looked up */
    if (first)
        c->leader = kind_keep(kind);
    ptxgen_stream stream = c->stream;
    PyObject *device = NULL;
    if (own.family == FAMILY_JAX && c->stream_object == NULL && (first || c->jax_device))
        device = jax_device(c->object[i], &stream);
    if (first && device)
        c->jax_device = device, c->stream = stream;
    if (device ? !take_jax(c->object[i], slot->name, c->stream, t)
               : !take(c->object[i], &own, slot->name, c->stream, t))
        return false;
    if (i >= c->f->inputs && (t->read_only || own.family == FAMILY_JAX))
        return refuse("output '%s' is read-only", slot->info.name);
    if (!call_accept(c, i, first))
        return false;
    if (first && on_gpu(c->device) && c->stream_object == NULL && c->jax_device == NULL &&
        !producer_stream(&own, t, c->device.id < 0 ? 0 : c->device.id, &c->stream))
        return false;
    return !t->has_stream || t->stream == c->stream || after_its_own(c, t);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */
/* Names in out= that are none of the outputs'. */
static bool known_names(const struct call *c)
{
    const Function *f = c->f;
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(c->out, &at, &key, &value)) {
        int o = 0;
        while (o < f->outputs && PyObject_RichCompareBool(key, f->slot[f->inputs + o].name, Py_EQ) == 0)
            o++;
        if (o == f->outputs) {
            PyErr_Format(PyExc_TypeError, "%U() has no output %R, which out= names", f->name, key);
            return false;
        }
    }
    return !PyErr_Occurred();
}

/* Of out=: an array, or a sequence or dict of them.  Owned: others may change the sequence during the call. */
static bool spread_out(struct call *c)
{
    const Function *f = c->f;
    const bool several = PyTuple_Check(c->out) || PyList_Check(c->out);

    if (PyDict_Check(c->out)) {
        for (int o = 0; o < f->outputs; o++)
            c->object[f->inputs + o] = PyDict_GetItemWithError(c->out, f->slot[f->inputs + o].name);
    } else if (several && PySequence_Size(c->out) == f->outputs) {
        for (int o = 0; o < f->outputs; o++)
            c->object[f->inputs + o] = PyTuple_Check(c->out) ? PyTuple_GetItem(c->out, o) : PyList_GetItem(c->out, o);
    } else if (!several && f->outputs == 1) {
        c->object[f->inputs] = c->out;
    }
    for (int o = 0; o < f->outputs; o++)
        Py_XINCREF(c->object[f->inputs + o]);
    if (PyErr_Occurred() || (PyDict_Check(c->out) && !known_names(c)))
        return false;
    for (int o = 0; o < f->outputs; o++)
        if (c->object[f->inputs + o] == NULL)
            return refuse("out is no array for each of the %d outputs; the first that misses one is '%s'", f->outputs,
                          f->slot[f->inputs + o].info.name);
    return true;
}

static bool take_outputs(struct call *c)
{
    for (int i = c->f->inputs; i < c->f->inputs + c->f->outputs; i++)
        if (!take_array(c, i))
            return false;
    return true;
}

static bool sizes_known(const struct call *c)
{
    for (int i = 0; i < c->f->sizes; i++)
        if (c->size[i] < 0) {
            const char *name = ptxgen_problem_size_name(c->f->problem, i);
            return refuse("size '%s' does not follow from the inputs; give it as %s=, or give out=", name, name);
        }
    return true;
}

static bool make_outputs(struct call *c)
{
    Function *f = c->f;

    c->made = true;
    for (int i = f->inputs; i < f->inputs + f->outputs; i++) {
        void *data;
        if (f->slot[i].info.role == PTXGEN_ROLE_CONTINUED)
            return refuse("the elements of output '%s' are combined with what it holds: give out=",
                          f->slot[i].info.name);
        c->object[i] = give(&f->slot[i], c->size, c->object[0], &c->leader, c->device, c->stream, &data);
        if (c->object[i] == NULL)
            return false;
        c->pointer[i] = data;
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */
void call_clear(struct call *c, Function *f)
{
    c->f = f;
    c->out = c->stream_object = NULL;
    c->leader = (struct kind){ .type = NULL };
    c->device = (struct dl_device){ DL_CPU, 0 };
    c->jax_device = NULL;
    c->made = false;
    c->stream = NULL;
    for (int i = 0; i < f->inputs + f->outputs; i++) {
        c->object[i] = NULL;
        c->pointer[i] = NULL;
        c->array[i].holds = HOLDS_NOTHING;
    }
    for (int i = 0; i < f->sizes; i++) {
        c->size[i] = f->size_given[i];
        c->size_from[i] = "sizes=";
    }
    for (int i = 0; i < f->params; i++)
        c->has_param[i] = false;
}

void call_pretend(struct call *c)
{
    for (int i = 0; i < c->f->inputs + c->f->outputs; i++)
        if (c->pointer[i] == NULL)
            c->pointer[i] = (const void *)((uintptr_t)(i + 1) << 40);
}

/* To prepare without arrays. */
static void pretend(struct call *c)
{
    call_pretend(c);
    if (c->leader.type == NULL)
        c->device = (struct dl_device){ DL_CUDA, 0 };
}

bool call_begin(struct call *c, Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *names, enum purpose why)
{
    call_clear(c, f);
    if (!call_words(c, args, nargs, names, why) || (c->stream_object && !stream_given(c->stream_object, &c->stream)))
        return false;
    for (int i = 0; i < f->inputs; i++)
        if (c->object[i] && !take_array(c, i))
            return false;
    if (c->out && (!spread_out(c) || !take_outputs(c)))
        return false;
    if (!sizes_known(c) || !call_places(c))
        return false;
    if (why == PREPARE)
        pretend(c);
    if (on_gpu(c->device) && c->device.id < 0)
        c->device.id = 0;
    if (why == CALL && c->leader.type == NULL)
        return refuse("'%s' has no inputs: give out=", ptxgen_problem_name(f->problem));
    return why == PREPARE || c->out || make_outputs(c);
}

ptxgen_arguments call_arguments(struct call *c)
{
    return (ptxgen_arguments){ c->size, c->pointer, (void *const *)(uintptr_t)(c->pointer + c->f->inputs), c->param };
}

/* Of sizes; two that have the same only make others wait while code is loaded. */
static uint64_t hash_of(const struct call *c)
{
    uint64_t hash = 1;

    for (int i = 0; i < c->f->sizes; i++)
        hash = (hash ^ (uint64_t)c->size[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 32;
    return hash | 1;
}

static bool is_warm(const struct loaded *on, uint64_t hash)
{
    for (int i = 0; i < AGAIN; i++)
        if (on->warm[i] == hash)
            return true;
    return false;
}

/* In one session, up to the first launch that fails: clearing its messages would not free them. While they are raised, another
 * thread may launch. */
static bool launch_warm(const struct loaded *on, const ptxgen_arguments *args, ptxgen_stream stream)
{
    static ptxgen_session *session;

    if (session == NULL && ptxgen_session_create(&session) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    ptxgen_session *s = session;
    const ptxgen_status status = ptxgen_launch(s, on->program, args, stream, NULL);
    if (status == PTXGEN_OK)
        return true;
    session = NULL;
    raise_status(status, s);
    ptxgen_session_destroy(s);
    return false;
}

/* With the GIL for what only launches; without it for what may load code. */
static bool run_on_gpu(struct call *c, enum purpose why, ptxgen_stage_visitor *visit, void *user)
{
    struct loaded *on = function_on(c->f, c->device.id);
    const uint64_t hash = hash_of(c);
    const ptxgen_arguments args = call_arguments(c);
    ptxgen_session *s = NULL;
    ptxgen_status status;

    if (on == NULL)
        return false;
    if (why == CALL && !visit && is_warm(on, hash))
        return launch_warm(on, &args, c->stream);
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    ptxgen_loaded *program = on->program;
    on->users++;
    Py_BEGIN_ALLOW_THREADS status = why == PREPARE ? ptxgen_prepare(s, program, &args, c->stream)
                                    : visit        ? ptxgen_launch_stages(s, program, &args, c->stream, visit, user)
                                                   : ptxgen_launch(s, program, &args, c->stream, NULL);
    Py_END_ALLOW_THREADS if (on->program == program)
    {
        on->users--;
        on->warm[on->next_warm] = status == PTXGEN_OK && !visit ? hash : 0; /* a visitor may have ended the run */
        on->next_warm = (on->next_warm + 1) % AGAIN;
    }
    if (status != PTXGEN_OK && !PyErr_Occurred())
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return !PyErr_Occurred();
}

/* An interrupt ends the run: Python's handlers of signals run in the main thread, wherever the call is. */
static int interrupted(void *unused)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    const int stop = PyErr_CheckSignals() != 0;

    (void)unused;
    PyGILState_Release(state);
    return stop;
}

static bool run_on_host(struct call *c, ptxgen_stage_visitor *visit, void *user)
{
    const ptxgen_arguments args = call_arguments(c);
    ptxgen_session *s = NULL;
    ptxgen_status status;

    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    function_lock(c->f);
    ptxgen_host *host = function_host(c->f);
    if (host) {
        ptxgen_host_watch(host, interrupted, NULL);
        Py_BEGIN_ALLOW_THREADS status =
            visit ? ptxgen_host_run_stages(s, host, &args, NULL, visit, user) : ptxgen_host_run(s, host, &args, NULL);
        Py_END_ALLOW_THREADS if (status != PTXGEN_OK && !PyErr_Occurred()) raise_status(status, s);
    }
    function_unlock(c->f);
    ptxgen_session_destroy(s);
    return host && !PyErr_Occurred();
}

bool call_run(struct call *c, enum purpose why, ptxgen_stage_visitor *visit, void *user)
{
    if (on_gpu(c->device))
        return run_on_gpu(c, why, visit, user);
    if (why == CALL)
        return run_on_host(c, visit, user);
    function_lock(c->f);
    const bool ok = function_host(c->f) != NULL;
    function_unlock(c->f);
    return ok;
}

PyObject *call_result(struct call *c)
{
    Function *f = c->f;
    PyObject *result;

    for (int i = f->inputs; i < f->inputs + f->outputs && c->made; i++)
        if ((c->object[i] = give_converted(c->object[i], &f->slot[i], c)) == NULL)
            return NULL;
    if (f->outputs == 1)
        return Py_NewRef(c->object[f->inputs]);
    result = PyStructSequence_New(f->result_type);
    for (int o = 0; result && o < f->outputs; o++)
        PyStructSequence_SetItem(result, o, Py_NewRef(c->object[f->inputs + o]));
    return result;
}

void call_end(struct call *c)
{
    for (int i = 0; i < c->f->inputs + c->f->outputs; i++)
        release(&c->array[i]);
    for (int i = c->f->inputs; i < c->f->inputs + c->f->outputs; i++)
        Py_XDECREF(c->object[i]);
    kind_drop(&c->leader);
}

PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    enum { OFFSET = 8 * sizeof(size_t) - 1 }; /* the top bit says that args[-1] may be written */
    struct call c;
    PyObject *result = NULL;

    const Py_ssize_t nargs = (Py_ssize_t)(nargsf & ~((size_t)1 << OFFSET));
    const bool like = again(&c, (Function *)self, args, nargs, names);
    if ((like ? c.out || make_outputs(&c) : call_begin(&c, (Function *)self, args, nargs, names, CALL)) &&
        call_run(&c, CALL, NULL, NULL)) {
        if (!like)
            again_learn(&c);
        result = call_result(&c);
        if (c.jax_device && !jax_wait(&c)) /* last: the GPU works while JAX makes the result */
            Py_CLEAR(result);
    }
    call_end(&c);
    return result;
}

PyObject *function_prepare(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct call c;
    const bool ok = call_begin(&c, (Function *)self, args, nargs, names, PREPARE) && call_run(&c, PREPARE, NULL, NULL);

    call_end(&c);
    return ok ? Py_NewRef(Py_None) : NULL;
}
