/* SPDX-License-Identifier: Apache-2.0 */
/* explain_text.c - an explanation as text, the verdict first.  Without `all`: what applies, in lines of WIDTH. */
#include "explain.h"
#include "lower/scan/scan.h"
#include "lower/stencil/stencil_plan.h"

#include <string.h>

enum { WIDTH = 100, HANG = 19 };

static void add_measured(const char *how, double seconds, double predicted, double least, struct str *out)
{
    if (seconds > 0)
        str_printf(out, "measured %.2f us in a %s: %.2f of the prediction, %.2f of the limit\n", seconds * 1e6, how,
                   seconds / predicted, seconds / least);
}

/* Is there an output that may stay as it is in part? */
static bool writes_some(const struct problem *p)
{
    bool some = scan_keeps_some(p);
    for (int o = 0; o < p->noutputs; o++)
        some |= output_is_placed(&p->output[o]);
    return some;
}

/* Outputs at computed places: what a write is there. */
static void add_places(const struct problem *p, struct str *out)
{
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out_of = &p->output[o];
        if (!output_is_placed(out_of))
            continue;
        str_printf(out, "places '%s': each element writes once, %d byte%s where it says", out_of->array.name,
                   out_of->array.stride, out_of->array.stride == 1 ? "" : "s");
        str_add(out, !out_of->combine             ? ""
                     : op_native(out_of->combine) ? ", by an atomic instruction"
                                                  : ", by compare-and-swap");
        str_add(out, !out_of->combine ? "\n"
                     : p->binned      ? "; few places have tables in each block first: reduce.bins\n"
                                      : "; few places would have tables in each block first in a map whose outputs all "
                                        "combine there, by operators with an identity\n");
    }
}

/* Of the case that is taken. */
static void add_prediction(const struct explained *x, struct str *out)
{
    const struct prediction *t = &x->prediction;
    const double least = x->least.seconds, least_in_graph = least - x->model.launch + x->model.graph_node;
    str_printf(out, "predicted %.2f us, %.2f of the limit, bound by %s", t->seconds * 1e6, t->seconds / least,
               t->bound);
    if (t->in_flight < 1 && !strcmp(t->bound, "loads in flight"))
        str_printf(out, ": %.0f%% of what memory wants", 100 * t->in_flight);
    str_printf(out, "; %.2f us in a graph\n", t->graph_seconds * 1e6);
    if (x->work.products && !strcmp(t->bound, "arithmetic"))
        str_printf(out,
                   "`contract: true` in the spec would take %d of %d floating-point operations off: products that are "
                   "rounded with the sums that take them\n",
                   x->work.products, x->work.flops);
    add_measured("stream", x->options->stream_seconds, t->seconds, least, out);
    add_measured("graph", x->options->graph_seconds, t->graph_seconds, least_in_graph, out);
}

void explain_verdict(const struct explained *x, struct str *out)
{
    const struct prediction *t = &x->prediction;
    const struct roofline *l = &x->least;
    const ptxgen_explain_options *o = x->options;
    if (!x->at_size) {
        str_printf(out,
                   x->has_model ? "no time is predicted: not all sizes are given (command line: --size NAME=N)\n"
                                : "no time is predicted: no GPU with %s is known\n",
                   x->plan->device.arch);
        return;
    }
    if (t->case_index >= 0)
        str_printf(out, "case %s (%s) takes", x->plan->cases[t->case_index].code.name,
                   x->plan->cases[t->case_index].code.strategy);
    else
        str_add(out, "no case takes");
    for (int i = 0; i < x->plan->problem->nsizes; i++)
        str_printf(out, " %s=%lld", x->plan->problem->size[i].name, (long long)o->size[i]);
    str_addc(out, '\n');
    if (t->case_index >= 0)
        add_prediction(x, out);
    str_printf(out, "limit %.2f us: memory %.2f, arithmetic %.2f, one launch %.2f%s; reads %lld bytes, writes %s%lld\n",
               l->seconds * 1e6, l->memory * 1e6, l->arithmetic * 1e6, x->model.launch * 1e6,
               x->plan->problem->iterated ? "; of one step" : "", (long long)l->read,
               writes_some(x->plan->problem) ? "at most " : "", (long long)l->written);
    if (t->case_index < 0)
        return;
    str_printf(out, "plan %d launch%s, %.3g pass%s over the arrays", t->launches, t->launches == 1 ? "" : "es",
               t->passes, t->passes == 1 ? "" : "es");
    if (x->plan->cases[t->case_index].mapper && !x->plan->cases[t->case_index].maps)
        str_printf(out, "; reads %.0f bytes, the inputs %.2g times, writes %.0f", t->read,
                   l->read > 0 ? t->read / (double)l->read : 1, t->written);
    str_add(out, "\n");
}

static void strategies(const struct explained *x, struct str *out)
{
    int unfit = 0;
    str_add(out, "strategies\n");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (!strategy_problem(row, x->plan->problem))
            continue;
        const bool shown = explain_choice(x, row, &why) != CHOICE_UNFIT || x->options->all;
        unfit += !shown;
        if (shown && x->options->all)
            str_printf(out, "  %-20s %s  (%s)\n", row->name, why, row->reference);
        else if (shown)
            str_printf(out, "  %-20s %.*s\n", row->name, (int)strcspn(why, ";"), why);
    }
    if (unfit)
        str_printf(out, "  %d more do not apply: --all says why\n", unfit);
}

static void dims(const struct problem *p, int reduced, const char *before, struct str *out)
{
    for (int d = 0; d < p->rank; d++) {
        const struct prog_dim *e = &p->space[d].extent;
        if (reduced >= 0 && p->space[d].reduced != reduced)
            continue;
        str_add(out, before);
        if (e->size < 0)
            str_printf(out, "%lld", (long long)e->add);
        else
            str_add(out, p->size[e->size].name);
        before = ", ";
    }
}

/* The order of the axes decides the algorithm, and mostly follows from the order of the inputs. */
void explain_space(const struct problem *p, struct str *out)
{
    bool rows = true; /* are the reduced axes the last ones? */
    int reduced = 0;
    for (int d = 0; d < p->rank; d++) {
        reduced += p->space[d].reduced;
        rows = rows && (!reduced || p->space[d].reduced);
    }
    dims(p, -1, "space [", out);
    str_add(out, "]");
    dims(p, 1, " over ", out);
    str_add(out, p->rank < 2 ? "\n" : p->space_given ? ", as the spec says" : ", in the order of the inputs");
    if (p->rank < 2)
        return;
    if (!reduced || reduced == p->rank) {
        str_add(out, ": neighbouring lanes follow its last axis; `space` may list them in another order\n");
        return;
    }
    str_printf(out, ": %s; space: ",
               rows                   ? "rows, which are runs of elements"
               : segments_adjacent(p) ? "columns, side by side"
                                      : "pieces of rows, which lie apart");
    dims(p, rows, "[", out);
    dims(p, !rows, ", ", out);
    str_printf(out, "] makes them %s\n", rows ? "columns" : "rows");
}

/* The same evidence often stands behind several tunables: it is said once. */
static void tunables(const struct plan_case *c, bool evidence, struct str *out)
{
    const char *last = NULL, *before = "    tunables       ";
    for (int t = 0; t < TN_COUNT; t++) {
        if (!tunable_used(c, (enum tunable_id)t))
            continue;
        const char *from = c->tunable_from[t] ? c->tunable_from[t] : "default";
        if (evidence)
            str_printf(out, "    %-14s %-6d %s\n", tunable_name(t), c->tunable[t],
                       last && !strcmp(last, from) ? "as above" : from);
        else
            str_printf(out, "%s%s %d", before, tunable_name(t), c->tunable[t]);
        last = from;
        before = ", ";
    }
    if (!evidence)
        str_addc(out, '\n');
}

/* Scans: elements per thread, as tuned and as the published model has it. */
static void degree(const struct explained *x, const struct plan_case *c, struct str *out)
{
    const struct problem *p = x->plan->problem;
    if (p->kind == KIND_SCAN && state_fields(p, NULL) <= 32)
        str_printf(out, "    %-14s %-6d elements per thread; %d by Clausen's model of registers and shared memory\n",
                   "degree", scan_degree(c), scan_model_degree(p, &x->plan->device, c));
}

static void kernel(const struct explained *x, const struct prog_kernel *k, struct str *out)
{
    struct occupancy o;
    const ptxgen_kernel_resources *known = explain_kernel(x, k, &o);
    str_printf(out, "    kernel         %s: %d threads, ", k->name, k->threads);
    if (known && known->registers)
        str_printf(out, "%d registers, %d bytes shared, %d local (%s)", known->registers, known->shared, known->local,
                   x->options->resource_source);
    else
        str_add(out, "registers unknown (neither an assembler nor a GPU has seen it)");
    str_printf(out, "; %s%d block%s per multiprocessor, %.0f%% of its warps, limited by %s\n",
               known && known->registers ? "" : "at most ", o.blocks, o.blocks == 1 ? "" : "s", 100 * o.warps, o.limit);
}

void explain_case(const struct explained *x, int number, bool evidence, struct str *out)
{
    const struct plan_case *c = &x->plan->cases[number];
    const struct formula_names names = plan_names(&x->s->arena, x->plan, &c->code);
    str_printf(out, "  %s: %s when ", c->code.name, c->code.strategy);
    if (c->code.guard.n)
        formula_print(&c->code.guard, &names, out);
    else
        str_add(out, "no earlier case holds");
    str_addc(out, '\n');
    if (!evidence && !(x->at_size && x->prediction.case_index == number))
        return;
    tunables(c, evidence, out);
    degree(x, c, out);
    for (int i = 0; i < c->code.nkernels; i++)
        kernel(x, &c->code.kernel[i], out);
    for (int i = 0; i < c->code.nsteps; i++) {
        str_add(out, "    grid           ");
        formula_print(&c->code.step[i].grid, &names, out);
        str_addc(out, '\n');
    }
    if (c->strategy->kind == KIND_STENCIL && stencil_case_loads(x->plan->problem, c) > 0)
        stencil_explain(x->plan->problem, c, out);
}

static void operators(const struct problem *p, struct str *out)
{
    const char *name;
    const struct op *op;
    for (int i = 0; (op = explain_operator(p, i, &name)); i++) {
        str_add(out, i ? "" : "operators\n");
        str_printf(out, "  %-10s %s: %d field%s, %s, %s%s\n", name, op->name, op->nfields, op->nfields == 1 ? "" : "s",
                   op->commutative ? "commutative" : "ordered", op->identity[0] ? "with identity" : "identity-free",
                   op->exact ? ", exact in any order" : "");
    }
}

static void work(const struct explained *x, struct str *out)
{
    const struct work *w = &x->work;
    str_printf(out,
               "work\n  per element    %d floating-point operation%s, %d integer or logical, %d division%s or library "
               "call%s\n",
               w->flops, w->flops == 1 ? "" : "s", w->integer, w->special, w->special == 1 ? "" : "s",
               w->special == 1 ? "" : "s");
    if (x->has_model)
        str_printf(out,
                   "  target         %s (%s): reads %.0f GB/s, writes %.0f, copies %.0f; %.1f TFLOP/s f32; %.1f us per "
                   "launch\n",
                   x->model.name, explain_source(x), x->model.read * 1e-9, x->model.write * 1e-9, x->model.copy * 1e-9,
                   x->model.flops * 1e-12, x->model.launch * 1e6);
}

/* Breaks lines at spaces. */
static void fold(const char *text, struct str *out)
{
    while (*text) {
        int room = WIDTH, line = (int)strcspn(text, "\n");
        while (line > room) {
            int n = room;
            while (n > HANG && text[n] != ' ')
                n--;
            n = text[n] == ' ' ? n : room;
            str_addn(out, text, (size_t)n);
            str_printf(out, "\n%*s", HANG, "");
            n += text[n] == ' ';
            text += n;
            line -= n;
            room = WIDTH - HANG;
        }
        str_addn(out, text, (size_t)line);
        str_addc(out, '\n');
        text += line + (text[line] == '\n');
    }
}

void explain_text(const struct explained *x, struct str *out)
{
    const struct plan *plan = x->plan;
    struct str text = { 0 };
    str_printf(&text, "%s on %s, PTX %d.%d\n", plan->problem->name, plan->device.arch, plan->device.ptx / 10,
               plan->device.ptx % 10);
    explain_verdict(x, &text);
    explain_space(plan->problem, &text);
    add_places(plan->problem, &text);
    operators(plan->problem, &text);
    if (plan->set && state_determinism(plan->problem) == DET_DEVICE)
        str_add(&text, "determinism: device holds among plans with the same --set or --variant: a tree that is asked "
                       "for has bits of its own\n");
    work(x, &text);
    str_add(&text, "cases, the first whose condition holds is taken\n");
    for (int c = 0; c < plan->ncases; c++)
        explain_case(x, c, x->options->all, &text);
    strategies(x, &text);
    if (x->options->all)
        str_addn(out, text.text, text.length);
    else
        fold(text.text ? text.text : "", out);
    out->failed |= text.failed;
    str_finish(&text);
}
