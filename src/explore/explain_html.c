/* SPDX-License-Identifier: Apache-2.0 */
/* explain_html.c - an explanation as sections of an HTML page: well-formed, no scripts, classes for the page's style.
 */
#include "explain.h"
#include "lower/stencil/stencil.h"

static void escaped(struct str *out, const char *text)
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

static void cell(struct str *out, const char *text)
{
    str_add(out, "<td>");
    escaped(out, text);
    str_add(out, "</td>");
}

static void heading(struct str *out, const char *id, const char *title)
{
    str_printf(out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

static void strategies(const struct explained *x, struct str *out)
{
    static const char *const class[] = { "chosen", "elsewhere", "fits", "unfit" };
    heading(out, "decision", "Decision");
    str_add(out,
            "<table><thead><tr><th>strategy</th><th>chosen, or why not</th><th>algorithm</th></tr></thead><tbody>\n");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (row->kind != x->plan->problem->kind)
            continue;
        const enum choice choice = explain_choice(x, row, &why);
        str_printf(out, "<tr class=\"%s\"><td><code>%s</code></td>", class[choice], row -> name);
        cell(out, why);
        cell(out, row->reference);
        str_add(out, "</tr>\n");
    }
    str_add(out, "</tbody></table></section>\n");
}

static void tunables(const struct plan_case *c, struct str *out)
{
    str_add(out, "<table><thead><tr><th>tunable</th><th>value</th><th>from</th></tr></thead><tbody>\n");
    for (int t = 0; t < TN_COUNT; t++)
        if (c->strategy->tunables & 1u << t) {
            str_printf(out, "<tr><td><code>%s</code></td><td class=\"number\">%d</td>",
                       tunable_name((enum tunable_id)t), c->tunable[t]);
            cell(out, c->tunable_from[t] ? c->tunable_from[t] : "default");
            str_add(out, "</tr>\n");
        }
    str_add(out, "</tbody></table>\n");
}

static void kernels(const struct explained *x, const struct plan_case *c, struct str *out)
{
    static const char *const columns[] = { "threads",   "registers", "shared", "local", "blocks per multiprocessor",
                                           "warps held" };
    str_add(out, "<table><thead><tr><th>kernel</th>");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        str_printf(out, "<th class=\"number\">%s</th>", columns[i]);
    str_add(out, "<th>limited by</th></tr></thead><tbody>\n");
    for (int i = 0; i < c->code.nkernels; i++) {
        const struct prog_kernel *k = &c->code.kernel[i];
        struct occupancy o;
        const ptxgen_kernel_resources *known = explain_kernel(x, k, &o);
        str_add(out, "<tr><td><code>");
        escaped(out, k->name);
        str_printf(out, "</code></td><td class=\"number\">%d</td>", k->threads);
        if (known && known->registers)
            str_printf(out, "<td class=\"number\">%d</td><td class=\"number\">%d</td><td class=\"number\">%d</td>",
                       known->registers, known->shared, known->local);
        else
            str_add(out, "<td>unknown</td><td>unknown</td><td>unknown</td>");
        str_printf(out, "<td class=\"number\">%d</td><td class=\"number\">%.0f%%</td><td>%s</td></tr>\n", o.blocks,
                   100 * o.warps, o.limit);
    }
    str_add(out, "</tbody></table>\n");
}

static void formula(struct str *out, const char *before, const struct formula *f, const struct formula_names *names)
{
    struct str text = { 0 };
    formula_print(f, names, &text);
    str_printf(out, "<p>%s <code>", before);
    escaped(out, text.text);
    str_add(out, "</code></p>\n");
    str_finish(&text);
}

static void cases(const struct explained *x, struct str *out)
{
    heading(out, "cases", "Cases");
    str_add(out, "<p>The first whose condition holds is taken.</p>\n");
    for (int i = 0; i < x->plan->ncases; i++) {
        const struct plan_case *c = &x->plan->cases[i];
        const struct formula_names names = plan_names(&x->s->arena, x->plan, &c->code);
        str_printf(out, "<article%s><h3>", x->at_size && x->prediction.case_index == i ? " class=\"taken\"" : "");
        escaped(out, c->code.name);
        str_printf(out, ": <code>%s</code></h3>\n", c->code.strategy);
        if (c->code.guard.n)
            formula(out, "when", &c->code.guard, &names);
        else
            str_add(out, "<p>when no earlier case holds</p>\n");
        kernels(x, c, out);
        for (int k = 0; k < c->code.nsteps; k++)
            if (c->code.step[k].kind == STEP_LAUNCH)
                formula(out, "grid", &c->code.step[k].grid, &names);
        str_add(out, "<details><summary>tunables</summary>\n");
        tunables(c, out);
        str_add(out, "</details></article>\n");
    }
    str_add(out, "</section>\n");
}

/* A bar as long as its part of the longest. */
static void bar(struct str *out, const char *class, const char *what, double seconds, double longest)
{
    if (seconds > 0)
        str_printf(out,
                   "<tr><td>%s</td><td class=\"number\">%.2f µs</td><td class=\"wide\"><div class=\"bar %s\" "
                   "style=\"width:%.1f%%\"></div></td></tr>\n",
                   what, seconds * 1e6, class, 100 * seconds / longest);
}

static void costs(const struct explained *x, struct str *out)
{
    const struct roofline *l = &x->least;
    const ptxgen_explain_options *o = x->options;
    heading(out, "cost", "Cost");
    str_printf(
        out,
        "<p>Per element: floating-point operations %d, integer or logical %d, divisions and library calls %d.</p>\n",
        x->work.flops, x->work.integer, x->work.special);
    if (x->has_model) {
        str_add(out, "<p>Target: ");
        escaped(out, x->model.name);
        str_printf(out, " (%s), reads %.0f GB/s, writes %.0f, copies %.0f, %.1f TFLOP/s f32.</p>\n", explain_source(x),
                   x->model.read * 1e-9, x->model.write * 1e-9, x->model.copy * 1e-9, x->model.flops * 1e-12);
    }
    if (!x->at_size) {
        str_add(out, "<p>No sizes are given.</p></section>\n");
        return;
    }
    double longest = x->prediction.seconds > l->seconds ? x->prediction.seconds : l->seconds;
    longest = o->stream_seconds > longest ? o->stream_seconds : longest;
    str_add(out, "<p>At ");
    for (int i = 0; i < x->plan->problem->nsizes; i++)
        str_printf(out, "%s%s = %lld", i ? ", " : "", x->plan->problem->size[i].name, (long long)o->size[i]);
    str_printf(out,
               ": reads %lld bytes, writes %lld; %d launch%s, %.3g pass%s over the arrays.</p>\n<table "
               "class=\"bars\"><tbody>\n",
               (long long)l->read, (long long)l->written, x->prediction.launches,
               x->prediction.launches == 1 ? "" : "es", x->prediction.passes, x->prediction.passes == 1 ? "" : "es");
    bar(out, "least", "memory", l->memory, longest);
    bar(out, "least", "arithmetic", l->arithmetic, longest);
    bar(out, "least", "roofline", l->seconds, longest);
    bar(out, "predicted", "predicted", x->prediction.seconds, longest);
    bar(out, "measured", "measured, stream", o->stream_seconds, longest);
    bar(out, "measured", "measured, graph", o->graph_seconds, longest);
    str_add(out, "</tbody></table></section>\n");
}

void explain_html(const struct explained *x, struct str *out)
{
    strategies(x, out);
    cases(x, out);
    costs(x, out);
}
