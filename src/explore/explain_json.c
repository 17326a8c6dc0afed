/* SPDX-License-Identifier: Apache-2.0 */
/* explain_json.c - an explanation as JSON; the keys are in docs/cli.md. */
#include "explain.h"

static void microseconds(struct json *j, const char *key, double seconds)
{
    json_key(j, key);
    if (seconds > 0)
        json_double(j, (double)(int64_t)(seconds * 1e9 + 0.5) * 1e-3);
    else
        json_null(j);
}

static void formula_of(struct json *j, const char *key, const struct formula *f, const struct formula_names *names)
{
    json_key(j, key);
    formula_json_text(f, names, j);
}

static void strategies(const struct explained *x, struct json *j)
{
    static const char *const status[] = { "chosen", "for other launches", "fits", "does not fit" };
    json_key(j, "strategies");
    json_array(j);
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (!strategy_problem(row, x->plan->problem))
            continue;
        json_object(j);
        json_put_text(j, "name", row->name);
        const enum choice choice = explain_choice(x, row, &why);
        json_put_text(j, "status", status[choice]);
        json_put_text(j, "why", why);
        json_put_text(j, "reference", row->reference);
        json_end(j);
    }
    json_end(j);
}

static void operators(const struct problem *p, struct json *j)
{
    json_key(j, "operators");
    json_array(j);
    const char *name;
    const struct op *op;
    for (int i = 0; (op = explain_operator(p, i, &name)); i++) {
        json_object(j);
        json_put_text(j, "name", name);
        json_put_text(j, "operator", op->name);
        json_put_int(j, "fields", op->nfields);
        json_key(j, "commutative");
        json_bool(j, op->commutative);
        json_key(j, "identity");
        json_bool(j, op->identity[0] != NULL);
        json_key(j, "exact");
        json_bool(j, op->exact);
        json_end(j);
    }
    json_end(j);
}

static void kernels(const struct explained *x, const struct plan_case *c, struct json *j)
{
    json_key(j, "kernels");
    json_array(j);
    for (int i = 0; i < c->code.nkernels; i++) {
        const struct prog_kernel *k = &c->code.kernel[i];
        struct occupancy o;
        const ptxgen_kernel_resources *known = explain_kernel(x, k, &o);
        json_object(j);
        json_put_text(j, "name", k->name);
        json_put_int(j, "threads", k->threads);
        json_key(j, "registers");
        known && known->registers ? json_int(j, known->registers) : json_null(j);
        json_key(j, "shared");
        known ? json_int(j, known->shared) : json_null(j);
        json_key(j, "local");
        known ? json_int(j, known->local) : json_null(j);
        json_put_int(j, "blocks_per_multiprocessor", o.blocks);
        json_put_double(j, "occupancy", o.warps);
        json_put_text(j, "limited_by", o.limit);
        json_end(j);
    }
    json_end(j);
}

static void one_case(const struct explained *x, const struct plan_case *c, struct json *j)
{
    const struct formula_names names = plan_names(&x->s->arena, x->plan, &c->code);
    json_object(j);
    json_put_text(j, "name", c->code.name);
    json_put_text(j, "strategy", c->code.strategy);
    formula_of(j, "guard", &c->code.guard, &names);
    json_key(j, "tunables");
    json_object(j);
    for (int t = 0; t < TN_COUNT; t++)
        if (tunable_used(c, (enum tunable_id)t)) {
            json_key(j, tunable_name(t));
            json_object(j);
            json_put_int(j, "value", c->tunable[t]);
            json_put_text(j, "from", c->tunable_from[t] ? c->tunable_from[t] : "default");
            json_end(j);
        }
    json_end(j);
    kernels(x, c, j);
    json_key(j, "grids");
    json_array(j);
    for (int i = 0; i < c->code.nsteps; i++) {
        json_object(j);
        json_put_text(j, "kernel", c->code.kernel[c->code.step[i].kernel].name);
        formula_of(j, "blocks", &c->code.step[i].grid, &names);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

static void target(const struct explained *x, struct json *j)
{
    json_key(j, "target");
    if (!x->has_model) {
        json_null(j);
        return;
    }
    json_object(j);
    json_put_text(j, "gpu", x->model.name);
    json_put_text(j, "source", explain_source(x));
    json_put_int(j, "multiprocessors", x->model.sms);
    json_put_double(j, "read_bytes_per_second", x->model.read);
    json_put_double(j, "write_bytes_per_second", x->model.write);
    json_put_double(j, "copy_bytes_per_second", x->model.copy);
    json_put_double(j, "flops_per_second", x->model.flops);
    microseconds(j, "launch_us", x->model.launch);
    json_end(j);
}

static void costs(const struct explained *x, struct json *j)
{
    const struct problem *p = x->plan->problem;
    const struct prediction *t = &x->prediction;
    json_key(j, "at");
    if (!x->at_size) {
        json_null(j);
        return;
    }
    json_object(j);
    json_key(j, "sizes");
    json_object(j);
    for (int i = 0; i < p->nsizes; i++)
        json_put_int(j, p->size[i].name, x->options->size[i]);
    json_end(j);
    json_put_int(j, "bytes_read", x->least.read);
    json_put_int(j, "bytes_written", x->least.written);
    json_put_double(j, "bytes_per_element",
                    x->least.points > 0 ? (double)(x->least.read + x->least.written) / x->least.points : 0);
    microseconds(j, "roofline_us", x->least.seconds);
    microseconds(j, "memory_us", x->least.memory);
    microseconds(j, "arithmetic_us", x->least.arithmetic);
    json_put_text(j, "case", t->case_index < 0 ? NULL : x->plan->cases[t->case_index].code.name);
    json_put_text(j, "strategy", t->case_index < 0 ? NULL : x->plan->cases[t->case_index].code.strategy);
    json_put_int(j, "launches", t->launches);
    json_put_double(j, "passes", t->passes);
    json_put_double(j, "passes_read", t->read);
    json_put_double(j, "passes_written", t->written);
    json_put_double(j, "loads_in_flight", t->in_flight);
    json_put_text(j, "bound_by", t->case_index < 0 ? NULL : t->bound);
    microseconds(j, "predicted_us", t->case_index < 0 ? 0 : t->seconds);
    microseconds(j, "predicted_graph_us", t->case_index < 0 ? 0 : t->graph_seconds);
    microseconds(j, "measured_stream_us", x->options->stream_seconds);
    microseconds(j, "measured_graph_us", x->options->graph_seconds);
    json_end(j);
}

void explain_json(const struct explained *x, struct str *out)
{
    const struct plan *plan = x->plan;
    struct json j;
    json_init(&j, out, true);
    json_object(&j);
    json_put_text(&j, "name", plan->problem->name);
    json_put_text(&j, "arch", plan->device.arch);
    json_put_int(&j, "ptx", plan->device.ptx);
    struct str space = { 0 };
    explain_space(plan->problem, &space);
    json_put_text(&j, "space",
                  arena_strndup(&x->s->arena, space.text ? space.text : "", space.length ? space.length - 1 : 0));
    str_finish(&space);
    operators(plan->problem, &j);
    strategies(x, &j);
    json_key(&j, "cases");
    json_array(&j);
    for (int c = 0; c < plan->ncases; c++)
        one_case(x, &plan->cases[c], &j);
    json_end(&j);
    json_key(&j, "work_per_element");
    json_object(&j);
    json_put_int(&j, "floating_point", x->work.flops);
    json_put_int(&j, "integer", x->work.integer);
    json_put_int(&j, "special", x->work.special);
    json_end(&j);
    json_put_text(&j, "resources_from", x->options->resource_source);
    target(x, &j);
    costs(x, &j);
    json_end(&j);
    str_addc(out, '\n');
}
