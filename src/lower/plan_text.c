/* SPDX-License-Identifier: Apache-2.0 */
/* plan_text.c - a plan as YAML: what was decided, readable back by plan_read.c. */
#include "lower_impl.h"

struct formula_names plan_names(struct arena *a, const struct plan *plan, const struct prog_case *c)
{
    const struct problem *p = plan->problem;
    struct formula_names names = { .nsizes = p->nsizes,
                                   .nparams = p->nparams,
                                   .nkernels = c ? c->nkernels : 0,
                                   .npointers = p->ninputs + p->noutputs };
    const char **size = arena_new(a, const char *, names.nsizes), **param = arena_new(a, const char *, names.nparams);
    const char **kernel = arena_new(a, const char *, names.nkernels),
               **pointer = arena_new(a, const char *, names.npointers);
    for (int i = 0; i < names.nsizes; i++)
        size[i] = p->size[i].name;
    for (int i = 0; i < names.nparams; i++)
        param[i] = p->param[i].name;
    for (int i = 0; i < names.nkernels; i++)
        kernel[i] = c->kernel[i].name;
    for (int i = 0; i < names.npointers; i++)
        pointer[i] = problem_array(p, i)->name;
    names.size = size;
    names.param = param;
    names.kernel = kernel;
    names.pointer = pointer;
    return names;
}

static void print_formula(struct str *out, const char *before, const struct formula *f,
                          const struct formula_names *names, const char *behind)
{
    str_printf(out, "%s\"", before);
    formula_print(f, names, out);
    str_printf(out, "\"%s", behind);
}

static void print_tunables(const struct plan_case *c, struct str *out)
{
    str_add(out, "    tunables: {");
    for (int t = 0, n = 0; t < TN_COUNT; t++)
        if (tunable_used(c, (enum tunable_id)t))
            str_printf(out, "%s%s: %d", n++ ? ", " : "", tunable_name(t), c->tunable[t]);
    str_printf(out, "}\n    aligned: %s\n", c->aligned ? "true" : "false");
    if (c->turns)
        str_add(out, "    turns: true\n");
    if (c->shift[0] || c->shift[1])
        str_printf(out, "    shift0: %d\n    shift1: %d\n", c->shift[0], c->shift[1]);
}

static void print_case(const struct plan_case *c, const struct formula_names *names, bool guard, struct str *out)
{
    const struct prog_case *code = &c->code;
    str_printf(out, "  - name: %s\n    strategy: %s\n", code->name, code->strategy);
    if (guard && code->guard.n)
        print_formula(out, "    guard: ", &code->guard, names, "\n");
    print_tunables(c, out);
    str_add(out, "    kernels:\n");
    for (int i = 0; i < code->nkernels; i++)
        str_printf(out, "      - {name: %s, threads: %d, cluster: %d}\n", code->kernel[i].name, code->kernel[i].threads,
                   code->kernel[i].cluster);
    str_add(out, code->nbuffers ? "    buffers:\n" : "");
    for (int i = 0; i < code->nbuffers; i++) {
        const struct prog_buffer *b = &code->buffer[i];
        str_printf(out, "      - {name: %s, region: %s, ", b->name,
                   b->region == REGION_CONTROL ? "control" : "scratch");
        print_formula(out, "bytes: ", &b->bytes, names, "}\n");
    }
    str_add(out, "    steps:\n");
    for (int i = 0; i < code->nsteps; i++) {
        const struct prog_step *s = &code->step[i];
        str_printf(out, "      - {launch: %s, ", code->kernel[s->kernel].name);
        print_formula(out, "grid: ", &s->grid, names, "");
        if (s->shared.n)
            print_formula(out, ", shared: ", &s->shared, names, "");
        str_printf(out, ", dependent: %s}\n", s->dependent ? "true" : "false");
    }
}

/* Case c, or with a negative number all of the plan.  Names for printing live in a scratch arena: printing needs no
 * session. */
static void print_part(struct arena *a, const struct plan *plan, int only, struct str *out)
{
    str_printf(out, "ptxgen_plan: 2\nproblem: %s\narch: %s\nptx: %d\n", plan->problem->name, plan->device.arch,
               plan->device.ptx);
    const struct formula_names plain = plan_names(a, plan, NULL);
    const int nchecks = only < 0 ? plan->nchecks : 0;
    str_add(out, nchecks ? "checks:\n" : "");
    for (int i = 0; i < nchecks; i++) {
        print_formula(out, "  - {condition: ", &plan->check[i].condition, &plain, "");
        str_add(out, ", message: '");
        for (const char *at = plan->check[i].message; *at; at++)
            str_add(out, *at == '\'' ? "''" : (char[]){ *at, 0 });
        str_add(out, "'}\n");
    }
    str_add(out, "cases:\n");
    for (int c = only < 0 ? 0 : only; c < (only < 0 ? plan->ncases : only + 1); c++) {
        const struct formula_names names = plan_names(a, plan, &plan->cases[c].code);
        print_case(&plan->cases[c], &names, only < 0, out);
    }
}

void plan_print_case(const struct plan *plan, int c, struct str *out)
{
    struct arena a;
    jmp_buf oom;
    arena_init(&a);
    a.oom = &oom;
    if (setjmp(oom))
        out->failed = true;
    else
        print_part(&a, plan, c, out);
    arena_finish(&a);
}

void plan_print(const struct plan *plan, struct str *out) { plan_print_case(plan, -1, out); }
