/* SPDX-License-Identifier: Apache-2.0 */
/* gen.c - a kernel's parameters: declared from the argument list of the plan, found again by number or identifier; fields of their
 * arrays, and elements that are loaded together. */
#include "gen.h"

#include "llvmgen/builder/kb_target.h"
#include "lower/results.h"

/* Arrays of structures are addressed by bytes. */
static enum ty element_type(const struct prog_array *a)
{
    return a->nfields == 1 && !*a->field[0].name ? a->field[0].type : TY_U8;
}

/* The widest power of two that divides the size of an element, at most 8: what C aligns it to, at least. */
static int natural_alignment(const struct prog_array *a)
{
    int align = 1;
    for (int f = 0; f < a->nfields; f++)
        align = ty_bytes(a->field[f].type) > align ? ty_bytes(a->field[f].type) : align;
    return align;
}

static unsigned stream_flag(const struct gen *g) { return g->c->tunable[TN_EVICT_FIRST] ? KB_STREAM : 0; }

/* Elements that many points share, and those at computed places, are read again: they stay in the first-level cache. */
static bool read_again(const struct gen *g, int input)
{
    const struct input *in = &g->p->input[input];
    return in->placed || in->summed || (in->role == ROLE_ELEMENT && !access_input_direct(g->p, input));
}

/* Without element outputs nothing that a kernel reads is written while it runs; after a dependency wait the
 * loads must not be hoisted, so they stay ordinary there. */
static unsigned input_flags(const struct gen *g, int input)
{
    const bool writes = problem_writes(g->p, AT_POINT) || problem_writes(g->p, AT_RESULT);
    return (read_again(g, input) ? 0 : stream_flag(g)) | (writes || g->c->tunable[TN_PDL] ? 0 : KB_INVARIANT);
}

static void declare(struct gen *g, int i)
{
    const struct prog_arg *a = &g->kernel->arg[i];
    const struct problem *p = g->p;
    const struct prog_array *array = NULL;
    switch (a->kind) {
    case ARG_FED:
    case ARG_INPUT:
        array = &p->input[a->index].array;
        g->pointer[i] =
            kb_param_ptr(g->k, element_type(array), natural_alignment(array), input_flags(g, a->index), a->name);
        break;
    case ARG_NEXT:
    case ARG_OUTPUT:
        array = &p->output[a->index].array;
        g->pointer[i] = kb_param_ptr(g->k, element_type(array), natural_alignment(array), stream_flag(g), a->name);
        break;
    case ARG_BUFFER: g->pointer[i] = kb_param_ptr(g->k, TY_U32, 16, 0, a->name); break;
    case ARG_PARAM:
    case ARG_VALUE: g->value[i] = kb_param(g->k, a->type, a->name); break;
    }
}

/* Blocks that a multiprocessor holds at least.  A last kernel between offsets has a bound: without, ptxas spills a word or two. */
static int least_blocks(const struct gen *g)
{
    if (results_kernel(g->c, g->kernel))
        return g->p->offsets >= 0;
    return initials_kernel(g->c, g->kernel) ? 0 : g->c->tunable[TN_MIN_BLOCKS];
}

void gen_begin(struct gen *g, kb *k, const struct plan *plan, const struct plan_case *c,
               const struct prog_kernel *kernel)
{
    *g = (struct gen){ .k = k, .c = c, .p = strategy_problem(c->strategy, plan->problem), .kernel = kernel };
    g->nfields = state_fields(g->p, g->field);
    g->padded = state_pad(g->p);
    kb_kernel_begin(k, kernel->name, kernel->threads, kernel->cluster, least_blocks(g), kernel->nargs);
    for (int i = 0; i < kernel->nargs; i++)
        declare(g, i);
}

void gen_wait_for_predecessor(struct gen *g)
{
    if (!gen_tunable(g, TN_PDL))
        return;
    kb_dependency_wait(g->k);
    kb_dependency_launch(g->k);
}

bool gen_end(struct gen *g) { return kb_kernel_end(g->k); }

static int place(const struct gen *g, enum prog_arg_kind kind, int id)
{
    for (int i = 0; i < g->kernel->nargs; i++)
        if (g->kernel->arg[i].kind == kind && g->kernel->arg[i].id == id)
            return i;
    return -1;
}

static int find(const struct gen *g, enum prog_arg_kind kind, int id)
{
    const int i = place(g, kind, id);
    if (i >= 0)
        return i;
    kb_misuse(g->k, "kernel has no argument '%s'", argument_name(kind, id));
    return 0;
}

/* Every kernel begins with these arguments, in this order: plan_kernel(). */
kb_ptr gen_input(const struct gen *g, int i) { return g->pointer[i]; }
kb_ptr gen_output(const struct gen *g, int i) { return g->pointer[g->p->ninputs + i]; }
kb_val gen_param(const struct gen *g, int i) { return g->value[g->p->ninputs + g->p->noutputs + i]; }
/* Sums over few terms are written out. */
kb_val gen_size(const struct gen *g, int i)
{
    const struct dimension *d = &g->p->size[i];
    return g->p->sums && d->min == d->max ? kb_imm(g->k, TY_I64, d->min) : gen_param(g, g->p->nparams + i);
}

kb_val gen_value(const struct gen *g, enum kernel_value id) { return g->value[find(g, ARG_VALUE, id)]; }
bool gen_has_value(const struct gen *g, enum kernel_value id) { return place(g, ARG_VALUE, id) >= 0; }

static kb_ptr buffer(const struct gen *g, int arg, enum ty type)
{
    kb_ptr b = g->pointer[arg];
    b.ty = type;
    return b;
}

kb_ptr gen_buffer(const struct gen *g, enum kernel_buffer id, enum ty type)
{
    return buffer(g, find(g, ARG_BUFFER, id), type);
}

kb_arr gen_partials(const struct gen *g)
{
    const int first = find(g, ARG_BUFFER, BUF_PARTIAL);
    kb_arr a = { .n = g->nfields };
    for (int f = 0; f < g->nfields; f++)
        a.e[f] = buffer(g, first + f, g->field[f]);
    return a;
}

int gen_tunable(const struct gen *g, enum tunable_id t) { return g->c->tunable[t]; }

kb_val gen_extent(struct gen *g, const struct prog_dim *d)
{
    return d->size < 0 ? kb_imm(g->k, TY_I64, d->add) : kb_add(g->k, gen_size(g, d->size), d->add);
}

kb_val gen_load_field(struct gen *g, const struct prog_array *a, kb_ptr p, kb_val element, int field)
{
    if (!*a->field[0].name)
        return kb_load(g->k, p, element);
    kb_ptr q = kb_advance(g->k, p, kb_add(g->k, kb_mul(g->k, element, a->stride), a->field[field].offset));
    q.ty = a->field[field].type;
    return kb_load(g->k, q, 0);
}

void gen_store_field(struct gen *g, const struct prog_array *a, kb_ptr p, kb_val element, int field, kb_val x)
{
    if (!*a->field[0].name) {
        kb_store(g->k, p, element, x);
        return;
    }
    kb_ptr q = kb_advance(g->k, p, kb_add(g->k, kb_mul(g->k, element, a->stride), a->field[field].offset));
    q.ty = a->field[field].type;
    kb_store(g->k, q, 0, x);
}

/* ---- vectors of elements ----------------------------------------------------------------------------------------- */

int gen_vector_alignment(int bytes)
{
    int align = 1;
    while (align < 16 && bytes % (2 * align) == 0)
        align *= 2;
    return align;
}

enum ty direct_type(const struct gen *g, int slot)
{
    for (int i = 0; i < g->p->ninputs; i++) {
        const struct prog_array *a = &g->p->input[i].array;
        if (!access_input_direct(g->p, i))
            continue;
        if (slot < a->nfields)
            return a->field[slot].type;
        slot -= a->nfields;
    }
    return TY_BOOL;
}

void direct_load_if(struct gen *g, kb_val condition, kb_val base, kb_val offset, int64_t plus, int n, bool aligned,
                    struct direct *out)
{
    kb *k = g->k;
    const int fields = access_direct_fields(g->p);
    kb_var x[DIRECT_FIELDS_MAX * GEN_VECTOR_MAX];
    for (int j = 0; j < n * fields; j++)
        x[j] = kb_var_new(k, kb_imm(k, direct_type(g, j % fields), 0), "x");
    kb_if(k, condition) {
        direct_load(g, base, offset, plus, n, aligned, out);
        for (int j = 0; j < n * fields; j++)
            kb_set(k, x[j], out[j / fields].v[j % fields]);
    }
    for (int j = 0; j < n * fields; j++)
        out[j / fields].v[j % fields] = kb_get(k, x[j]);
}

void direct_load_shifted(struct gen *g, kb_val element, kb_val further, int n, struct direct_shifted *out)
{
    kb *k = g->k;
    for (int i = 0, slot = 0; i < g->p->ninputs; i++) {
        const int stride = g->p->input[i].array.stride;
        if (!access_input_direct(g->p, i))
            continue;
        const kb_val byte = kb_mul(k, element, stride);
        kb_ptr at = gen_input(g, i);
        at.ty = TY_U8;
        at = kb_advance(k, kb_advance(k, at, kb_and(k, byte, ~3)), kb_mul(k, further, stride));
        kb_load_words(k, at, kb_imm(k, TY_I32, 0), n * stride + 4, 4, out->word[slot]);
        out->bits[slot++] = kb_mul(k, kb_and(k, kb_cast(k, byte, TY_U32), 3), 8);
    }
}

void direct_take_shifted(struct gen *g, const struct direct_shifted *from, int n, struct direct *out)
{
    for (int i = 0, slot = 0; i < g->p->ninputs; i++) {
        const struct prog_array *a = &g->p->input[i].array;
        kb_val word[2];
        if (!access_input_direct(g->p, i))
            continue;
        for (int w = 0; w < n * a->stride / 4; w++)
            word[w] = kb_funnel(g->k, from->word[slot][w], from->word[slot][w + 1], from->bits[slot]);
        for (int j = 0; j < n; j++)
            out[j].v[slot] = kb_extract(g->k, word, j * a->stride, a->field[0].type);
        slot++;
    }
}
