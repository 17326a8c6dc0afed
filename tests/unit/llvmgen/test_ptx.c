/* SPDX-License-Identifier: Apache-2.0 */
/* test_ptx.c - modules to PTX: math libraries, errors that LLVM reports in its own ways, threads, device rows. */
#include <pthread.h>

#include "support/emit_fixture.h"
#include "llvmgen/targets/caps.h"

/* ---- math libraries ---------------------------------------------------------------------------------------------- */

static const struct function {
    const char *name;
    int fn, arity;
    char types;
} functions[] = {
#define FN(id, name, arity, types, what) { name, FN_##id, arity, types },
#include "frontend/expr/functions.def"
#undef FN
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

struct call {
    int fn, arity;
    enum ty ty;
};

static void emit_call(kb *k, const void *arg)
{
    const struct call *c = arg;
    kb_val x[3];
    kb_kernel_begin(k, "kernel", 64, 0, 0, 1);
    kb_ptr p = kb_param_ptr(k, c->ty, 8, 0, "p");
    for (int i = 0; i < 3; i++)
        x[i] = kb_load(k, p, kb_add(k, kb_tid(k), 64 * i));
    kb_val r = c->fn == KB_FN_FMOD ? kb_rem(k, x[0], x[1]) : emit_function(k, (enum fn)c->fn, c->arity, x);
    kb_store(k, p, kb_tid(k), r.ty == TY_BOOL ? kb_cast(k, r, c->ty) : r);
    kb_kernel_end(k);
}

/* Library code that keeps an array for large arguments; everything else stays in registers. */
static bool may_use_local(int fn) { return fn == FN_SIN || fn == FN_COS || fn == FN_TAN; }
/* … and what it marks as never to be inlined. */
static bool may_call(const struct call *c) { return c->ty == TY_F64 && (may_use_local(c->fn) || c->fn == FN_POW); }

static void check_function(const char *name, struct call c, const char *library, const char *arch)
{
    struct emitted e = emit_with((struct emission_options){ .arch = arch, .gen.libdevice = library }, emit_call, &c);
    cr_assert(e.ok, "%s.%s: %s", name, ty_name(c.ty), e.error);
    cr_expect_eq(occurrences(e.text, ".extern"), 0, "%s.%s", name, ty_name(c.ty));
    if (!may_call(&c))
        cr_expect_eq(occurrences(e.text, ".func"), 0, "%s.%s: not inlined", name, ty_name(c.ty));
    cr_expect_eq(occurrences(e.text, ".weak"), 0, "%s.%s: visible outside", name, ty_name(c.ty));
    if (!may_use_local(c.fn))
        cr_expect_eq(occurrences(e.text, ".local"), 0, "%s.%s uses local memory", name, ty_name(c.ty));
    free(e.text);
}

static void check_all(const char *library, const char *arch)
{
    static const enum ty types[] = { TY_F32, TY_F64, TY_F16, TY_BF16 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int i = 0; i < NFUNCTIONS; i++)
            if (functions[i].types == 'F')
                check_function(functions[i].name, (struct call){ functions[i].fn, functions[i].arity, types[t] },
                               library, arch);
        check_function("%", (struct call){ KB_FN_FMOD, 2, types[t] }, library, arch);
    }
}

static bool have_library(void)
{
    struct call c = { FN_EXP, 1, TY_F32 };
    struct emitted e = emit_with((struct emission_options){ 0 }, emit_call, &c);
    free(e.text);
    return e.ok || strncmp(e.error, "4002", 4) != 0;
}

Test(ptx, every_function, .timeout = 120)
{
    if (!have_library())
        cr_skip("no math library here");
    check_all(NULL, "sm_90");
}

Test(ptx, every_function_on_old_hardware, .timeout = 120)
{
    if (!have_library())
        cr_skip("no math library here");
    check_all(NULL, "sm_70");
}

Test(ptx, library_in_every_pipeline)
{
    static const int fn[] = { FN_EXP, FN_SIN, FN_POW, FN_ATAN2 };
    if (!have_library())
        cr_skip("no math library here");
    for (int p = PIPELINE_LEAN; p <= PIPELINE_O3; p++) {
        for (size_t i = 0; i < sizeof fn / sizeof *fn; i++) {
            struct call c = { fn[i], functions[fn[i]].arity, TY_F32 };
            struct emitted e = emit_with((struct emission_options){ .gen.pipeline = p }, emit_call, &c);
            cr_assert(e.ok, "%s: %s", functions[fn[i]].name, e.error);
            cr_expect_eq(occurrences(e.text, ".func"), 0, "%s, pipeline %d", functions[fn[i]].name, p);
            cr_expect_eq(occurrences(e.text, "__nvvm_reflect"), 0);
            free(e.text);
        }
    }
}

/* Two values' functions, of each value again, in the order that `turned` says. */
static void emit_waves(kb *k, const void *arg)
{
    const bool turned = *(const bool *)arg;
    kb_kernel_begin(k, "kernel", 64, 0, 0, 1);
    kb_ptr p = kb_param_ptr(k, TY_F32, 8, 0, "p");
    for (int i = 0; i < 2; i++) {
        kb_val r = kb_immf(k, TY_F32, 0), x = kb_load(k, p, kb_add(k, kb_tid(k), 64 * i));
        for (int j = 0; j < 2; j++) {
            const kb_val sine = emit_function(k, turned ? FN_COS : FN_SIN, 1, &x);
            const kb_val cosine = emit_function(k, turned ? FN_SIN : FN_COS, 1, &x);
            r = kb_add(k, r, kb_mul(k, sine, cosine));
        }
        kb_store(k, p, kb_add(k, kb_tid(k), 128 + 64 * i), r);
    }
    kb_kernel_end(k);
}

/* A value is reduced once for its sine and its cosine, however often they are called: the reduction's last factor is
 * pi / 2 in double precision. */
Test(ptx, sine_and_cosine_of_one_value)
{
    if (!have_library())
        cr_skip("no math library here");
    for (int turned = 0; turned < 2; turned++) {
        struct emitted e = emit_with((struct emission_options){ 0 }, emit_waves, &(bool){ turned });
        cr_assert(e.ok, "%s", e.error);
        cr_expect_eq(occurrences(e.text, "0d3BF921FB54442D19"), 2, "%d reductions of 2 values\n%s",
                     occurrences(e.text, "0d3BF921FB54442D19"), e.text);
        cr_expect_eq(occurrences(e.text, ".extern"), 0);
        free(e.text);
    }
}

/* The fallback has the same functions under other names. */
Test(ptx, libclc, .timeout = 200)
{
    static const char path[] = "/usr/lib/clc/nvptx64--.bc";
    if (access(path, R_OK) != 0)
        cr_skip("no libclc here");
    for (int i = 0; i < NFUNCTIONS; i++) {
        struct call c = { functions[i].fn, functions[i].arity, i % 2 ? TY_F64 : TY_F32 };
        if (functions[i].types != 'F')
            continue;
        struct emitted e = emit_with((struct emission_options){ .gen.libdevice = path }, emit_call, &c);
        cr_expect(e.ok, "%s.%s: %s", functions[i].name, ty_name(c.ty), e.error);
        cr_expect_eq(occurrences(e.text, ".extern"), 0, "%s.%s", functions[i].name, ty_name(c.ty));
        free(e.text);
    }
    struct emitted e = emit_with((struct emission_options){ .gen.libdevice = path }, emit_waves, &(bool){ false });
    cr_expect(e.ok, "a sine and a cosine: %s", e.error);
    free(e.text);
}

/* 1 / sqrt of what is no less than the least normal number, and of what may be less. */
enum {
    ROOT_SQUARE,
    ROOT_SQUARES,
    ROOT_FMA,
    ROOT_MAGNITUDE,
    ROOTS_NORMAL,
    ROOT_PLAIN = ROOTS_NORMAL,
    ROOT_SUBNORMAL,
    ROOT_PRODUCT,
    ROOT_DIFFERENCE,
    ROOTS
};

static void emit_root(kb *k, const void *arg)
{
    const int kind = *(const int *)arg;
    kb_kernel_begin(k, "kernel", 64, 0, 0, 1);
    kb_ptr p = kb_param_ptr(k, TY_F32, 4, 0, "p");
    const kb_val x = kb_load(k, p, kb_tid(k)), y = kb_load(k, p, kb_add(k, kb_tid(k), 64));
    const kb_val soft = kb_immf(k, TY_F32, kind == ROOT_SUBNORMAL ? 1e-39 : 0.01), square = kb_mul(k, x, x);
    kb_val to = kb_add(k, square, soft);
    if (kind == ROOT_SQUARES)
        to = kb_add(k, square, kb_add(k, kb_mul(k, y, y), soft));
    else if (kind == ROOT_FMA)
        to = emit_function(k, FN_FMA, 3, (kb_val[]){ x, x, soft });
    else if (kind == ROOT_MAGNITUDE)
        to = kb_add(k, emit_function(k, FN_ABS, 1, &y), soft);
    else if (kind == ROOT_PLAIN)
        to = square;
    else if (kind == ROOT_PRODUCT)
        to = kb_add(k, kb_mul(k, x, y), soft);
    else if (kind == ROOT_DIFFERENCE)
        to = kb_sub(k, square, soft);
    kb_store(k, p, kb_tid(k), emit_function(k, FN_RSQRT, 1, &to));
    kb_kernel_end(k);
}

Test(ptx, roots_of_normal_numbers_are_short)
{
    if (!have_library())
        cr_skip("no math library here");
    for (int kind = 0; kind < ROOTS; kind++) {
        struct emitted e = emit_with((struct emission_options){ 0 }, emit_root, &kind);
        cr_assert(e.ok, "%s", e.error);
        cr_expect_eq(occurrences(e.text, "rsqrt.approx.ftz.f32"), kind < ROOTS_NORMAL, "%d\n%s", kind, e.text);
        cr_expect_eq(occurrences(e.text, "rsqrt.approx"), 1, "%d", kind);
        free(e.text);
    }
}

static void two_kernels(kb *k, const void *arg)
{
    struct call c = { FN_TANH, 1, TY_F32 };
    (void)arg;
    for (int i = 0; i < 2; i++) {
        kb_kernel_begin(k, i ? "second" : "first", 64, 0, 0, 1);
        kb_ptr p = kb_param_ptr(k, TY_F32, 4, 0, "p");
        kb_ptr s = kb_shared_v(k, TY_F32, 64, "s");
        kb_val x = kb_load(k, p, kb_tid(k));
        kb_store(k, s, kb_tid(k), emit_function(k, (enum fn)c.fn, 1, &x));
        kb_barrier(k);
        kb_store(k, p, kb_tid(k), kb_load(k, s, kb_xor(k, kb_tid(k), 1)));
        kb_kernel_end(k);
    }
}
Test(ptx, kernels_of_one_module)
{
    if (!have_library())
        cr_skip("no math library here");
    struct emitted e = emit_with((struct emission_options){ 0 }, two_kernels, NULL);
    cr_assert(e.ok, "%s", e.error);
    cr_expect_eq(occurrences(e.text, ".visible .entry"), 2);
    cr_expect_eq(occurrences(e.text, ".shared .align 128 .b8 first_shared[256]"), 1);
    cr_expect_eq(occurrences(e.text, ".shared .align 128 .b8 second_shared[256]"), 1);
    cr_expect_eq(occurrences(e.text, "__nv_"), occurrences(e.text, "// %__nv_"),
                 "names of the library are comments only");
    cr_expect_str_empty(assemble(e.text, "sm_90"));
    free(e.text);
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

Test(ptx, layout)
{
    static const struct {
        const char *from, *to;
    } row[] = {
        { "\tadd.s32 \t%r1, %r2, -1;\n", "add.s32 %r1,%r2,-1;\n" },
        { "\t// begin inline asm\n\tld.global.v2.f32 {%r1,%r2}, [%rd1];\n\t// end inline asm\n",
          "ld.global.v2.f32 {%r1,%r2},[%rd1];\n" },
        { "$L__BB0_2:      // %tiles.stay\n        //   in Loop: Header=BB0_1 Depth=1\n", "$L0_2: // %tiles.stay\n" },
        { "// %bb.0:            // %entry\n", "" },
        { "// %bb.0:            // %entry3\n", "// %entry3\n" },
        { "// %bb.3:\n\n\tret;\n", "\nret;\n" },
        { "\t@%p1 bra \t$L__BB0_3;\n", "@%p1 bra $L0_3;\n" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", row[i].from);
        const size_t length = ptx_lay_out(text, strlen(text));
        cr_expect_str_eq(text, row[i].to);
        cr_expect_eq(length, strlen(row[i].to));
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

Test(ptx, library_errors)
{
    const struct {
        const char *path, *says;
    } row[] = { { "/nonexistent/libdevice.bc", "/nonexistent/libdevice.bc" },
                { PTXGEN_SOURCE_DIR "/CMakeLists.txt", "bitcode" } };
    struct call c = { FN_EXP, 1, TY_F32 };
    for (int i = 0; i < 2; i++) {
        struct emitted e = emit_with((struct emission_options){ .gen.libdevice = row[i].path }, emit_call, &c);
        cr_expect_not(e.ok);
        cr_expect_not_null(strstr(e.error, row[i].says), "%s", e.error);
    }
}

/* A name that PTX cannot spell is a fatal error of LLVM: reported, and the next module is not affected. */
static void unspeakable(kb *k, const void *arg)
{
    kb_kernel_begin(k, arg, 32, 0, 0, 0);
    kb_kernel_end(k);
}
Test(ptx, fatal_errors_are_survived)
{
    for (int i = 0; i < 3; i++) {
        struct emitted bad = emit_with((struct emission_options){ 0 }, unspeakable, "a-b");
        cr_expect_not(bad.ok);
        cr_expect_not_null(strstr(bad.error, "4001 "), "%s", bad.error);
        cr_expect_not_null(strstr(bad.error, "unsupported characters"), "%s", bad.error);
        struct emitted good = emit_with((struct emission_options){ 0 }, unspeakable, "a_b");
        cr_expect(good.ok, "%s", good.error);
        free(good.text);
    }
}

/* A guard inside a guard that has returned leaves the outer one in charge. */
static void nothing(void *user) { (void)user; }
static void fatal_after_inner(void *user)
{
    struct llvm_errors ignored = { 0 };
    struct codegen *cg = user;
    kb *k = codegen_builder(cg);
    LLVMMemoryBufferRef buffer;
    char *text = NULL;
    unspeakable(k, "a-b");
    LLVMTargetRef target = NULL;
    LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &target, &text);
    LLVMTargetMachineRef tm = LLVMCreateTargetMachine(target, "nvptx64-nvidia-cuda", "sm_90", "+ptx80",
                                                      LLVMCodeGenLevelNone, LLVMRelocDefault, LLVMCodeModelDefault);
    llvm_guard(nothing, NULL, &ignored);
    LLVMTargetMachineEmitToMemoryBuffer(tm, kb_module(k), LLVMAssemblyFile, &text, &buffer); /* does not return */
}
Test(ptx, nested_guards)
{
    struct llvm_errors e = { 0 };
    struct device d;
    cr_assert(device_by_name("sm_90", 0, &d));
    struct codegen *cg = codegen_begin(&d, &(struct llvmgen_options){ 0 }, "test");
    cr_expect_not(llvm_guard(fatal_after_inner, cg, &e));
    cr_expect_eq(e.count, 1); /* the module is abandoned */
}

static void fail_deep(void *user)
{
    struct llvm_errors *inner = user;
    LLVMContextRef cx = llvm_context(inner);
    LLVMContextDispose(cx);
    llvm_error(inner, "one\ntwo");
    llvm_error(inner, "second");
}
Test(ptx, errors_keep_the_first)
{
    struct llvm_errors e = { 0 };
    cr_expect(llvm_guard(fail_deep, &e, &e));
    cr_expect_eq(e.count, 2);
    cr_expect_str_eq(e.first, "one two");
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *compile_many(void *result)
{
    struct call c = { FN_LOG2, 1, TY_F32 };
    for (int i = 0; i < 8; i++) {
        struct emitted e = emit_with((struct emission_options){ 0 }, i % 2 ? unspeakable : emit_call,
                                     i % 2 ? (const void *)"x-y" : &c);
        if (e.ok == (i % 2 == 1))
            *(bool *)result = false;
        free(e.text);
    }
    return NULL;
}
Test(ptx, threads)
{
    enum { N = 4 };
    pthread_t thread[N];
    bool ok[N] = { true, true, true, true };
    if (!have_library())
        cr_skip("no math library here");
    for (int i = 0; i < N; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, compile_many, &ok[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        cr_expect(ok[i], "thread %d", i);
    }
}

/* The functions that are called, not inlined, are numbered by the machine: layout leaves out what shows it. */
Test(ptx, a_machine_serves_many_modules)
{
    const struct call c = { FN_SIN, 1, TY_F64 };
    char *text[2] = { NULL, NULL };
    if (!have_library())
        cr_skip("no math library here");
    const int before = codegen_machines();
    for (int i = 0; i < 600; i++) {
        struct emitted e = emit_with((struct emission_options){ .arch = i % 2 ? "sm_80" : "sm_86" },
                                     i % 10 < 2 ? emit_call : unspeakable, i % 10 < 2 ? (const void *)&c : "a_b");
        cr_assert(e.ok, "%s", e.error);
        if (i % 10 < 2 && text[i % 2])
            cr_expect_str_eq(e.text, text[i % 2], "module %d", i);
        if (text[i % 2])
            free(e.text);
        else
            text[i % 2] = e.text;
    }
    cr_expect_eq(codegen_machines() - before, 4, "two for 300 modules, two for an architecture");
    free(text[0]);
    free(text[1]);
}

/* ---- devices and capabilities ------------------------------------------------------------------------------------ */

Test(ptx, device_rows)
{
    const char *const *name;
    const int n = device_names(&name);
    struct device d, same;
    cr_expect_geq(n, 15);
    for (int i = 0; i < n; i++) {
        cr_assert(device_by_name(name[i], 0, &d), "%s", name[i]);
        cr_expect_str_eq(d.arch, name[i]);
        cr_expect_eq(d.sm, atoi(name[i] + 3));
        cr_expect_geq(d.ptx, d.ptx_min);
        cr_expect_leq(d.shared_per_block, d.shared_per_sm);
        cr_expect_geq(d.shared_per_block, 48 * 1024);
        cr_expect_eq(d.threads_per_sm % 512, 0);
        cr_expect(device_by_name(name[i] + 3, 0, &same) && strcmp(same.arch, name[i]) == 0, "%s without sm_", name[i]);
        cr_expect(device_by_name(name[i], 90, &same) && same.ptx == 90, "%s with PTX 9.0", name[i]);
        cr_expect_not(device_by_name(name[i], d.ptx_min - 1, &same), "%s below its minimum", name[i]);
    }
    const char *const bad[] = { "", "sm_", "sm_30", "sm_99", "90x", "native", "sm_sm_90", "sm_9" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(device_by_name(bad[i], 0, &d), "%s", bad[i]);
    cr_expect_not(device_by_name("sm_80", 79, &d), "no such version");
    cr_expect_not(device_by_name("sm_80", 91, &d), "newer than LLVM");
    cr_assert(device_by_name("sm_90", 0, &d));
    cr_expect_eq(d.shared_per_block, 227 * 1024);
}

Test(ptx, capabilities)
{
    cr_expect(cap_has(CAP_REDUX, 80, 70));
    cr_expect_not(cap_has(CAP_REDUX, 75, 74));
    cr_expect_not(cap_has(CAP_CLUSTER, 90, 77));
    cr_expect(cap_has(CAP_DEPENDENT_LAUNCH, 120, 87));
    for (int c = 0; c < CAP_COUNT; c++)
        cr_expect(cap_text((enum cap)c)[0]);
}

/* The lowest PTX version that a device accepts is enough for what is emitted there. */
static void everything(kb *k, const void *arg)
{
    (void)arg;
    kb_kernel_begin(k, "kernel", 64, 0, 0, 1);
    kb_ptr p = kb_param_ptr(k, TY_U32, 16, KB_STREAM, "p");
    kb_val v[4];
    kb_load_n(k, p, kb_mul(k, kb_tid(k), 4), 4, 16, v);
    v[0] = kb_add(k, v[0], kb_ballot(k, kb_any(k, kb_all(k, kb_lt(k, v[1], v[2])))));
    v[0] = kb_add(k, v[0], kb_match(k, kb_cast(k, v[3], TY_I32)));
    if (kb_has_redux(k))
        v[0] = kb_redux(k, KB_RMW_ADD, v[0]);
    kb_backoff(k, 20);
    kb_warp_sync(k);
    kb_fence(k, KB_ACQ_REL, KB_SCOPE_SYSTEM);
    kb_store_release(k, p, kb_tid(k), v[0]);
    kb_kernel_end(k);
}
Test(ptx, lowest_versions)
{
    const char *const *name;
    const int n = device_names(&name);
    for (int i = 0; i < n; i++) {
        struct device d;
        device_by_name(name[i], 0, &d);
        const int version[] = { d.ptx_min, 90 };
        for (int v = 0; v < 2; v++) {
            struct emitted e =
                emit_with((struct emission_options){ .arch = name[i], .ptx = version[v] }, everything, NULL);
            cr_assert(e.ok, "%s PTX %d: %s", name[i], version[v], e.error);
            const char *said = assemble(e.text, name[i]);
            cr_expect_str_empty(said, "%s PTX %d: %s", name[i], version[v], said);
            free(e.text);
        }
    }
}
