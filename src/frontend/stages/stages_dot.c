/* SPDX-License-Identifier: Apache-2.0 */
/* stages_dot.c - a spec as a picture for Graphviz, `--emit=dot`: arrays and stages, who reads and writes what, the loop.
 *
 * A spec without stages is drawn as one stage.
 */
#include "frontend/frontend_impl.h"
#include "stages.h"

static const char *const kinds[] = { "reduce", "scan", "stencil" };

bool stages_draws(const struct prog_stages *p, int array)
{
    return p->until < 0 || p->array[array].place != PLACE_BETWEEN || p->array[array].first != p->nstages - 1;
}

void stages_print_extents(const struct prog_stages *p, const struct prog_array *a, struct str *out)
{
    for (int d = 0; d < a->rank; d++) {
        str_add(out, d ? ", " : "[");
        if (a->dim[d].size >= 0)
            str_add(out, p->shape->size[a->dim[d].size]);
        if (a->dim[d].size < 0 || a->dim[d].add)
            str_printf(out, a->dim[d].size < 0 ? "%lld" : "%+lld", (long long)a->dim[d].add);
    }
    str_add(out, a->rank ? "]" : "");
}

static void array_node(const struct prog_stages *p, const struct stage_array *at, struct str *out)
{
    const struct prog_array *a = &at->array;
    str_printf(out, "    \"array %s\" [shape=ellipse%s, label=\"%s\\n", a->name,
               at->place == PLACE_BETWEEN ? ", style=dotted" : "", a->name);
    for (int f = 0; f < a->nfields; f++)
        str_printf(out, "%s%s%s%s", f ? ", " : "", a->field[f].name, *a->field[f].name ? ": " : "",
                   ty_name(a->field[f].type));
    stages_print_extents(p, a, out);
    str_add(out, "\"];\n");
}

bool stages_is_condition(const struct prog_stages *p, int stage) { return p->until >= 0 && stage == p->nstages - 1; }

/* A stage of the user may be called `until`, too. */
static void stage_id(const struct prog_stages *p, int stage, struct str *out)
{
    if (stages_is_condition(p, stage))
        str_add(out, "\"until\"");
    else
        str_printf(out, "\"stage %s\"", p->stage[stage].name);
}

static void stage_node(const struct stages *s, int number, struct str *out)
{
    const struct prog_stage *stage = &s->data.stage[number];
    const struct problem *problem = s->problem[number];
    if (stages_is_condition(&s->data, number)) {
        str_add(out, "    \"until\" [shape=diamond, label=\"until\\n");
        expr_print(problem, NULL, problem->output[0].value[0], out);
        if (s->data.check_every > 1)
            str_printf(out, "\\nevery %d steps", s->data.check_every);
        str_add(out, "\"];\n");
    } else {
        str_printf(out, "    \"stage %s\" [shape=box, label=\"%s\\n%s\"];\n", stage->name, stage->name,
                   kinds[problem->kind]);
    }
}

static void edge(const struct prog_stages *p, int stage, int array, bool reads, struct str *out)
{
    if (!stages_draws(p, array))
        return;
    str_add(out, "    ");
    if (!reads)
        stage_id(p, stage, out);
    str_printf(out, reads ? "\"array %s\" -> " : " -> \"array %s\"", p->array[array].array.name);
    if (reads)
        stage_id(p, stage, out);
    str_add(out, ";\n");
}

static void loop(const struct prog_stages *p, struct str *out)
{
    const bool once = p->steps_param < 0 && p->steps == 1 && p->until < 0;
    str_printf(out, "    label=\"%s", p->shape->name);
    if (!once && p->steps_param >= 0)
        str_printf(out, ", %s%s times", p->until < 0 ? "" : "at most ", p->shape->param[p->steps_param].name);
    else if (!once)
        str_printf(out, ", %s%lld times", p->until < 0 ? "" : "at most ", (long long)p->steps);
    str_add(out, "\";\n");
    for (int i = 0; i < p->nfeedback; i++)
        str_printf(out, "    \"array %s\" -> \"array %s\" [style=dashed, constraint=false, label=\"next step\"];\n",
                   p->array[p->feedback[i].output].array.name, p->array[p->feedback[i].input].array.name);
}

void stages_dot(const struct stages *s, struct str *out)
{
    const struct prog_stages *p = &s->data;
    str_printf(out, "digraph \"%s\" {\n    rankdir=LR;\n", s->name);
    for (int i = 0; i < p->narrays; i++)
        if (stages_draws(p, i))
            array_node(p, &p->array[i], out);
    for (int i = 0; i < p->nstages; i++)
        stage_node(s, i, out);
    for (int i = 0; i < p->nstages; i++) {
        for (int k = 0; k < p->stage[i].ninputs; k++)
            edge(p, i, p->stage[i].input[k], true, out);
        for (int k = 0; k < p->stage[i].noutputs; k++)
            edge(p, i, p->stage[i].output[k], false, out);
    }
    loop(p, out);
    str_add(out, "}\n");
}

void problem_dot(const struct problem *p, const struct program *shape, struct str *out)
{
    struct stage_array array[STAGE_ARRAYS_MAX];
    struct stage_feedback feedback[STAGE_ARRAYS_MAX];
    int number[STAGE_ARRAYS_MAX];
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        array[i] = (struct stage_array){ *problem_array(p, i), i < p->ninputs ? PLACE_INPUT : PLACE_OUTPUT, 0, 0, 0 };
        number[i] = i;
    }
    for (int i = 0; i < p->nfeedback; i++)
        feedback[i] = (struct stage_feedback){ p->feedback[i].input, p->ninputs + p->feedback[i].output, false };
    const struct prog_stage stage = {
        .name = p->name, .ninputs = p->ninputs, .noutputs = p->noutputs, .input = number, .output = number + p->ninputs
    };
    const struct stages one = { .name = p->name,
                                .problem = { p },
                                .data = { .shape = shape,
                                          .nstages = 1,
                                          .narrays = p->ninputs + p->noutputs,
                                          .nfeedback = p->nfeedback,
                                          .stage = &stage,
                                          .array = array,
                                          .feedback = feedback,
                                          .steps = p->iterated ? p->steps : 1,
                                          .steps_param = p->iterated ? p->steps_param : -1,
                                          .until = -1,
                                          .check_every = 1 } };
    stages_dot(&one, out);
}
