/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - the public API, sessions and problems: thin wrappers that keep the promises of ptxgen.h.
 *
 * Every entry point that works in a session sets the arena's way out for exhausted memory, and turns what the stages
 * report (NULL and diagnostics) into a status.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_impl.h"
#include "frontend/stages/stages.h"

const char *ptxgen_version(void)
{
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
    return TEXT(PTXGEN_VERSION_MAJOR) "." TEXT(PTXGEN_VERSION_MINOR) "." TEXT(PTXGEN_VERSION_PATCH);
}

const char *ptxgen_status_text(ptxgen_status status)
{
    switch (status) {
    case PTXGEN_OK: return "ok";
    case PTXGEN_INVALID: return "the spec or the data is wrong";
    case PTXGEN_USAGE: return "an argument is wrong";
    case PTXGEN_UNSUPPORTED: return "not supported";
    case PTXGEN_NO_DEVICE: return "no device, driver, or device memory";
    case PTXGEN_NO_MEMORY: return "memory is exhausted";
    case PTXGEN_IO: return "a file could not be read";
    case PTXGEN_MISMATCH: return "the result differs from the reference";
    case PTXGEN_FINDING: return "the host executor found a fault in a kernel";
    case PTXGEN_INTERNAL: return "internal error";
    case PTXGEN_RANKS: return "the ranks do not agree, or one does not answer";
    case PTXGEN_STOPPED: return "the watcher ended the run";
    }
    return "unknown status";
}

void ptxgen_free(void *p) { free(p); }

/* ---- sessions and diagnostics ------------------------------------------------------------------------------------ */

ptxgen_status ptxgen_session_create(ptxgen_session **out)
{
    if (!out)
        return PTXGEN_USAGE;
    ptxgen_session *s = *out = calloc(1, sizeof *s);
    if (!s)
        return PTXGEN_NO_MEMORY;
    arena_init(&s->arena);
    diags_init(&s->diags, &s->arena);
    return PTXGEN_OK;
}

void ptxgen_session_destroy(ptxgen_session *s)
{
    if (!s || atomic_fetch_sub(&s->holders, 1) > 0)
        return;
    arena_finish(&s->arena);
    free(s);
}

void ptxgen_session_log(ptxgen_session *s, ptxgen_log_level most, ptxgen_log_function *log, void *user)
{
    if (s) {
        s->log = log;
        s->log_most = most;
        s->log_user = user;
    }
}

static const struct diag *nth(const ptxgen_session *s, int i)
{
    const struct diag *d = s->diags.first;
    while (d && i-- > 0)
        d = d->next;
    return d;
}

int ptxgen_diagnostic_count(const ptxgen_session *s)
{
    int n = 0;
    for (const struct diag *d = s ? s->diags.first : NULL; d; d = d->next)
        n++;
    return n;
}

ptxgen_status ptxgen_diagnostic_get(const ptxgen_session *s, int i, ptxgen_diagnostic *out)
{
    const struct diag *d = !s || !out || i < 0 ? NULL : nth(s, i);
    if (!d)
        return PTXGEN_USAGE;
    *out = (ptxgen_diagnostic){
        .severity = (ptxgen_severity)d->severity, .code = d->code, .message = d->text, .hint = d->hint
    };
    if (d->at.begin != SPAN_NONE) {
        out->file = d->source.file;
        diag_position(&d->source, d->at.begin, &out->line, &out->column);
        diag_position(&d->source, d->at.end, &out->end_line, &out->end_column);
    }
    return PTXGEN_OK;
}

void ptxgen_diagnostics_clear(ptxgen_session *s)
{
    if (s)
        diags_clear(&s->diags);
}

char *ptxgen_diagnostics_text(const ptxgen_session *s, int colour)
{
    struct str out = { 0 };
    if (!s)
        return NULL;
    diags_render_text(&s->diags, &out, colour != 0);
    return str_take(&out);
}

char *ptxgen_diagnostics_json(const ptxgen_session *s)
{
    struct str out = { 0 };
    if (!s)
        return NULL;
    diags_render_json(&s->diags, &out);
    return str_take(&out);
}

int ptxgen_explain_code(int code, const char **title, const char **text)
{
    return title && text && diag_explain(code, title, text);
}

/* ---- problems ---------------------------------------------------------------------------------------------------- */

static void array_info(struct arena *a, const struct prog_array *array, ptxgen_role role, ptxgen_array_info *out)
{
    const char **name = arena_new(a, const char *, array->nfields);
    ptxgen_type *type = arena_new(a, ptxgen_type, array->nfields);
    size_t *offset = arena_new(a, size_t, array->nfields);
    for (int f = 0; f < array->nfields; f++) {
        name[f] = array->field[f].name;
        type[f] = (ptxgen_type)array->field[f].type;
        offset[f] = (size_t)array->field[f].offset;
    }
    *out = (ptxgen_array_info){ .name = array->name,
                                .rank = array->rank,
                                .field_count = array->nfields,
                                .field_name = name,
                                .field_type = type,
                                .field_offset = offset,
                                .element_size = (size_t)array->stride,
                                .role = role };
    for (int d = 0; d < array->rank; d++) {
        out->size_index[d] = array->dim[d].size;
        out->size_add[d] = array->dim[d].add;
    }
}

/* What a call is checked against, in the form that programs have. */
static const struct program *shape_of(struct arena *a, const struct problem *p)
{
    struct program *shape = arena_new(a, struct program, 1);
    const char **size = arena_new(a, const char *, p->nsizes + 1);
    *shape = (struct program){ .name = p->name,
                               .nsizes = p->nsizes,
                               .size = size,
                               .ninputs = p->ninputs,
                               .noutputs = p->noutputs,
                               .nparams = p->nparams,
                               .input = arena_new(a, struct prog_array, p->ninputs + 1),
                               .output = arena_new(a, struct prog_array, p->noutputs + 1),
                               .param = (struct prog_param *)(uintptr_t)p->param };
    for (int i = 0; i < p->nsizes; i++)
        size[i] = p->size[i].name;
    for (int i = 0; i < p->ninputs; i++)
        shape->input[i] = *problem_array(p, i);
    for (int i = 0; i < p->noutputs; i++)
        shape->output[i] = *problem_array(p, p->ninputs + i);
    return shape;
}

_Static_assert((int)PTXGEN_ROLE_SEGMENT_FLAGS == ROLE_FLAGS && (int)PTXGEN_ROLE_GATHER_OFFSETS == ROLE_GATHER &&
                   (int)PTXGEN_ROLE_TABLE == ROLE_TABLE && (int)PTXGEN_DETERMINISM_DEVICE == DET_DEVICE,
               "public roles and determinisms are those of problem.h");

/* Inputs, then outputs. */
static ptxgen_array_info *array_at(const ptxgen_problem *p, int i)
{
    return i < p->shape->ninputs ? &p->input[i] : &p->output[i - p->shape->ninputs];
}

const ptxgen_array_info *ptxgen_problem_array(const ptxgen_problem *p, const char *name)
{
    for (int i = 0; p && name && i < p->shape->ninputs + p->shape->noutputs; i++)
        if (!strcmp(array_at(p, i)->name, name))
            return array_at(p, i);
    return NULL;
}

/* A handle with what is known of any spec; of inputs and outputs the roles are still missing. */
static ptxgen_problem *handle_new(ptxgen_session *s, const struct program *shape)
{
    ptxgen_problem *handle = arena_new(&s->arena, ptxgen_problem, 1);
    handle->shape = shape;
    handle->input = arena_new(&s->arena, ptxgen_array_info, shape->ninputs);
    handle->output = arena_new(&s->arena, ptxgen_array_info, shape->noutputs);
    for (int i = 0; i < shape->ninputs + shape->noutputs; i++) {
        ptxgen_array_info *info = array_at(handle, i);
        const bool output = i >= shape->ninputs;
        array_info(&s->arena, output ? &shape->output[i - shape->ninputs] : &shape->input[i], PTXGEN_ROLE_ELEMENTS,
                   info);
        info->is_output = output;
        info->index = output ? i - shape->ninputs : i;
    }
    return handle;
}

ptxgen_problem *api_problem_handle(ptxgen_session *s, const struct problem *p)
{
    ptxgen_problem *handle = handle_new(s, shape_of(&s->arena, p));
    handle->problem = p;
    for (int i = 0; i < p->ninputs; i++)
        handle->input[i].role = (ptxgen_role)p->input[i].role;
    for (int i = 0; i < p->noutputs; i++)
        handle->output[i].role = p->output[i].array.continued               ? PTXGEN_ROLE_CONTINUED
                                 : output_moment(&p->output[i]) == AT_TOTAL ? PTXGEN_ROLE_SEGMENT_RESULTS
                                                                            : PTXGEN_ROLE_ELEMENTS;
    return handle;
}

/* An input of the whole has the role that it has in the first stage that reads it. */
static void roles_of_stages(ptxgen_problem *whole)
{
    const struct prog_stages *p = &whole->stages->data;
    for (int i = p->nstages - 1; i >= 0; i--)
        for (int k = 0; k < p->stage[i].ninputs; k++) {
            const struct stage_array *a = &p->array[p->stage[i].input[k]];
            if (a->place == PLACE_INPUT)
                whole->input[a->index].role = whole->stage[i]->input[k].role;
        }
}

static ptxgen_problem *stages_handle(ptxgen_session *s, const struct stages *stages)
{
    ptxgen_problem *handle = handle_new(s, stages->data.shape);
    handle->stages = stages;
    handle->stage = arena_new(&s->arena, ptxgen_problem *, stages->data.nstages);
    for (int i = 0; i < stages->data.nstages; i++)
        handle->stage[i] = api_problem_handle(s, stages->problem[i]);
    handle->fused = arena_new(&s->arena, ptxgen_problem *, stages->nfusions + 1);
    for (int i = 0; i < stages->nfusions; i++)
        handle->fused[i] = stages->fusion[i].into ? api_problem_handle(s, stages->fusion[i].problem) : NULL;
    roles_of_stages(handle);
    return handle;
}

static ptxgen_status problem_from(ptxgen_session *s, const char *file, const char *text, size_t length,
                                  const char *name, ptxgen_problem **out)
{
    struct frontend_spec spec;
    bool built = false;
    const double begin = session_now();
    WITH_MEMORY(s, {
        /* Messages refer to the text after this call, so the session keeps a copy. */
        const char *kept = arena_strndup(&s->arena, text, length);
        built = frontend_build(s, arena_strdup(&s->arena, file), kept, length, name, &spec);
        if (built)
            *out = spec.stages ? stages_handle(s, spec.stages) : api_problem_handle(s, spec.problem);
    });
    if (built)
        session_log(s, PTXGEN_LOG_DEBUG, begin, "%s: read from %s", (*out)->shape->name, file);
    return built ? PTXGEN_OK : PTXGEN_INVALID;
}

ptxgen_status ptxgen_problem_from_string(ptxgen_session *s, const char *text, size_t length, const char *name,
                                         ptxgen_problem **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, text, out);
    return problem_from(s, name ? name : "<string>", text, length, name ? name : "problem", out);
}

enum { FILE_MAX = 64 << 20 }; /* no spec is so long; a device may have no end */

/* The whole file in malloc memory; NULL: errno says why. */
static char *read_file(const char *path, size_t *length)
{
    struct str text = { 0 };
    char buffer[1 << 16];
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    for (size_t n; text.length <= FILE_MAX && (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        str_addn(&text, buffer, n);
    const int failed = ferror(f) ? errno : text.length > FILE_MAX ? EFBIG : 0;
    fclose(f);
    *length = text.length;
    char *taken = str_take(&text);
    if (failed) {
        free(taken);
        errno = failed;
        return NULL;
    }
    return taken;
}

/* "dir/3d-x.yaml" names the problem "3d-x"; the frontend makes an identifier of it. */
static char *stem(ptxgen_session *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *from = slash ? slash + 1 : path;
    const char *dot = strrchr(from, '.');
    return arena_strndup(&s->arena, from, dot && dot > from ? (size_t)(dot - from) : strlen(from));
}

ptxgen_status ptxgen_problem_from_file(ptxgen_session *s, const char *path, ptxgen_problem **out)
{
    size_t length;
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, path, out);
    char *text = read_file(path, &length);
    if (!text) {
        const int reason = errno;
        WITH_MEMORY(s, {
            s->diags.file = arena_strdup(&s->arena, path);
            diag_error(&s->diags, D_FILE, span_none(), "cannot be read: %s", strerror(reason));
        });
        return PTXGEN_IO;
    }
    const char *name = NULL;
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom)) {
        free(text);
        return PTXGEN_NO_MEMORY;
    }
    name = stem(s, path);
    const ptxgen_status status = problem_from(s, path, text, length, name, out);
    free(text);
    return status;
}

ptxgen_determinism ptxgen_problem_determinism(const ptxgen_problem *p)
{
    if (!p)
        return PTXGEN_DETERMINISM_ANY;
    return (ptxgen_determinism)(p->stages ? p->stages->determinism : p->problem->determinism);
}
const char *ptxgen_problem_name(const ptxgen_problem *p) { return p ? p->shape->name : NULL; }

_Static_assert((int)PTXGEN_BOOL == TY_BOOL && (int)PTXGEN_F16 == TY_F16 && (int)PTXGEN_F64 == TY_F64,
               "public types are the rows of types.h");

static bool is_type(ptxgen_type t) { return (unsigned)t <= PTXGEN_F64; }
const char *ptxgen_type_name(ptxgen_type t) { return is_type(t) ? ty_name((enum ty)t) : NULL; }
size_t ptxgen_type_size(ptxgen_type t) { return is_type(t) ? (size_t)ty_bytes((enum ty)t) : 0; }

ptxgen_value ptxgen_value_load(ptxgen_type t, const void *p)
{
    const union value v = p && is_type(t) ? value_load((enum ty)t, p) : (union value){ 0 };
    return (ptxgen_value){ .u = v.u };
}

void ptxgen_value_store(ptxgen_type t, void *p, ptxgen_value v)
{
    if (p && is_type(t))
        value_store((enum ty)t, p, (union value){ .u = v.u });
}

int ptxgen_problem_size_count(const ptxgen_problem *p) { return p ? p->shape->nsizes : 0; }
int ptxgen_problem_input_count(const ptxgen_problem *p) { return p ? p->shape->ninputs : 0; }
int ptxgen_problem_output_count(const ptxgen_problem *p) { return p ? p->shape->noutputs : 0; }
int ptxgen_problem_param_count(const ptxgen_problem *p) { return p ? p->shape->nparams : 0; }

const char *ptxgen_problem_size_name(const ptxgen_problem *p, int i)
{
    return p && i >= 0 && i < p->shape->nsizes ? p->shape->size[i] : NULL;
}

ptxgen_status ptxgen_problem_input(const ptxgen_problem *p, int i, ptxgen_array_info *out)
{
    if (!p || !out || i < 0 || i >= p->shape->ninputs)
        return PTXGEN_USAGE;
    *out = p->input[i];
    return PTXGEN_OK;
}

ptxgen_status ptxgen_problem_output(const ptxgen_problem *p, int i, ptxgen_array_info *out)
{
    if (!p || !out || i < 0 || i >= p->shape->noutputs)
        return PTXGEN_USAGE;
    *out = p->output[i];
    return PTXGEN_OK;
}

ptxgen_status ptxgen_problem_param(const ptxgen_problem *p, int i, ptxgen_param_info *out)
{
    if (!p || !out || i < 0 || i >= p->shape->nparams)
        return PTXGEN_USAGE;
    const struct prog_param *q = &p->shape->param[i];
    *out = (ptxgen_param_info){ .name = q->name,
                                .type = (ptxgen_type)q->type,
                                .has_default = q->has_default,
                                .default_value = { .u = q->value.u } };
    return PTXGEN_OK;
}

char *ptxgen_problem_text(const ptxgen_problem *p)
{
    struct str out = { 0 };
    if (!p)
        return NULL;
    if (p->stages)
        stages_print(p->stages, &out);
    else
        problem_print(p->problem, &out);
    return str_take(&out);
}

char *ptxgen_problem_dot(const ptxgen_problem *p)
{
    struct str out = { 0 };
    if (!p)
        return NULL;
    if (p->stages)
        stages_dot(p->stages, &out);
    else
        problem_dot(p->problem, p->shape, &out);
    return str_take(&out);
}

char *ptxgen_schema(void)
{
    struct str out = { 0 };
    problem_schema(&out);
    return str_take(&out);
}
