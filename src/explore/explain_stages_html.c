/* SPDX-License-Identifier: Apache-2.0 */
/* explain_stages_html.c - a program of stages as sections of an HTML page: its time, its graph, the loop, the memory between
 * the stages, fusion; then the sections of each stage, whose ids begin with its name.
 *
 * The graph is inline SVG.  An array stands in the layer below the stage that writes it, and a stage in the layer below
 * all that it reads; so all lines but those of the next step go down.
 */
#include <stdio.h>
#include <string.h>

#include "explain.h"

enum { WIDE = 180, HIGH = 84, BOX = 156, TALL = 44, LEAST = 720 };

static const char *word_of(const struct explained *x)
{
    const struct problem *p = x->plan->problem;
    bool neighbours = false;
    for (int i = 0; i < p->ninputs; i++)
        neighbours |= p->input[i].neighbours;
    return p->kind == KIND_REDUCE ? "reduce" : p->kind == KIND_SCAN ? "scan" : neighbours ? "stencil" : "map";
}

static void link_to(const struct explained *x, struct str *out)
{
    str_printf(out, "<a href=\"#%s-stage\">%s</a>", x->stage, x->stage);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void times(const struct explained_stages *x, struct str *out)
{
    const int n = x->stages->data.nstages;
    double longest = 0;
    for (int i = 0; i < n; i++)
        longest = x->of[i].prediction.seconds > longest ? x->of[i].prediction.seconds : longest;
    str_add(out, "<table class=\"bars\"><tbody>\n");
    for (int i = 0; i < n; i++) {
        struct str what = { 0 };
        char number[80];
        link_to(&x->of[i], &what);
        snprintf(number, sizeof number, "%.2f µs, limit %.2f", x->of[i].prediction.seconds * 1e6,
                 x->of[i].least.seconds * 1e6);
        html_bar(out, "predicted", what.text ? what.text : "", number, 0, x->of[i].prediction.seconds / longest);
        str_finish(&what);
    }
    str_add(out, "</tbody></table>\n");
}

static void verdict(const struct explained_stages *x, struct str *out)
{
    const struct prog_stages *p = &x->stages->data;
    const char *each = stages_repeat(p) ? " a step" : "";
    html_heading(out, NULL, "verdict", "Verdict");
    if (x->predicted)
        str_printf(out,
                   "<p>%d stages, one after the other: predicted %.2f µs%s, %.2f of the limit; %.2f µs in a graph</p>\n"
                   "<p>limit %.2f µs; all stages together read %lld bytes, and write %lld</p>\n",
                   p->nstages, x->seconds * 1e6, each, x->seconds / x->least, x->graph_seconds * 1e6, x->least * 1e6,
                   (long long)x->read, (long long)x->written);
    else
        str_printf(out,
                   "<p>%d stages; no time is predicted: not all sizes are given (command line: --size NAME=N)</p>\n",
                   p->nstages);
    if (x->predicted)
        times(x, out);
    str_add(out, "</section>\n");
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* Where things stand: arrays, and after them stages. */
struct graph {
    const struct explained_stages *x;
    const struct prog_stages *p;
    int layer[STAGE_ARRAYS_MAX + STAGES_MAX], place[STAGE_ARRAYS_MAX + STAGES_MAX];
    int count[STAGE_ARRAYS_MAX + STAGES_MAX]; /* of a layer */
    int layers, wide;
};

static void put(struct graph *g, int node, int layer)
{
    g->layer[node] = layer;
    g->place[node] = g->count[layer]++;
    g->layers = layer + 1 > g->layers ? layer + 1 : g->layers;
}

static void arrange(struct graph *g)
{
    const struct prog_stages *p = g->p;
    for (int a = 0; a < p->narrays; a++)
        if (p->array[a].place == PLACE_INPUT && stages_draws(p, a))
            put(g, a, 0);
    for (int s = 0; s < p->nstages; s++) {
        int layer = 1;
        for (int i = 0; i < p->stage[s].ninputs; i++)
            if (g->layer[p->stage[s].input[i]] + 1 > layer)
                layer = g->layer[p->stage[s].input[i]] + 1;
        put(g, p->narrays + s, layer);
        for (int i = 0; i < p->stage[s].noutputs; i++)
            if (stages_draws(p, p->stage[s].output[i]))
                put(g, p->stage[s].output[i], layer + 1);
    }
    int most = 0;
    for (int l = 0; l < g->layers; l++)
        most = g->count[l] > most ? g->count[l] : most;
    g->wide = most * WIDE > LEAST ? most * WIDE : LEAST;
}

static double x_of(const struct graph *g, int node)
{
    return g->wide / 2.0 + WIDE * (g->place[node] + 0.5 - g->count[g->layer[node]] / 2.0);
}

static double y_of(const struct graph *g, int node) { return HIGH * (g->layer[node] + 0.5); }

static void edge(const struct graph *g, int from, int to, struct str *out)
{
    const double x0 = x_of(g, from), y0 = y_of(g, from) + TALL / 2.0, x1 = x_of(g, to), y1 = y_of(g, to) - TALL / 2.0;
    str_printf(out, "<path class=\"edge\" d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>\n", x0, y0, x0, y0 + 20, x1,
               y1 - 20, x1, y1);
}

/* An output that is an input of the next step: around the right of what is between. */
static void again(const struct graph *g, const struct stage_feedback *f, struct str *out)
{
    const double x0 = x_of(g, f->output) + BOX / 2.0, x1 = x_of(g, f->input) + BOX / 2.0;
    str_printf(
        out, "<path class=\"edge again\" d=\"M%.0f %.0fC%d %.0f %d %.0f %.0f %.0f\"><title>next step</title></path>\n",
        x0, y_of(g, f->output), g->wide, y_of(g, f->output), g->wide, y_of(g, f->input), x1, y_of(g, f->input));
}

static void shape_of(const struct prog_stages *p, const struct prog_array *a, struct str *out)
{
    str_add(out, *a->field[0].name ? "structure" : ty_name(a->field[0].type));
    stages_print_extents(p, a, out);
}

static void box(const struct graph *g, int node, struct str *out)
{
    const bool stage = node >= g->p->narrays;
    const double x = x_of(g, node), y = y_of(g, node);
    const struct explained *of = stage ? &g->x->of[node - g->p->narrays] : NULL;
    const struct stage_array *a = stage ? NULL : &g->p->array[node];
    if (stage)
        str_printf(out, "<a href=\"#%s-stage\">", of->stage);
    str_printf(out, "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"%d\"/>",
               stage                       ? "stage"
               : a->place == PLACE_BETWEEN ? "between"
                                           : "array",
               x - BOX / 2.0, y - TALL / 2.0, BOX, TALL, stage ? 4 : TALL / 2);
    str_printf(out,
               "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%s</text><text x=\"%.0f\" y=\"%.0f\" "
               "text-anchor=\"middle\">",
               x, y - 3, stage ? of->stage : a->array.name, x, y + 13);
    if (!stage)
        shape_of(g->p, &a->array, out);
    else if (stages_is_condition(g->p, node - g->p->narrays))
        str_add(out, "ends the loop");
    else
        str_add(out, word_of(of));
    if (stage && g->x->predicted)
        str_printf(out, ", %.2f µs", of->prediction.seconds * 1e6);
    str_add(out, stage ? "</text></a>\n" : "</text>\n");
}

static void graph(const struct explained_stages *x, struct str *out)
{
    struct graph g = { .x = x, .p = &x->stages->data };
    arrange(&g);
    html_heading(out, NULL, "stages", "Stages");
    str_printf(
        out,
        "<div class=\"plot\"><svg class=\"graph\" viewBox=\"0 0 %d %d\" role=\"img\"><title>stages and the arrays that "
        "they read and write</title>\n",
        g.wide, HIGH * g.layers);
    for (int s = 0; s < g.p->nstages; s++) {
        const struct prog_stage *of = &g.p->stage[s];
        for (int i = 0; i < of->ninputs + of->noutputs; i++) {
            const bool reads = i < of->ninputs;
            const int array = reads ? of->input[i] : of->output[i - of->ninputs], node = g.p->narrays + s;
            if (stages_draws(g.p, array))
                edge(&g, reads ? array : node, reads ? node : array, out);
        }
    }
    for (int i = 0; i < g.p->nfeedback; i++)
        again(&g, &g.p->feedback[i], out);
    for (int i = 0; i < g.p->narrays + g.p->nstages; i++)
        if (i >= g.p->narrays || stages_draws(g.p, i))
            box(&g, i, out);
    str_add(out,
            "</svg></div><p>Dashed boxes: arrays between the stages, in memory of ptxgen. Dashed lines: to the next "
            "step.</p></section>\n");
}

/* ---- loop, memory, fusion ---------------------------------------------------------------------------------------- */

static void loop(const struct explained_stages *x, struct str *out)
{
    const struct prog_stages *p = &x->stages->data;
    const char *most = p->until >= 0 ? "at most " : "";
    if (!stages_repeat(p))
        return;
    html_heading(out, NULL, "loop", "The loop");
    if (p->steps_param >= 0)
        str_printf(out, "<p>All stages, %s<code>%s</code> times", most, p->shape->param[p->steps_param].name);
    else
        str_printf(out, "<p>All stages, %s%lld times", most, (long long)p->steps);
    if (p->until >= 0) {
        const struct problem *condition = x->stages->problem[p->nstages - 1];
        struct str text = { 0 };
        expr_print(condition, NULL, condition->output[0].value[0], &text);
        str_add(out, ", or until <code>");
        html_text(out, text.text);
        str_printf(out, p->check_every > 1 ? "</code>, which is computed after every %d steps" : "</code>",
                   p->check_every);
        str_finish(&text);
    }
    str_add(out, ".</p>\n");
    for (int i = 0; i < p->nfeedback; i++)
        str_printf(out, "<p>The next step reads <code>%s</code> as <code>%s</code>%s.</p>\n",
                   p->array[p->feedback[i].output].array.name, p->array[p->feedback[i].input].array.name,
                   p->feedback[i].twin ? "; it has two memories, which steps write in turn" : "");
    str_add(out, "</section>\n");
}

/* A bar per array, where it lies in the memory between the stages. */
static void memory(const struct explained_stages *x, struct str *out)
{
    const struct prog_stages *p = &x->stages->data;
    if (!x->placed || !x->layout.bytes)
        return;
    html_heading(out, NULL, "memory", "Memory between the stages");
    str_printf(out,
               "<p>%lld bytes. Arrays whose stages do not overlap share memory; a bar shows where an array lies.</p>\n"
               "<table class=\"bars\"><tbody>\n",
               (long long)x->layout.bytes);
    for (int i = 0; i < p->narrays + p->nfeedback; i++) {
        const bool twin = i >= p->narrays;
        const struct stage_feedback *f = twin ? &p->feedback[i - p->narrays] : NULL;
        const struct stage_array *a = &p->array[twin ? f->output : i];
        const int64_t bytes = prog_array_elements(&a->array, x->size) * a->array.stride,
                      at = x->layout.offset[twin ? STAGE_ARRAYS_MAX + i - p->narrays : i];
        char what[400], number[80];
        if (twin ? !f->twin : a->place != PLACE_BETWEEN || !stages_draws(p, i))
            continue;
        snprintf(what, sizeof what, twin ? "%s, its second memory" : "%s: %s to %s", a->array.name,
                 p->stage[a->first].name, p->stage[a->last].name);
        snprintf(number, sizeof number, "%lld bytes at %lld", (long long)bytes, (long long)at);
        html_bar(out, "least", what, number, (double)at / (double)x->layout.bytes,
                 (double)bytes / (double)x->layout.bytes);
    }
    str_add(out, "</tbody></table></section>\n");
}

static void fusion(const struct stages *s, struct str *out)
{
    if (!s->nfusions)
        return;
    html_heading(out, NULL, "fusion", "Stages inside others");
    str_add(out, "<table class=\"reasons\"><tbody>\n");
    for (int i = 0; i < s->nfusions; i++) {
        const struct stage_fusion *f = &s->fusion[i];
        str_printf(out, "<tr class=\"%s\"><td><code>%s</code></td><td>%s", f->into ? "chosen" : "unfit", f->stage,
                   f->into ? "is part of " : "stays a stage: ");
        html_text(out, f->into ? f->into : f->why);
        str_add(out, "</td></tr>\n");
    }
    str_add(out, "</tbody></table></section>\n");
}

void stages_html(const struct explained_stages *x, struct str *out)
{
    verdict(x, out);
    graph(x, out);
    loop(x, out);
    memory(x, out);
    fusion(x->stages, out);
    for (int i = 0; i < x->stages->data.nstages; i++) {
        str_printf(out, "<h2 class=\"stage\" id=\"%s-stage\">Stage %s</h2>\n", x->of[i].stage, x->of[i].stage);
        explain_html(&x->of[i], out);
    }
}
