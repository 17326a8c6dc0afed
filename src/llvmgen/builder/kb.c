/* SPDX-License-Identifier: Apache-2.0 */
/* kb.c - kernel builder: lifetime of builders and kernels, parameters, names, misuse, ordering points.
 *
 * A kernel's function can only be created when the types of all its parameters are known, but parameters are declared
 * one by one and their values are used at once.  So entry and body start as blocks without a function; each parameter
 * is stood in for by an instruction of the entry block, and takes its place when the kernel ends.
 */
#include "kb_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first misuse wins; emission goes on so that one run reports one cause. */
void kb_misuse(kb *k, const char *format, ...)
{
    if (k->error[0])
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(k->error, sizeof k->error, format, ap);
    va_end(ap);
}

/* The last folder and the file: files of one name lie in several folders. */
const char *kb_file_name(const char *path)
{
    const char *name = path, *folder = path;
    for (const char *c = path; *c; c++)
        if (*c == '/') {
            folder = name;
            name = c + 1;
        }
    return folder;
}

void *kb_scratch(kb *k, size_t bytes)
{
    struct kb_scratch *s = calloc(1, sizeof *s + bytes);
    if (!s) {
        kb_misuse(k, "out of memory");
        return NULL;
    }
    s->older = k->scratch;
    k->scratch = s;
    return s->bytes;
}

static void scratch_free(kb *k)
{
    while (k->scratch) {
        struct kb_scratch *s = k->scratch;
        k->scratch = s->older;
        free(s);
    }
}

static LLVMTypeRef scalar_type(LLVMContextRef cx, enum ty ty)
{
    switch (ty) {
    case TY_F16: return LLVMHalfTypeInContext(cx);
    case TY_BF16: return LLVMBFloatTypeInContext(cx);
    case TY_F32: return LLVMFloatTypeInContext(cx);
    case TY_F64: return LLVMDoubleTypeInContext(cx);
    default: return LLVMIntTypeInContext(cx, (unsigned)ty_bits(ty));
    }
}

/* ---- builders ---------------------------------------------------------------------------------------------------- */

kb *kb_new(LLVMContextRef cx, LLVMModuleRef mod, const struct kb_target *t, const struct kb_options *o)
{
    kb *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->cx = cx;
    k->mod = mod;
    k->target = t;
    k->options = *o;
    k->b = LLVMCreateBuilderInContext(cx);
    k->entry = LLVMCreateBuilderInContext(cx);
    for (int t_ = 0; t_ < TY_COUNT; t_++)
        k->ty[t_] = scalar_type(cx, (enum ty)t_);
    return k;
}

void kb_free(kb *k)
{
    if (!k)
        return;
    for (int i = 0; i < k->npoints; i++)
        free(k->point[i]);
    free(k->point);
    scratch_free(k);
    LLVMDisposeBuilder(k->entry);
    LLVMDisposeBuilder(k->b);
    free(k);
}

int kb_sm(const kb *k) { return k->options.sm; }
int kb_ptx(const kb *k) { return k->options.ptx; }
const char *kb_error(const kb *k) { return k->error; }

int kb_threads(const kb *k)
{
    const struct kb_flow *team = kb_team_of(k);
    return team ? team->team_threads : k->threads;
}

int kb_shared_bytes(const kb *k) { return k->shared_bytes; }
void kb_tighten_sums(kb *k) { k->tight_sums = true; }
bool kb_sums_tight(const kb *k) { return k->tight_sums; }

LLVMContextRef kb_context(kb *k) { return k->cx; }
LLVMModuleRef kb_module(kb *k) { return k->mod; }
LLVMTypeRef kb_llvm_ty(kb *k, enum ty ty) { return k->ty[ty]; }

LLVMBuilderRef kb_builder(kb *k)
{
    kb_ready(k);
    return k->b;
}

LLVMValueRef kb_function(kb *k)
{
    kb_ready(k);
    return k->fn;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

void kb_kernel_begin(kb *k, const char *name, int threads, int cluster, int min_blocks, int nparams)
{
    snprintf(k->name, sizeof k->name, "%s", name);
    k->section[0] = '\0';
    if (strlen(name) >= KB_NAME_MAX)
        kb_misuse(k, "kernel name too long: %s", name);
    k->fn = NULL;
    k->threads = threads;
    k->cluster = cluster;
    k->min_blocks = min_blocks;
    k->nparams = nparams;
    if (nparams > KB_PARAM_MAX) {
        kb_misuse(k, "kernel %s has %d parameters, more than %d", name, nparams, KB_PARAM_MAX);
        k->nparams = KB_PARAM_MAX;
    }
    k->ndeclared = 0;
    k->depth = 0;
    memset(k->known, 0, sizeof k->known);
    memset(k->sreg, 0, sizeof k->sreg);
    k->lane.ir = k->warp.ir = NULL;
    k->shared = NULL;
    k->shared_bytes = 0;
    k->arrive_omitted = k->dependent = false;
    k->entry_block = LLVMCreateBasicBlockInContext(k->cx, "entry");
    k->body_block = LLVMCreateBasicBlockInContext(k->cx, "body");
    LLVMPositionBuilderAtEnd(k->entry, k->entry_block);
    LLVMPositionBuilderAtEnd(k->b, k->body_block);
    if (k->nparams == 0)
        kb_ready(k);
}

static void enum_attribute(kb *k, LLVMValueRef fn, unsigned index, const char *name, uint64_t value)
{
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, index, LLVMCreateEnumAttribute(k->cx, kind, value));
}

static void parameter_attributes(kb *k)
{
    for (int i = 0; i < k->nparams; i++) {
        const struct kb_parameter *p = &k->param[i];
        const unsigned index = (unsigned)i + 1;
        enum_attribute(k, k->fn, index, "noundef", 0);
        if (p->align)
            enum_attribute(k, k->fn, index, "align", (uint64_t)p->align);
    }
}

/* Nobody writes it, so aliases cannot be noticed. Not in a dependent kernel: the previous one may still be writing. */
static void invariant_attributes(kb *k)
{
    for (int i = 0; i < k->nparams && !k->dependent; i++) {
        if (k->param[i].flags & KB_INVARIANT) {
            enum_attribute(k, k->fn, (unsigned)i + 1, "noalias", 0);
            enum_attribute(k, k->fn, (unsigned)i + 1, "readonly", 0);
        }
    }
}

static struct kb_parameter *declare(kb *k, LLVMTypeRef type, const char *name)
{
    if (k->ndeclared == k->nparams) {
        kb_misuse(k, "parameter '%s' is one more than kernel %s announced", name, k->name);
        k->param[KB_PARAM_MAX] = (struct kb_parameter){ .type = type, .stand_in = LLVMGetPoison(type) };
        return &k->param[KB_PARAM_MAX];
    }
    struct kb_parameter *p = &k->param[k->ndeclared++];
    *p = (struct kb_parameter){ .type = type };
    LLVMBuilderRef b = LLVMCreateBuilderInContext(k->cx);
    LLVMPositionBuilderAtEnd(b, k->entry_block);
    p->stand_in = LLVMBuildFreeze(b, LLVMGetPoison(type), name);
    LLVMDisposeBuilder(b);
    return p;
}

void kb_ready(kb *k)
{
    if (k->fn)
        return;
    while (k->ndeclared < k->nparams) {
        kb_misuse(k, "kernel %s was used with %d of its %d parameters declared", k->name, k->ndeclared, k->nparams);
        declare(k, k->ty[TY_I32], "missing");
    }
    LLVMTypeRef type[KB_PARAM_MAX];
    for (int i = 0; i < k->nparams; i++)
        type[i] = k->param[i].type;
    LLVMTypeRef fty = LLVMFunctionType(LLVMVoidTypeInContext(k->cx), type, (unsigned)k->nparams, false);
    k->fn = LLVMAddFunction(k->mod, k->name, fty);
    LLVMAppendExistingBasicBlock(k->fn, k->entry_block);
    LLVMAppendExistingBasicBlock(k->fn, k->body_block);
    LLVMPositionBuilderAtEnd(k->entry, k->entry_block);
    LLVMPositionBuilderBefore(k->entry, LLVMBuildBr(k->entry, k->body_block));
    enum_attribute(k, k->fn, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
    parameter_attributes(k);
    LLVMBuilderRef saved = kb_enter_entry(k);
    k->target->kernel(k, k->threads, k->cluster, k->min_blocks);
    kb_leave_entry(k, saved);
}

kb_ptr kb_param_ptr(kb *k, enum ty elem, int align, unsigned flags, const char *name)
{
    struct kb_parameter *p = declare(k, LLVMPointerTypeInContext(k->cx, KB_GLOBAL), name);
    p->align = align > 0 ? align : ty_bytes(elem);
    p->flags = flags;
    kb_ptr r = { p->stand_in, elem, KB_GLOBAL, KB_UNI_GRID, (unsigned char)flags, name };
    if (k->ndeclared == k->nparams)
        kb_ready(k);
    return r;
}

kb_val kb_param(kb *k, enum ty ty, const char *name)
{
    struct kb_parameter *p = declare(k, kb_memory_ty(k, ty), name);
    kb_val r = kb_make(p->stand_in, ty, KB_UNI_GRID);
    if (k->ndeclared == k->nparams)
        kb_ready(k);
    if (ty != TY_BOOL)
        return r;
    LLVMBuilderRef b =
        LLVMCreateBuilderInContext(k->cx); /* right after the parameter, whether there is a function or not */
    LLVMValueRef next = LLVMIsAInstruction(r.ir) ? LLVMGetNextInstruction(r.ir) : NULL;
    if (next)
        LLVMPositionBuilderBefore(b, next);
    else
        LLVMPositionBuilderAtEnd(b, k->entry_block);
    r.ir = LLVMBuildICmp(b, LLVMIntNE, r.ir, LLVMConstNull(p->type), "");
    LLVMDisposeBuilder(b);
    return r;
}

/* Arguments take the place and the names of what stood in for them. */
static void substitute_parameters(kb *k)
{
    for (int i = 0; i < k->nparams; i++) {
        LLVMValueRef from = k->param[i].stand_in, to = LLVMGetParam(k->fn, (unsigned)i);
        size_t length;
        char name[KB_NAME_MAX];
        snprintf(name, sizeof name, "%s", LLVMGetValueName2(from, &length));
        LLVMReplaceAllUsesWith(from, to);
        LLVMInstructionEraseFromParent(from);
        LLVMSetValueName2(to, name, strlen(name));
    }
}

bool kb_kernel_end(kb *k)
{
    kb_ready(k);
    if (k->depth > 0) {
        const struct kb_flow *f = &k->flow[k->depth - 1];
        kb_misuse(k, "%s:%d: scope never closed (break, return or goto inside it?)", kb_file_name(f->file), f->line);
    } else {
        LLVMBuildRetVoid(k->b);
    }
    const int most = k->options.shared_max ? k->options.shared_max : KB_SHARED_STATIC;
    if (k->shared_bytes > most)
        kb_misuse(k, "%d bytes of shared memory, more than the %d of a block on sm_%d", k->shared_bytes, most,
                  k->options.sm);
    if (k->shared)
        k->target->shared_done(k, k->shared_bytes);
    substitute_parameters(k);
    invariant_attributes(k);
    scratch_free(k);
    k->depth = 0;
    return !k->error[0];
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A value keeps its first name. */
kb_val kb_name(kb_val v, const char *name)
{
    size_t length;
    if (v.ir && !LLVMIsConstant(v.ir) && !LLVMGetValueName2(v.ir, &length)[0])
        LLVMSetValueName2(v.ir, name, strlen(name));
    return v;
}

void kb_section(kb *k, const char *name) { snprintf(k->section, sizeof k->section, "%s", name); }

LLVMBasicBlockRef kb_block_after(kb *k, const char *what)
{
    char name[KB_SECTION_MAX + 16];
    kb_ready(k);
    snprintf(name, sizeof name, "%s%s%s", k->section, k->section[0] ? "." : "", what);
    LLVMBasicBlockRef next = LLVMGetNextBasicBlock(LLVMGetInsertBlock(k->b));
    return next ? LLVMInsertBasicBlockInContext(k->cx, next, name) : LLVMAppendBasicBlockInContext(k->cx, k->fn, name);
}

LLVMBuilderRef kb_enter_entry(kb *k)
{
    kb_ready(k);
    LLVMBuilderRef saved = k->b;
    k->b = k->entry;
    return saved;
}

void kb_leave_entry(kb *k, LLVMBuilderRef saved) { k->b = saved; }

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum { CALL_ARGS_MAX = 16 };

static LLVMValueRef declaration(kb *k, const char *name, LLVMTypeRef fty, bool convergent)
{
    LLVMValueRef fn = LLVMGetNamedFunction(k->mod, name);
    if (fn)
        return fn;
    const bool intrinsic = strncmp(name, "llvm.", 5) == 0;
    if (intrinsic && !LLVMLookupIntrinsicID(name, strlen(name)))
        kb_misuse(k, "no such intrinsic: %s", name);
    fn = LLVMAddFunction(k->mod, name, fty); /* LLVM gives intrinsics their attributes by name */
    if (!intrinsic) {
        enum_attribute(k, fn, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
        if (convergent)
            enum_attribute(k, fn, (unsigned)LLVMAttributeFunctionIndex, "convergent", 0);
    }
    return fn;
}

LLVMValueRef kb_call(kb *k, const char *name, LLVMTypeRef ret, int n, LLVMValueRef *args, bool convergent)
{
    LLVMTypeRef type[CALL_ARGS_MAX];
    kb_ready(k);
    for (int i = 0; i < n; i++)
        type[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef fty = LLVMFunctionType(ret, type, (unsigned)n, false);
    return LLVMBuildCall2(k->b, fty, declaration(k, name, fty, convergent), args, (unsigned)n, "");
}

LLVMValueRef kb_pure(kb *k, LLVMValueRef call)
{
    static const char *const name[] = { "memory" /* none */, "nounwind", "willreturn" };
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const unsigned kind = LLVMGetEnumAttributeKindForName(name[i], strlen(name[i]));
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(k->cx, kind, 0));
    }
    return call;
}

LLVMValueRef kb_overloaded(kb *k, const char *name, enum ty ty, int n, LLVMValueRef *args)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s%d", name, ty == TY_BF16 ? "bf" : ty_is_float(ty) ? "f" : "i", ty_bits(ty));
    return kb_call(k, full, k->ty[ty], n, args, false);
}

/* ---- ordering points --------------------------------------------------------------------------------------------- */

static void record_point(kb *k, const char *what, const char *file, int line)
{
    if (k->npoints == k->cap_points) {
        const int cap = k->cap_points ? 2 * k->cap_points : 32;
        char **grown = realloc(k->point, sizeof *grown * (size_t)cap);
        if (!grown) {
            kb_misuse(k, "out of memory");
            return;
        }
        k->point = grown;
        k->cap_points = cap;
    }
    const size_t size = strlen(file) + strlen(what) + 16;
    char *text = malloc(size);
    if (!text) {
        kb_misuse(k, "out of memory");
        return;
    }
    snprintf(text, size, "%s:%d: %s", kb_file_name(file), line, what);
    k->point[k->npoints++] = text;
}

bool kb_omit(kb *k, const char *what, const char *file, int line)
{
    record_point(k, what, file, line);
    return k->npoints == k->options.omit_point;
}

bool kb_point_at(kb *k, const char *what, const char *file, int line) { return !kb_omit(k, what, file, line); }
int kb_points(const kb *k) { return k->npoints; }

const char *kb_point_text(const kb *k, int i) { return i >= 1 && i <= k->npoints ? k->point[i - 1] : ""; }
