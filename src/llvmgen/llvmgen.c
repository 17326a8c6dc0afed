/* SPDX-License-Identifier: Apache-2.0 */
/* llvmgen.c - a plan becomes code: every case is a module of its own, emitted by its strategy's row. */
#include "llvmgen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llvmgen/shared/output.h"
#include "llvmgen/targets/host_jit.h"
#include "lower/results.h"
#include "llvm_room.h"
#include "ptx.h"

static void (*emitter(const struct strategy *row))(struct gen *g)
{
    static void (*const emit[])(struct gen * g) = {
#define STRATEGY(id, kind, name, reference, tunables, chain) emit_##id,
#include "lower/strategies.def"
#undef STRATEGY
    };
    return emit[row - strategy_row(0)];
}

_Static_assert((int)KB_SHARED_STATIC == PROG_SHARED_STATIC, "the builder places as the launcher asks");

/* All kernels of a case into the builder's module. */
static bool emit_case(kb *k, const struct plan *plan, int c, struct prog_case *code)
{
    const struct plan_case *taken = &plan->cases[c];
    for (int i = 0; i < taken->code.nkernels; i++) {
        struct gen *g = malloc(sizeof *g);
        if (!g)
            return false;
        gen_begin(g, k, plan, taken, &taken->code.kernel[i]);
        (results_kernel(taken, g->kernel)    ? emit_results
         : initials_kernel(taken, g->kernel) ? emit_initials
                                             : emitter(taken->strategy))(g);
        const bool ok = gen_end(g);
        free(g);
        if (!ok)
            return false;
        program_place_shared(code, i, kb_shared_bytes(k));
    }
    return true;
}

/* ---- PTX --------------------------------------------------------------------------------------------------------- */

static struct codegen *codegen_case(const struct plan *plan, int c, const struct llvmgen_options *o,
                                    struct prog_case *code)
{
    struct codegen *cg = codegen_begin(&plan->device, o, plan->cases[c].code.name);
    if (cg && !emit_case(codegen_builder(cg), plan, c, code))
        codegen_fail(cg, D_CODEGEN, "%s: %s", plan->cases[c].code.strategy, kb_error(codegen_builder(cg)));
    return cg;
}

/* A case on its way to PTX.  Cases share nothing but the plan, which does not change, so each may have a thread. */
struct job {
    const struct plan *plan;
    const struct llvmgen_options *options;
    int case_index;
    struct prog_case *code;
    struct codegen *cg;
    char *text;
    size_t length;
    pthread_t thread;
    bool threaded;
};

static void *compile_case(void *user)
{
    struct job *j = user;
    j->cg = codegen_case(j->plan, j->case_index, j->options, j->code);
    j->text = j->cg ? codegen_ptx(j->cg, &j->length) : NULL;
    return NULL;
}

/* The last one is the caller's own; where no thread can be had, it does the others' work too. */
static void compile_cases(struct job *job, const struct llvmgen_options *o, int n)
{
    enum { STACK = 8 << 20 }; /* emitters hold the values of a tile on it */
    pthread_attr_t attributes;
    const bool threads = o->threads != 1 && n > 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1 && llvm_room_for(n) &&
                         !pthread_attr_init(&attributes);
    if (threads)
        pthread_attr_setstacksize(&attributes, STACK);
    for (int c = 0; c < n; c++) {
        job[c].threaded = threads && c < n - 1 && !pthread_create(&job[c].thread, &attributes, compile_case, &job[c]);
        if (!job[c].threaded)
            compile_case(&job[c]);
    }
    for (int c = 0; c < n; c++)
        if (job[c].threaded)
            pthread_join(job[c].thread, NULL);
    if (threads)
        pthread_attr_destroy(&attributes);
}

bool llvmgen_fill(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o,
                  struct program *program, int only)
{
    struct job *job = llvm_room(s) ? calloc((size_t)plan->ncases, sizeof *job) : NULL;
    bool ok = job != NULL;
    int n = 0;
    for (int c = 0; ok && c < plan->ncases; c++)
        if ((only < 0 || only == c) && !program->module[c].ptx) /* other cases are other threads' */
            job[n++] = (struct job){ .plan = plan, .options = o, .case_index = c, .code = &program->cases[c] };
    compile_cases(job, o, n);
    for (int i = 0; i < n; i++) {
        program->module[job[i].case_index] = (struct prog_module){ .ptx = job[i].text, .length = job[i].length };
        ok &= job[i].text != NULL; /* else there was an error, or no memory for a generator */
        if (job[i].cg)
            codegen_end(job[i].cg, s);
    }
    free(job);
    return ok;
}

bool llvmgen_ir(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o, struct str *out)
{
    struct program *program = llvm_room(s) ? program_from_plan(plan) : NULL;
    bool ok = program != NULL;
    for (int c = 0; ok && c < plan->ncases; c++) {
        struct codegen *cg = codegen_case(plan, c, o, &program->cases[c]);
        char *text = cg ? codegen_ir(cg) : NULL;
        if (text)
            str_printf(out, "%s; case %s\n%s", c ? "\n" : "", plan->cases[c].code.name, text);
        free(text);
        ok = cg && codegen_end(cg, s);
    }
    program_destroy(program);
    return ok;
}

int llvmgen_version(void)
{
    unsigned major, minor, patch;

    if (llvm_open() != NULL)
        return 0;
    LLVMGetVersion(&major, &minor, &patch);
    return (int)(major * 10000 + minor * 100 + patch);
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

struct host_case {
    bool asked;                /* for code: now it has, or cannot have any */
    const char *failure;       /* why it has none */
    struct llvm_errors errors; /* what LLVM says about the case's context */
    struct host_jit *jit;
    int points;
    char **point; /* texts */
};

struct host_code {
    const struct plan *plan;
    struct llvmgen_options options;
    const struct host_symbol *symbols;
    int nsymbols;
    struct program *program;
    struct ptxgen_session says; /* why a case has no code */
    int ncases;
    struct host_case cases[];
};

static bool keep_points(struct host_case *h, const kb *k)
{
    h->points = kb_points(k);
    h->point = calloc((size_t)h->points + 1, sizeof *h->point);
    for (int i = 0; h->point && i < h->points; i++) {
        h->point[i] = strdup(kb_point_text(k, i + 1));
        if (!h->point[i])
            return false;
    }
    return h->point != NULL;
}

static struct host_jit *jit_case(struct host_code *h, const struct prog_case *code, LLVMContextRef cx,
                                 LLVMModuleRef mod)
{
    const char *name[PLAN_STEPS_MAX];
    for (int i = 0; i < code->nkernels; i++)
        name[i] = code->kernel[i].name;
    return host_jit_create(&h->says, cx, mod, code->nkernels, name, h->symbols, h->nsymbols);
}

/* Emits a case for the host.  Ordering points are numbered through all cases; `before`: those of earlier ones. */
static void emit_host_case(struct host_code *h, int c, int before)
{
    const struct plan *plan = h->plan;
    LLVMContextRef cx = llvm_context(&h->cases[c].errors);
    LLVMModuleRef mod = LLVMModuleCreateWithNameInContext(plan->cases[c].code.name, cx);
    const struct kb_options ko = { .sm = plan->device.sm,
                                   .ptx = plan->device.ptx,
                                   .omit_point = h->options.omit_point > before ? h->options.omit_point - before : 0,
                                   .shared_max = plan->device.shared_per_block };
    host_jit_prepare(mod);
    kb *k = kb_new(cx, mod, &kb_target_host, &ko);
    const bool ok = k && emit_case(k, plan, c, &h->program->cases[c]) && keep_points(&h->cases[c], k);
    if (!ok)
        diag_error(&h->says.diags, D_CODEGEN, span_none(), "%s: %s", plan->cases[c].code.strategy,
                   k ? kb_error(k) : "out of memory");
    kb_free(k);
    if (ok) {
        h->cases[c].jit = jit_case(h, &h->program->cases[c], cx, mod);
        return;
    }
    LLVMDisposeModule(mod);
    LLVMContextDispose(cx);
}

static void need_case(struct host_code *h, int c, int before)
{
    jmp_buf oom;
    h->says.arena.oom = &oom;
    if (h->cases[c].asked || setjmp(oom))
        return;
    h->cases[c].failure = "out of memory";
    if (!llvm_room(&h->says)) { /* arrays may have come since llvmgen_host() */
        h->cases[c].failure = h->says.diags.last->text;
        return;
    }
    h->cases[c].asked = true;
    emit_host_case(h, c, before);
    h->cases[c].failure = h->cases[c].jit ? NULL : h->says.diags.last->text;
}

/* All cases, in their order. */
static int need_cases(struct host_code *h)
{
    int points = 0;
    for (int c = 0; c < h->ncases; c++) {
        need_case(h, c, points);
        points += h->cases[c].points;
    }
    return points;
}

struct host_code *llvmgen_host(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o,
                               const struct host_symbol *symbols, int nsymbols)
{
    struct host_code *h =
        !llvm_room(s) || !host_jit_exists(s) ? NULL : calloc(1, sizeof *h + sizeof h->cases[0] * (size_t)plan->ncases);
    if (!h)
        return NULL;
    h->plan = plan;
    h->options = *o;
    h->symbols = symbols;
    h->nsymbols = nsymbols;
    h->ncases = plan->ncases;
    diags_init(&h->says.diags, &h->says.arena);
    h->program = program_from_plan(plan);
    if (h->program) {
        if (o->omit_point)
            need_cases(h);
        return h;
    }
    host_destroy(h);
    return NULL;
}

const struct program *host_program(const struct host_code *h) { return h->program; }
host_kernel host_entry(struct host_code *h, int case_index, int kernel)
{
    need_case(h, case_index, 0);
    return h->cases[case_index].jit ? host_jit_entry(h->cases[case_index].jit, kernel) : NULL;
}

const char *host_failure(const struct host_code *h, int case_index)
{
    return case_index < 0 ? NULL : h->cases[case_index].failure;
}

int host_points(struct host_code *h) { return need_cases(h); }

const char *host_point_text(const struct host_code *h, int i)
{
    for (int c = 0; c < h->ncases; i -= h->cases[c++].points)
        if (i <= h->cases[c].points)
            return h->cases[c].point[i - 1];
    return NULL;
}

void host_destroy(struct host_code *h)
{
    if (!h)
        return;
    for (int c = 0; c < h->ncases; c++) {
        for (int i = 0; h->cases[c].point && i < h->cases[c].points; i++)
            free(h->cases[c].point[i]);
        free(h->cases[c].point);
        host_jit_destroy(h->cases[c].jit);
    }
    program_destroy(h->program);
    arena_finish(&h->says.arena);
    free(h);
}
