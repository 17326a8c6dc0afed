/* SPDX-License-Identifier: Apache-2.0 */
/* stencil.c - what happens at the edges, and iteration with feedback. */
#include "frontend/frontend_impl.h"

const char *const boundary_names[] = {
#define BOUNDARY(id, name, what) [BOUND_##id] = name,
#include "boundary.def"
#undef BOUNDARY
};

int boundary_count(void) { return (int)(sizeof boundary_names / sizeof *boundary_names); }

/* ---- boundary: MODE, {constant: V}, {INPUT: MODE}, {INPUT: {DIM: MODE}} ---- */

static bool constant_value(struct builder *b, const struct ynode *n, enum ty t, union value *out)
{
    const struct scope literals = { .b = b, .place = "a boundary", .state = -1 };
    struct ast *e = node_expr(b, n);
    const struct expr *x = e ? type_build(&literals, e, t) : NULL;
    if (x && x->kind != EX_CONST)
        diag_error(b->d, D_BAD_BOUNDARY, n->at, "the constant of a boundary is a literal");
    if (!x || x->kind != EX_CONST)
        return false;
    *out = x->imm;
    return true;
}

static void constant_values(struct builder *b, const struct ynode *n, const struct prog_array *array,
                            struct boundary *out)
{
    for (int f = 0; f < array->nfields; f++) {
        const struct ynode *value = n->kind == Y_MAPPING ? ynode_get(n, array->field[f].name) : n;
        if (!value)
            diag_error(b->d, D_BAD_BOUNDARY, n->at, "the constant has no field '%s'", array->field[f].name);
        if (!value || !constant_value(b, value, array->field[f].type, &out->constant[f]))
            return;
    }
}

/* One mode, for one input. */
static bool read_mode(struct builder *b, const struct ynode *n, const struct prog_array *array, struct boundary *out)
{
    if (n->kind == Y_MAPPING && n->count == 1 && !strcmp(n->pair[0].key->text, "constant")) {
        out->mode = BOUND_CONSTANT;
        constant_values(b, n->pair[0].value, array, out);
        return true;
    }
    if (n->kind == Y_SCALAR)
        for (int m = 0; m < boundary_count(); m++)
            if (m != BOUND_CONSTANT && !strcmp(n->text, boundary_names[m])) {
                if (m == BOUND_INTERIOR && b->p->kind != KIND_STENCIL)
                    diag_error(b->d, D_BAD_BOUNDARY, n->at, "only a stencil can leave out points");
                out->mode = (enum boundary_mode)m;
                return true;
            }
    struct diag *m = diag_error(b->d, D_BAD_BOUNDARY, n->at, "this is not a boundary mode");
    if (n->kind == Y_SCALAR && !strcmp(n->text, "constant"))
        diag_hint(b->d, m, "write {constant: 0.0}");
    else if (n->kind == Y_SCALAR)
        diag_suggest(b->d, m, n->text, boundary_names, boundary_count());
    return false;
}

static bool is_mode(const struct builder *b, const struct ynode *n)
{
    return n->kind != Y_MAPPING ||
           (n->count == 1 && !strcmp(n->pair[0].key->text, "constant") && input_find(b, "constant") < 0);
}

static void boundary_everywhere(struct builder *b, const struct ynode *n)
{
    for (int i = 0; i < b->ninputs; i++) {
        struct input *in = &b->input[i];
        struct boundary mode = { BOUND_CLAMP, { { 0 } } };
        if (in->role != ROLE_ELEMENT && in->role != ROLE_TABLE)
            continue;
        if (!read_mode(b, n, &in->array, &mode))
            return;
        for (int d = 0; d < PROG_RANK_MAX; d++)
            in->boundary[d] = mode;
    }
}

static void boundary_by_dimension(struct builder *b, const struct ynode *n, struct input *in)
{
    for (int i = 0; i < n->count; i++) {
        const struct ynode *key = n->pair[i].key;
        const struct prog_array *written = in->written ? in->written : &in->array;
        const char *names[PROG_RANK_MAX];
        int found = -1, count = 0;
        for (int d = 0; d < written->rank; d++) {
            int size = written->dim[d].size;
            if (size < 0)
                continue;
            names[count++] = b->size[size].name;
            if (!strcmp(b->size[size].name, key->text))
                found = in->within[d];
        }
        if (found >= 0) {
            read_mode(b, n->pair[i].value, &in->array, &in->boundary[found]);
            continue;
        }
        struct diag *m =
            diag_error(b->d, D_BAD_BOUNDARY, key->at, "'%s' has no dimension '%s'", in->array.name, key->text);
        diag_suggest(b->d, m, key->text, names, count);
    }
}

void build_boundary(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "boundary");
    if (!node)
        return;
    if (is_mode(b, node)) {
        boundary_everywhere(b, node);
        return;
    }
    for (int i = 0; i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *value = node->pair[i].value;
        int input = input_find(b, key->text);
        if (input < 0) {
            const char **names = arena_new(b->a, const char *, b->ninputs + 1);
            for (int k = 0; k < b->ninputs; k++)
                names[k] = b->input[k].array.name;
            struct diag *m = diag_error(b->d, D_BAD_BOUNDARY, key->at, "no input is called '%s'", key->text);
            diag_suggest(b->d, m, key->text, names, b->ninputs);
            continue;
        }
        struct input *in = &b->input[input];
        struct boundary mode = { BOUND_CLAMP, { { 0 } } };
        if (value->kind == Y_MAPPING && !(value->count == 1 && !strcmp(value->pair[0].key->text, "constant")))
            boundary_by_dimension(b, value, in);
        else if (read_mode(b, value, &in->array, &mode))
            for (int d = 0; d < PROG_RANK_MAX; d++)
                in->boundary[d] = mode;
    }
}

/* ---- iterate ---- */

void build_steps(struct builder *b, const struct ynode *n)
{
    struct problem *p = b->p;
    if (name_is_identifier(n->text)) {
        const char **names = arena_new(b->a, const char *, b->nparams + 1);
        for (int i = 0; i < b->nparams; i++)
            names[i] = b->param[i].name;
        p->steps_param = param_find(b, n->text);
        if (p->steps_param >= 0)
            b->param_slot[p->steps_param].used = true;
        if (p->steps_param >= 0 && b->param[p->steps_param].type != TY_NONE &&
            !ty_is_int(b->param[p->steps_param].type))
            diag_error(b->d, D_BAD_ITERATE, n->at, "steps are counted by an integer, and '%s' is %s", n->text,
                       ty_name(b->param[p->steps_param].type));
        if (p->steps_param < 0) {
            struct diag *m = diag_error(b->d, D_BAD_ITERATE, n->at, "no param is called '%s'", n->text);
            diag_suggest(b->d, m, n->text, names, b->nparams);
        }
    } else {
        node_integer(b, n, 0, INT64_MAX, &p->steps);
    }
}

bool array_same(const struct prog_array *x, const struct prog_array *y)
{
    if (x->rank != y->rank || x->nfields != y->nfields || x->stride != y->stride)
        return false;
    for (int d = 0; d < x->rank; d++)
        if (x->dim[d].size != y->dim[d].size || x->dim[d].add != y->dim[d].add)
            return false;
    for (int f = 0; f < x->nfields; f++)
        if (x->field[f].type != y->field[f].type || strcmp(x->field[f].name, y->field[f].name))
            return false;
    return true;
}

static void read_feedback(struct builder *b, const struct ynode *n)
{
    struct feedback *pair = arena_new(b->a, struct feedback, n->count + 1);
    int count = 0;
    if (!n->count)
        diag_error(b->d, D_BAD_ITERATE, n->at, "nothing is fed back");
    for (int i = 0; i < n->count; i++) {
        const struct ynode *key = n->pair[i].key, *value = n->pair[i].value;
        if (!node_is(b, value, Y_SCALAR, "the name of an output"))
            continue;
        struct feedback f = { input_find(b, key->text), output_find(b, value->text) };
        if (f.input < 0 || b->input[f.input].role != ROLE_ELEMENT)
            diag_error(b->d, D_BAD_ITERATE, key->at, "no input that is read at points is called '%s'", key->text);
        else if (f.output < 0 || output_moment(&b->output[f.output]) != AT_POINT)
            diag_error(b->d, D_BAD_ITERATE, value->at, "no output per point is called '%s'", value->text);
        else if (b->output_node[f.output] && !array_same(&b->input[f.input].array, &b->output[f.output].array) &&
                 !b->incomplete)
            diag_error(b->d, D_BAD_ITERATE, value->at, "'%s' and '%s' differ in type or shape", key->text, value->text);
        else
            pair[count++] = f;
        if (f.input >= 0)
            b->input[f.input].used = true;
        for (int k = 0; k + 1 < count; k++)
            if (pair[k].output == f.output && pair[count - 1].input == f.input)
                diag_error(b->d, D_BAD_ITERATE, value->at, "'%s' is fed back twice", value->text);
    }
    b->p->feedback = pair;
    b->p->nfeedback = count;
}

/* The kernels that write totals read an input as it was before the first step. */
static void check_placed_total(const struct expr *e, void *user)
{
    struct builder *b = user;
    for (int i = 0; e->kind == EX_AT && i < b->p->nfeedback; i++)
        if (b->p->feedback[i].input == e->which)
            diag_error(b->d, D_BAD_AT, e->at, "not yet: at() of '%s' in a result, where iterate feeds '%s'",
                       b->input[e->which].array.name, b->input[e->which].array.name);
}

static bool is_fed_back(const struct problem *p, int output)
{
    for (int i = 0; i < p->nfeedback; i++)
        if (p->feedback[i].output == output)
            return true;
    return false;
}

void build_iterate(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "iterate");
    if (!node || b->p->kind != KIND_STENCIL)
        return;
    schema_check(b->d, ST_ITERATE, node, K_ALL);
    const struct ynode *steps = schema_get(node, ST_ITERATE, "steps"),
                       *feedback = schema_get(node, ST_ITERATE, "feedback");
    b->p->iterated = true;
    if (steps)
        build_steps(b, steps);
    if (feedback)
        read_feedback(b, feedback);
    b->p->nlets = b->lets.nlets; /* expressions are walked through them */
    b->p->let = b->lets.let;
    for (int i = 0; i < b->noutputs; i++)
        for (int f = 0; output_moment(&b->output[i]) == AT_TOTAL && f < b->output[i].array.nfields; f++)
            if (b->output[i].value[f])
                problem_walk(b->p, b->output[i].value[f], check_placed_total, b);
    for (int i = 0; steps && feedback && !b->p->steps && b->p->steps_param < 0 && i < b->noutputs; i++)
        if (!is_fed_back(b->p, i))
            diag_error(b->d, D_BAD_ITERATE, steps->at, "without steps there is no value for '%s'",
                       b->output[i].array.name);
}
