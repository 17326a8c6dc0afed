/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the canonical text of a problem.
 *
 * It has everything that is in struct problem except places in the source and the free text: two specs that mean the
 * same have the same text, whatever their layout, comments, quoting or order of keys.
 */
#include "frontend/frontend_impl.h"

static const char *const kind_names[] = { "reduce", "scan", "stencil" };
static const char *const level_names[] = { "any", "run", "device" };
static const char *const role_names[] = { "elements", "offsets", "flags", "gather" };

static void print_dim(const struct problem *p, struct prog_dim d, struct str *out)
{
    if (d.size < 0)
        str_printf(out, "%lld", (long long)d.add);
    else if (d.add)
        str_printf(out, "%s%+lld", p->size[d.size].name, (long long)d.add);
    else
        str_add(out, p->size[d.size].name);
}

static void print_array(const struct problem *p, const struct prog_array *array, struct str *out)
{
    str_printf(out, "%s: ", array->name);
    if (*array->field[0].name) {
        for (int f = 0; f < array->nfields; f++)
            str_printf(out, "%s%s: %s", f ? ", " : "{", array->field[f].name, ty_name(array->field[f].type));
        str_addc(out, '}');
    } else {
        str_add(out, ty_name(array->field[0].type));
    }
    str_addc(out, '[');
    for (int d = 0; d < array->rank; d++) {
        str_add(out, d ? ", " : "");
        print_dim(p, array->dim[d], out);
    }
    str_addc(out, ']');
}

static void print_boundary(const struct problem *p, const struct input *in, struct str *out)
{
    str_add(out, " boundary [");
    for (int d = 0; d < in->array.rank; d++) {
        const struct boundary *edge = &in->boundary[d];
        str_printf(out, "%s%s", d ? ", " : "", boundary_names[edge->mode]);
        for (int f = 0; edge->mode == BOUND_CONSTANT && f < in->array.nfields; f++) {
            struct expr constant = { .kind = EX_CONST, .type = in->array.field[f].type, .imm = edge->constant[f] };
            str_addc(out, ' ');
            expr_print(p, NULL, &constant, out);
        }
    }
    str_addc(out, ']');
}

static void print_inputs(const struct problem *p, struct str *out)
{
    for (int i = 0; i < p->ninputs; i++) {
        const struct input *in = &p->input[i];
        str_add(out, "input ");
        print_array(p, problem_array(p, i), out);
        if (in->role == ROLE_TABLE)
            str_add(out, in->summed ? " read in sums" : in->spread ? " read at its dimensions" : " read with at()");
        else if (in->role != ROLE_ELEMENT)
            str_printf(out, " gives %s", role_names[in->role]);
        if (in->neighbours || in->placed)
            print_boundary(p, in, out);
        str_addc(out, '\n');
    }
    for (int i = 0; i < p->nparams; i++) {
        str_printf(out, "param %s: %s", p->param[i].name, ty_name(p->param[i].type));
        if (p->param[i].has_default) {
            struct expr constant = { .kind = EX_CONST, .type = p->param[i].type, .imm = p->param[i].value };
            str_add(out, " = ");
            expr_print(p, NULL, &constant, out);
        }
        str_addc(out, '\n');
    }
}

static void print_sizes(const struct problem *p, struct str *out)
{
    for (int i = 0; i < p->nsizes; i++) {
        const struct dimension *d = &p->size[i];
        str_printf(out, "size %s", d->name);
        if (d->min)
            str_printf(out, " min %lld", (long long)d->min);
        if (d->max != INT64_MAX)
            str_printf(out, " max %lld", (long long)d->max);
        if (d->multiple_of != 1)
            str_printf(out, " multiple of %lld", (long long)d->multiple_of);
        str_addc(out, '\n');
    }
    for (int i = p->nsizes; i < p->nsizes + p->njoined; i++) {
        str_printf(out, "dimensions ");
        for (int k = 0; k < p->size[i].nparts; k++)
            str_printf(out, "%s%s", k ? ", " : "", p->size[p->size[i].part[k]].name);
        str_printf(out, " are one: %s\n", p->size[i].name);
    }
}

static void print_space(const struct problem *p, struct str *out)
{
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        if (p->alignment[i] > 1)
            str_printf(out, "array %s aligned to %d\n", problem_array(p, i)->name, p->alignment[i]);
    str_add(out, "space [");
    for (int i = 0; i < p->rank; i++) {
        str_add(out, i ? ", " : "");
        print_dim(p, p->space[i].extent, out);
    }
    str_add(out, "]");
    for (int i = 0, n = 0; i < p->rank; i++)
        if (p->space[i].reduced) {
            str_add(out, n++ ? ", " : " over ");
            print_dim(p, p->space[i].extent, out);
        }
    if (p->offsets >= 0)
        str_printf(out, " segments from offsets %s", p->input[p->offsets].array.name);
    if (p->flags >= 0)
        str_printf(out, " segments from flags %s", p->input[p->flags].array.name);
    if (p->starts)
        str_add(out, " segments by starts");
    str_addc(out, '\n');
}

static void print_index(const struct problem *p, struct prog_dim bins, const struct expr *e, struct str *out)
{
    str_add(out, "by [");
    print_dim(p, bins, out);
    str_add(out, "] ");
    expr_print(p, NULL, e, out);
    str_addc(out, '\n');
}

static void print_by(const struct problem *p, struct str *out)
{
    for (int d = 0; d < p->nby; d++)
        print_index(p, p->bin[d], p->by[d], out);
    if (p->key)
        print_index(p, p->keys, p->key, out);
}

static void print_fields(const struct problem *p, const struct op *op, const char *what,
                         const struct expr *const *value, struct str *out)
{
    for (int i = 0; i < op->nfields; i++) {
        if (!value[i])
            continue;
        str_printf(out, "  %s%s%s: %s = ", what, *op->field_name[i] ? "." : "", op->field_name[i],
                   ty_name(op->field[i]));
        expr_print(p, op, value[i], out);
        str_addc(out, '\n');
    }
}

static void print_combine(const struct problem *p, const struct op *op, struct str *out)
{
    for (int i = 0; i < op->nlets; i++) {
        str_printf(out, "  let %s: %s = ", op->let[i].name, ty_name(op->let[i].value->type));
        expr_print(p, op, op->let[i].value, out);
        str_addc(out, '\n');
    }
    print_fields(p, op, "combine", op->combine, out);
}

/* Of a built-in operator, its name and the types of the expressions say all. */
static void print_gatherers(const struct problem *p, struct str *out)
{
    for (int i = 0; i < p->ngatherers; i++) {
        const struct op *op = p->gatherer[i].op;
        if (op->builtin)
            continue;
        str_printf(out, "operator %s: %s%s\n", p->gatherer[i].name, op->name, op->exact ? ", exact" : "");
        print_fields(p, op, "identity", op->identity, out);
        print_combine(p, op, out);
    }
}

static void print_reduction(const struct problem *p, const struct reduction *r, struct str *out)
{
    const struct op *op = r->op;
    str_printf(out, "%s %s: %s%s%s%s\n", p->kind == KIND_SCAN ? "scan" : "reduction", r->name, op->name,
               op->commutative ? ", commutative" : "", op->exact ? ", exact" : "",
               op->identity[0] ? "" : ", identity-free");
    print_fields(p, op, "map", r->map, out);
    print_fields(p, op, "init", r->init, out);
    print_fields(p, op, "identity", op->identity, out);
    print_fields(p, op, "pad", op->pad, out);
    print_combine(p, op, out);
}

static void print_places(const struct problem *p, const struct output *o, struct str *out)
{
    for (int d = 0; d < PROG_RANK_MAX && o->index[d]; d++) {
        str_add(out, d ? ", " : "  at ");
        expr_print(p, NULL, o->index[d], out);
    }
    str_addc(out, '\n');
    for (int f = 0; f < o->array.nfields && o->initial[f]; f++) {
        str_printf(out, "  initial %s%s", o->array.field[f].name, *o->array.field[f].name ? " = " : "");
        expr_print(p, NULL, o->initial[f], out);
        str_addc(out, '\n');
    }
    if (!o->combine)
        return;
    str_printf(out, "  combine %s%s\n", o->combine->name, o->combine->exact ? ", exact" : "");
    print_combine(p, o->combine, out);
}

static void print_outputs(const struct problem *p, struct str *out)
{
    static const char *const one_per[] = {
#define OUTPUT(id, moment, what) [OUT_##id] = what,
#include "output.def"
#undef OUTPUT
    };
    for (int i = 0; i < p->noutputs; i++) {
        const struct output *o = &p->output[i];
        str_add(out, "output ");
        print_array(p, problem_array(p, p->ninputs + i), out);
        const bool total = p->kind == KIND_SCAN && output_moment(o) == AT_TOTAL;
        str_printf(out, " per %s\n", !total ? one_per[o->role] : p->key ? "scan and bin" : "scan");
        if (o->place) {
            str_add(out, "  where ");
            expr_print(p, NULL, o->where, out);
            str_add(out, " at ");
            expr_print(p, NULL, o->place, out);
            str_addc(out, '\n');
        }
        if (output_is_placed(o))
            print_places(p, o, out);
        for (int f = 0; f < o->array.nfields; f++) {
            str_printf(out, "  value%s%s = ", *o->array.field[f].name ? "." : "", o->array.field[f].name);
            expr_print(p, NULL, o->value[f], out);
            str_addc(out, '\n');
        }
    }
}

static void print_iterate(const struct problem *p, struct str *out)
{
    if (!p->iterated)
        return;
    if (p->steps_param >= 0)
        str_printf(out, "iterate %s steps", p->param[p->steps_param].name);
    else
        str_printf(out, "iterate %lld steps", (long long)p->steps);
    for (int i = 0; i < p->nfeedback; i++)
        str_printf(out, "%s %s <- %s", i ? "," : "", p->input[p->feedback[i].input].array.name,
                   p->output[p->feedback[i].output].array.name);
    str_addc(out, '\n');
}

void problem_print(const struct problem *p, struct str *out)
{
    str_printf(out, "problem %s: %s", p->name, kind_names[p->kind]);
    if (p->kind == KIND_SCAN)
        str_printf(out, ", %s, %s", p->exclusive ? "exclusive" : "inclusive", p->reverse ? "reverse" : "forward");
    str_printf(out, "%s, determinism %s%s\n", p->dynamic ? ", dynamic" : "", level_names[p->determinism],
               p->contract ? ", contract" : "");
    print_sizes(p, out);
    print_space(p, out);
    print_by(p, out);
    print_inputs(p, out);
    print_gatherers(p, out);
    for (int i = 0; i < p->nlets; i++) {
        str_printf(out, "let %s: %s = ", p->let[i].name, ty_name(p->let[i].value->type));
        expr_print(p, NULL, p->let[i].value, out);
        str_addc(out, '\n');
    }
    for (int i = 0; i < p->nreductions; i++)
        print_reduction(p, &p->reduction[i], out);
    print_outputs(p, out);
    print_iterate(p, out);
    if (p->strategy || p->ntunables) {
        str_printf(out, "strategy %s", p->strategy ? p->strategy : "chosen");
        for (int i = 0; i < p->ntunables; i++)
            str_printf(out, " %s=%s", p->tunable[i].name, p->tunable[i].value);
        str_addc(out, '\n');
    }
}
