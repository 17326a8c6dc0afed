/* SPDX-License-Identifier: Apache-2.0 */
/* jax.c - calls from programs that JAX compiled: handlers of XLA's interface for functions of others.
 *
 * A call in a program has one attribute, `call`: the key of a record that ptxgen/jax.py made when it traced the call, with
 * the function, all sizes and params.  Keys follow from the contents of records, so that a program from JAX's cache finds
 * the record that this process made.  The last result is the workspace: XLA plans it like every other buffer, so a call
 * allocates nothing, command buffers may keep calls, and calls in different places of a program may overlap.  Where the
 * workspace is too small - on a GPU of another kind than the one that was asked, or none was - the call works in memory
 * that the program keeps for the stream, as calls with arrays do.
 */
#include <string.h>

#include "native.h"
#include "xla_ffi.h"

enum { ALIGNED = 256 };

struct record {
    Function *f; /* owned */
    int64_t size[NAMES_MAX];
    ptxgen_value param[NAMES_MAX];
    bool ready[DEVICES_MAX]; /* its code is loaded */
};
static int asking_device; /* one that is in use anyway: the driver is asked there of which device a stream is */
static PyObject *records; /* dict from keys to capsules; records live until the process ends, as programs of JAX may */

/* ---- records ----------------------------------------------------------------------------------------------------- */
static void start(struct call *c, const struct record *r)
{
    call_clear(c, r->f);
    for (int i = 0; i < r->f->sizes; i++) {
        c->size[i] = r->size[i];
        c->size_from[i] = "the traced call";
    }
    memcpy(c->param, r->param, sizeof *r->param * (size_t)r->f->params);
}

static size_t whole(size_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

/* All code on a device, so that later calls only launch.  Without the GIL: the driver may compile. */
static bool make_ready(struct record *r, struct loaded *on, int device)
{
    ptxgen_session *s = NULL;
    ptxgen_loaded *program = on->program;
    ptxgen_status status;

    if (r->ready[device])
        return true;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    on->users++;
    Py_BEGIN_ALLOW_THREADS status = ptxgen_prepare(s, program, NULL, NULL);
    Py_END_ALLOW_THREADS if (on->program == program) on->users--;
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    r->ready[device] = status == PTXGEN_OK;
    return r->ready[device];
}

/* Bytes of workspace on a device; -1: an exception is set. */
static long long workspace_bytes(struct record *r, int device)
{
    struct call c;
    ptxgen_workspace w;
    struct loaded *on = function_on(r->f, device);

    if (on == NULL || !make_ready(r, on, device))
        return -1;
    start(&c, r);
    call_pretend(&c);
    const ptxgen_arguments args = call_arguments(&c);
    const ptxgen_status status = ptxgen_workspace_query(r->f->session, on->program, &args, &w);
    if (status != PTXGEN_OK) {
        raise_status(status, r->f->session);
        ptxgen_diagnostics_clear(r->f->session);
        return -1;
    }
    return (long long)(whole(w.control_bytes) + whole(w.scratch_bytes));
}

/* From the words of a call: all sizes, and params without those that have their defaults. */
static struct record *read_record(Function *f, PyObject *words)
{
    struct call c;
    PyObject *values[2 * NAMES_MAX], *key, *names = PyTuple_New(PyDict_Size(words));
    struct record *r = names ? PyMem_Calloc(1, sizeof *r) : NULL;
    Py_ssize_t at = 0;

    for (int o = f->inputs; r && o < f->inputs + f->outputs; o++)
        if (f->slot[o].info.role == PTXGEN_ROLE_CONTINUED) {
            refuse("the elements of output '%s' are combined with what it holds, and JAX's results hold nothing before",
                   f->slot[o].info.name);
            PyMem_Free(r);
            r = NULL;
        }
    for (int n = 0; r && n < 2 * NAMES_MAX && PyDict_Next(words, &at, &key, &values[n]); n++)
        PyTuple_SetItem(names, n, Py_NewRef(key));
    call_clear(&c, f);
    if (r && call_words(&c, values, 0, names, PREPARE)) {
        r->f = (Function *)Py_NewRef((PyObject *)f);
        memcpy(r->size, c.size, sizeof *c.size * (size_t)f->sizes);
        memcpy(r->param, c.param, sizeof *c.param * (size_t)f->params);
    } else {
        PyMem_Free(r);
        r = NULL;
    }
    Py_XDECREF(names);
    return r;
}

/* (key, function, words, device or -1): bytes of workspace, 0 without a device. */
PyObject *jax_record(PyObject *module, PyObject *args)
{
    PyObject *key, *f, *words, *known;
    int device;

    (void)module;
    if (!PyArg_ParseTuple(args, "SO!O!i", &key, Function_type, &f, &PyDict_Type, &words, &device) ||
        (records == NULL && (records = PyDict_New()) == NULL))
        return NULL;
    if ((known = PyDict_GetItemWithError(records, key)) == NULL && !PyErr_Occurred()) {
        struct record *r = read_record((Function *)f, words);
        PyObject *made = r ? PyCapsule_New(r, NULL, NULL) : NULL;
        if (made && PyDict_SetItem(records, key, made) == 0)
            known = made;
        Py_XDECREF(made);
    }
    if (known == NULL)
        return NULL;
    if (device >= 0)
        asking_device = device;
    const long long bytes = device < 0 ? 0 : workspace_bytes(PyCapsule_GetPointer(known, NULL), device);
    return bytes < 0 ? NULL : PyLong_FromLongLong(bytes);
}

static struct record *find_record(const struct xla_frame *frame)
{
    for (int64_t i = 0; i < frame->attributes.count; i++) {
        const struct xla_text *name = frame->attributes.name[i], *text = frame->attributes.value[i];
        if (frame->attributes.kind[i] != XLA_STRING || name->length != 4 || memcmp(name->text, "call", 4) != 0)
            continue;
        PyObject *key = PyBytes_FromStringAndSize(text->text, (Py_ssize_t)text->length);
        PyObject *known = key && records ? PyDict_GetItemWithError(records, key) : NULL;
        Py_XDECREF(key);
        if (known)
            return PyCapsule_GetPointer(known, NULL);
        if (!PyErr_Occurred())
            refuse("this process has not traced the call '%.*s' of ptxgen", (int)text->length, text->text);
        return NULL;
    }
    refuse("a call of ptxgen has no attribute 'call'");
    return NULL;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */
static struct dl_type element_type(int xla)
{
    static const struct dl_type types[] = {
        { 0, 0, 0 },           { DL_BOOL, 8, 1 },    { DL_INT, 8, 1 },    { DL_INT, 16, 1 },  { DL_INT, 32, 1 },
        { DL_INT, 64, 1 },     { DL_UINT, 8, 1 },    { DL_UINT, 16, 1 },  { DL_UINT, 32, 1 }, { DL_UINT, 64, 1 },
        { DL_FLOAT, 16, 1 },   { DL_FLOAT, 32, 1 },  { DL_FLOAT, 64, 1 }, { 0, 0, 0 },        { 0, 0, 0 },
        { DL_COMPLEX, 64, 1 }, { DL_BFLOAT, 16, 1 },
    };
    const int count = (int)(sizeof types / sizeof *types);

    return xla >= 0 && xla < count ? types[xla] : types[0];
}

static bool take_buffer(struct call *c, int i, const struct xla_list *list, int64_t at, struct dl_device device)
{
    const struct xla_buffer *b = list->value[at];
    struct taken *t = &c->array[i];

    if (list->kind[at] != XLA_BUFFER || b->rank > RANK_MAX)
        return refuse("array '%s' is no buffer, or has more than %d dimensions", c->f->slot[i].info.name, RANK_MAX);
    *t = (struct taken){ .data = b->data,
                         .type = element_type(b->type),
                         .contiguous = true,
                         .ndim = (int)b->rank,
                         .device = device,
                         .holds = HOLDS_NOTHING };
    memcpy(t->shape, b->shape, sizeof *b->shape * (size_t)b->rank);
    return call_accept(c, i, i == 0);
}

static bool take_buffers(struct call *c, const struct xla_frame *frame, struct dl_device device)
{
    const Function *f = c->f;

    if (frame->arguments.count != f->inputs || frame->results.count != f->outputs + 1)
        return refuse("'%s' was called with %lld inputs and %lld outputs", ptxgen_problem_name(f->problem),
                      (long long)frame->arguments.count, (long long)frame->results.count - 1);
    for (int i = 0; i < f->inputs + f->outputs; i++)
        if (!take_buffer(c, i, i < f->inputs ? &frame->arguments : &frame->results, i < f->inputs ? i : i - f->inputs,
                         device))
            return false;
    return call_places(c);
}

/* XLA's stream, and the device that it is of. */
static bool find_stream(const struct xla_frame *frame, ptxgen_stream *stream, int *device)
{
    ptxgen_gpu *any = gpu_at(asking_device);
    struct xla_stream asked = { .bytes = sizeof asked, .context = frame->context };
    void *error = any ? frame->api->stream_get(&asked) : NULL;
    ptxgen_session *s = NULL;

    if (error) {
        struct xla_error_end end = { .bytes = sizeof end, .error = error };
        frame->api->error_destroy(&end);
        return refuse("XLA gives no stream");
    }
    if (any == NULL || ptxgen_session_create(&s) != PTXGEN_OK)
        return any != NULL && PyErr_NoMemory() != NULL;
    *stream = asked.stream;
    const ptxgen_status status = ptxgen_stream_device(s, any, *stream, device);
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return status == PTXGEN_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */
static ptxgen_status launch(ptxgen_session *s, ptxgen_loaded *program, const ptxgen_arguments *args,
                            ptxgen_stream stream, const struct xla_buffer *memory)
{
    ptxgen_workspace w;
    ptxgen_status status = ptxgen_workspace_query(s, program, args, &w);

    if (status != PTXGEN_OK)
        return status;
    const size_t control = whole(w.control_bytes), bytes = control + w.scratch_bytes;
    if (memory->rank != 1 || (size_t)memory->shape[0] < bytes || (uintptr_t)memory->data % ALIGNED != 0)
        return ptxgen_launch(s, program, args, stream, NULL);
    w.control = memory->data;
    w.scratch = (char *)memory->data + control;
    status = ptxgen_workspace_reset(s, program, &w, stream);
    return status == PTXGEN_OK ? ptxgen_launch(s, program, args, stream, &w) : status;
}

/* Without the GIL: a loop whose end the host looks at waits for the stream. */
static bool run_on_stream(struct call *c, struct loaded *on, const struct xla_buffer *memory)
{
    const ptxgen_arguments args = call_arguments(c);
    ptxgen_loaded *program = on->program;
    ptxgen_session *s = NULL;
    ptxgen_status status;

    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return PyErr_NoMemory() != NULL;
    on->users++;
    Py_BEGIN_ALLOW_THREADS status = launch(s, program, &args, c->stream, memory);
    Py_END_ALLOW_THREADS if (on->program == program) on->users--;
    if (status != PTXGEN_OK)
        raise_status(status, s);
    ptxgen_session_destroy(s);
    return status == PTXGEN_OK;
}

static bool serve_gpu(const struct xla_frame *frame, struct record *r)
{
    struct call c;
    struct loaded *on;
    int device;

    start(&c, r);
    if (!find_stream(frame, &c.stream, &device) || (on = function_on(r->f, device)) == NULL ||
        !make_ready(r, on, device))
        return false;
    if (frame->stage != XLA_EXECUTE)
        return true;
    return take_buffers(&c, frame, (struct dl_device){ DL_CUDA, device }) &&
           run_on_stream(&c, on, frame->results.value[r->f->outputs]);
}

static bool serve_host(const struct xla_frame *frame, struct record *r)
{
    struct call c;

    start(&c, r);
    return take_buffers(&c, frame, (struct dl_device){ DL_CPU, 0 }) && call_run(&c, CALL, NULL, NULL);
}

/* ---- handlers ---------------------------------------------------------------------------------------------------- */
/* The exception as XLA has errors. */
static void *error_of(const struct xla_api *api)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *usage = find_imported("ptxgen", "UsageError"), *text = PyObject_Str(value);
    const char *said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    struct xla_new_error error = { .bytes = sizeof error,
                                   .message = said ? said : "ptxgen: an error without a text",
                                   .code = usage && PyErr_GivenExceptionMatches(type, usage) ? XLA_INVALID_ARGUMENT
                                                                                             : XLA_INTERNAL };
    void *made = api->error_create(&error);

    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(usage);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return made;
}

/* XLA asks for the version that a handler was made for; what is used here is in every version 0.x. */
static bool tell_metadata(const struct xla_frame *frame, uint32_t traits)
{
    for (struct xla_extension *e = frame->extension; e; e = e->next) {
        if (e->type != XLA_METADATA)
            continue;
        struct xla_metadata *m = ((struct xla_metadata_extension *)(void *)e)->metadata;
        m->version.major = 0;
        m->version.minor = frame->api ? frame->api->version.minor : 1;
        m->traits = traits;
        return true;
    }
    return false;
}

static void *handle(const struct xla_frame *frame, uint32_t traits,
                    bool (*serve)(const struct xla_frame *, struct record *))
{
    if (tell_metadata(frame, traits))
        return NULL;
    const PyGILState_STATE state = PyGILState_Ensure();
    struct record *r = find_record(frame);
    void *error = r && serve(frame, r) ? NULL : error_of(frame->api);

    PyGILState_Release(state);
    return error;
}

static void *on_gpu_captured(struct xla_frame *frame) { return handle(frame, XLA_CAPTURABLE, serve_gpu); }
static void *on_gpu_alone(struct xla_frame *frame) { return handle(frame, 0, serve_gpu); }
static void *on_host(struct xla_frame *frame) { return handle(frame, 0, serve_host); }

static PyObject *capsule(void *(*handler)(struct xla_frame *))
{
    void *address;

    memcpy(&address, &handler, sizeof address);
    return PyCapsule_New(address, "xla._CUSTOM_CALL_TARGET", NULL);
}

/* What jax.ffi.register_ffi_target() takes: {(target, platform): {stage: handler}}. */
PyObject *jax_handlers(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return Py_BuildValue("{(ss):{sNsN},(ss):{sNsN},(ss):{sN},(ss):{sN}}", "ptxgen", "CUDA", "initialize",
                         capsule(on_gpu_captured), "execute", capsule(on_gpu_captured), "ptxgen_waits", "CUDA",
                         "initialize", capsule(on_gpu_alone), "execute", capsule(on_gpu_alone), "ptxgen", "cpu",
                         "execute", capsule(on_host), "ptxgen_waits", "cpu", "execute", capsule(on_host));
}
