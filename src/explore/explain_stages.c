/* SPDX-License-Identifier: Apache-2.0 */
/* explain_stages.c - a program of stages explained: each stage as a spec of its own, and what belongs to all of them. */
#include "explain.h"

#include <string.h>

/* "# stage move: reads x, member; writes next" */
static void head(const struct prog_stages *p, int stage, struct str *out)
{
    const struct prog_stage *s = &p->stage[stage];
    str_printf(out, "%s# stage %s:", stage ? "\n" : "", s->name);
    for (int i = 0; i < s->ninputs + s->noutputs; i++) {
        const int array = i < s->ninputs ? s->input[i] : s->output[i - s->ninputs];
        str_printf(out, "%s%s", i == 0 ? " reads " : i == s->ninputs ? "; writes " : ", ", p->array[array].array.name);
    }
    str_add(out, "\n");
}

/* "# fused into it: a, b" */
static void heads_with(const struct stages *s, const char *stage, struct str *out)
{
    bool any = false;
    for (int i = 0; i < s->nfusions; i++)
        if (s->fusion[i].into && !strcmp(s->fusion[i].into, stage)) {
            str_printf(out, any ? ", %s" : "# fused into it: %s", s->fusion[i].stage);
            any = true;
        }
    str_add(out, any ? "\n" : "");
}

static void explain_apart(const struct stages *s, struct str *out)
{
    bool any = false;
    for (int i = 0; i < s->nfusions; i++)
        if (s->fusion[i].why) {
            str_printf(out, "%s  %s: %s\n", any ? "" : "\nNot fused:\n", s->fusion[i].stage, s->fusion[i].why);
            any = true;
        }
}

/* What has become of maps: [{"stage": "a", "into": "b"}, {"stage": "c", "apart": "…"}] */
static void fusions_json(const struct stages *s, struct str *out)
{
    struct json j;
    json_init(&j, out, false);
    json_array(&j);
    for (int i = 0; i < s->nfusions; i++) {
        json_object(&j);
        json_put_text(&j, "stage", s->fusion[i].stage);
        json_put_text(&j, s->fusion[i].into ? "into" : "apart",
                      s->fusion[i].into ? s->fusion[i].into : s->fusion[i].why);
        json_end(&j);
    }
    json_end(&j);
}

static void put_known(struct json *j, const char *key, bool known, double value)
{
    if (known)
        json_put_double(j, key, value);
    else {
        json_key(j, key);
        json_null(j);
    }
}

/* What the stages take together, in one step of the loop. */
static void totals_json(const struct explained_stages *x, struct str *out)
{
    struct json j;
    json_init(&j, out, false);
    json_object(&j);
    json_put_bool(&j, "repeated", stages_repeat(&x->stages->data));
    put_known(&j, "predicted_us", x->predicted, x->seconds * 1e6);
    put_known(&j, "predicted_graph_us", x->predicted, x->graph_seconds * 1e6);
    put_known(&j, "launches", x->predicted, (double)x->launches);
    put_known(&j, "roofline_us", x->bounded, x->least * 1e6);
    put_known(&j, "bytes_read", x->bounded, (double)x->read);
    put_known(&j, "bytes_written", x->bounded, (double)x->written);
    put_known(&j, "bytes_between", x->placed, (double)x->layout.bytes);
    json_end(&j);
}

bool stages_repeat(const struct prog_stages *p) { return p->steps_param >= 0 || p->steps != 1; }

static void text_of_all(const struct explained_stages *x, struct str *out)
{
    explain_apart(x->stages, out);
    if (x->predicted)
        str_printf(out,
                   "\nAll stages, one after the other: predicted %.2f us%s; %.2f us in a graph; limit %.2f us; %lld "
                   "launch%s.\n",
                   x->seconds * 1e6, stages_repeat(&x->stages->data) ? " a step" : "", x->graph_seconds * 1e6,
                   x->least * 1e6, (long long)x->launches, x->launches == 1 ? "" : "es");
    if (x->placed)
        str_printf(out, "\nBetween the stages: %lld bytes of memory.\n", (long long)x->layout.bytes);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

ptxgen_explain_options explain_stage_options(struct ptxgen_session *s, const struct prog_stage *of,
                                             ptxgen_explain_options o)
{
    int64_t *size = o.size ? arena_new(&s->arena, int64_t, of->nsizes + 1) : NULL;
    ptxgen_value *param = o.param ? arena_new(&s->arena, ptxgen_value, of->nparams + 1) : NULL;
    for (int i = 0; size && i < of->nsizes; i++)
        size[i] = o.size[of->size[i]];
    for (int i = 0; param && i < of->nparams; i++)
        param[i] = of->param[i] < 0 ? (ptxgen_value){ 0 } : o.param[of->param[i]];
    o.size = size;
    o.param = param;
    return o;
}

static bool gather(struct ptxgen_session *s, struct explained_stages *x, const struct plan *const *plan,
                   const ptxgen_explain_options *o)
{
    const struct prog_stages *p = &x->stages->data;
    ptxgen_explain_options *own = arena_new(&s->arena, ptxgen_explain_options, p->nstages);
    x->of = arena_new(&s->arena, struct explained, p->nstages);
    x->predicted = x->bounded = true;
    for (int i = 0; i < p->nstages; i++) {
        struct explained *of = &x->of[i];
        own[i] = explain_stage_options(s, &p->stage[i], *o);
        if (!explain_gather(s, plan[i], &own[i], of))
            return false;
        of->stage = p->stage[i].name;
        x->predicted &= of->at_size && of->prediction.case_index >= 0;
        x->bounded &= of->at_size;
        x->launches += of->prediction.launches;
        x->seconds += of->prediction.seconds;
        x->graph_seconds += of->prediction.graph_seconds;
        x->least += of->least.seconds;
        x->read += of->least.read;
        x->written += of->least.written;
    }
    x->placed = o->size != NULL;
    for (int i = 0; x->placed && i < p->shape->nsizes; i++)
        x->placed = o->size[i] >= 0;
    x->placed = x->placed && stages_place(p, o->size, &x->layout);
    return true;
}

bool stages_explain(struct ptxgen_session *s, const struct stages *stages, const struct plan *const *plan,
                    const ptxgen_explain_options *o, struct str *out)
{
    const struct prog_stages *p = &stages->data;
    const bool json = o->form == PTXGEN_FORM_JSON, text = o->form == PTXGEN_FORM_TEXT;
    struct explained_stages x = { .stages = stages, .size = o->size };
    if (!gather(s, &x, plan, o))
        return false;
    if (o->form == PTXGEN_FORM_HTML) {
        stages_html(&x, out);
        return true;
    }
    str_add(out, json ? "{\"stages\": [" : "");
    for (int i = 0; i < p->nstages; i++) {
        if (text) {
            head(p, i, out);
            heads_with(stages, p->stage[i].name, out);
        }
        str_add(out, json && i ? ", " : "");
        explain_print(&x.of[i], out);
    }
    if (json) {
        str_add(out, "], \"fusion\": ");
        fusions_json(stages, out);
        str_add(out, ", \"all\": ");
        totals_json(&x, out);
        str_add(out, "}\n");
    }
    if (text)
        text_of_all(&x, out);
    return true;
}
