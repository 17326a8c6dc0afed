/* SPDX-License-Identifier: Apache-2.0 */
/* stages_text.c - programs of several stages as files: one PTX text with the kernels of all stages, and the manifest. */
#include <stdlib.h>

#include "manifest_impl.h"
#include "stages.h"

enum { MANIFEST_VERSION = 2 };

void stages_ptx(const struct prog_stages *p, const struct program *const *stage, struct str *out)
{
    struct program all = *stage[0];
    all.nmodules = 0;
    for (int i = 0; i < p->nstages; i++)
        all.nmodules += stage[i]->nmodules;
    all.module = calloc((size_t)all.nmodules + 1, sizeof *all.module);
    for (int i = 0, n = 0; i < p->nstages && all.module; i++)
        for (int m = 0; m < stage[i]->nmodules; m++)
            all.module[n++] = stage[i]->module[m];
    if (all.module)
        program_ptx(&all, out);
    out->failed = out->failed || !all.module;
    free(all.module);
}

/* ---- the manifest ------------------------------------------------------------------------------------------------ */

static void array_names(struct json *j, const struct prog_stages *p, const char *key, const int *array, int count)
{
    manifest_list(j, key);
    for (int i = 0; i < count; i++)
        json_string(j, p->array[array[i]].array.name);
    json_end(j);
}

static void stage_object(struct json *j, const struct prog_stages *p, int number, const struct program *program)
{
    const struct prog_stage *s = &p->stage[number];
    json_object(j);
    json_put_text(j, "name", s->name);
    array_names(j, p, "inputs", s->input, s->ninputs);
    array_names(j, p, "outputs", s->output, s->noutputs);
    json_key(j, "program");
    manifest_program(j, program);
    json_end(j);
}

static void between(struct json *j, const struct prog_stages *p)
{
    manifest_list(j, "between");
    for (int i = 0; i < p->narrays; i++) {
        if (p->array[i].place != PLACE_BETWEEN)
            continue;
        json_object(j);
        json_key(j, "array");
        manifest_array(j, p->shape, &p->array[i].array);
        json_put_int(j, "first", p->array[i].first);
        json_put_int(j, "last", p->array[i].last);
        json_end(j);
    }
    json_end(j);
}

static void feedback(struct json *j, const struct prog_stages *p)
{
    manifest_list(j, "feedback");
    for (int i = 0; i < p->nfeedback; i++) {
        json_object(j);
        json_put_text(j, "input", p->array[p->feedback[i].input].array.name);
        json_put_text(j, "output", p->array[p->feedback[i].output].array.name);
        json_put_bool(j, "twin", p->feedback[i].twin);
        json_end(j);
    }
    json_end(j);
}

static void steps(struct json *j, const struct prog_stages *p)
{
    json_key(j, "steps");
    if (p->steps_param < 0)
        json_int(j, p->steps);
    else
        json_string(j, p->shape->param[p->steps_param].name);
    json_put_text(j, "until", p->until < 0 ? NULL : p->array[p->until].array.name);
    json_put_int(j, "check_every", p->check_every);
}

void stages_manifest(const struct prog_stages *p, const struct program *const *stage, struct str *out)
{
    struct json j;
    json_init(&j, out, true);
    json_object(&j);
    json_put_int(&j, "manifest", MANIFEST_VERSION);
    json_put_text(&j, "name", p->shape->name);
    json_put_text(&j, "kind", "stages");
    manifest_sizes(&j, p->shape);
    manifest_arrays(&j, p->shape, "inputs", p->shape->input, p->shape->ninputs);
    manifest_arrays(&j, p->shape, "outputs", p->shape->output, p->shape->noutputs);
    manifest_params(&j, p->shape);
    between(&j, p);
    steps(&j, p);
    feedback(&j, p);
    manifest_list(&j, "stages");
    for (int i = 0; i < p->nstages; i++)
        stage_object(&j, p, i, stage[i]);
    json_end(&j);
    json_end(&j);
    str_addc(out, '\n');
}
