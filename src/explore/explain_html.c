/* SPDX-License-Identifier: Apache-2.0 */
/* explain_html.c - an explanation as sections of an HTML page: well-formed, no scripts, classes for the page's style. */
#include "explain.h"

#include <stdio.h>
#include <string.h>

void html_text(struct str *out, const char *text)
{
    for (; text && *text; text++)
        switch (*text) {
        case '<': str_add(out, "&lt;"); break;
        case '>': str_add(out, "&gt;"); break;
        case '&': str_add(out, "&amp;"); break;
        case '"': str_add(out, "&quot;"); break;
        default: str_addc(out, *text);
        }
}

void html_heading(struct str *out, const char *stage, const char *id, const char *title)
{
    str_printf(out, "<section id=\"%s%s%s\" class=\"%s\"><h%d>%s</h%d>\n", stage ? stage : "", stage ? "-" : "", id, id,
               stage ? 3 : 2, title, stage ? 3 : 2);
}

static void heading(const struct explained *x, struct str *out, const char *id, const char *title)
{
    html_heading(out, x->stage, id, title);
}

void html_bar(struct str *out, const char *class, const char *what, const char *number, double begin, double wide)
{
    str_printf(out,
               "<tr><td>%s</td><td class=\"number\">%s</td><td class=\"wide\"><div class=\"bar %s\" "
               "style=\"margin-left:%.1f%%;width:%.1f%%\"></div></td></tr>\n",
               what, number, class, 100 * begin, 100 * wide);
}

/* A bar as long as its part of the longest. */
static void bar(struct str *out, const char *class, const char *what, double seconds, double longest)
{
    char number[40];
    snprintf(number, sizeof number, "%.2f µs", seconds * 1e6);
    if (seconds > 0)
        html_bar(out, class, what, number, 0, seconds / longest);
}

static void verdict(const struct explained *x, struct str *out)
{
    const struct roofline *l = &x->least;
    const ptxgen_explain_options *o = x->options;
    struct str text = { 0 };
    heading(x, out, "verdict", "Verdict");
    explain_verdict(x, &text);
    for (const char *line = text.text; line && *line; line += strcspn(line, "\n") + 1) {
        str_add(out, "<p>");
        html_text(out, arena_strndup(&x->s->arena, line, strcspn(line, "\n")));
        str_add(out, "</p>\n");
    }
    str_finish(&text);
    if (x->at_size) {
        double longest = x->prediction.seconds > l->seconds ? x->prediction.seconds : l->seconds;
        longest = o->stream_seconds > longest ? o->stream_seconds : longest;
        str_add(out, "<table class=\"bars\"><tbody>\n");
        bar(out, "least", "memory", l->memory, longest);
        bar(out, "least", "arithmetic", l->arithmetic, longest);
        bar(out, "least", "limit", l->seconds, longest);
        bar(out, "predicted", "predicted", x->prediction.seconds, longest);
        bar(out, "measured", "measured, stream", o->stream_seconds, longest);
        bar(out, "measured", "measured, graph", o->graph_seconds, longest);
        str_add(out, "</tbody></table>\n");
    }
    str_printf(out, "<p>%s (%s): reads %.0f GB/s, writes %.0f, copies %.0f, %.1f TFLOP/s f32.</p></section>\n",
               x->has_model ? x->model.name : "no GPU", explain_source(x), x->model.read * 1e-9, x->model.write * 1e-9,
               x->model.copy * 1e-9, x->model.flops * 1e-12);
}

static void array(const struct problem *p, const struct prog_array *a, struct str *out)
{
    str_printf(out, "<li><b>%s</b>", a->name);
    for (int d = 0; d < a->rank; d++) {
        const struct prog_dim *e = &a->dim[d];
        str_printf(out, "%s%s", d ? " × " : "<br/>", e->size < 0 ? "" : p->size[e->size].name);
        if (e->add || e->size < 0)
            str_printf(out, e->size < 0 ? "%lld" : "%+lld", (long long)e->add);
    }
    str_printf(out, " %s</li>\n", *a->field[0].name ? "structures" : ty_name(a->field[0].type));
}

/* From the inputs through the kernels, one after the other, to the outputs. */
static void picture(const struct explained *x, struct str *out)
{
    const struct problem *p = x->plan->problem;
    const struct prediction *t = &x->prediction;
    if (!x->at_size || t->case_index < 0)
        return;
    const struct prog_case *c = &x->plan->cases[t->case_index].code;
    heading(x, out, "picture", "The plan at these sizes");
    str_add(out, "<div class=\"flow\"><ul>\n");
    for (int i = 0; i < p->ninputs; i++)
        array(p, problem_array(p, i), out);
    str_add(out, "</ul><ul class=\"kernels\">\n");
    for (int k = 0; k < c->nkernels; k++) {
        struct occupancy o;
        explain_kernel(x, &c->kernel[k], &o);
        if (t->grid[k] > 0)
            str_printf(
                out,
                "<li><b>%s</b><br/>%lld block%s of %d threads,<br/>%d at once on each of %d multiprocessors</li>\n",
                c->kernel[k].name, (long long)t->grid[k], t->grid[k] == 1 ? "" : "s", c->kernel[k].threads, o.blocks,
                x->model.sms);
    }
    str_add(out, "</ul><ul>\n");
    for (int i = 0; i < p->noutputs; i++)
        array(p, problem_array(p, p->ninputs + i), out);
    str_add(out, "</ul></div></section>\n");
}

static void strategies(const struct explained *x, bool fitting, struct str *out)
{
    static const char *const class[] = { "chosen", "elsewhere", "fits", "unfit" };
    str_add(out, "<table class=\"reasons\"><tbody>\n");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (!strategy_problem(row, x->plan->problem))
            continue;
        const enum choice choice = explain_choice(x, row, &why);
        if ((choice != CHOICE_UNFIT) != fitting)
            continue;
        str_printf(out, "<tr class=\"%s\"><td><code>%s</code></td><td>", class[choice], row -> name);
        html_text(out, why);
        str_add(out, "<br/><small>");
        html_text(out, row->reference);
        str_add(out, "</small></td></tr>\n");
    }
    str_add(out, "</tbody></table>\n");
}

static void cases(const struct explained *x, struct str *out)
{
    heading(x, out, "cases", "Cases");
    str_add(out, "<p>The first whose condition holds is taken.</p>\n");
    for (int i = 0; i < x->plan->ncases; i++) {
        const bool taken = x->at_size && x->prediction.case_index == i;
        struct str text = { 0 };
        explain_case(x, i, true, &text);
        const size_t first = text.text ? strcspn(text.text, "\n") : 0;
        str_printf(out, "<details%s><summary>", taken ? " class=\"taken\" open=\"open\"" : "");
        html_text(out, arena_strndup(&x->s->arena, text.text ? text.text : "", first));
        str_add(out, "</summary><pre>");
        html_text(out, text.text ? text.text + first + 1 : "");
        str_add(out, "</pre></details>\n");
        str_finish(&text);
    }
    str_add(out, "</section>\n");
}

void explain_html(const struct explained *x, struct str *out)
{
    verdict(x, out);
    picture(x, out);
    heading(x, out, "decision", "Decision");
    strategies(x, true, out);
    str_add(out, "<details><summary>strategies that do not apply</summary>\n");
    strategies(x, false, out);
    str_add(out, "</details></section>\n");
    cases(x, out);
}
