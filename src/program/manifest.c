/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - a program as JSON, with everything that a launcher in another language needs.
 *
 * docs/manifest.schema.json describes the form.  Formulas are given twice: as infix text for people, and as a postfix
 * array for a stack machine of a few lines.
 */
#include "manifest_impl.h"
#include "workspace.h"
#include "ptx_versions.h"

#include <stdio.h>

enum { MANIFEST_VERSION = 1 };

/* What the members of a case refer to. */
struct writer {
    struct json *j;
    const struct program *p;
    int c;
    struct formula_names names;
};

void manifest_list(struct json *j, const char *key)
{
    json_key(j, key);
    json_array(j);
}

static void formula(const struct writer *w, const char *key, const struct formula *f)
{
    json_key(w->j, key);
    if (f->n == 0) {
        json_null(w->j);
        return;
    }
    json_object(w->j);
    json_key(w->j, "text");
    formula_json_text(f, &w->names, w->j);
    json_key(w->j, "postfix");
    formula_json(f, &w->names, w->j);
    json_end(w->j);
}

/* ---- the interface: arrays, params, checks -------------------------------------------------------- */

static void dimension(struct json *j, const struct program *p, const struct prog_dim *d)
{
    json_object(j);
    if (d->size >= 0) {
        json_put_text(j, "size", p->size[d->size]);
        json_put_int(j, "add", d->add);
    } else {
        json_put_int(j, "constant", d->add);
    }
    json_end(j);
}

void manifest_array(struct json *j, const struct program *p, const struct prog_array *a)
{
    json_object(j);
    json_put_text(j, "name", a->name);
    json_put_int(j, "stride", a->stride);
    if (a->continued) {
        json_key(j, "continued");
        json_bool(j, true);
    }
    manifest_list(j, "fields");
    for (int f = 0; f < a->nfields; f++) {
        json_object(j);
        json_put_text(j, "name", a->field[f].name);
        json_put_text(j, "type", ty_name(a->field[f].type));
        json_put_int(j, "offset", a->field[f].offset);
        json_end(j);
    }
    json_end(j);
    manifest_list(j, "shape");
    for (int d = 0; d < a->rank; d++)
        dimension(j, p, &a->dim[d]);
    json_end(j);
    json_end(j);
}

void manifest_arrays(struct json *j, const struct program *p, const char *key, const struct prog_array *a, int count)
{
    manifest_list(j, key);
    for (int i = 0; i < count; i++)
        manifest_array(j, p, &a[i]);
    json_end(j);
}

static void scalar(struct json *j, enum ty type, union value v)
{
    if (ty_is_float(type))
        json_double(j, v.f);
    else if (type == TY_BOOL)
        json_bool(j, v.i != 0);
    else if (type == TY_U64)
        json_uint(j, v.u);
    else
        json_int(j, v.i);
}

void manifest_params(struct json *j, const struct program *p)
{
    manifest_list(j, "params");
    for (int i = 0; i < p->nparams; i++) {
        json_object(j);
        json_put_text(j, "name", p->param[i].name);
        json_put_text(j, "type", ty_name(p->param[i].type));
        if (p->param[i].has_default) {
            json_key(j, "default");
            scalar(j, p->param[i].type, p->param[i].value);
        }
        json_end(j);
    }
    json_end(j);
}

static void checks(struct json *j, const struct program *p)
{
    struct writer w = { j, p, -1, program_names(p, -1) };
    manifest_list(j, "checks");
    for (int i = 0; i < p->nchecks; i++) {
        json_object(j);
        formula(&w, "condition", &p->check[i].condition);
        json_put_text(j, "message", p->check[i].message);
        json_end(j);
    }
    json_end(j);
    program_names_finish(&w.names);
}

/* ---- cases ---------------------------------------------------------------------------------------- */

/* What an argument refers to, by name. */
static const char *referent(const struct writer *w, const struct prog_arg *a)
{
    switch (a->kind) {
    case ARG_FED:
    case ARG_INPUT: return w->p->input[a->index].name;
    case ARG_NEXT:
    case ARG_OUTPUT: return w->p->output[a->index].name;
    case ARG_PARAM: return w->p->param[a->index].name;
    case ARG_BUFFER: return w->p->cases[w->c].buffer[a->index].name;
    default: return NULL;
    }
}

static void argument(const struct writer *w, const struct prog_arg *a)
{
    static const char *const kinds[] = { "input", "output", "param", "buffer", "value", "fed", "next" };
    json_object(w->j);
    json_put_text(w->j, "name", a->name);
    json_put_text(w->j, "kind", kinds[a->kind]);
    if (a->kind == ARG_VALUE) {
        json_put_text(w->j, "type", ty_name(a->type));
        formula(w, "value", &a->value);
    } else {
        json_put_int(w->j, "index", a->index);
        json_put_text(w->j, "of", referent(w, a));
    }
    if (a->kind == ARG_FED || a->kind == ARG_NEXT) {
        json_put_int(w->j, "output", a->output);
        json_put_int(w->j, "buffer", a->buffer);
    }
    json_end(w->j);
}

static void kernel(const struct writer *w, const struct prog_kernel *k)
{
    json_object(w->j);
    json_put_text(w->j, "name", k->name);
    json_put_int(w->j, "module", k->module);
    json_put_int(w->j, "threads", k->threads);
    json_put_int(w->j, "cluster", k->cluster);
    json_put_int(w->j, "shared_static", k->shared_static);
    manifest_list(w->j, "args");
    for (int i = 0; i < k->nargs; i++)
        argument(w, &k->arg[i]);
    json_end(w->j);
    json_end(w->j);
}

static void buffer(const struct writer *w, int number_of)
{
    const struct prog_buffer *b = &w->p->cases[w->c].buffer[number_of];
    json_object(w->j);
    json_put_text(w->j, "name", b->name);
    json_put_text(w->j, "region", b->region == REGION_CONTROL ? "control" : "scratch");
    formula(w, "bytes", &b->bytes);
    if (b->region == REGION_CONTROL) {
        const struct control_place at = program_control_place(w->p, w->c, number_of);
        if (at.slot < 0)
            json_put_int(w->j, "offset", at.offset);
        else
            json_put_int(w->j, "slot", at.slot);
    }
    json_end(w->j);
}

static void step(const struct writer *w, const struct prog_step *s)
{
    json_object(w->j);
    json_put_int(w->j, "kernel", s->kernel);
    formula(w, "grid", &s->grid);
    formula(w, "shared", &s->shared);
    formula(w, "cluster", &s->cluster);
    formula(w, "repeat", &s->repeat);
    json_put_bool(w->j, "dependent", s->dependent);
    json_put_bool(w->j, "nonportable_cluster", s->nonportable_cluster);
    json_end(w->j);
}

static void one_case(struct json *j, const struct program *p, int c)
{
    struct writer w = { j, p, c, program_names(p, c) };
    const struct prog_case *k = &p->cases[c];
    json_object(j);
    json_put_text(j, "name", k->name);
    json_put_text(j, "strategy", k->strategy);
    formula(&w, "guard", &k->guard);
    manifest_list(j, "kernels");
    for (int i = 0; i < k->nkernels; i++)
        kernel(&w, &k->kernel[i]);
    json_end(j);
    manifest_list(j, "buffers");
    for (int i = 0; i < k->nbuffers; i++)
        buffer(&w, i);
    json_end(j);
    manifest_list(j, "steps");
    for (int i = 0; i < k->nsteps; i++)
        step(&w, &k->step[i]);
    json_end(j);
    json_end(j);
    program_names_finish(&w.names);
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static void target(struct json *j, const struct program *p)
{
    char version[16];
    const int cuda = ptx_oldest_cuda(p->ptx_version);
    json_key(j, "target");
    json_object(j);
    json_put_text(j, "arch", p->arch);
    snprintf(version, sizeof version, "%d.%d", p->ptx_version / 10, p->ptx_version % 10);
    json_put_text(j, "ptx", version);
    snprintf(version, sizeof version, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    json_put_text(j, "cuda", cuda > 0 ? version : NULL);
    json_end(j);
}

static void control(struct json *j, const struct program *p)
{
    int64_t fixed;
    int slots;
    program_control_layout(p, &fixed, &slots);
    json_key(j, "control");
    json_object(j);
    json_put_int(j, "fixed", fixed);
    json_put_int(j, "slots", slots);
    json_end(j);
}

void manifest_sizes(struct json *j, const struct program *p)
{
    manifest_list(j, "sizes");
    for (int i = 0; i < p->nsizes; i++)
        json_string(j, p->size[i]);
    json_end(j);
}

void manifest_program(struct json *j, const struct program *p)
{
    json_object(j);
    json_put_int(j, "manifest", MANIFEST_VERSION);
    json_put_text(j, "name", p->name);
    json_put_text(j, "kind", p->kind);
    json_put_text(j, "determinism", p->determinism);
    target(j, p);
    manifest_sizes(j, p);
    manifest_arrays(j, p, "inputs", p->input, p->ninputs);
    manifest_arrays(j, p, "outputs", p->output, p->noutputs);
    manifest_params(j, p);
    checks(j, p);
    control(j, p);
    manifest_list(j, "cases");
    for (int c = 0; c < p->ncases; c++)
        one_case(j, p, c);
    json_end(j);
    json_end(j);
}

void program_manifest(const struct program *p, struct str *out)
{
    struct json j;
    json_init(&j, out, true);
    manifest_program(&j, p);
    str_addc(out, '\n');
}
